//! php-src's tests of the engine and the language, in a relinked PHP, and with a custom engine.
//! Each test that passes without them must pass with them.
//!
//! `RELINK_EVERY`: fraction of the tests without further files and settings that are run; 1 runs
//! all, as in `make nightly`.

use crate::phpt::case::Case;
use crate::phpt::run;
use samovar_testkit::workspace;
use tempfile::TempDir;

const EVERY: usize = 32;
const FOLDER: &str = "engine";
/// Some of these tests need the command line.
const PASSED_MIN_PERCENT: usize = 70;

#[test]
fn php_src_tests_passing_as_built_pass_relinked() {
    compare(["--relink", "true"], ["--relink", "false"]);
}

#[test]
#[ignore = "PHP_ENGINE names the libphp that make php-engine builds, which takes minutes"]
fn php_src_tests_passing_with_installed_libphp_pass_with_engine() {
    let engine = std::env::var("PHP_ENGINE").expect("PHP_ENGINE: the file of make php-engine");
    compare(["--php-engine", &engine], ["--relink", "true"]);
}

/// Checks that each test that passes with the flag `base` passes with the flag `changed`.
fn compare(changed: [&str; 2], base: [&str; 2]) {
    let every = std::env::var("RELINK_EVERY").ok().and_then(|n| n.parse().ok()).unwrap_or(EVERY);
    let mut cases = run::cases(&workspace().join("target/php-src").join(FOLDER));
    assert!(cases.len() > 1_000, "hint: scripts/php-src.sh fetches them");
    cases.retain(|case| case.foreign().is_none());
    if every > 1 {
        cases.retain(stands_alone);
        cases = cases.into_iter().step_by(every).collect();
    }
    let passed = |cases: &[Case], flag| {
        let verdicts = TempDir::new().expect("a temporary folder");
        let root = if every > 1 { folders_of(cases) } else { run::document_root(FOLDER) };
        run::all(cases, root.path(), verdicts.path(), &[flag]);
        run::matching(verdicts.path())
    };
    let with = passed(&cases, changed);
    let total = cases.len();
    println!("{} of {total} pass with {changed:?}", with.len());
    assert!(with.len() * 100 > total * PASSED_MIN_PERCENT, "{} of {total}", with.len());
    // A failed test may fail always, or only after many others. Both sides now run the same tests
    // before it.
    cases.retain(|case| !with.contains(&case.name));
    let (with, without) = (passed(&cases, changed), passed(&cases, base));
    let only_without: Vec<_> = without.difference(&with).collect();
    assert!(only_without.is_empty(), "these pass only with {base:?}: {only_without:#?}");
}

fn stands_alone(case: &Case) -> bool {
    let file = String::from_utf8_lossy(case.section("FILE").unwrap_or_default()).into_owned();
    let asks_for_others = ["include", "require", "__DIR__", "__FILE__", "fopen", "file_"];
    let is_plain = ["INI", "ENV", "SKIPIF", "EXTENSIONS"].iter().all(|s| case.section(s).is_none());
    is_plain && !asks_for_others.iter().any(|word| file.contains(word))
}

/// A document root with empty folders only: copying thousands of files takes longer than these
/// tests.
fn folders_of(cases: &[Case]) -> TempDir {
    let root = TempDir::with_prefix("samovar-phpt-").expect("a temporary folder");
    for case in cases {
        let folder = root.path().join(&case.name);
        std::fs::create_dir_all(folder.parent().expect("below the root")).expect("our own folder");
    }
    root
}
