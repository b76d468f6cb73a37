//! `samovar test`: results of a suite in forks are those of `phpunit`, except for state that tests
//! leak; crashes, hangs, reruns, and the quarantine.

mod dependencies;
mod fixtures;
mod frameworks;
mod mocks;

use fixtures::{Project, class, junit};
use samovar_testkit::eventually;
use std::path::Path;

/// A test that changes the state of its process, and one that finds it in a class that runs later.
const LEAKS: [(&str, &str, &str); 7] = [
    ("static", r"\Registry::$items[] = 1;", r"self::assertSame([], \Registry::$items);"),
    ("global", r"$GLOBALS['leak'] = 1;", r"self::assertArrayNotHasKey('leak', $GLOBALS);"),
    ("ini", r"ini_set('precision', '3');", r"self::assertNotSame('3', ini_get('precision'));"),
    ("constant", r"define('LEAK', 1);", r"self::assertFalse(defined('LEAK'));"),
    ("environment", r"putenv('LEAK=1');", r"self::assertFalse(getenv('LEAK'));"),
    (
        "time zone",
        r"date_default_timezone_set('Asia/Tokyo');",
        r"self::assertSame('UTC', date_default_timezone_get());",
    ),
    ("umask", r"umask(0177);", r"self::assertNotSame(0177, umask());"),
];

#[test]
fn leaked_state_fails_in_one_process_and_not_in_forks() {
    for (name, leak, check) in LEAKS {
        let project = Project::new(&[
            ("tests/bootstrap.php", "<?php final class Registry { public static $items = []; }"),
            (
                "tests/ALeakTest.php",
                &class("ALeakTest", &[("testLeak", &format!("{leak} self::assertTrue(true);"))]),
            ),
            ("tests/BCleanTest.php", &class("BCleanTest", &[("testClean", check)])),
        ]);
        assert_eq!(project.phpunit(&[]).status, 1, "{name}");
        for by in ["class", "file", "test"] {
            let opcache = if by == "test" { "opcache.enable=0" } else { "opcache.enable=1" };
            let run = project.test(&["--by", by, "-d", opcache]);
            assert_eq!(run.status, 0, "{name} by {by}: {}", run.text);
            assert!(run.text.contains("OK\nTests: 2, Assertions: 2."), "{}", run.text);
        }
    }
}

#[test]
fn results_are_those_of_phpunit() {
    let project = Project::new(&[
        ("tests/bootstrap.php", "<?php $fromBootstrap = 1;"),
        (
            "tests/AllTest.php",
            &class(
                "AllTest",
                &[
                    ("testGood", "self::assertSame(1, $GLOBALS['fromBootstrap']);"),
                    ("testBad", "self::assertSame('<a & \"b\">', 'c');"),
                    ("testThrows", "throw new RuntimeException('thrown');"),
                    ("testNotice", "echo $undefined;"),
                    ("testSkipped", "$this->markTestSkipped('why');"),
                    ("testIncomplete", "$this->markTestIncomplete('why');"),
                    ("testRisky", ""),
                    ("testOutput", "echo 'printed'; self::assertTrue(true);"),
                    ("testExit", "$this->expectException(Error::class); throw new Error();"),
                ],
            ),
        ),
        (
            "tests/sub/DataTest.php",
            "<?php namespace Sub;
            final class DataTest extends \\PHPUnit\\Framework\\TestCase
            {
                public function data(): array { return ['a < b' => [1], 'c::d' => [2], [3]]; }
                /** @dataProvider data */
                public function testData(int $n): void { self::assertLessThan(3, $n); }
                /** @depends testFirst */
                public function testSecond(int $n): void { self::assertSame(7, $n); }
                public function testFirst(): int { self::assertTrue(true); return 7; }
                /** @runInSeparateProcess */
                public function testSeparate(): void { self::assertSame('cli', PHP_SAPI); }
                /** @group slow */
                public function testSlow(): void { self::assertNotSame('', PHP_BINARY); }
            }",
        ),
        (
            "tests/ProviderTest.php",
            "<?php
            final class ProviderTest extends PHPUnit\\Framework\\TestCase
            {
                public function none(): array { throw new RuntimeException('no data'); }
                /** @dataProvider none */
                public function testData(int $n): void { self::assertLessThan(3, $n); }
            }",
        ),
        (
            "tests/EmptyTest.php",
            "<?php final class EmptyTest extends PHPUnit\\Framework\\TestCase {}",
        ),
        (
            "tests/MisnamedTest.php",
            "<?php
            final class FirstTest extends PHPUnit\\Framework\\TestCase
            { public function testOne(): void { self::assertTrue(true); } }
            final class SecondTest extends PHPUnit\\Framework\\TestCase
            { public function testTwo(): void { self::assertTrue(false); } }",
        ),
        (
            "tests/format.phpt",
            "--TEST--\nA test of PHP\n--FILE--\n<?php echo 1 + 1;\n--EXPECT--\n2\n",
        ),
    ]);
    for options in [
        &[][..],
        &["--group", "slow"],
        &["--filter", "Data"],
        &["tests/sub"],
        &["--exclude-group=slow"],
    ] {
        let (expected, found) = (project.phpunit(options), project.test_with(&[], options));
        assert_eq!(found.status, expected.status, "{options:?}: {}", found.text);
        assert_eq!(junit(&found.log), junit(&expected.log), "{options:?}: {}", found.text);
    }
}

#[test]
fn crash_hang_and_exit_cost_one_test_each() {
    let good = "self::assertTrue(true);";
    let project = Project::new(&[
        (
            "tests/CrashTest.php",
            &class(
                "CrashTest",
                &[
                    ("testBefore", good),
                    (
                        "testCrash",
                        "fwrite(STDERR, 'last words'); posix_kill(posix_getpid(), SIGSEGV);",
                    ),
                    ("testAfter", good),
                ],
            ),
        ),
        ("tests/ExitTest.php", &class("ExitTest", &[("testExit", "exit(0);"), ("testGood", good)])),
        (
            "tests/FatalTest.php",
            &class(
                "FatalTest",
                &[("testFatal", "eval('class A {} class A {}');"), ("testGood", good)],
            ),
        ),
        (
            "tests/HangTest.php",
            &class(
                "HangTest",
                &[
                    (
                        "testHang",
                        "exec('sleep 1000 >/dev/null 2>&1 & echo $!', $pid);
                    $other = 'setsid sh -c \"sleep 1000 & sleep 1000\"';
                    exec(\"$other >/dev/null 2>&1 & echo $!\", $pid);
                    file_put_contents(__DIR__ . '/pid', \"$pid[0] $pid[1]\");
                    while (true) { sleep(1); }",
                    ),
                    ("testGood", good),
                ],
            ),
        ),
    ]);
    let run = project.test(&["--time-limit", "3s"]);
    assert_eq!(run.status, 2, "{}", run.text);
    assert!(run.text.contains("Tests: 9, Assertions: 5, Errors: 4."), "{}", run.text);
    for part in [
        "CrashTest::testCrash\nThe test has no result: its process was ended by signal 11",
        "last words",
        "ExitTest::testExit\nThe test has no result: its process ended with status 0",
        "FatalTest::testFatal\nThe test has no result: its process ended with status 255",
        "Cannot declare class A",
        "HangTest::testHang\nThe test has no result: it ran for more than 3 s, and was killed",
    ] {
        assert!(run.text.contains(part), "{part}: {}", run.text);
    }
    let pids = std::fs::read_to_string(project.path("tests/pid")).expect("the hanging test ran");
    // The second one has left the process group of its test.
    for pid in pids.split(' ') {
        let process = format!("/proc/{pid}");
        eventually("the end of a program that a test has started", || {
            (!Path::new(&process).exists()).then_some(())
        });
    }
}

#[test]
fn application_is_booted_once_and_its_environment_is_that_of_phpunit() {
    let random = "file_put_contents(__DIR__ . '/random', mt_rand() . PHP_EOL, FILE_APPEND);
        self::assertTrue(true);";
    let project = Project::new(&[
        (
            "tests/bootstrap.php",
            "<?php file_put_contents(__DIR__ . '/boots', getmypid() . PHP_EOL, FILE_APPEND);",
        ),
        (
            "tests/kernel.php",
            "<?php final class Kernel { public static $booted; } Kernel::$booted = getmypid();",
        ),
        (
            "tests/ATest.php",
            &class("ATest", &[(
                "testBoot",
                "self::assertNotSame(getmypid(), Kernel::$booted); self::assertSame('7', LIMIT);
                self::assertSame('testing', getenv('APP_ENV'));
                self::assertSame('12', ini_get('precision'));
                self::assertSame('testing', $_ENV['APP_ENV']);
                self::assertContains('--log-junit', $_SERVER['argv']);
                self::assertSame('cli', PHP_SAPI);
                self::assertFalse(function_exists('fastcgi_finish_request'));
                self::assertMatchesRegularExpression('/^[12]$/', getenv('SAMOVAR_TEST_WORKER'));",
            )]),
        ),
        ("tests/BTest.php", &class("BTest", &[("testRandom", random)])),
        ("tests/CTest.php", &class("CTest", &[("testRandom", random)])),
    ]);
    std::fs::write(
        project.path("phpunit.xml"),
        "<?xml version=\"1.0\"?>\n<phpunit bootstrap=\"tests/bootstrap.php\">
        <php><const name=\"LIMIT\" value=\"7\"/><env name=\"APP_ENV\" value=\"testing\"/>
        <ini name=\"precision\" value=\"12\"/></php>
        <testsuites><testsuite name=\"all\"><directory>tests</directory></testsuite></testsuites>
        </phpunit>",
    )
    .expect("our folder");
    std::fs::write(project.path("tests/random"), "").expect("our folder");
    let run =
        project.test(&["--boot", "tests/kernel.php", "-j", "2", "-d", "variables_order=EGPCS"]);
    assert_eq!(run.status, 0, "{}", run.text);
    let boots = std::fs::read_to_string(project.path("tests/boots")).expect("it has booted");
    assert_eq!(boots.lines().count(), 1);
    let random = std::fs::read_to_string(project.path("tests/random")).expect("it has run");
    let mut random: Vec<_> = random.lines().collect();
    random.dedup();
    assert_eq!(random.len(), 2, "forks must not repeat each other's random numbers");
}

#[test]
fn test_that_passes_in_a_rerun_is_flaky() {
    let flaky = "$n = (int) @file_get_contents(__DIR__ . '/n') + 1;
        file_put_contents(__DIR__ . '/n', (string) $n);
        self::assertGreaterThan(2, $n);";
    let project = Project::new(&[(
        "tests/FlakyTest.php",
        &class("FlakyTest", &[("testFlaky", flaky), ("testGood", "self::assertTrue(true);")]),
    )]);
    let run = project.test(&["--rerun-failed", "1"]);
    assert_eq!(run.status, 1, "{}", run.text);
    std::fs::remove_file(project.path("tests/n")).expect("the test ran");
    let run = project.test(&["--rerun-failed", "2"]);
    assert_eq!(run.status, 0, "{}", run.text);
    assert!(run.text.contains("FlakyTest::testFlaky (passed in rerun 2)"), "{}", run.text);
    assert!(run.text.contains("OK\nTests: 2, Assertions: 2, Flaky: 1."), "{}", run.text);
    assert!(run.log.contains("<flakyFailure message=\"passed in rerun 2\""), "{}", run.log);
}

#[test]
fn test_that_needs_another_one_first_is_order_dependent() {
    let methods: Vec<String> = (1..=6).map(|n| format!("testStep{n}")).collect();
    let texts: Vec<String> =
        (1..=6).map(|n| format!("self::assertSame({n}, ++self::$steps);")).collect();
    let steps: Vec<_> =
        methods.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let text = class("StepsTest", &steps).replacen('{', "{ private static $steps = 0;", 1);
    let project = Project::new(&[("tests/StepsTest.php", &text)]);
    assert_eq!(project.test(&[]).status, 0);
    // Of these seeds at most one may give the order of the source code.
    let runs: Vec<_> = (1..=3).map(|seed| project.test(&[&format!("--shuffle={seed}")])).collect();
    let found = runs.iter().filter(|run| run.status == 1 && run.text.contains("Order-dependent: "));
    assert!(found.count() >= 2, "{}", runs[0].text);
    assert!(runs[0].text.contains("Random order with seed 1"), "{}", runs[0].text);
}

#[test]
fn quarantine_excuses_known_failures_until_their_day() {
    let project = Project::new(&[(
        "tests/KnownTest.php",
        &class(
            "KnownTest",
            &[("testKnown", "self::fail('known');"), ("testGood", "self::assertTrue(true);")],
        ),
    )]);
    let entry = |until: &str| {
        let text = format!(
            "[[test]]\ntest = 'KnownTest::testKnown'\nowner = 'ann'\nreason = 'a'\nuntil = {until}"
        );
        std::fs::write(project.path("samovar-quarantine.toml"), text).expect("our folder");
        project.test(&[])
    };
    let run = entry("2999-01-01");
    assert_eq!(run.status, 0, "{}", run.text);
    assert!(
        run.text.contains("KnownTest::testKnown (owner ann, until 2999-01-01)"),
        "{}",
        run.text
    );
    let run = entry("2020-01-01");
    assert_eq!(run.status, 1, "{}", run.text);
    assert!(run.text.contains("ended on 2020-01-01; owner: ann"), "{}", run.text);
    let run = entry("'soon'");
    assert_eq!(run.status, 2, "{}", run.text);
    assert!(run.text.contains("`until = soon` is not a date"), "{}", run.text);
}

#[test]
fn each_process_has_its_own_database_cloned_by_a_command() {
    let query = "$file = __DIR__ . '/db' . getenv('SAMOVAR_TEST_UNIT');
        $db = new PDO('sqlite:' . $file); $db->exec('INSERT INTO notes VALUES (1)');
        self::assertSame('1', (string) $db->query('SELECT count(*) FROM notes')->fetchColumn());";
    let project = Project::new(&[
        ("tests/ATest.php", &class("ATest", &[("testInsert", query)])),
        ("tests/BTest.php", &class("BTest", &[("testInsert", query)])),
        (
            "template.php",
            "<?php (new PDO('sqlite:tests/template'))->exec('CREATE TABLE notes (id INT)');",
        ),
    ]);
    project.php("template.php");
    let run = project.test(&[
        "--before",
        "cp tests/template tests/db$SAMOVAR_TEST_UNIT",
        "--after",
        "rm tests/db$SAMOVAR_TEST_UNIT",
    ]);
    assert_eq!(run.status, 0, "{}", run.text);
    assert!(!project.path("tests/db1").exists());
    let run = project.test(&["--before", "exit 3"]);
    assert_eq!(run.status, 2, "{}", run.text);
    assert!(run.text.contains("the command `exit 3` failed with status 3"), "{}", run.text);
}

#[test]
fn run_that_cannot_start_names_the_reason() {
    let project = Project::new(&[("tests/README", "")]);
    let check = |flags: &[&str], options: &[&str], word: &str| {
        let run = project.test_with(flags, options);
        assert_eq!(run.status, 2, "{}", run.text);
        assert!(run.text.contains(word), "{word}: {}", run.text);
    };
    check(&[], &[], "no tests found");
    let test = class("ATest", &[("testGood", "self::assertTrue(true);")]);
    std::fs::write(project.path("tests/ATest.php"), test).expect("our folder");
    check(&[], &["--filter", "nothing"], "no test has run\nhint: ");
    check(&[], &["--group", "nothing"], "no test has run\nhint: ");
    check(&[], &["--bootstrap", "missing.php"], "did not list its tests");
    check(&[], &["--list-tests"], "`--list-tests` cannot be used");
    check(&["--boot", "missing.php"], &[], "there is no such file");
    check(&["--by", "suite"], &[], "it takes `class`, `file` or `test`");
    check(&["--php", "7.4"], &[], "samovar-php7.4");
    check(&["--log-junit", "none/a.xml"], &[], "cannot write `none/a.xml`");
    std::fs::write(project.path("broken.php"), "<?php throw new Error('broken boot');")
        .expect("our folder");
    check(&[], &["--bootstrap", "broken.php"], "broken boot");
}

#[test]
fn suite_without_a_configuration_runs_with_options_and_shuffled() {
    let project = Project::new(&[
        ("tests/ATest.php", &class("ATest", &[("testGood", "self::assertTrue(true);")])),
        ("tests/BTest.php", &class("BTest", &[("testGood", "self::assertTrue(true);")])),
    ]);
    std::fs::remove_file(project.path("phpunit.xml")).expect("our folder");
    for (flags, options, counts) in [
        (&[][..], &["tests"][..], "Tests: 2, Assertions: 2."),
        (&[], &["--filter", "B", "tests"], "Tests: 1, Assertions: 1."),
        (&["--by", "test"], &["--filter=B", "--no-configuration", "tests"], "Tests: 1, "),
        (&["--shuffle"], &["--group", "default", "tests"], "Tests: 2, Assertions: 2."),
    ] {
        let run = project.test_with(flags, options);
        assert_eq!(run.status, 0, "{flags:?} {options:?}: {}", run.text);
        assert!(run.text.contains(counts), "{flags:?} {options:?}: {}", run.text);
    }
}

#[test]
fn boot_and_list_that_hang_are_killed() {
    let good = class("ATest", &[("testGood", "self::assertTrue(true);")]);
    let hang = "<?php while (true) { sleep(1); }";
    let provider = "<?php final class ATest extends PHPUnit\\Framework\\TestCase
        {
            public function data(): array { while (true) { sleep(1); } }
            /** @dataProvider data */
            public function testData(): void {}
        }";
    // The list begins after the boot, which takes some time next to other tests.
    for (files, limit, word) in [
        (
            [("tests/bootstrap.php", hang), ("tests/ATest.php", &good)],
            "1s",
            "1 s to boot the tests",
        ),
        (
            [("tests/bootstrap.php", "<?php"), ("tests/ATest.php", provider)],
            "9s",
            "9 s to list the",
        ),
    ] {
        let run = Project::new(&files).test(&["--time-limit", limit]);
        assert_eq!(run.status, 2, "{}", run.text);
        assert!(run.text.contains(&format!("PHP took more than {word}")), "{}", run.text);
        assert!(run.text.contains("\nhint: mend the "), "{}", run.text);
    }
}

#[test]
fn coverage_without_an_extension_that_measures_it_is_an_error() {
    let project = Project::new(&[(
        "tests/ATest.php",
        &class("ATest", &[("testGood", "self::assertTrue(true);")]),
    )]);
    let run = project.test_with(&[], &["--coverage-clover", "clover.xml"]);
    assert_eq!(run.status, 2, "{}", run.text);
    let hint = "no coverage was measured\nhint: load the extension pcov or xdebug";
    assert!(run.text.contains(hint), "{}", run.text);
}

#[test]
fn end_of_the_command_ends_its_tests() {
    let project = Project::new(&[(
        "tests/LongTest.php",
        &class(
            "LongTest",
            &[(
                "testLong",
                "file_put_contents(__DIR__ . '/pid', getmypid()); while (true) { sleep(1); }",
            )],
        ),
    )]);
    let mut command = project.start();
    let pid = eventually("a running test", || {
        std::fs::read_to_string(project.path("tests/pid")).ok().filter(|pid| !pid.is_empty())
    });
    command.kill().expect("it runs");
    command.wait().expect("it was killed");
    let process = format!("/proc/{pid}");
    eventually("the end of the test", || (!Path::new(&process).exists()).then_some(()));
    let files = format!("samovar-tests-{}-", command.id());
    eventually("the end of its files", || {
        let mut all = std::fs::read_dir(std::env::temp_dir()).expect("a folder").flatten();
        let is_left = all.any(|entry| entry.file_name().to_string_lossy().starts_with(&files));
        (!is_left).then_some(())
    });
}
