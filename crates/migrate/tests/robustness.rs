//! Files that are not as expected, and folders.

use samovar_migrate::{Checked, Options, Range, Version, check_text, scan};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;

/// Stack of the thread that checks deep code, as in a scan.
const STACK_BYTES: usize = 256 << 20;

fn whole() -> Range {
    Range { from: Version::oldest(), to: Version::newest() }
}

fn options() -> Options {
    Options { range: whole(), exclude: Vec::new(), has_vendor: false, files_max: 1000 }
}

fn names(checked: &Checked) -> Vec<String> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    checked.files.iter().filter_map(|(path, _)| name(path)).collect()
}

fn deep(check: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(check);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn deeply_nested_code_is_checked_or_reported() {
    deep(|| {
        let chain = format!("<?php $a = 'b'{}; each($a);", " . 'b'".repeat(100_000));
        assert!(check_text(chain.as_bytes(), whole()).iter().any(|found| found.rule == "each"));
        let and = format!("<?php if ($a{}) {{ each($a); }}", " && $a".repeat(50_000));
        assert!(check_text(and.as_bytes(), whole()).iter().any(|found| found.rule == "each"));
        let calls = format!("<?php $a{};", "->b()".repeat(50_000));
        check_text(calls.as_bytes(), whole());
        for (open, close) in
            [("(", ")"), ("[", "]"), ("f(", ")"), ("-", ""), ("!", ""), ("fn() => ", "")]
        {
            let text = format!("<?php $a = {}1{};", open.repeat(5_000), close.repeat(5_000));
            check_text(text.as_bytes(), whole());
        }
        for (open, close) in
            [("{", "}"), ("if (1) ", ""), ("while (1) {", "}"), ("function f() {", "}")]
        {
            let text = format!("<?php {}1;{}", open.repeat(5_000), close.repeat(5_000));
            check_text(text.as_bytes(), whole());
        }
        let strings = format!("<?php $a = {}1{};", "\"{$a[".repeat(5_000), "]}\"".repeat(5_000));
        check_text(strings.as_bytes(), whole());
        let ternary = format!("<?php $a = {}1;", "$b ? 1 : ".repeat(5_000));
        check_text(ternary.as_bytes(), whole());
        let types = format!("<?php function f({}A $a = null) {{}}", "A|".repeat(20_000));
        check_text(types.as_bytes(), whole());
    });
}

#[test]
fn unusual_bytes_are_no_failure() {
    let texts: [&[u8]; 12] = [
        b"",
        b"<?php",
        b"<?",
        b"\xef\xbb\xbf<?php each($a);",
        b"<?php each($a);\r\neach($b);\r\n",
        b"<?php // \xe9\xe8\neach($a);",
        b"<?php $\xe9 = '\xff\xfe'; \xe9();",
        b"\0\x01\x02\xff\xfe<?php \0 \x80",
        b"<?php $a = <<<X\n  ${b}\n  X; $c = <<<'Y'\n${d}\nY;",
        b"<?php $a = \"",
        b"<?php /* ",
        b"<?php __halt_compiler(); \xff\x00 <?php each($a);",
    ];
    for text in texts {
        check_text(text, whole());
    }
    let mark = check_text(texts[3], whole());
    assert_eq!((mark.len(), mark[0].line, mark[0].rule), (1, 1, "each"));
    let lines: Vec<_> = check_text(texts[4], whole()).iter().map(|found| found.line).collect();
    assert_eq!(lines, [1, 2]);
    assert_eq!(check_text(texts[5], whole()).len(), 1, "Latin-1 in a comment");
    assert_eq!(check_text(texts[8], whole()).len(), 1, "a heredoc, not a nowdoc");
    assert!(check_text(texts[11], whole()).is_empty(), "data after the end of the code");
}

#[test]
fn every_prefix_of_a_file_is_checked_without_panic() {
    let text = "<?php namespace A; use B\\{C, function d}; class E extends F implements \\G \
                { use T; public ?int $x = null; function offsetGet($a, \\G $b = null, $c) { return \
                $this->y[\"a ${b} {$c['d']}\"] ?? static::$z[1]{2}; } } foreach ($a as [$k, $v]) { \
                switch ($v): case 1; continue; endswitch; } $f = fn(&$x) => match (true) { 1 => \
                `ls`, default => new class(1) extends X { } }; \
                preg_replace('/a/e', <<<Q\n a\n Q, $b);";
    for end in 0..text.len() {
        check_text(&text.as_bytes()[..end], whole());
    }
}

#[test]
fn parse_error_is_a_finding_with_its_line() {
    let found = check_text(b"<?php\n$a = ;\n", whole());
    assert_eq!((found[0].rule, found[0].line), ("parse-error", 2));
}

#[test]
fn large_file_has_limited_findings() {
    let line = "each($a); $b = (integer) $c; $d = [1, 2, 'x' => 'y'];\n";
    let text = format!("<?php\n{}", line.repeat((10 << 20) / line.len()));
    let found = check_text(text.as_bytes(), whole());
    assert_eq!(found.len(), 5_000);
}

#[test]
fn folders_are_read_without_loops_and_failures_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let write = |name: &str| {
        let file = path.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, "<?php each($a);").expect("a file");
        file
    };
    for name in ["a.php", "b/c.inc", "vendor/x/y/d.php", "node_modules/e.php", "f.txt", "g.PHP"] {
        write(name);
    }
    fs::write(path.join("tool"), "#!/usr/bin/env php\n<?php each($a);").expect("a script");
    fs::write(path.join("shell"), "#!/bin/sh\neach a").expect("a script");
    symlink(path, path.join("b/loop")).expect("a link");
    symlink("nowhere", path.join("dangling.php")).expect("a link");
    let closed = write("closed.php");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("a mode");
    let checked = scan(&[path.to_owned()], &options());
    let is_root = fs::read(&closed).is_ok();
    let mut expected = vec!["a.php", "g.PHP", "tool", "c.inc"];
    if is_root {
        expected.insert(1, "closed.php");
    } else {
        assert_eq!(checked.skipped.len(), 1);
    }
    assert_eq!(names(&checked), expected);
    let all = scan(&[path.to_owned()], &Options { has_vendor: true, ..options() });
    assert!(names(&all).contains(&"d.php".to_owned()));
    let exclude = vec!["b/".to_owned(), "*.PHP".to_owned()];
    let some = scan(&[path.to_owned()], &Options { exclude, ..options() });
    assert!(!names(&some).contains(&"c.inc".to_owned()));
    assert!(!names(&some).contains(&"g.PHP".to_owned()));
    let few = scan(&[path.to_owned()], &Options { files_max: 2, ..options() });
    assert!(few.is_truncated);
    assert_eq!(few.file_count, 2);
}

#[test]
fn missing_path_is_listed() {
    let checked = scan(&["/nonexistent/path".into()], &options());
    assert_eq!(checked.skipped.len(), 1);
}
