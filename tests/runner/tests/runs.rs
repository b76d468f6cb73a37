//! Tests the runner as `make test` starts it, with test programs that are shell scripts.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const PASSES: &str = "echo 'test result: ok. 1 passed'";

/// A program with libtest's options and these tests: the name of each and its shell commands.
fn program(folder: &Path, tests: &[(&str, &str)]) {
    let mut text = String::from("#!/bin/sh\ncase \"$*\" in\n*--list*--ignored*) ;;\n*--list*)\n");
    for (name, _) in tests {
        let _ = writeln!(text, "echo '{name}: test'");
    }
    text.push_str(";;\n");
    for (name, script) in tests {
        let _ = writeln!(text, "'--exact {name} '*)\n{script}\n;;");
    }
    text.push_str("esac\n");
    let path = folder.join("program");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let message = serde_json::json!({
        "reason": "compiler-artifact",
        "manifest_path": folder.join("planted/Cargo.toml"),
        "target": {"kind": ["lib"], "name": "planted"},
        "profile": {"test": true},
        "executable": path,
    });
    std::fs::create_dir_all(folder.join("planted")).unwrap();
    std::fs::write(folder.join("built.json"), format!("{message}\n")).unwrap();
}

fn run(folder: &Path, groups: &str, more: &[&str]) -> Output {
    std::fs::write(folder.join("groups.toml"), groups).unwrap();
    Command::new(env!("CARGO_BIN_EXE_run-tests"))
        .args(["--built", "built.json", "--groups", "groups.toml", "--output", "out"])
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Checks the last lines of standard output, as many as are expected, and whether the exit code was
/// 0.
fn check(tests: &[(&str, &str)], is_green: bool, end: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), tests);
    let output = run(folder.path(), "", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.success(), is_green, "{text}");
    assert!(text.ends_with(end), "{text}");
    (folder, text)
}

#[test]
fn passing_tests_end_with_a_count() {
    check(&[("a", PASSES), ("b::c", PASSES)], true, "\n2 passed, 0 failed, 0 skipped\n");
}

#[test]
fn failing_test_shows_its_output_and_all_others_run() {
    let tests = [("a", "echo 'left is 1'; exit 101"), ("b", PASSES), ("c", PASSES)];
    let end = "FAILED: planted::a\n2 passed, 1 failed, 0 skipped\n";
    let (_folder, text) = check(&tests, false, end);
    assert!(text.contains("planted::a failed") && text.contains("left is 1"), "{text}");
}

#[test]
fn test_that_passes_alone_is_flaky_and_the_run_is_green() {
    let once = format!("[ -e seen ] && {PASSES} || {{ touch seen; exit 101; }}");
    let end = "flaky: planted::a\n1 passed, 0 failed, 0 skipped\n";
    let (folder, _) = check(&[("a", &once)], true, end);
    let kept = std::fs::read_to_string(folder.path().join("out/flaky.txt")).unwrap();
    assert_eq!(kept, "planted::a\n");
}

#[test]
fn three_flaky_tests_make_the_run_red() {
    let once = |n: u8| format!("[ -e seen{n} ] && {PASSES} || {{ touch seen{n}; exit 101; }}");
    let (a, b, c) = (once(1), once(2), once(3));
    let end = "FAILED: more than 2 flaky tests\n3 passed, 0 failed, 0 skipped\n";
    check(&[("a", &a), ("b", &b), ("c", &c)], false, end);
}

#[test]
fn program_that_runs_no_test_has_failed() {
    let nothing = "echo 'test result: ok. 0 passed'";
    let (_folder, text) = check(&[("a", nothing)], false, "0 passed, 1 failed, 0 skipped\n");
    assert!(text.contains("ran no test with this name"), "{text}");
}

#[test]
fn exclusive_test_runs_with_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let alone = format!("[ -e busy ] && exit 101; {PASSES}");
    let busy = format!("touch busy; sleep 0.2; rm busy; {PASSES}");
    program(folder.path(), &[("alone", &alone), ("busy", &busy)]);
    let groups = "[[group]]\nname = 'g'\nreason = 'r'\ntests = ['planted::alone']\n";
    let output = run(folder.path(), groups, &["--at-once", "4"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn stress_counts_the_runs_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let third = format!("echo x >>runs; [ $(wc -l <runs) = 3 ] && exit 101; {PASSES}");
    program(folder.path(), &[("often", &third)]);
    let output = run(folder.path(), "", &["--unflake", "often", "--runs", "5"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && text.ends_with("often: 1 runs failed\n"), "{text}");
}
