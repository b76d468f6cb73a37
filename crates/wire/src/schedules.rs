//! Request and response of `samovar schedule`, and part of the status: schedules.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};

/// An action on schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleAction {
    /// List all schedules.
    #[default]
    List,
    /// Show one, and the output of its last run.
    Show,
    /// Run it now.
    Run,
}

impl ScheduleAction {
    /// Whether it changes the server's state.
    pub fn is_order(self) -> bool {
        self == ScheduleAction::Run
    }
}

/// A request about schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleQuestion {
    /// The action.
    pub action: ScheduleAction,
    /// Name of the schedule; empty for a list.
    pub schedule: String,
}

impl ScheduleQuestion {
    /// Parses `schedule` or `schedule {"action": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<ScheduleQuestion>, Misunderstood> {
        let text = line.strip_prefix("schedule").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Schedule)
    }
}

/// Runs of a schedule since the start, by result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleResults {
    /// Exit code 0, or the job is stored.
    pub succeeded: u64,
    /// Another exit code, a signal, or the job could not be stored.
    pub failed: u64,
    /// Runs that were stopped because their time was over.
    pub timed_out: u64,
    /// Runs that were stopped for the next run, or because the server stopped.
    pub stopped: u64,
    /// Runs that could not be started.
    pub not_started: u64,
    /// Runs whose server died.
    pub interrupted: u64,
    /// Times at which nothing ran, because the previous run was not over.
    pub skipped: u64,
}

/// State of a schedule. Times are Unix times in milliseconds; 0: never.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleStatus {
    /// Name.
    pub name: String,
    /// Its times: a cron expression, or `every 30s`.
    pub times: String,
    /// Time zone of the cron expression; empty for an interval.
    pub timezone: String,
    /// The command, or the queue.
    pub work: String,
    /// `waiting`, `queued` (too many schedules run), `running`, or `standby` (another server has
    /// the lock).
    pub state: String,
    /// Process of the present run; 0: there is none.
    pub pid: i32,
    /// Time since the start of the present run, in milliseconds.
    pub running_ms: u64,
    /// Next start.
    pub next_ms: u64,
    /// The same in the time zone of the cron expression.
    pub next: String,
    /// Start of the last run.
    pub started_ms: u64,
    /// Duration of the last run that has ended, in milliseconds.
    pub duration_ms: u64,
    /// Result of the last run: a key of `runs`; empty: it runs, or there was none.
    pub result: String,
    /// Details of the result: `exit code 3`.
    pub detail: String,
    /// The last characters of its output.
    pub output: String,
    /// End of the last run that succeeded.
    pub succeeded_ms: u64,
    /// Runs since the start.
    pub runs: ScheduleResults,
    /// Duration of all runs since the start, in milliseconds.
    pub run_ms_total: u64,
}

/// Response to a [`ScheduleQuestion`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleResponse {
    /// Reason why nothing was done.
    pub error: Option<String>,
    /// The schedules that were requested.
    pub schedules: Vec<ScheduleStatus>,
    /// Output of the last run, if one schedule was requested.
    pub output: String,
}

impl ScheduleResponse {
    /// Returns the response for a request that failed for this reason.
    pub fn refused(why: String) -> ScheduleResponse {
        ScheduleResponse { error: Some(why), ..ScheduleResponse::default() }
    }
}
