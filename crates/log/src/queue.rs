//! Batches waiting for the writer: bounded in bytes, and shared fairly between sources that write
//! much and sources that write little.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes not written yet, including those that the writer holds.
pub(crate) const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Bytes counted per batch in addition to its text.
pub(crate) const BATCH_BYTES: usize = 64;

/// Problem of a log, reported by the log itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogProblem {
    /// Lines lost since the last report.
    Lost {
        /// Number of lines, including those written in part.
        lines: u64,
        /// Error from the system. `None` if the queue was full: the reader or the disk is too slow.
        error: Option<String>,
    },
    /// The file could not be reopened; the old one stays in use.
    NotReopened {
        /// Error from the system.
        error: String,
    },
}

impl std::fmt::Display for LogProblem {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lines, error) = match self {
            LogProblem::NotReopened { error } => {
                return write!(to, "cannot be reopened: {error}");
            }
            LogProblem::Lost { lines, error } => (*lines, error),
        };
        write!(
            to,
            "{} {} lost",
            with_commas(lines),
            if lines == 1 { "line was" } else { "lines were" }
        )?;
        match error {
            Some(error) => write!(to, ": {error}"),
            None => write!(to, ": the log queue was full"),
        }
    }
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Number of bytes that one source has in the queue.
pub(crate) type Share = Arc<AtomicUsize>;

thread_local! {
    /// Source to which this thread's lines are charged; `None` for the server's own lines.
    static ACCOUNT: RefCell<Option<Share>> = const { RefCell::new(None) };
}

/// Charges the lines that `act` puts into queues to that source.
pub(crate) fn on_account<T>(share: &Share, act: impl FnOnce() -> T) -> T {
    ACCOUNT.set(Some(Arc::clone(share)));
    let result = act();
    ACCOUNT.set(None);
    result
}

/// Whole lines, charged to one source.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) text: Vec<u8>,
    share: Option<Share>,
}

impl Batch {
    fn bytes(&self) -> usize {
        self.text.len() + BATCH_BYTES
    }
}

#[derive(Debug, Default)]
struct State {
    batches: Vec<Batch>,
    /// Bytes of all batches, including those that the writer holds.
    bytes: usize,
    /// The writer is asleep: adding a batch must wake it.
    is_idle: bool,
    /// A caller of `flush` or `end` is waiting: losses are reported immediately.
    is_urgent: bool,
    /// No more batches will be added.
    is_over: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    idle: Condvar,
    lost: AtomicU64,
}

/// The writer's next task.
#[derive(Debug)]
pub(crate) enum Work {
    Write(Vec<Batch>),
    /// Report the losses now.
    Tell,
    End,
}

impl Queue {
    /// Queues whole lines. Returns false if they are lost.
    pub(crate) fn put(&self, text: Vec<u8>) -> bool {
        let batch = Batch { text, share: ACCOUNT.with_borrow(Clone::clone) };
        let mut state = self.lock();
        if !admit(&batch, state.bytes) {
            drop(state);
            self.lose(count_lines(&batch.text));
            return false;
        }
        state.bytes += batch.bytes();
        if let Some(share) = &batch.share {
            share.fetch_add(batch.bytes(), Ordering::Relaxed);
        }
        state.batches.push(batch);
        let was_idle = std::mem::take(&mut state.is_idle);
        drop(state);
        // A writer that is not asleep checks the queue again without a wake-up.
        if was_idle {
            self.changed.notify_one();
        }
        true
    }

    pub(crate) fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Number of lines lost since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the writer's next task, and waits for one if needed. `tell_at` is the time of the
    /// next loss report, if one is due. The report is made earlier if a caller waits for the end.
    pub(crate) fn next(&self, tell_at: Option<Instant>) -> Work {
        let mut state = self.lock();
        loop {
            if !state.batches.is_empty() {
                return Work::Write(std::mem::take(&mut state.batches));
            }
            let wait = tell_at.map(|at| at.saturating_duration_since(Instant::now()));
            let is_urgent = std::mem::take(&mut state.is_urgent);
            if wait.is_some_and(|wait| wait.is_zero() || is_urgent) {
                return Work::Tell;
            }
            if state.is_over {
                return Work::End;
            }
            state.is_idle = true;
            self.idle.notify_all();
            state = match wait {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    let result = self.changed.wait_timeout(state, wait);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Removes batches that are written or lost from the accounts.
    pub(crate) fn release(&self, done: &[Batch]) {
        let bytes = done.iter().map(Batch::bytes).sum::<usize>();
        for batch in done {
            if let Some(share) = &batch.share {
                share.fetch_sub(batch.bytes(), Ordering::Relaxed);
            }
        }
        self.lock().bytes -= bytes;
    }

    /// Waits until all queued lines are written or lost, and losses are reported. Returns false if
    /// `limit` expired first.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let mut state = self.lock();
        (state.is_urgent, state.is_idle) = (true, false);
        self.changed.notify_one();
        let result = self.idle.wait_timeout_while(state, limit, |state| !state.is_idle);
        !result.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Makes the writer end after it has written all queued lines.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        (state.is_urgent, state.is_over) = (true, true);
        self.changed.notify_one();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Held for a few instructions only: a thread that logs does not wait.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decides whether a batch fits into the queue. The server's own lines may fill it completely. A
/// source may hold at most as much as it leaves free. One flooding source therefore gets half of
/// the queue, and two get a third each. A source without queued lines always finds room.
fn admit(batch: &Batch, queued_bytes: usize) -> bool {
    let free = QUEUE_BYTES_MAX.saturating_sub(queued_bytes);
    let held = batch.share.as_ref().map_or(0, |share| share.load(Ordering::Relaxed));
    held + batch.bytes() <= free
}

pub(crate) fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: usize) -> Vec<u8> {
        let mut line = vec![b'x'; bytes - 1];
        line.push(b'\n');
        line
    }

    fn fill(queue: &Queue, share: &Share) -> usize {
        let put = |_: &usize| queue.put(line(1000));
        on_account(share, || (0..QUEUE_BYTES_MAX).take_while(put).count())
    }

    #[test]
    fn flooding_source_leaves_room_for_others() {
        let queue = Queue::default();
        let (loud, louder, quiet) = (Share::default(), Share::default(), Share::default());
        let half = QUEUE_BYTES_MAX / 2 / (1000 + BATCH_BYTES);
        assert_eq!(fill(&queue, &loud), half);
        assert!((half / 2..=half / 2 + 1).contains(&fill(&queue, &louder)));
        assert!(on_account(&quiet, || queue.put(line(100))));
        assert_eq!(queue.lost(), 2);
        assert!(queue.put(line(QUEUE_BYTES_MAX / 8)), "the server's own");
        assert!(!queue.put(line(QUEUE_BYTES_MAX)));
        assert_eq!(queue.lost(), 3);
    }

    #[test]
    fn release_frees_room_of_written_batches() {
        let queue = Queue::default();
        let loud = Share::default();
        let many = fill(&queue, &loud);
        let Work::Write(batches) = queue.next(None) else { panic!("nothing to write") };
        assert!(!on_account(&loud, || queue.put(line(1000))), "the writer has them still");
        queue.release(&batches);
        assert_eq!((batches.len(), fill(&queue, &loud)), (many, many));
    }

    #[test]
    fn trouble_lost_formats_count_and_cause() {
        let lost = |lines, error: Option<&str>| {
            LogProblem::Lost { lines, error: error.map(str::to_owned) }.to_string()
        };
        assert_eq!(lost(1, None), "1 line was lost: the log queue was full");
        assert_eq!(lost(999, None), "999 lines were lost: the log queue was full");
        assert_eq!(lost(1_234_567, Some("disk")), "1,234,567 lines were lost: disk");
    }
}
