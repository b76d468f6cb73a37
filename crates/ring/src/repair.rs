//! The supervisor's view: cleans up after a dead worker, reports on the living, stops them all.

use crate::layout::{
    Control, Lane, LeaveReason, Model, SlotIndex, Standing, WORKERS_MAX, WorkerCell, WorkerState,
    bucket_end,
};
use crate::map::Ring;
use crate::os;
use crate::sync::{Ordering, publish_before_look};
use crate::word::Incarnation;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The supervisor's end of the ring.
#[derive(Clone, Debug)]
pub struct Supervision {
    ring: Ring,
    stopping: Arc<AtomicBool>,
}

/// What a worker's cell says, checked for range; `None` fields were garbage or there is no worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerReport {
    /// What it does.
    pub state: WorkerState,
    /// Which model its application chose.
    pub model: Model,
    /// Requests finished in this life.
    pub requests: u64,
    /// Pages that a rollback copies.
    pub hot_pages: u32,
    /// Returns to the image in this life.
    pub rollbacks: u64,
    /// Why it ended itself, if it said so.
    pub leave: Option<LeaveReason>,
}

/// How long all workers' returns to the image took.
#[derive(Clone, Copy, Debug, Default)]
pub struct RollbackReport {
    /// How many there were.
    pub count: u64,
    /// Median, ns, at most a quarter too high.
    pub p50_ns: u64,
    /// 99th percentile, ns, likewise.
    pub p99_ns: u64,
}

impl Supervision {
    /// The supervisor of `ring`.
    pub fn new(ring: Ring) -> Supervision {
        Supervision { ring, stopping: Arc::default() }
    }

    /// Before a worker or a template is started: what it reads first is what it should be, whatever its
    /// predecessors wrote there.
    pub fn reseal(&self) {
        self.ring.seal();
        let stop = u32::from(self.stopping.load(Ordering::SeqCst));
        self.ring.control().stop.0.store(stop, Ordering::SeqCst);
    }

    /// After `wait` said that worker `index` in the life `dead` is gone: its slots become the front's, and
    /// everybody is woken, because it may have died between taking a wake-up and passing it on.
    /// Returns how many requests lost their worker.
    pub fn repair(&self, index: usize, dead: Incarnation) -> usize {
        let orphans = self.ring.control().repair(index, dead, self.ring.slots());
        self.ring.ring_front();
        self.ring.control().wake_all_workers();
        orphans
    }

    /// Tells all workers to leave when their request is done.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.ring.control().stop.0.store(1, Ordering::SeqCst);
        self.ring.control().wake_all_workers();
    }

    /// Says what worker `index` is to do from now on, and wakes it to see that. Also before a fork: its first look
    /// finds it.
    pub fn place(&self, index: usize, standing: Standing) {
        self.ring.control().place(index, standing);
    }

    /// Places worker `index` again if somebody else has written there.
    pub fn insist(&self, index: usize, standing: Standing) {
        let says = |cell: &WorkerCell| cell.standing.load(Ordering::Relaxed);
        let cell = self.ring.control().workers.get(index);
        if cell.is_some_and(|line| says(&line.0) != standing as u32) {
            self.place(index, standing);
        }
    }

    /// What worker `index` says of itself.
    pub fn report(&self, index: usize) -> Option<WorkerReport> {
        let cell = &self.ring.control().workers.get(index)?.0;
        Some(WorkerReport {
            state: WorkerState::from_bits(cell.state.load(Ordering::Relaxed)),
            model: Model::from_bits(cell.model.load(Ordering::Relaxed)),
            requests: cell.requests.load(Ordering::Relaxed),
            hot_pages: cell.hot_pages.load(Ordering::Relaxed),
            rollbacks: cell.rollbacks.load(Ordering::Relaxed),
            leave: LeaveReason::from_bits(cell.leave.load(Ordering::SeqCst)),
        })
    }

    /// What all workers' rollbacks took, since the server began.
    pub fn rollbacks(&self) -> RollbackReport {
        let times = &self.ring.control().rollback_times.0.buckets;
        let counts: Vec<u64> = times.iter().map(|b| b.load(Ordering::Relaxed)).collect();
        // Workers write these words: a sum may overflow without harm.
        let count = counts.iter().fold(0u64, |sum, n| sum.wrapping_add(*n));
        let quantile = |percent: u64| {
            let wanted = (u128::from(count) * u128::from(percent)).div_ceil(100);
            let mut seen = 0u64;
            let at = counts.iter().position(|n| {
                seen = seen.wrapping_add(*n);
                u128::from(seen) >= wanted
            });
            at.map_or(0, bucket_end)
        };
        if count == 0 {
            return RollbackReport::default();
        }
        RollbackReport { count, p50_ns: quantile(50), p99_ns: quantile(99) }
    }

    /// Requests waiting in `lane`: a hint, for status and scaling.
    pub fn queued(&self, lane: Lane) -> u64 {
        self.ring.control().queue(lane).pending().min(crate::layout::QUEUE_LEN as u64)
    }
}

impl Control {
    pub(crate) fn repair(&self, index: usize, dead: Incarnation, slots: usize) -> usize {
        for crew in &self.crews {
            crew.0.leave(index);
        }
        let cell = &self.workers[index].0;
        cell.incarnation.store(0, Ordering::SeqCst);
        cell.state.store(WorkerState::Starting as u32, Ordering::Relaxed);
        let mut orphans = 0;
        for at in 0..slots {
            let Some(slot) = SlotIndex::new(at, slots) else { continue };
            let word = &self.slot(slot).word.0;
            let orphaned = word.orphan(dead);
            orphans += usize::from(orphaned);
            // Also a slot that it had finished and not announced: the front must look at it.
            if orphaned || word.load().owner() == dead.get() {
                let _ = self.bell.0.mark(slot);
            }
        }
        orphans
    }

    pub(crate) fn place(&self, index: usize, standing: Standing) {
        let Some(cell) = self.workers.get(index) else { return };
        let cell = &cell.0;
        cell.standing.store(standing as u32, Ordering::SeqCst);
        // PAIRS WITH `sleep` and `hold`: they clear `awake`, then look at the standing.
        publish_before_look();
        cell.awake.store(1, Ordering::SeqCst);
        os::futex_wake(&cell.awake);
    }

    pub(crate) fn wake_all_workers(&self) {
        for index in 0..WORKERS_MAX {
            for crew in &self.crews {
                crew.0.rise(index);
            }
            let cell = &self.workers[index].0;
            if cell.incarnation.load(Ordering::SeqCst) != 0 {
                cell.awake.store(1, Ordering::SeqCst);
                os::futex_wake(&cell.awake);
            }
        }
        for slot in &self.slots {
            if slot.bell.0.waiting.load(Ordering::Relaxed) == 1 {
                slot.ring_worker();
            }
        }
    }
}
