//! The results of a run, and its steps for a progress.

use crate::case::{Case, Verdict};
use std::time::Duration;

/// The results of a run.
#[derive(Debug, Default)]
pub struct Results {
    /// PHP's version.
    pub php: String,
    /// The results of all tests, in the order of the list.
    pub cases: Vec<Case>,
    /// Faults of units that are not faults of one test.
    pub problems: Vec<String>,
    /// Expired entries of the quarantine.
    pub expired: Vec<String>,
    /// Entries of the quarantine whose tests have passed.
    pub healed: Vec<String>,
    /// Number of forks.
    pub forks: u32,
    /// Duration of the boot, the list included.
    pub boot: Duration,
    /// Duration of the run, the boot included.
    pub wall: Duration,
    /// Seed of the random order.
    pub seed: Option<u64>,
    /// Whether the run ended at the first failure.
    pub is_stopped: bool,
    /// Highest exit status of the framework without a failed test.
    pub(crate) status: u8,
}

impl Results {
    /// Returns the exit status: 0, 1 with failures, 2 with errors.
    #[must_use]
    pub fn status(&self) -> u8 {
        let failing = self.cases.iter().filter(|case| case.fails());
        let worst = failing.map(|case| if case.verdict == Verdict::Errored { 2 } else { 1 }).max();
        worst.unwrap_or(0).max(self.status).max(u8::from(!self.expired.is_empty()))
    }
}

/// A step of a run, for its progress.
pub enum Step<'a> {
    /// The tests are listed.
    Listed {
        /// PHP's version.
        php: &'a str,
        /// Number of tests, with one for each data set.
        tests: usize,
        /// Number of units.
        units: usize,
        /// Output of the boot.
        output: &'a str,
    },
    /// A unit has ended.
    Cases(&'a [Case]),
    /// Reruns begin.
    Reruns(usize),
}
