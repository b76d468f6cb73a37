//! Runs tests in the order of the schedule. Runs failed tests once more when all others have ended.

use crate::groups::Groups;
use crate::process::{self, Outcome, Ran};
use crate::programs::{Program, Test};
use crate::results::{Line, Results, Verdict};
use crate::schedule::{Entry, Next, Schedule};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of bytes shown of a failed test's output, from its end.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// Interval of progress lines if the output is not a terminal.
const PROGRESS_EVERY: Duration = Duration::from_secs(20);

/// Maximum number of tests named in a progress line.
const NAMED_MAX: usize = 4;

/// Input of a run.
#[derive(Debug)]
pub struct Plan {
    /// The test programs.
    pub programs: Vec<Program>,
    /// The tests of these programs that shall run.
    pub tests: Vec<Test>,
    /// Groups of tests that cannot run next to others.
    pub groups: Groups,
    /// Number of tests that run at a time.
    pub at_once: usize,
    /// Seconds of each test in an earlier run.
    pub earlier: HashMap<String, f64>,
    /// Also run tests with `#[ignore]`.
    pub with_ignored: bool,
    /// Folder for the tests' output.
    pub logs: PathBuf,
    /// Show output while a test runs, and do not keep it.
    pub is_shown: bool,
    /// Print a line for each test.
    pub is_verbose: bool,
}

struct Progress {
    schedule: Schedule,
    ran: Vec<Option<Ran>>,
    running: Vec<usize>,
    total: usize,
    ended: usize,
    failed: usize,
    told: Instant,
}

impl Plan {
    /// Runs all tests.
    pub fn run(&self) -> Result<Results> {
        let begun = Instant::now();
        // Remove the files of an earlier run.
        let _ = std::fs::remove_dir_all(&self.logs);
        std::fs::create_dir_all(&self.logs).context("cannot create the log folder")?;
        let is_wanted = |i: &usize| self.with_ignored || !self.tests[*i].is_ignored;
        let wanted: Vec<usize> = (0..self.tests.len()).filter(is_wanted).collect();
        let mut ran = self.run_all(&wanted, self.at_once)?;
        let failed: Vec<usize> =
            wanted.iter().copied().filter(|i| has_failed(ran[*i].as_ref())).collect();
        let again = if failed.is_empty() {
            Vec::new()
        } else {
            println!("\n{} failed; each runs again, one at a time", failed.len());
            self.run_all(&failed, 1)?
        };
        let line = |(i, test): (usize, &Test)| {
            let verdict = match (&ran[i], again.get(i).and_then(Option::as_ref)) {
                (None, _) => Verdict::Skipped,
                (Some(ran), _) if ran.outcome == Outcome::Passed => Verdict::Passed,
                (_, Some(again)) if again.outcome == Outcome::Passed => Verdict::Flaky,
                _ => Verdict::Failed,
            };
            let (seconds, cpu_seconds) =
                ran[i].as_ref().map_or((0.0, 0.0), |ran| (ran.seconds, ran.cpu_seconds));
            Line { id: test.id.clone(), verdict, seconds, cpu_seconds }
        };
        let lines = self.tests.iter().enumerate().map(line).collect();
        for kept in ran.iter_mut().flatten().filter(|ran| ran.outcome == Outcome::Passed) {
            // The output of a passed test is not needed.
            kept.forget_log();
        }
        Ok(Results { lines, seconds: begun.elapsed().as_secs_f64() })
    }

    fn run_all(&self, wanted: &[usize], at_once: usize) -> Result<Vec<Option<Ran>>> {
        let entry = |index: &usize| {
            let id = &self.tests[*index].id;
            let seconds = self.earlier.get(id).copied().unwrap_or_default();
            Entry { index: *index, seconds, group: self.groups.of(id) }
        };
        let entries = wanted.iter().map(entry).collect();
        let progress = Mutex::new(Progress {
            schedule: Schedule::new(entries, &self.groups, at_once),
            ran: vec![None; self.tests.len()],
            running: Vec::new(),
            total: wanted.len(),
            ended: 0,
            failed: 0,
            told: Instant::now(),
        });
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            let work = || self.work(&progress, &changed);
            let threads: Vec<_> = (0..at_once.max(1)).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic in a thread"))
        })?;
        if std::io::stdout().is_terminal() {
            print!("\r\x1b[K");
        }
        Ok(progress.into_inner().expect("no panic under the lock").ran)
    }

    fn work(&self, progress: &Mutex<Progress>, changed: &Condvar) -> Result<()> {
        loop {
            let mut now = lock(progress);
            let index = match now.schedule.decide() {
                Next::Done => return Ok(()),
                Next::Wait => {
                    drop(changed.wait(now));
                    continue;
                }
                Next::Start(index) => index,
            };
            now.running.push(index);
            self.show_progress(&mut now);
            drop(now);
            let test = &self.tests[index];
            let ran = self.start(test);
            let mut now = lock(progress);
            now.schedule.ended(self.groups.of(&test.id));
            changed.notify_all();
            now.running.retain(|running| *running != index);
            now.ended += 1;
            let ran = ran.with_context(|| format!("cannot run {}", test.id))?;
            if ran.outcome != Outcome::Passed {
                now.failed += 1;
            }
            self.show_end(test, &ran);
            now.ran[index] = Some(ran);
        }
    }

    /// Runs one test and waits for its end.
    pub fn start(&self, test: &Test) -> std::io::Result<Ran> {
        let logs = if self.is_shown { None } else { Some(self.logs.as_path()) };
        process::run(&self.programs[test.program], test, logs)
    }

    fn show_end(&self, test: &Test, ran: &Ran) {
        let is_terminal = std::io::stdout().is_terminal();
        let clear = if is_terminal { "\r\x1b[K" } else { "" };
        match &ran.outcome {
            Outcome::Passed if self.is_verbose => {
                println!("{clear}ok {:6.2} s  {}", ran.seconds, test.id);
            }
            Outcome::Passed => {}
            Outcome::Failed(why) => {
                let output = ran.output();
                let shown = &output[output.len().saturating_sub(SHOWN_BYTES_MAX)..];
                let shown = String::from_utf8_lossy(shown);
                println!("{clear}---- {} failed after {:.1} s: {why} ----", test.id, ran.seconds);
                println!("{shown}\n----");
            }
        }
    }

    fn show_progress(&self, now: &mut Progress) {
        let names = now.running.iter().rev().take(NAMED_MAX).map(|i| self.tests[*i].id.as_str());
        let names: Vec<&str> = names.collect();
        let more = now.running.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let line = format!(
            "{} of {} tests, {} failed; running {}{more}",
            now.ended,
            now.total,
            now.failed,
            names.join(", ")
        );
        if std::io::stdout().is_terminal() {
            let short: String = line.chars().take(terminal_columns()).collect();
            print!("\r\x1b[K{short}");
            let _ = std::io::stdout().flush();
        } else if now.told.elapsed() >= PROGRESS_EVERY {
            now.told = Instant::now();
            println!("{line}");
        }
    }
}

fn terminal_columns() -> usize {
    std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

fn has_failed(ran: Option<&Ran>) -> bool {
    ran.is_some_and(|ran| ran.outcome != Outcome::Passed)
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().expect("no panic under the lock")
}
