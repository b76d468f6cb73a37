//! Fixes, baselines and reports.

use samovar_migrate::{
    Baseline, Checked, Format, Options, Range, Version, check_text, fix, render, scan,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn whole() -> Range {
    Range { from: Version::oldest(), to: Version::newest() }
}

fn run(path: &Path) -> Checked {
    let options =
        Options { range: whole(), exclude: Vec::new(), has_vendor: true, files_max: 1000 };
    scan(&[path.to_owned()], &options)
}

fn fixed(code: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.php");
    fs::write(&path, code).expect("a file");
    let findings = check_text(code.as_bytes(), whole());
    let fixed = fix(&path, &findings).expect("a readable file")?;
    Some(String::from_utf8(fixed.after).expect("text"))
}

#[test]
fn safe_changes_are_written() {
    let cases = [
        ("$a{0}", "$a[0]"),
        ("$a{0}{1}", "$a[0][1]"),
        ("(real) $a", "(float) $a"),
        ("( integer ) $a", "(int) $a"),
        ("(boolean)$a", "(bool)$a"),
        ("(binary) $a", "(string) $a"),
        ("\"a ${b} c\"", "\"a {$b} c\""),
        ("\"${b['c']}\"", "\"{$b['c']}\""),
        ("\"${'b' . 'c'}\"", "\"{${'b' . 'c'}}\""),
        ("is_real($a)", "is_float($a)"),
        ("\\is_real($a)", "\\is_float($a)"),
        ("f(&$x)", "f($x)"),
        ("$a = &new B", "$a = new B"),
        ("fn(A $a = null) => 1", "fn(?A $a = null) => 1"),
        ("fn(A|B $a = null) => 1", "fn(A|B|null $a = null) => 1"),
        ("fn(A&B $a = null) => 1", "fn((A&B)|null $a = null) => 1"),
    ];
    for (before, after) in cases {
        let (before, after) = (format!("<?php {before};\n"), format!("<?php {after};\n"));
        assert_eq!(fixed(&before).as_deref(), Some(after.as_str()), "{before}");
    }
    let case = "<?php switch ($a) { case 1; break; default; break; }";
    let colon = "<?php switch ($a) { case 1: break; default: break; }";
    assert_eq!(fixed(case).as_deref(), Some(colon));
}

#[test]
fn unsafe_changes_are_not_written() {
    for code in [
        "<?php each($a);",
        "<?php function f(A $a = null, $b) {}",
        "<?php $a = (unset) $b;",
        "<?php namespace A; function is_real($a) {} is_real($b);",
    ] {
        assert_eq!(fixed(code), None, "{code}");
    }
}

#[test]
fn fixed_file_has_no_further_fix_and_keeps_mode_and_line_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.php");
    let text = "<?php\r\n$a = (integer) $b{0};\r\n// \u{e9}\r\nfunction f(A $a = null) {}\r\n";
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
    let checked = run(folder.path());
    let change = fix(&path, &checked.files[0].1).expect("a file").expect("a change");
    assert_eq!(change.count, 3);
    change.write(&path).expect("a writable folder");
    let after = fs::read_to_string(&path).expect("a file");
    assert_eq!(after, "<?php\r\n$a = (int) $b[0];\r\n// \u{e9}\r\nfunction f(?A $a = null) {}\r\n");
    let mode = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(run(folder.path()).files.is_empty());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no other file remains");
    // Another process has changed the file since it was read.
    assert!(change.write(&path).is_err());
}

#[test]
fn baseline_hides_known_findings_also_on_moved_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = folder.path().join("a.php");
    let file = folder.path().join("baseline.json");
    fs::write(&code, "<?php\neach($a);\n").expect("a file");
    let checked = run(&code);
    Baseline::of(&checked).write(&file).expect("a writable folder");
    let known = Baseline::read(&file).expect("a baseline");
    assert_eq!(known.len(), 1);

    fs::write(&code, "<?php\n\n// new\n    each($a);\n").expect("a file");
    let mut moved = run(&code);
    assert_eq!(known.remove_known(&mut moved), 1);
    assert!(moved.files.is_empty());

    fs::write(&code, "<?php\neach($a);\neach($a);\n").expect("a file");
    let mut twice = run(&code);
    assert_eq!(known.remove_known(&mut twice), 1);
    assert_eq!(twice.files[0].1.len(), 1, "the second one is new");

    fs::write(&code, "<?php\neach($b);\n").expect("a file");
    let mut other = run(&code);
    assert_eq!(known.remove_known(&mut other), 0);

    fs::write(&file, "{}").expect("a file");
    assert!(Baseline::read(&file).is_err());
}

#[test]
fn reports_contain_all_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let package = folder.path().join("vendor/acme/lib");
    fs::create_dir_all(&package).expect("a folder");
    fs::write(folder.path().join("a.php"), "<?php\n  each($a);\n").expect("a file");
    fs::write(package.join("b c.php"), "<?php $x = (integer) $y;").expect("a file");
    let checked = run(folder.path());

    let text = render(&checked, whole(), 3, Format::Text);
    assert!(text.contains("a.php:2:3 error each each() is removed in PHP 8.0"), "{text}");
    assert!(text.contains("https://wiki.php.net/rfc/deprecations_php_7_2"), "{text}");
    assert!(text.contains("1 acme/lib"), "{text}");
    assert!(text.contains("3 findings are in the baseline"), "{text}");
    assert!(text.contains("1 errors, 0 warnings, 1 notices in 2 files"), "{text}");

    let json: Value =
        serde_json::from_str(&render(&checked, whole(), 0, Format::Json)).expect("JSON");
    assert_eq!(json["findings"][0]["rule"], "each");
    assert_eq!(json["findings"][1]["package"], "acme/lib");
    assert_eq!(json["findings"][1]["is_fixable"], true);

    let sarif: Value =
        serde_json::from_str(&render(&checked, whole(), 0, Format::Sarif)).expect("JSON");
    let run = &sarif["runs"][0];
    assert_eq!(sarif["version"], "2.1.0");
    for result in run["results"].as_array().expect("results") {
        let at = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(run["tool"]["driver"]["rules"][at]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().expect("an address");
        assert!(uri.starts_with("file:///") && !uri.contains(' '), "{uri}");
        let print = result["partialFingerprints"]["ruleFileLine/v1"].as_str();
        assert_eq!(print.map(str::len), Some(16));
    }

    let github = render(&checked, whole(), 0, Format::Github);
    assert!(github.contains("::error file="), "{github}");
    assert!(
        github.contains(",line=2,col=3,title=each::each() is removed in PHP 8.0%0A"),
        "{github}"
    );
}
