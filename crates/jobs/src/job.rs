//! A job, and the settings of its queue.

use crate::trace;
use samovar_channel::{NewJob, TraceContext};
use std::time::Duration;

/// Maximum number of jobs in all queues. Each takes about 150 bytes of memory.
pub(crate) const JOBS_MAX: usize = 1_000_000;
/// Bytes of the store that a job takes in addition to its payload, key and error.
pub(crate) const JOB_BYTES: u64 = 160;
/// Maximum bytes of a stored error.
pub(crate) const ERROR_BYTES_MAX: usize = 4096;

/// Settings of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Name, unique in the server.
    pub name: String,
    /// Number of batches that run at the same time.
    pub workers: usize,
    /// Maximum number of jobs in a batch.
    pub batch: usize,
    /// Time for which a batch that is not full waits for further jobs.
    pub linger: Duration,
    /// Number of runs after which a job that failed is dead.
    pub attempts: u32,
    /// Delay before the second attempt; doubled for each further one.
    pub backoff: Duration,
    /// Maximum delay.
    pub backoff_max: Duration,
    /// Whether dead jobs are kept.
    pub dead_letter: bool,
    /// Maximum number of running jobs with the same key; 0: no limit.
    pub concurrency_per_key: usize,
    /// Maximum number of jobs that start per time; `None`: no limit.
    pub rate: Option<Rate>,
    /// Age of the oldest ready job above which the queue is reported; zero: never.
    pub oldest_max: Duration,
}

impl QueueSettings {
    /// Delay before the next attempt: doubled for each failure, and drawn from its upper half, so
    /// that jobs that failed together do not run together.
    pub(crate) fn backoff_ms(&self, attempts: u32, draw: impl Fn(u64) -> u64) -> u64 {
        let factor = 1_u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX);
        let whole = milliseconds(self.backoff).saturating_mul(factor);
        let whole = whole.min(milliseconds(self.backoff_max));
        whole / 2 + draw(whole / 2 + 1)
    }
}

/// A number of jobs per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of jobs, at least 1.
    pub count: u64,
    /// Time in milliseconds, at least 1.
    pub period_ms: u64,
}

/// Content of a job that is in the store only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Payload: JSON.
    pub payload: String,
    /// Trace of the request or job that pushed it.
    pub trace: TraceContext,
}

/// A job without its payload, as the queue in memory knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobState {
    /// Number in the store; a later job has a larger number.
    pub id: i64,
    /// Larger numbers run first.
    pub priority: i32,
    /// Key for order and for unique jobs.
    pub key: Option<String>,
    /// The key is taken until this time, in Unix milliseconds, by this job alone; 0: not unique.
    pub unique_until_ms: u64,
    /// Earliest start, in Unix milliseconds.
    pub due_ms: u64,
    /// Time of the push, in Unix milliseconds.
    pub pushed_ms: u64,
    /// Failed runs.
    pub attempts: u32,
    /// Number of runs after which it is dead; 0: that of the queue.
    pub attempts_max: u32,
    /// Length of the payload and of the trace context.
    pub payload_bytes: usize,
}

impl JobState {
    pub(crate) fn of(id: i64, new: &NewJob, now_ms: u64) -> JobState {
        JobState {
            id,
            priority: new.priority,
            key: new.key.clone(),
            unique_until_ms: if new.unique_ms == 0 {
                0
            } else {
                now_ms.saturating_add(new.unique_ms)
            },
            due_ms: now_ms.saturating_add(new.delay_ms),
            pushed_ms: now_ms,
            attempts: 0,
            attempts_max: new.attempts,
            payload_bytes: new.payload.len() + trace::bytes(&new.trace),
        }
    }

    /// Bytes that the job takes in the store.
    pub(crate) fn bytes(&self) -> u64 {
        JOB_BYTES + (self.payload_bytes + self.key.as_ref().map_or(0, String::len)) as u64
    }

    /// Bytes that the job takes in a batch.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.payload_bytes + self.key.as_deref().map_or(0, json_bytes) + JOB_ENVELOPE_BYTES
    }
}

/// Bytes of a batch that a job takes in addition to its payload, trace and key.
const JOB_ENVELOPE_BYTES: usize = 128;

/// Bytes of a text in JSON, without its quotes.
fn json_bytes(text: &str) -> usize {
    let of = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => "\\u0000".len(),
        _ => 1,
    };
    text.bytes().map(of).sum()
}

/// Returns a time in milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the text, shortened to the maximum of a stored error.
pub(crate) fn short(error: String) -> String {
    shortened(error, ERROR_BYTES_MAX)
}

/// Returns the text, shortened to this number of bytes.
pub(crate) fn shortened(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let mut end = bytes_max;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}
