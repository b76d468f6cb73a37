//! The boundary between the thread that serves the queues and the place where they are: in memory
//! and in a file of this machine (`engine.rs`), or in a store of several machines (`shared.rs`).
//!
//! The promises of a backend:
//!
//! 1. When [`Backend::commit`] has returned, the pushes are durable, each one as a whole or not at
//!    all. After an error none of them counts as stored.
//! 2. Results that could not be stored are kept, and the next commit stores them. Until then no
//!    batch starts, so the running batches bound the kept results.
//! 3. A job is removed only after its result. So each one runs at least once.
//! 4. [`Backend::start`] selects jobs by priority, then by their numbers, within the limits of the
//!    queue: workers, batches, keys, rate.
//! 5. No call waits for longer than a few seconds.

use crate::batch::RunError;
use crate::command::{Command, CommandResult};
use crate::store::StoreError;
use samovar_channel::{Push, PushReply, TraceContext};

/// Pause of a queue whose workers have not begun a batch, in milliseconds.
pub(crate) const NOT_STARTED_PAUSE_MS: u64 = 1_000;
/// Pause after the store has failed, in milliseconds.
pub(crate) const STORE_PAUSE_MS: u64 = 1_000;

/// A batch to run.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) queue: usize,
    pub(crate) lease: u64,
    pub(crate) body: Vec<u8>,
    /// One per job.
    pub(crate) traces: Vec<TraceContext>,
    /// Id of the first job.
    pub(crate) first: i64,
}

/// Position of a push's jobs among the inserts of the next commit; `None`: a duplicate.
pub(crate) type Pending = Vec<Option<usize>>;

/// All queues. Times are in Unix milliseconds.
pub(crate) trait Backend: Send {
    /// Takes the content of the store again, when the server before this one has ended. No batch
    /// was started before.
    fn reload(&mut self, now_ms: u64) -> Result<(), StoreError>;

    /// Replies to a push without jobs.
    fn depth(&mut self, queue: &str, now_ms: u64) -> PushReply;

    /// Checks a push, and adds its jobs to the next commit.
    fn push(&mut self, push: Push, now_ms: u64) -> Result<Pending, PushReply>;

    /// Takes the results of a batch. They are stored by the next commit.
    fn finish(&mut self, lease: u64, ran: &Result<Vec<u8>, RunError>, now_ms: u64);

    /// Stores everything that was collected. Returns the ids of the inserted jobs: 0 for a
    /// duplicate, `None` if there was no room for the push.
    ///
    /// If the store fails, the inserts are refused. The changes stay for the next commit.
    fn commit(&mut self, now_ms: u64) -> Result<Vec<Option<i64>>, String>;

    /// Selects the batches that can start now. Also returns the time at which to look again.
    /// `closed` returns for a queue that may not start any now the time to look at it again.
    fn start(
        &mut self,
        now_ms: u64,
        closed: &dyn Fn(usize) -> Option<u64>,
    ) -> (Vec<Started>, Option<u64>);

    /// Carries out a command. Its changes are stored by the next commit.
    fn obey(&mut self, command: &Command, now_ms: u64) -> CommandResult;
}

/// Returns the reply to a push.
pub(crate) fn reply(pending: &Pending, stored: &Result<Vec<Option<i64>>, String>) -> PushReply {
    let ids = match stored {
        Ok(ids) => ids,
        Err(error) => return PushReply::Refused(error.clone()),
    };
    let id = |at: &Option<usize>| at.map_or(Some(0), |at| ids.get(at).copied().flatten());
    match pending.iter().map(id).collect() {
        Some(ids) => PushReply::Stored(ids),
        None => PushReply::Refused("the store of jobs is full (jobs.bytes_max)".to_owned()),
    }
}

/// Returns the position of a queue.
pub(crate) fn find<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    name: &str,
) -> Result<usize, String> {
    names.clone().position(|known| known == name).ok_or_else(|| {
        let known: Vec<_> = names.map(|known| format!("`{known}`")).collect();
        let name = name.escape_debug();
        format!("there is no queue `{name}`\nhint: the queues are {}", known.join(", "))
    })
}
