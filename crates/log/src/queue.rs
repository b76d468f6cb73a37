//! What waits for the writer: bounded in bytes, and shared out fairly between those who write much and those who
//! write little.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Room for text that was not written yet, what the writer holds included.
pub(crate) const QUEUE_BYTES_MAX: usize = 4 << 20;
/// What a batch counts beside its text.
const BATCH_BYTES: usize = 64;

/// What a log has to say of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Since the last time that it was told.
    Lost {
        /// Lines, those counted that were written in part.
        lines: u64,
        /// What the system said; `None`: the queue was full, for the reader or the disk is too slow.
        error: Option<String>,
    },
    /// The file could not be opened again; the old one goes on.
    NotReopened {
        /// The system's words for it.
        error: String,
    },
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lines, error) = match self {
            Trouble::NotReopened { error } => return write!(to, "cannot be opened again: {error}"),
            Trouble::Lost { lines, error } => (*lines, error),
        };
        write!(
            to,
            "{} {} lost",
            with_commas(lines),
            if lines == 1 { "line was" } else { "lines were" }
        )?;
        match error {
            Some(error) => write!(to, ": {error}"),
            None => write!(to, " while nobody read"),
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

/// Bytes that one source has in the queue.
pub(crate) type Share = Arc<AtomicUsize>;

thread_local! {
    /// On whose account this thread's lines go; none: the server's own.
    static ACCOUNT: RefCell<Option<Share>> = const { RefCell::new(None) };
}

/// What `act` puts into queues is on that source's account.
pub(crate) fn on_account<T>(share: &Share, act: impl FnOnce() -> T) -> T {
    ACCOUNT.set(Some(Arc::clone(share)));
    let result = act();
    ACCOUNT.set(None);
    result
}

/// Whole lines, on somebody's account.
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
    /// Of all batches, those that the writer holds included.
    bytes: usize,
    /// The writer sleeps: whoever puts a line wakes it.
    is_idle: bool,
    /// Somebody waits for that: what is to be told is told now.
    is_urgent: bool,
    /// No more will come.
    is_over: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    idle: Condvar,
    lost: AtomicU64,
}

/// What the writer is to do next.
#[derive(Debug)]
pub(crate) enum Work {
    Write(Vec<Batch>),
    /// The time has come to tell what was lost.
    Tell,
    End,
}

impl Queue {
    /// False: it is lost.
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
        // A writer that is at work looks again by itself.
        if was_idle {
            self.changed.notify_one();
        }
        true
    }

    pub(crate) fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Lines, since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// For the writer. `tell_at`: when it has something to tell, if it has; sooner if somebody waits for the end.
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

    /// These are written, or lost.
    pub(crate) fn release(&self, done: &[Batch]) {
        let bytes = done.iter().map(Batch::bytes).sum::<usize>();
        for batch in done {
            if let Some(share) = &batch.share {
                share.fetch_sub(batch.bytes(), Ordering::Relaxed);
            }
        }
        self.lock().bytes -= bytes;
    }

    /// Waits until all that was put is written or lost, and what was lost is told; false: `limit` was over before.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let mut state = self.lock();
        (state.is_urgent, state.is_idle) = (true, false);
        self.changed.notify_one();
        let result = self.idle.wait_timeout_while(state, limit, |state| !state.is_idle);
        !result.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The writer ends when it has written what is there.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        (state.is_urgent, state.is_over) = (true, true);
        self.changed.notify_one();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Held for a few instructions only: who logs does not wait.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server's own lines may fill the queue. A source may hold as much of it as it leaves free, so that one that
/// floods gets half of it, two a third each, and there is always room for somebody who has said nothing yet.
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
    fn who_floods_leaves_room_for_others() {
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
    fn what_was_written_is_room_again() {
        let queue = Queue::default();
        let loud = Share::default();
        let many = fill(&queue, &loud);
        let Work::Write(batches) = queue.next(None) else { panic!("nothing to write") };
        assert!(!on_account(&loud, || queue.put(line(1000))), "the writer has them still");
        queue.release(&batches);
        assert_eq!((batches.len(), fill(&queue, &loud)), (many, many));
    }

    #[test]
    fn the_loss_in_words() {
        let lost = |lines, error: Option<&str>| {
            Trouble::Lost { lines, error: error.map(str::to_owned) }.to_string()
        };
        assert_eq!(lost(1, None), "1 line was lost while nobody read");
        assert_eq!(lost(999, None), "999 lines were lost while nobody read");
        assert_eq!(lost(1_234_567, Some("disk")), "1,234,567 lines were lost: disk");
    }
}
