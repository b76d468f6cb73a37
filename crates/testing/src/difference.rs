//! Runs under several versions of PHP: the tests whose results differ.

use crate::case::Case;
use crate::results::Results;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Returns the tests whose results differ between the runs, with each result. The second value is
/// their number.
#[must_use]
pub fn differences(runs: &[Results]) -> (String, usize) {
    let tables: Vec<BTreeMap<String, &Case>> =
        runs.iter().map(|run| run.cases.iter().map(|case| (case.id(), case)).collect()).collect();
    let ids: BTreeSet<&String> = tables.iter().flat_map(BTreeMap::keys).collect();
    let (mut out, mut count) = (String::new(), 0);
    for id in ids {
        let cases: Vec<_> = tables.iter().map(|table| table.get(id).copied()).collect();
        let result = |case: Option<&Case>| case.map(|case| (case.verdict, case.note.is_some()));
        if cases.windows(2).all(|pair| result(pair[0]) == result(pair[1])) {
            continue;
        }
        count += 1;
        let _ = writeln!(out, "\n{count}) {id}");
        for (run, case) in runs.iter().zip(cases) {
            let word = case.map_or("not run", |case| case.verdict.word());
            let _ = writeln!(out, "PHP {}: {word}", run.php);
            let text = case.map_or("", |case| case.text.as_str());
            for line in text.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
    (out, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;

    #[test]
    fn only_tests_with_different_results_are_listed() {
        let run = |php: &str, verdicts: &[(&str, Verdict)]| Results {
            php: php.to_owned(),
            cases: verdicts.iter().map(|(name, verdict)| Case::new("A", name, *verdict)).collect(),
            ..Results::default()
        };
        let old = run("8.2.1", &[("same", Verdict::Failed), ("new", Verdict::Passed)]);
        let new = run(
            "8.4.1",
            &[("same", Verdict::Failed), ("new", Verdict::Errored), ("more", Verdict::Passed)],
        );
        let (text, count) = differences(&[old, new]);
        assert_eq!(count, 2);
        assert!(text.contains("1) A::more\nPHP 8.2.1: not run\nPHP 8.4.1: passed"), "{text}");
        assert!(text.contains("2) A::new\nPHP 8.2.1: passed\nPHP 8.4.1: error"), "{text}");
        assert!(!text.contains("same"), "{text}");
    }
}
