//! Findings that depend on the code around: guards, namespaces, other files.

use samovar_migrate::{Options, Range, Version, check_text, scan};
use std::fs;

fn whole() -> Range {
    Range { from: Version::oldest(), to: Version::newest() }
}

fn ids(code: &str) -> Vec<&'static str> {
    let text = format!("<?php {code}");
    check_text(text.as_bytes(), whole()).iter().map(|finding| finding.rule).collect()
}

#[test]
fn check_for_existence_suppresses_removed_functions_only() {
    let clean = [
        "if (function_exists('each')) { each($a); }",
        "if (function_exists('each') && $b) { each($a); }",
        "if (\\function_exists('\\each')) { each($a); }",
        "function_exists('each') && each($a);",
        "$b = function_exists('each') ? each($a) : next($a);",
        "if (!function_exists('each')) { return; } each($a);",
        "if (!function_exists('each')) { next($a); } else { each($a); }",
        "if (!function_exists('each') || each($a)) {}",
        "if (extension_loaded('mysql')) { mysql_connect(); }",
        "if (function_exists('mysql_connect')) { mysql_query('a'); }",
        "if ($x): elseif (function_exists('each')): each($a); endif;",
        "if (defined('MCRYPT_DES')) { echo MCRYPT_DES; }",
    ];
    for code in clean {
        assert_eq!(ids(code), Vec::<&str>::new(), "{code}");
    }
    let found = [
        "if (function_exists('next')) { each($a); }",
        "if (function_exists('each')) {} each($a);",
        "if (!function_exists('each')) { each($a); }",
        "function_exists('each') || each($a);",
        "function f() { if (!function_exists('each')) { return; } } each($a);",
        "switch ($a) { case 1: if (!function_exists('each')) { break; } case 2: each($a); }",
    ];
    for code in found {
        assert_eq!(ids(code), ["each"], "{code}");
    }
    assert_eq!(ids("if (function_exists('utf8_encode')) { utf8_encode($a); }"), ["utf8-encode"]);
}

#[test]
fn code_for_older_versions_is_not_reported() {
    let clean = [
        "if (PHP_VERSION_ID < 80000) { each($a); }",
        "if (PHP_VERSION_ID >= 80000) { next($a); } else { each($a); }",
        "if (\\PHP_VERSION_ID >= 80000) { return; } each($a);",
        "if (80000 > PHP_VERSION_ID) { each($a); }",
        "if (PHP_MAJOR_VERSION < 8) { each($a); }",
        "if (PHP_MAJOR_VERSION === 7) { create_function('', ''); }",
        "if (version_compare(PHP_VERSION, '8.0.0', '<')) { create_function('', ''); }",
        "if (version_compare(phpversion(), '8.0', 'lt')) { create_function('', ''); }",
        "if (version_compare(PHP_VERSION, '8.0.0') < 0) { create_function('', ''); }",
        "$a = PHP_VERSION_ID < 80000 ? create_function('', '') : 1;",
    ];
    for code in clean {
        let found: Vec<_> = check_text(
            format!("<?php {code}").as_bytes(),
            Range { from: "7.4".parse().expect("a version"), to: Version::newest() },
        );
        assert!(found.is_empty(), "{code}: {found:?}");
    }
    // 7.2 deprecates it, and the code runs under 7.2.
    assert_eq!(ids("if (PHP_VERSION_ID < 80000) { each($a); }"), ["each"]);
    // The compiler reads code that never runs.
    assert_eq!(ids("if (PHP_VERSION_ID < 80000) { $a = (real) $b; }"), ["syntax-real-cast"]);
}

#[test]
fn names_follow_namespaces_and_imports() {
    let found = [
        "each($a);",
        "\\each($a);",
        "EACH($a);",
        "namespace A; each($a);",
        "namespace A; \\each($a);",
        "namespace A; use function each; each($a);",
        "namespace A { function each() {} } namespace B { each($a); }",
        "use function each as other; other($a);",
    ];
    for code in found {
        assert_eq!(ids(code), ["each"], "{code}");
    }
    let clean = [
        "namespace A; function each() {} each($a);",
        "use function B\\each; each($a);",
        "namespace A; namespace\\each($a);",
        "namespace A; B\\each($a);",
        "if (!function_exists('each')) { function each() {} } each($a);",
        "namespace A; use B\\{function each}; each($a);",
    ];
    for code in clean {
        assert_eq!(ids(code), Vec::<&str>::new(), "{code}");
    }
}

#[test]
fn only_changes_of_the_upgrade_are_reported() {
    let code = b"<?php each($a); utf8_encode($b); function f(A $a = null) {}";
    let version = |text: &str| text.parse::<Version>().expect("a version");
    let cases = [
        ("7.1", "7.2", vec!["each"]),
        ("7.2", "7.4", vec![]),
        ("7.4", "8.0", vec!["each"]),
        ("8.0", "8.2", vec!["utf8-encode"]),
        ("8.2", "8.4", vec!["implicit-nullable"]),
        ("7.4", "8.4", vec!["each", "utf8-encode", "implicit-nullable"]),
    ];
    for (from, to, expected) in cases {
        let range = Range { from: version(from), to: version(to) };
        let found: Vec<_> = check_text(code, range).iter().map(|finding| finding.rule).collect();
        assert_eq!(found, expected, "{from} to {to}");
    }
}

#[test]
fn declarations_of_other_files_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("a file");
    };
    write(
        "a.php",
        "<?php namespace A; each($a); class B extends C { function f() { $this->p = 1; } }",
    );
    write("b.php", "<?php namespace A; function each() {} class C { protected $p; }");
    write("c.php", "<?php class D extends E { function g() { $this->q = 1; $this->p = 1; } }");
    write("d.php", "<?php class E { public $p; static function s() {} function t() {} }");
    write("e.php", "<?php E::s(); E::t();");
    let options =
        Options { range: whole(), exclude: Vec::new(), has_vendor: false, files_max: 100 };
    let checked = scan(&[folder.path().to_owned()], &options);
    let found: Vec<_> = checked
        .files
        .iter()
        .flat_map(|(path, findings)| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            findings.iter().map(move |finding| (name, finding.rule))
        })
        .collect();
    assert_eq!(found, [("c.php", "dynamic-property"), ("e.php", "static-call-of-method")]);
    assert_eq!(checked.file_count, 5);
}
