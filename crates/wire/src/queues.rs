//! Request and response of `samovar queue`: queues of jobs.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An action on queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueAction {
    /// List all queues.
    #[default]
    List,
    /// Show dead jobs.
    Show,
    /// Make dead jobs ready again.
    Retry,
    /// Remove dead jobs.
    Forget,
    /// Remove waiting jobs.
    Drop,
    /// Start no further batches.
    Pause,
    /// Start batches again.
    Resume,
    /// Move waiting or dead jobs to another queue.
    Move,
}

impl QueueAction {
    /// Whether it changes the queue.
    pub fn is_order(self) -> bool {
        !matches!(self, QueueAction::List | QueueAction::Show)
    }
}

/// A request about queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueQuestion {
    /// The action.
    pub action: QueueAction,
    /// Name of the queue; empty for a list.
    pub queue: String,
    /// Numbers of the jobs; empty: all.
    pub ids: Vec<i64>,
    /// Only jobs with larger numbers.
    pub after: i64,
    /// Only jobs with numbers up to this one; 0: those that exist now.
    pub until: i64,
    /// Maximum number of jobs; 0: as many as one response has room for.
    pub limit: usize,
    /// Queue that moved jobs go to.
    pub to: String,
    /// Move dead jobs instead of waiting ones.
    pub dead: bool,
}

impl QueueQuestion {
    /// Parses `queue` or `queue {"action": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<QueueQuestion>, Misunderstood> {
        let text = line.strip_prefix("queue").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Queue)
    }
}

/// State of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueStatus {
    /// Name.
    pub name: String,
    /// Jobs that a worker could run now.
    pub ready: usize,
    /// Jobs that wait for their time.
    pub delayed: usize,
    /// Jobs that run.
    pub running: usize,
    /// Dead jobs that are kept.
    pub dead: u64,
    /// Time for which the oldest ready job has been ready, in milliseconds.
    pub oldest_ms: u64,
    /// `oldest_max` of the queue, in milliseconds; 0: no limit.
    pub oldest_max_ms: u64,
    /// Jobs pushed since the start.
    pub pushed_total: u64,
    /// Jobs that succeeded since the start.
    pub done_total: u64,
    /// Runs that failed since the start.
    pub failed_total: u64,
    /// Failed runs since the start, by the class of the exception; other reasons are in
    /// parentheses.
    pub failures: BTreeMap<String, u64>,
    /// Failed runs since the start after which the job runs again.
    pub retried_total: u64,
    /// Jobs that died since the start.
    pub dead_total: u64,
    /// Pushes that were refused since the start.
    pub refused_total: u64,
    /// Whether no batch is started.
    pub paused: bool,
}

/// Totals of a queue since the start of the server, and its backlog, at the end of a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Jobs pushed.
    pub pushed: u64,
    /// Jobs that succeeded.
    pub done: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Failed runs after which the job runs again.
    pub retried: u64,
    /// Jobs that died.
    pub died: u64,
    /// Jobs that a worker could run.
    pub ready: u64,
    /// Time for which the oldest of them was ready, in milliseconds.
    pub oldest_ms: u64,
}

impl From<&QueueStatus> for QueueTotals {
    fn from(of: &QueueStatus) -> QueueTotals {
        QueueTotals {
            pushed: of.pushed_total,
            done: of.done_total,
            failed: of.failed_total,
            retried: of.retried_total,
            died: of.dead_total,
            ready: of.ready as u64,
            oldest_ms: of.oldest_ms,
        }
    }
}

/// Totals of all queues at one time, in the order of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueMinute {
    /// The time, in seconds since 1970.
    pub at: u64,
    /// Name and totals of each queue.
    pub queues: Vec<(Arc<str>, QueueTotals)>,
}

/// A dead job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeadJob {
    /// Its number.
    pub id: i64,
    /// Time of the push, in Unix milliseconds.
    pub pushed_ms: u64,
    /// Time of its death, in Unix milliseconds.
    pub died_ms: u64,
    /// Failed runs.
    pub attempts: u32,
    /// Its key.
    pub key: Option<String>,
    /// Class of the exception, or another reason in parentheses.
    pub class: String,
    /// File and line where the exception was created; empty if unknown.
    pub place: String,
    /// Reason of the last failure.
    pub error: String,
    /// Its payload: JSON.
    pub payload: String,
    /// Trace and span that pushed it (W3C Trace Context); empty: none.
    pub traceparent: String,
    /// Its `tracestate`.
    pub tracestate: String,
}

/// Response to a [`QueueQuestion`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueResponse {
    /// Reason why nothing was done.
    pub error: Option<String>,
    /// All queues, if a list was requested.
    pub queues: Vec<QueueStatus>,
    /// Dead jobs, if they were requested.
    pub jobs: Vec<DeadJob>,
    /// Number of jobs that have changed.
    pub changed: usize,
    /// `after` of the next request; 0: there are no further jobs.
    pub next: i64,
    /// `until` of the next request.
    pub until: i64,
}

impl QueueResponse {
    /// Returns the response for a request that failed for this reason.
    pub fn refused(why: String) -> QueueResponse {
        QueueResponse { error: Some(why), ..QueueResponse::default() }
    }
}
