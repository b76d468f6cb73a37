//! `samovar lint`: the same messages as `php -l`, for many files in one process; selections of
//! files, the hook, and files that end PHP.

use samovar_testkit::{binary, end, eventually, family, has_ended};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("lint").args(args).current_dir(folder).env_clear();
    command.env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn lint(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, code) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, code).expect("a file");
    }
    folder
}

/// Files with their contents. The next file must not know the functions and classes of another.
const FILES: [(&str, &str); 23] = [
    ("a-class.php", "<?php\nclass Cart extends Exception { public int $n = 1; }\n"),
    ("again.php", "<?php\nclass Cart {}\nfunction total() {}\nconst RATE = 1;\n"),
    ("brace.php", "<?php\nif (true) {\n    echo 1;\n"),
    ("compiler.php", "<?php\nfunction f($a, $a) {}\n"),
    ("deprecated.php", "<?php\nfunction f($a = 1, $b) {}\necho \"${a}\";\n"),
    ("early.php", "<?php\nclass Mine extends ArrayIterator { function current(int $x): int {} }\n"),
    ("empty.php", ""),
    ("enum.php", "<?php\nenum Suit: string { case A = 'a'; case B = 'a'; }\n"),
    ("exit.php", "<?php\nexit(3);\n"),
    ("function.php", "<?php\nfunction total() {}\nfunction total() {}\n"),
    ("halt.php", "<?php\n__halt_compiler();}}}}"),
    ("halt2.php", "<?php\necho __COMPILER_HALT_OFFSET__;\n__halt_compiler();"),
    ("html.php", "<h1><?= $title ?></h1>\n"),
    ("internal.php", "<?php\nfunction strlen($x) {}\nclass ArrayObject {}\n"),
    ("namespace.php", "<?php\nnamespace A;\nuse B\\C;\nuse D\\C;\n"),
    ("parent.php", "<?php\nclass Child extends Missing implements Other {}\n"),
    ("run", "#!/usr/bin/env php\n<?php\necho 1 +;\n"),
    ("samovar.php", "<?php\nnamespace Samovar;\nfunction serve() {}\nclass Table {}\n"),
    (
        "server.php",
        "<?php\nfunction apache_request_headers() {}\nfunction fastcgi_finish_request() {}\n",
    ),
    ("strict.php", "<?php\necho 1;\ndeclare(strict_types=1);\n"),
    ("throw.php", "<?php\nthrow new Exception('x');\n"),
    ("total.php", "<?php\necho RATE;\nfunction total() { return new Cart(; }\n"),
    ("zero.php", "<?php\n$a = 'x\0y';\n$b = \0;\n"),
];

/// The messages of `php -l`: kind, text and line.
fn messages_of_php(folder: &Path, file: &str) -> Vec<(String, String, u64)> {
    let output = Command::new("php")
        .args(["-d", "display_errors=stderr", "-d", "log_errors=0", "-d", "error_reporting=-1"])
        .args(["-d", "html_errors=0", "-l", file])
        .current_dir(folder)
        .output()
        .expect("php runs");
    let text = text(&output.stderr);
    let end = format!(" in {file} on line ");
    text.lines()
        .filter_map(|line| {
            let (message, line) = line.split_once(&end)?;
            let (kind, message) =
                message.strip_prefix("PHP ").unwrap_or(message).split_once(": ")?;
            Some((kind.to_owned(), message.trim().to_owned(), line.trim().parse().ok()?))
        })
        .collect()
}

#[test]
fn messages_are_those_of_php_for_each_file() {
    let folder = project(&FILES);
    let found = lint(folder.path(), &["--format", "json", "--jobs", "1"]);
    let report: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let messages = report["messages"].as_array().expect("a list");
    for (file, _) in FILES {
        let told: Vec<_> = messages
            .iter()
            .filter(|message| message["file"] == file)
            .map(|message| {
                let text = |key: &str| message[key].as_str().expect("a text").to_owned();
                (text("kind"), text("message"), message["line"].as_u64().expect("a line"))
            })
            .collect();
        assert_eq!(told, messages_of_php(folder.path(), file), "{file}");
    }
    assert!(messages.iter().any(|message| message["kind"] == "Deprecated"), "{report:#}");
    assert_eq!((found.status.code(), &report["files"]), (Some(1), &FILES.len().into()));
}

#[test]
fn files_are_compiled_and_not_run() {
    let folder = project(&[("a.php", "<?php\ntouch(__DIR__ . '/ran');\nexit(7);\n")]);
    let found = lint(folder.path(), &[]);
    let report = text(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{report}{}", text(&found.stderr));
    assert!(report.starts_with("0 errors in 1 file, compiled by PHP "), "{report}");
    assert!(!folder.path().join("ran").exists());
}

/// The php.ini of a container is often that of php-fpm.
#[test]
fn preloading_is_off() {
    let folder = project(&[
        ("preload.php", "<?php\nfunction f() {}\ntouch(__DIR__ . '/ran');\n"),
        ("a.php", "<?php\nfunction f() {}\n"),
    ]);
    let preload = format!("opcache.preload={}", folder.path().join("preload.php").display());
    let flags = ["-d", "opcache.enable=1", "-d", "opcache.preload_user=root", "-d", &preload];
    let found = lint(folder.path(), &flags);
    assert_eq!(found.status.code(), Some(0), "{}{}", text(&found.stdout), text(&found.stderr));
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn deprecations_are_errors_only_if_wanted() {
    let folder = project(&[("a.php", "<?php\nfunction f($a = 1, $b) {}\n")]);
    for (args, code) in [(&[][..], 0), (&["--strict"][..], 1)] {
        let found = lint(folder.path(), args);
        assert_eq!(found.status.code(), Some(code), "{args:?}: {}", text(&found.stdout));
        assert!(text(&found.stdout).contains("a.php:2: Deprecated: "), "{}", text(&found.stdout));
    }
}

/// Each of these ends PHP: the other files are compiled all the same.
#[test]
fn file_that_ends_php_costs_no_other_file() {
    let nested = format!("<?php\n$a = {}1{};\n", "[".repeat(400_000), "]".repeat(400_000));
    let large = format!("<?php\n{}\n", "f(1);\n".repeat(50_000));
    let folder = project(&[
        ("a.php", "<?php\n"),
        ("b.php", &nested),
        ("c.php", &large),
        ("d.php", "<?php\n}\n"),
    ]);
    let args = ["-d", "memory_limit=8M", "--format", "json", "--jobs", "1"];
    let found = lint(folder.path(), &args);
    let report: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let messages = report["messages"].as_array().expect("a list");
    let files: Vec<_> = messages.iter().map(|message| &message["file"]).collect();
    assert_eq!(files, ["b.php", "c.php", "d.php"], "{report:#}");
    assert!(
        messages[1]["message"].as_str().expect("a text").contains("memory limit of"),
        "{report:#}"
    );
}

#[test]
fn standard_input_is_a_file_of_the_named_path() {
    let folder = project(&[]);
    let mut child = command(folder.path(), &["--stdin", "src/Cart.php"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(b"<?php\n\n)").expect("it reads");
    let found = child.wait_with_output().expect("it ends");
    assert_eq!(found.status.code(), Some(1));
    let report = text(&found.stdout);
    assert!(report.starts_with("src/Cart.php:3: Parse error: "), "{report}");
}

#[test]
fn wrong_selection_is_refused() {
    let folder = project(&[("a.php", "<?php\n")]);
    let cases: [(&[&str], &str); 6] = [
        (&["--watch", "/"], "is outside the working directory"),
        (&["missing.php"], "cannot read `"),
        (&["--changed"], "Git refuses: not a git repository"),
        (&["--php", "5.3"], "cannot find the worker `samovar-php5.3`"),
        (&["--format", "xml"], "it takes `text`, `json` or `github`"),
        (&["--staged", "a.php"], "--staged"),
    ];
    for (args, expected) in cases {
        let found = lint(folder.path(), args);
        let said = text(&found.stderr);
        assert!(found.status.code() == Some(2) && said.contains(expected), "{args:?}: {said}");
    }
}

fn git(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Test", "-c", "user.email=test@example.org"]).args(args);
    command.env(family::RUN, family::run());
    command.current_dir(folder).output().expect("git runs")
}

#[test]
fn hook_refuses_commit_with_file_that_does_not_compile() {
    let folder = project(&[("a.php", "<?php\n")]);
    let path = folder.path();
    assert!(git(path, &["init", "-q"]).status.success());
    let said = lint(path, &["hook"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    git(path, &["add", "a.php"]);
    let commit = git(path, &["commit", "-qm", "good"]);
    assert!(commit.status.success(), "{}", text(&commit.stderr));
    // The next commit has the wrong text, the folder a right one.
    fs::write(path.join("a.php"), "<?php\n}\n").expect("a file");
    git(path, &["add", "a.php"]);
    fs::write(path.join("a.php"), "<?php\n").expect("a file");
    let commit = git(path, &["commit", "-qm", "bad"]);
    let said = text(&commit.stdout) + &text(&commit.stderr);
    assert!(!commit.status.success() && said.contains("a.php:2: Parse error: "), "{said}");
    // With -a, Git prepares the commit in an index of its own.
    let commit = git(path, &["commit", "-qam", "good again", "--allow-empty"]);
    assert!(commit.status.success(), "{}", text(&commit.stdout));
    let said = lint(path, &["hook", "--remove"]);
    assert!(text(&said.stdout).starts_with("removed `"), "{}", text(&said.stderr));
}

#[test]
fn watch_compiles_files_as_they_are_saved() {
    let folder = project(&[("src/a.php", "<?php\n"), ("b.php", "<?php\n}\n")]);
    let mut child = command(folder.path(), &["--watch", "src"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("a text");
    assert!(next().starts_with("0 errors in 1 file"));
    let watching = errors.next().expect("a line").expect("a text");
    assert!(watching.starts_with("watching 2 folders"), "{watching}");
    fs::write(folder.path().join("b.php"), "<?php\n}}\n").expect("outside the paths");
    fs::write(folder.path().join("src/a.php"), "<?php\n}\n").expect("a file");
    assert!(next().starts_with("src/a.php:2: Parse error: "));
    assert!(next().starts_with("1 error in 1 file"));
    fs::write(folder.path().join("src/c.php"), "<?php\n").expect("a file");
    assert!(next().starts_with("0 errors in 1 file"));
    let compilers = family::children_of(child.id().cast_signed());
    assert!(!compilers.is_empty());
    end(&mut child);
    eventually("its processes end with it", || {
        compilers.iter().all(|pid| has_ended(*pid)).then_some(())
    });
}
