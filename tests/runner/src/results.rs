//! Writes the results of a run: the files in `target/tests` and the closing lines.

use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

/// Number of tests that are shown as the slowest, and as those with the most CPU time.
const SLOWEST: usize = 10;

/// Maximum number of flaky tests; a run with more has failed.
const FLAKY_MAX: usize = 2;

/// Verdict on one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The test passed on the first run.
    Passed,
    /// The test failed next to other tests, and passed when it was run again with no other test.
    Flaky,
    /// The test failed twice.
    Failed,
    /// The test has `#[ignore]`.
    Skipped,
}

/// Line of one test in the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the test.
    pub id: String,
    /// Verdict on the test.
    pub verdict: Verdict,
    /// Wall time of the first run.
    pub seconds: f64,
    /// CPU time of the first run.
    pub cpu_seconds: f64,
}

/// Results of a whole run.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// A line for each test.
    pub lines: Vec<Line>,
    /// Wall time of the whole run.
    pub seconds: f64,
}

impl Results {
    fn count(&self, verdict: Verdict) -> usize {
        self.lines.iter().filter(|line| line.verdict == verdict).count()
    }

    fn of(&self, verdict: Verdict) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |line| line.verdict == verdict).map(|line| line.id.as_str())
    }

    /// Whether the run has succeeded.
    pub fn is_green(&self) -> bool {
        self.count(Verdict::Failed) == 0 && self.count(Verdict::Flaky) <= FLAKY_MAX
    }

    /// Writes `durations.tsv` and `flaky.txt` to the folder; with a prefix if only a selection of
    /// the tests has run, so that the files of the last whole run are kept.
    pub fn write(&self, folder: &Path, is_selection: bool) -> Result<()> {
        let prefix = if is_selection { "selected-" } else { "" };
        let mut sorted: Vec<&Line> =
            self.lines.iter().filter(|l| l.verdict != Verdict::Skipped).collect();
        sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let mut table = String::from("seconds\tcpu_seconds\ttest\n");
        for line in sorted {
            let _ = writeln!(table, "{:.2}\t{:.2}\t{}", line.seconds, line.cpu_seconds, line.id);
        }
        std::fs::write(folder.join(format!("{prefix}durations.tsv")), table)
            .context("cannot write durations.tsv")?;
        let flaky: String =
            self.of(Verdict::Flaky).fold(String::new(), |text, id| text + id + "\n");
        std::fs::write(folder.join(format!("{prefix}flaky.txt")), flaky)
            .context("cannot write flaky.txt")
    }

    /// The closing lines.
    pub fn summary(&self) -> String {
        let mut sorted: Vec<&Line> = self.lines.iter().collect();
        sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let cpu: f64 = self.lines.iter().map(|line| line.cpu_seconds).sum();
        let mut text = format!("\nthe {SLOWEST} slowest tests:\n");
        for line in sorted.iter().take(SLOWEST) {
            let _ = writeln!(text, "{:8.1} s  {}", line.seconds, line.id);
        }
        sorted.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
        let _ = writeln!(text, "\nthe {SLOWEST} tests with the most CPU time:");
        for line in sorted.iter().take(SLOWEST) {
            let _ = writeln!(text, "{:8.1} s  {}", line.cpu_seconds, line.id);
        }
        let count = self.lines.len();
        let _ = writeln!(text, "\n{count} tests in {:.0} s, {cpu:.0} s of CPU time", self.seconds);
        for id in self.of(Verdict::Failed) {
            let _ = writeln!(text, "FAILED: {id}");
        }
        for id in self.of(Verdict::Flaky) {
            let _ = writeln!(text, "flaky: {id}");
        }
        if self.count(Verdict::Flaky) > FLAKY_MAX {
            let _ = writeln!(text, "FAILED: more than {FLAKY_MAX} flaky tests");
        }
        let [passed, flaky, failed, skipped] =
            [Verdict::Passed, Verdict::Flaky, Verdict::Failed, Verdict::Skipped]
                .map(|v| self.count(v));
        let _ = writeln!(text, "{} passed, {failed} failed, {skipped} skipped", passed + flaky);
        text
    }
}

/// Seconds of each test, from the `durations.tsv` of an earlier run. Empty if there is none.
pub fn earlier_durations(path: &Path) -> HashMap<String, f64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let (seconds, rest) = line.split_once('\t')?;
        let id = rest.rsplit('\t').next()?;
        Some((id.to_owned(), seconds.parse().ok()?))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(verdicts: &[Verdict]) -> Results {
        let line = |(i, verdict): (usize, &Verdict)| Line {
            id: format!("t{i}"),
            verdict: *verdict,
            seconds: f64::from(u32::try_from(i).unwrap()),
            cpu_seconds: 0.5,
        };
        Results { lines: verdicts.iter().enumerate().map(line).collect(), seconds: 3.0 }
    }

    #[test]
    fn one_failure_makes_the_run_red() {
        assert!(!results(&[Verdict::Passed, Verdict::Failed]).is_green());
    }

    #[test]
    fn two_flaky_tests_are_named_and_three_make_the_run_red() {
        let two = results(&[Verdict::Flaky, Verdict::Flaky]);
        assert!(two.is_green());
        assert!(two.summary().ends_with("flaky: t0\nflaky: t1\n2 passed, 0 failed, 0 skipped\n"));
        assert!(!results(&[Verdict::Flaky; 3]).is_green());
    }

    #[test]
    fn written_durations_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let whole = results(&[Verdict::Passed, Verdict::Skipped, Verdict::Flaky]);
        whole.write(folder.path(), false).unwrap();
        // A selection leaves the files of the whole run as they are.
        results(&[Verdict::Passed]).write(folder.path(), true).unwrap();
        let read = earlier_durations(&folder.path().join("durations.tsv"));
        assert_eq!(read, HashMap::from([("t0".to_owned(), 0.0), ("t2".to_owned(), 2.0)]));
        assert_eq!(std::fs::read_to_string(folder.path().join("flaky.txt")).unwrap(), "t2\n");
    }
}
