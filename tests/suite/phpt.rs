//! php-src's own tests, each as a request to the server: forms, uploads, cookies, output buffers.
//!
//! `scripts/php-src.sh` downloads them. Tests with the same INI section share a server that is
//! started with these settings.

pub(crate) mod case;
mod differences;
pub(crate) mod run;

use case::Case;
use differences::{DIFFERENCES_BESIDE_A_TASK, Difference, EXPECTED_DIFFERENCES};
use run::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tempfile::TempDir;

/// A task that repeatedly waits and continues while the test's own code runs, waits and ends.
const BESIDE: &str =
    "\\Samovar\\async(static function (): void { while (true) { \\Samovar\\delay(0.0005); } });";

#[test]
fn php_src_tests_pass() {
    let root = run::document_root("tests");
    let cases = run::cases(root.path());
    let differences: Vec<_> = EXPECTED_DIFFERENCES.iter().collect();
    response_as_expected(&cases, root.path(), &differences);
}

/// Tests that one server can run, about half of them.
#[test]
fn php_src_tests_pass_next_to_a_task() {
    let root = run::document_root("tests");
    let mut cases = run::cases(root.path());
    cases.retain_mut(|case| case.section("INI").is_none() && begins_with(case, BESIDE));
    let differences: Vec<_> =
        EXPECTED_DIFFERENCES.iter().chain(DIFFERENCES_BESIDE_A_TASK).collect();
    response_as_expected(&cases, root.path(), &differences);
}

/// Inserts `code` at the beginning of the test's code, in the same line. Returns false if another
/// statement must come first.
fn begins_with(case: &mut Case, code: &str) -> bool {
    const OPEN: &str = "<?php";
    let Some(file) = case.sections.get_mut("FILE") else { return false };
    let text = String::from_utf8_lossy(file);
    let begins = file.starts_with(OPEN.as_bytes());
    if !begins || text.contains("declare(") || text.contains("namespace ") {
        return false;
    }
    file.splice(OPEN.len()..OPEN.len(), format!(" {code} ").into_bytes());
    true
}

fn response_as_expected(cases: &[Case], root: &Path, differences: &[&Difference]) {
    let verdicts = TempDir::new().expect("a temporary folder");
    let outcomes = run::all(cases, root, verdicts.path(), &[]);
    report(&outcomes, &run::matching(verdicts.path()), differences);
}

/// The beginning of a response, short enough for a message.
fn beginning(response: &[u8]) -> String {
    const CHARS_MAX: usize = 600;
    String::from_utf8_lossy(response).chars().take(CHARS_MAX).collect()
}

fn report(
    outcomes: &BTreeMap<&str, Outcome>,
    matching: &BTreeSet<String>,
    differences: &[&Difference],
) {
    let (mut passed, mut skipped, mut differ) = (0, 0, 0);
    let mut failures: Vec<String> = Vec::new();
    for (name, outcome) in outcomes {
        let expected = differences.iter().find(|(n, _)| n == name).map(|(_, why)| why);
        let failure = match outcome {
            Outcome::Skipped(why) => {
                println!("skipped {name}: {why}");
                skipped += 1;
                continue;
            }
            Outcome::Delivery(_) if matching.contains(*name) => None,
            Outcome::Delivery(response) => Some(format!("answers\n{}", beginning(response))),
            Outcome::Broken(why) => Some(why.clone()),
        };
        match (failure, expected) {
            (None, None) => passed += 1,
            (None, Some(_)) => failures.push(format!("{name}: passes; take it off the list")),
            (Some(_), Some(why)) => {
                println!("differs {name}: {why}");
                differ += 1;
            }
            (Some(failure), None) => failures.push(format!("{name}: {failure}")),
        }
    }
    let failed = failures.len();
    println!("{passed} passed, {failed} failed, {skipped} skipped, {differ} differ as expected");
    assert!(failures.is_empty(), "{failed} failed:\n{}", failures.join("\n"));
}
