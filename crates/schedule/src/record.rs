//! The last run, as the store keeps it.

use crate::run::RunResult;

/// Maximum bytes of a run's output that are kept: the last ones.
pub(crate) const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// The last run of a schedule. Times are Unix times in milliseconds; 0: never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its last time that has passed, even if nothing ran.
    pub due_ms: u64,
    /// Start of the last run.
    pub started_ms: u64,
    /// End of the last run; 0: it runs.
    pub ended_ms: u64,
    /// Its result; `None`: it runs, or there was none.
    pub result: Option<RunResult>,
    /// Details of the result.
    pub detail: String,
    /// The last part of its output.
    pub output: String,
    /// End of the last run that succeeded.
    pub succeeded_ms: u64,
}
