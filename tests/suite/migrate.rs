//! `samovar migrate`: flags, exit codes, and files that it writes.

mod access;
mod from;

use samovar_testkit::{binary, family};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `samovar migrate` in a folder, without the tester's settings.
fn migrate(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("migrate").args(args).current_dir(folder).env_clear();
    command.env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn project(code: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.php"), code).expect("a file");
    folder
}

#[test]
fn migrate_check_reports_findings_between_versions_and_exits_with_1() {
    let folder = project("<?php\neach($a);\nutf8_encode($a);\n");
    let path = folder.path();
    let found = migrate(path, &["check", "--from", "7.4", "--to", "8.1"]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    let report = text(&found.stdout);
    assert!(report.contains("a.php:2:1 error each each() is removed in PHP 8.0"), "{report}");
    assert!(!report.contains("utf8"), "{report}");
    let clean = migrate(path, &["check", "--from", "8.0", "--to", "8.1"]);
    assert_eq!(clean.status.code(), Some(0), "{}", text(&clean.stdout));
    let errors = migrate(path, &["check", "--from", "8.0", "--severity", "error"]);
    assert_eq!(errors.status.code(), Some(0), "{}", text(&errors.stdout));
}

#[test]
fn migrate_check_takes_version_of_composer_json() {
    let folder = project("<?php each($a); utf8_encode($a);");
    let composer = r#"{"require": {"php": "^8.1"}}"#;
    fs::write(folder.path().join("composer.json"), composer).expect("a file");
    let found = migrate(folder.path(), &["check", "--to", "8.4"]);
    let report = text(&found.stdout);
    assert!(report.contains("PHP 8.1 to 8.4: 0 errors, 0 warnings, 1 notices"), "{report}");
    assert!(text(&found.stderr).contains("composer.json requires PHP ^8.1"));
}

#[test]
fn migrate_check_rejects_wrong_versions_and_paths() {
    let folder = project("<?php");
    for (args, message) in [
        (&["check", "--to", "9.9"][..], "hint: pass a version from 5.3"),
        (&["check", "nowhere"][..], "cannot read `nowhere`"),
        (&["check", "--diff"][..], "--fix"),
    ] {
        let failed = migrate(folder.path(), args);
        assert_eq!(failed.status.code(), Some(2), "{args:?}");
        assert!(text(&failed.stderr).contains(message), "{args:?}: {}", text(&failed.stderr));
    }
}

#[test]
fn migrate_check_fix_shows_or_writes_changes() {
    let before = "<?php\n$a = (integer) $b;\neach($a);\n";
    let folder = project(before);
    let path = folder.path();
    let file = path.join("a.php");
    let shown = migrate(path, &["check", "--from", "7.4", "--fix", "--diff"]);
    let difference = text(&shown.stdout);
    assert!(difference.contains("-$a = (integer) $b;\n+$a = (int) $b;\n"), "{difference}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), before);
    let written = migrate(path, &["check", "--from", "7.4", "--fix"]);
    assert_eq!(fs::read_to_string(&file).expect("a file"), before.replace("integer", "int"));
    let report = text(&written.stdout);
    assert!(report.contains("1 errors, 0 warnings, 0 notices"), "{report}");
    assert!(text(&written.stderr).contains("1 change in 1 file written"));
}

#[test]
fn migrate_check_baseline_hides_known_findings() {
    let folder = project("<?php\neach($a);\n");
    let path = folder.path();
    let check = ["check", "--from", "7.4"];
    let write = migrate(path, &[&check[..], &["--write-baseline", "known.json"]].concat());
    assert_eq!(write.status.code(), Some(0), "{}", text(&write.stderr));
    let with = [&check[..], &["--baseline", "known.json"]].concat();
    assert_eq!(migrate(path, &with).status.code(), Some(0));
    fs::write(path.join("a.php"), "<?php\n\neach($a);\neach($b);\n").expect("a file");
    let found = migrate(path, &with);
    let report = text(&found.stdout);
    assert_eq!(found.status.code(), Some(1), "{report}");
    assert!(report.contains("a.php:4:1") && !report.contains("a.php:3:1"), "{report}");
}

#[test]
fn migrate_rules_lists_changes_between_versions() {
    let folder = project("<?php");
    let listed = migrate(folder.path(), &["rules", "--from", "8.3", "--to", "8.4"]);
    let list = text(&listed.stdout);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert!(list.contains("implicit-nullable: deprecated 8.4"), "{list}");
    assert!(!list.contains("utf8-encode"), "{list}");
}
