//! A run for people, in the style of `PHPUnit`: progress, failures, counts.

use crate::case::{Case, Note, Verdict};
use crate::results::Results;
use std::fmt::Write as _;

/// Marks on a line of the progress.
const MARKS_PER_LINE: usize = 60;

/// The progress: a mark for each test.
#[derive(Debug, Default)]
pub struct Progress {
    total: usize,
    done: usize,
}

impl Progress {
    /// A progress of this many tests.
    #[must_use]
    pub fn new(total: usize) -> Progress {
        Progress { total, done: 0 }
    }

    /// Returns the marks of further tests.
    pub fn add(&mut self, cases: &[Case]) -> String {
        let mut out = String::new();
        for case in cases {
            out.push(case.verdict.mark());
            self.done += 1;
            if self.done.is_multiple_of(MARKS_PER_LINE) {
                self.end_line(&mut out);
            }
        }
        out
    }

    /// Returns the rest of the last line.
    pub fn finish(&mut self) -> String {
        let (mut out, rest) = (String::new(), self.done % MARKS_PER_LINE);
        self.total = self.done;
        if rest > 0 {
            let _ = write!(out, "{:1$}", "", MARKS_PER_LINE - rest);
            self.end_line(&mut out);
        }
        out
    }

    fn end_line(&self, out: &mut String) {
        let total = self.total.max(self.done).max(1);
        let width = total.to_string().len();
        let percent = self.done * 100 / total;
        let _ = writeln!(out, " {:width$} / {total} ({percent:3}%)", self.done);
    }
}

/// Returns the end of the text about a run.
#[must_use]
pub fn summary(results: &Results) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\nTime: {:.3} s (boot {:.3} s), {} forks, PHP {}",
        results.wall.as_secs_f64(),
        results.boot.as_secs_f64(),
        results.forks,
        results.php
    );
    if let Some(seed) = results.seed {
        let _ = writeln!(out, "Random order with seed {seed}");
    }
    list(&mut out, "error", &of(results, |case| case.fails() && case.verdict == Verdict::Errored));
    list(&mut out, "failure", &of(results, |case| case.fails() && case.verdict == Verdict::Failed));
    list(&mut out, "warning", &of(results, |case| case.verdict == Verdict::Warned));
    list(&mut out, "risky test", &of(results, |case| case.verdict == Verdict::Risky));
    let flaky = of(results, |case| matches!(case.note, Some(Note::Flaky { .. })));
    list(&mut out, "flaky test", &flaky);
    for problem in &results.problems {
        let _ = writeln!(out, "\n{problem}");
    }
    quarantine(&mut out, results);
    counts(&mut out, results);
    out
}

fn of(results: &Results, wanted: impl Fn(&Case) -> bool) -> Vec<&Case> {
    results.cases.iter().filter(|case| wanted(case)).collect()
}

fn list(out: &mut String, word: &str, cases: &[&Case]) {
    match cases.len() {
        0 => return,
        1 => {
            let _ = writeln!(out, "\nThere was 1 {word}:");
        }
        n => {
            let _ = writeln!(out, "\nThere were {n} {word}s:");
        }
    }
    for (n, case) in cases.iter().enumerate() {
        let note = match &case.note {
            Some(Note::Flaky { rerun }) => format!(" (passed in rerun {rerun})"),
            Some(Note::OrderDependent) => " (passes in the order of the source code)".to_owned(),
            _ => String::new(),
        };
        let _ = writeln!(out, "\n{}) {}{note}\n{}", n + 1, case.title(), case.text);
    }
}

fn quarantine(out: &mut String, results: &Results) {
    let known = of(results, |case| matches!(case.note, Some(Note::Quarantined { .. })));
    if !known.is_empty() {
        out.push_str("\nIn quarantine:\n");
    }
    for case in known {
        if let Some(Note::Quarantined { owner, until }) = &case.note {
            let _ = writeln!(out, "  {} (owner {owner}, until {until})", case.id());
        }
    }
    for line in &results.expired {
        let _ = writeln!(
            out,
            "\n{line}\nhint: mend or delete the test, or change `until` in the quarantine file"
        );
    }
    for test in &results.healed {
        let _ = writeln!(out, "\n`{test}` has passed; it can leave the quarantine");
    }
}

fn counts(out: &mut String, results: &Results) {
    let cases = &results.cases;
    let count = |wanted: &dyn Fn(&Case) -> bool| cases.iter().filter(|case| wanted(case)).count();
    let is =
        |verdict| count(&|case| case.verdict == verdict && (case.fails() || !verdict.is_bad()));
    let assertions: u64 = cases.iter().map(|case| case.assertions).sum();
    let (errors, failures) = (is(Verdict::Errored), is(Verdict::Failed));
    let title = if errors > 0 {
        "ERRORS!"
    } else if failures > 0 {
        "FAILURES!"
    } else if results.status() > 0 {
        "NOT OK"
    } else {
        "OK"
    };
    let stopped = if results.is_stopped { " Stopped at the first failure." } else { "" };
    let numbers = [
        ("Errors", errors),
        ("Failures", failures),
        ("Warnings", is(Verdict::Warned)),
        ("Skipped", is(Verdict::Skipped)),
        ("Risky", is(Verdict::Risky)),
        ("Flaky", count(&|case| matches!(case.note, Some(Note::Flaky { .. })))),
        ("Order-dependent", count(&|case| case.note == Some(Note::OrderDependent))),
        ("Quarantined", count(&|case| matches!(case.note, Some(Note::Quarantined { .. })))),
    ];
    let numbers = numbers.iter().filter(|(_, number)| *number > 0);
    let numbers: Vec<_> = numbers.map(|(word, number)| format!(", {word}: {number}")).collect();
    let numbers = numbers.concat();
    let tests = cases.len();
    let _ = writeln!(out, "\n{title}\nTests: {tests}, Assertions: {assertions}{numbers}.{stopped}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_sixty_marks_per_line() {
        let mut progress = Progress::new(61);
        let cases: Vec<_> = (0..61).map(|_| Case::new("A", "b", Verdict::Passed)).collect();
        let text = progress.add(&cases) + &progress.finish();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], format!("{} 60 / 61 ( 98%)", ".".repeat(60)));
        assert_eq!(lines[1], format!(".{} 61 / 61 (100%)", " ".repeat(59)));
    }

    #[test]
    fn summary_counts_failing_tests() {
        let flaky = Case {
            note: Some(Note::Flaky { rerun: 1 }),
            ..Case::new("A", "testFlaky", Verdict::Failed)
        };
        let failed = Case {
            text: "Failed asserting that 1 is 2.".into(),
            ..Case::new("A", "testBad", Verdict::Failed)
        };
        let good = Case { assertions: 3, ..Case::new("A", "testGood", Verdict::Passed) };
        let mut results =
            Results { cases: vec![good, flaky.clone(), failed], ..Results::default() };
        let text = summary(&results);
        assert!(text.contains("There was 1 failure:\n\n1) A::testBad\nFailed asserting"), "{text}");
        assert!(text.contains("A::testFlaky (passed in rerun 1)"), "{text}");
        let end = "FAILURES!\nTests: 3, Assertions: 3, Failures: 1, Flaky: 1.\n";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(results.status(), 1);
        results.cases = vec![flaky];
        assert_eq!(results.status(), 0);
        results.expired.push("old".into());
        assert_eq!(results.status(), 1);
    }
}
