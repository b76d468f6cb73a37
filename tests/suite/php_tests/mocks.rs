//! `Samovar\Mock`: the suite in `tests/apps/mocks` replaces functions, methods, constants and
//! `new`. The published behaviours of `SoftMocks` are part of it.

use super::fixtures::{Project, class};
use samovar_testkit::{Server, workspace};

/// Makes a project of the files in `tests/apps/mocks`.
fn suite() -> Project {
    let folder = workspace().join("tests/apps/mocks");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("in the repository");
    let tests = std::fs::read_dir(folder.join("tests")).expect("in the repository");
    let mut files = vec![("tests/bootstrap.php".to_owned(), read("code.php"))];
    for test in tests {
        let name = format!("tests/{}", test.expect("readable").file_name().to_string_lossy());
        let text = read(&name);
        files.push((name, text.replace("/../code.php", "/bootstrap.php")));
    }
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Project::new(&files)
}

#[test]
fn doubles_replace_functions_methods_constants_and_new() {
    let project = suite();
    for flags in [
        &["--mocks"][..],
        &["--mocks", "--by", "test"],
        // These settings do not reach a run with doubles.
        &["--mocks", "-d", "opcache.enable=1", "-d", "opcache.jit_buffer_size=16M"],
    ] {
        let run = project.test(flags);
        assert_eq!(run.status, 0, "{flags:?}: {}", run.text);
        assert!(run.text.contains("OK\nTests: "), "{}", run.text);
    }
}

/// Doubles of a test are gone in the next one. Doubles of the class stay until its last test.
#[test]
fn doubles_end_with_the_test_that_added_them() {
    let time = "time() === 5 ? 'double' : 'original'";
    let check = |expected: &str| format!("self::assertSame('{expected}', {time});");
    let double = r"\Samovar\Mock::function('time', fn () => 5);";
    let project = Project::new(&[
        (
            "tests/OneTest.php",
            &class(
                "OneTest",
                &[
                    ("testDouble", &format!("{double} {}", check("double"))),
                    ("testNext", &check("original")),
                    ("testThrows", &format!("{double} throw new RuntimeException('thrown');")),
                    ("testAfterThrow", &check("original")),
                    ("testSkips", &format!("{double} $this->markTestSkipped();")),
                    ("testAfterSkip", &check("original")),
                    ("testLoop", "for ($i = 0; $i < 3; $i++) { time(); } self::assertTrue(true);"),
                ],
            ),
        ),
        (
            "tests/ClassTest.php",
            &class(
                "ClassTest",
                &[
                    ("testOne", &check("double")),
                    (
                        "testOwn",
                        r"\Samovar\Mock::function('time', fn () => 6);
                        self::assertSame(6, time());",
                    ),
                    ("testTwo", &check("double")),
                ],
            )
            .replace(
                "public function testOne",
                &format!(
                    "public static function setUpBeforeClass(): void {{ {double} }}
                    public function testOne"
                ),
            ),
        ),
    ]);
    let run = project.test(&["--mocks", "--by", "class"]);
    assert!(run.text.contains("Tests: 10, Assertions: 8, Errors: 1, Skipped: 1."), "{}", run.text);
}

#[test]
fn class_throws_without_the_flag_and_does_not_exist_in_servers() {
    let project = Project::new(&[(
        "tests/OffTest.php",
        &class(
            "OffTest",
            &[(
                "testOff",
                r"$this->expectExceptionMessage('hint: run the tests with `samovar test --mocks`');
                Samovar\Mock::function('time', fn () => 1);",
            )],
        ),
    )]);
    let run = project.test(&[]);
    assert_eq!(run.status, 0, "{}", run.text);
    let folder = tempfile::tempdir().expect("a folder");
    let script = "<?php echo class_exists('Samovar\\Mock', false) ? 'yes' : 'no', PHP_EOL;";
    std::fs::write(folder.path().join("index.php"), script).expect("our folder");
    let server = Server::at(folder.path().join("index.php")).start();
    assert_eq!(server.get("/").text(), "no\n");
}
