//! front → aggregation thread: batches of finished requests, through a bounded channel.
//!
//! The front's thread appends to its own batch and sends it when it is full or at the next sweep.
//! It never blocks: if the aggregation thread is [`BATCHES_MAX`] batches late, a batch is dropped,
//! and counted.

use crate::batch::{Batch, Marks};
use crate::finished::{Finished, Numbers};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Pause of the aggregation thread after a full batch, so that several batches accumulate. It is a
/// fraction of the time in which the channel fills up.
const PAUSE: Duration = Duration::from_millis(4);
/// Maximum number of batches in the channel.
const BATCHES_MAX: usize = 64;

/// Maximum number of empty batches that are reused: as many as a busy front fills during the pause.
/// A batch with large reports keeps up to 0.3 MB.
const SPARE_MAX: usize = 16;

/// Empty batches, shared by all threads of the front.
type Spare = Arc<Mutex<Vec<Batch>>>;

fn lock(spare: &Spare) -> MutexGuard<'_, Vec<Batch>> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The front's end of the channel.
#[derive(Debug)]
pub struct Intake {
    batch: Batch,
    full: SyncSender<Batch>,
    spare: Spare,
    lost: Arc<AtomicU64>,
    /// Minimum wall time of requests that must be sent whole, ns; and its value when the current
    /// batch was started.
    whole_from: Arc<AtomicU64>,
    whole_from_ns: u64,
}

/// The aggregation thread's end of the channel.
#[derive(Debug)]
pub struct Outlet {
    full: Receiver<Batch>,
    spare: Spare,
    lost: Arc<AtomicU64>,
    whole_from: Arc<AtomicU64>,
    /// Whether the last batch was full.
    was_full: Cell<bool>,
}

/// Creates a channel for finished requests.
#[must_use]
pub fn intake() -> (Intake, Outlet) {
    let (full, received) = sync_channel(BATCHES_MAX);
    let spare = Spare::default();
    let (lost, whole_from) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let outlet = Outlet {
        full: received,
        spare: Arc::clone(&spare),
        lost: Arc::clone(&lost),
        whole_from: Arc::clone(&whole_from),
        was_full: Cell::new(false),
    };
    (Intake { batch: Batch::default(), full, spare, lost, whole_from, whole_from_ns: 0 }, outlet)
}

impl Intake {
    /// Returns an end of the same channel for another thread of the front.
    #[must_use]
    pub fn beside(&self) -> Intake {
        Intake {
            batch: Batch::default(),
            full: self.full.clone(),
            spare: Arc::clone(&self.spare),
            lost: Arc::clone(&self.lost),
            whole_from: Arc::clone(&self.whole_from),
            whole_from_ns: 0,
        }
    }

    /// Adds a finished request that has no data but its numbers and texts, if the current batch
    /// already has its kind. Returns whether it did; if not, the caller must use
    /// [`Intake::put_marked`].
    #[must_use]
    pub fn pack(&mut self, numbers: &Numbers, marks: Marks) -> bool {
        let is_packed =
            numbers.wall_ns < self.whole_from_ns && self.batch.pack_beside(numbers, marks);
        if is_packed && self.batch.is_full() {
            self.flush();
        }
        is_packed
    }

    /// Adds a finished request.
    pub fn put_marked(&mut self, finished: &Finished, marks: Marks) {
        if finished.numbers.wall_ns < self.whole_from_ns && finished.report.is_empty() {
            self.batch.pack(finished, marks);
        } else {
            self.batch.put(finished);
        }
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// Adds a finished request, whole.
    pub fn put(&mut self, finished: &Finished) {
        self.batch.put(finished);
        if self.batch.is_full() {
            self.flush();
        }
    }

    /// Sends the current batch, so that figures are at most one sweep old.
    pub fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.whole_from_ns = self.whole_from.load(Ordering::Relaxed);
        // `try_lock`: the thread that holds the lock may have been preempted.
        let spare = self.spare.try_lock().ok().and_then(|mut spare| spare.pop());
        let next = spare.unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, next);
        if let Err(TrySendError::Full(mut batch) | TrySendError::Disconnected(mut batch)) =
            self.full.try_send(full)
        {
            self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
            batch.clear();
            self.batch = batch;
        }
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Outlet {
    fn next(&self, limit: Duration) -> Result<Batch, RecvTimeoutError> {
        if !self.was_full.take() {
            return self.full.recv_timeout(limit);
        }
        self.full.try_recv().or_else(|_| {
            std::thread::sleep(PAUSE);
            self.full.recv_timeout(limit)
        })
    }

    /// Receives the next batch and passes it to `each`; returns false if none arrives in time. A
    /// full batch is usually followed by others. They are given a moment to accumulate, so that a
    /// busy server does not wake this thread for each.
    pub fn take(&self, limit: Duration, each: impl FnOnce(&Batch)) -> Result<bool, Ended> {
        let mut batch = match self.next(limit) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => return Err(Ended),
        };
        each(&batch);
        let was_full = batch.is_full();
        batch.clear();
        let mut spare = lock(&self.spare);
        if spare.len() < SPARE_MAX {
            spare.push(batch);
        }
        drop(spare);
        self.was_full.set(was_full);
        Ok(true)
    }

    /// Sets the minimum wall time of requests that must be sent whole without another reason, ns.
    /// Before this call all requests are sent whole.
    pub(crate) fn want_whole_from(&self, ns: u64) {
        self.whole_from.store(ns, Ordering::Relaxed);
    }

    /// Returns a handle for changes of this time.
    pub(crate) fn whole_from(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.whole_from)
    }

    /// Returns the number of requests lost because this end was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The front has ended, and all batches were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the front has ended")]
pub struct Ended;

#[cfg(test)]
mod tests {
    use super::{BATCHES_MAX, Ended, intake, lock};
    use crate::batch::BATCH_ROWS_MAX;
    use crate::finished::Finished;
    use std::time::Duration;

    #[test]
    fn batches_arrive_in_order_and_are_reused() {
        let (mut front, thread) = intake();
        for n in 0..10 {
            front.put(&Finished { id: &n.to_string(), ..Finished::default() });
        }
        assert_eq!(thread.take(Duration::ZERO, |_| ()), Ok(false));
        front.flush();
        let mut ids = Vec::new();
        let taken = thread.take(Duration::ZERO, |b| ids.extend(b.whole().map(|f| f.id.to_owned())));
        assert_eq!(taken, Ok(true));
        assert_eq!(ids, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
        drop(front);
        assert_eq!(thread.take(Duration::ZERO, |_| ()), Err(Ended));
    }

    #[test]
    fn each_front_thread_reuses_batches() {
        let (mut front, thread) = intake();
        let mut other = front.beside();
        for _ in 0..3 {
            for end in [&mut front, &mut other] {
                end.put(&Finished::default());
                end.flush();
                assert_eq!(thread.take(Duration::ZERO, |_| ()), Ok(true));
            }
        }
        // Two batches were in use. Each flush but the first took an existing batch.
        assert_eq!(lock(&thread.spare).len(), 1);
    }

    #[test]
    fn slow_thread_loses_batches_and_counts_them() {
        let (mut front, thread) = intake();
        let more = 3;
        for _ in 0..(BATCHES_MAX + more) * BATCH_ROWS_MAX {
            front.put(&Finished::default());
        }
        assert_eq!(thread.lost(), (more * BATCH_ROWS_MAX) as u64);
        let mut rows = 0;
        while thread.take(Duration::ZERO, |b| rows += b.len()) == Ok(true) {}
        assert_eq!(rows, BATCHES_MAX * BATCH_ROWS_MAX);
    }
}
