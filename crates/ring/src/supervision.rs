//! The supervisor's view of the protocol: cleans up after dead workers, controls and reports on
//! live ones, stops them all.

use crate::cells::WorkerCell;
use crate::front_end::Run;
use crate::layout::Lane;
use crate::limits::{QUEUE_LEN, SlotIndex};
use crate::map::{Part, Ring};
use crate::os::monotonic_ns;
use crate::report::{Death, DesiredState, RollbackReport, WorkerReport};
use crate::request;
use crate::run_permits::PermitWatch;
use crate::sync::Ordering;
use crate::word::{Incarnation, State};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The request that a worker runs, according to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Slot, generation and worker of the run.
    pub run: Run,
    /// When it was queued, `CLOCK_MONOTONIC`.
    pub submitted_ns: u64,
}

/// Request line that the front wrote, unless the worker has changed it. Truncated, and valid UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLine {
    /// Method, such as `GET`.
    pub method: String,
    /// The target without its query.
    pub path: String,
    /// The script's path below the document root, with a leading slash.
    pub script: String,
    /// The request's id.
    pub id: String,
}

/// The supervisor's end of the ring.
#[derive(Clone, Debug)]
pub struct Supervision {
    ring: Ring,
    stopping: Arc<AtomicBool>,
}

impl Supervision {
    /// Creates the supervisor's view of `ring`.
    pub fn new(ring: Ring) -> Supervision {
        Supervision { ring, stopping: Arc::default() }
    }

    /// Restores the words that a new worker or template reads first, because its predecessors may
    /// have overwritten them. Call it before the start.
    pub fn reseal(&self) {
        self.ring.seal();
        let stop = u32::from(self.stopping.load(Ordering::SeqCst));
        self.ring.control().stop.0.store(stop, Ordering::SeqCst);
    }

    /// Repairs the ring after `wait` reported that worker `index`, incarnation `dead`, is gone.
    /// Returns the number of requests that lost their worker.
    ///
    /// Its slots go to the front, together with how the worker ended. All processes are woken,
    /// because the worker may have died between receiving a wake-up and passing it on.
    pub fn repair(&self, index: usize, dead: Incarnation, death: Death) -> usize {
        let orphans = self.ring.control().repair(index, dead, death, self.ring.parts());
        self.ring.ring_fronts();
        self.ring.control().wake_all_workers();
        orphans
    }

    /// Makes all workers leave when their request is done.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.ring.control().stop.0.store(1, Ordering::SeqCst);
        self.ring.control().wake_all_workers();
    }

    /// Sets the desired state of worker `index` and wakes the worker to read it. Also valid before
    /// a fork: the new worker finds it at its first check.
    pub fn set_desired_state(&self, index: usize, desired: DesiredState) {
        self.ring.control().use_cell(index);
        self.ring.control().set_desired_state(index, desired);
    }

    /// Sets the generation of the application that the worker of that cell will run. Call it before
    /// the fork.
    pub fn set_generation(&self, index: usize, generation: u64) {
        if let Some(cell) = self.ring.control().workers.get(index) {
            cell.0.generation.store(generation as u32, Ordering::Relaxed);
        }
    }

    /// Sets the desired state again if another process has overwritten it.
    pub fn insist(&self, index: usize, desired: DesiredState) {
        let is_other =
            |cell: &WorkerCell| cell.desired_state.load(Ordering::Relaxed) != desired.code();
        let cell = self.ring.control().workers.get(index);
        if cell.is_some_and(|line| is_other(&line.0)) {
            self.set_desired_state(index, desired);
        }
    }

    /// The report of worker `index` about itself; `None` if there is no such cell.
    pub fn report(&self, index: usize) -> Option<WorkerReport> {
        self.ring.control().workers.get(index).map(|cell| cell.0.report())
    }

    /// Durations of all workers' rollbacks since the server started.
    pub fn rollbacks(&self) -> RollbackReport {
        self.ring.control().rollback_times.0.report()
    }

    /// Numbers of PHP's messages since the server started, in the order of
    /// [`MessageLevel::ALL`](crate::MessageLevel::ALL). Workers write these numbers: they may be
    /// garbage.
    pub fn messages(&self) -> [u64; 4] {
        self.ring.control().messages.0.report()
    }

    /// Whether that run still goes on: its worker has not finished it, and therefore begun nothing
    /// else.
    pub fn is_running(&self, run: Run) -> bool {
        let cell = self.ring.cells().get(run.slot.get());
        let word = cell.map(|cell| cell.word.0.load());
        word.is_some_and(|word| {
            word.generation() == run.generation
                && word.owner() == run.worker.get()
                && word.state().is_some_and(State::is_workers)
        })
    }

    /// Sets the run limits.
    ///
    /// - `limit`: workers that may run at once; 0: any number
    /// - `woken_max`: with `limit` 0, workers that may be on their way after a wake-up; 0: any
    ///   number
    /// - `cells`: number of cells in use, from the first
    pub fn set_permits(&self, limit: usize, woken_max: usize, cells: usize) {
        self.ring.control().set_permits(limit, woken_max, cells);
    }

    /// Takes back run permits held since the last call, and those of cells without a live worker.
    /// Returns their number. The time between calls must be at least the maximum hold time of a
    /// permit.
    pub fn repair_permits(
        &self,
        watch: &mut PermitWatch,
        is_live: impl Fn(usize) -> bool,
    ) -> usize {
        watch.look(self.ring.control(), is_live)
    }

    /// Number of running workers, if it is limited.
    pub fn running(&self) -> usize {
        self.ring.control().running()
    }

    /// Number of cells that may be in use, from the first.
    pub fn cells(&self) -> usize {
        self.ring.control().cells()
    }

    /// Wait of the oldest request in `lane`, ns; 0: none waits. A hint.
    pub fn oldest_wait_ns(&self, lane: Lane) -> u64 {
        let oldest = self.ring.control().queue(lane).oldest();
        let slot = oldest.and_then(|(_, entry)| self.ring.cells().get(entry.slot()?.get()));
        let submitted = slot.map(|slot| slot.request.0.submitted_ns.load(Ordering::Relaxed));
        submitted.map_or(0, |at| monotonic_ns().saturating_sub(at))
    }

    /// The request that worker `index` runs; `None` if there is none or its words contradict each
    /// other.
    pub fn taken(&self, index: usize) -> Option<Taken> {
        let cell = &self.ring.control().workers.get(index)?.0;
        let slot = (cell.slot.load(Ordering::Relaxed) as usize).checked_sub(1)?;
        let slot = SlotIndex::new(slot, self.ring.slots())?;
        let worker = Incarnation::new(cell.incarnation.load(Ordering::SeqCst))?;
        let of_slot = self.ring.cells().get(slot.get())?;
        let generation = of_slot.word.0.load().generation();
        let run = Run { slot, generation, worker };
        let submitted_ns = of_slot.request.0.submitted_ns.load(Ordering::Relaxed);
        self.is_running(run).then_some(Taken { run, submitted_ns })
    }

    /// Request line in a slot. Reliable only if [`Self::is_running`] returns true afterwards.
    pub fn request_line(&self, slot: SlotIndex) -> RequestLine {
        if slot.get() >= self.ring.slots() {
            return RequestLine::default();
        }
        let area = self.ring.area(slot, Part::Request);
        let read = |at: usize, len: usize, out: &mut Vec<u8>| area.append_to(at, len, out);
        let [method, target, id] = request::line_of(read);
        let path = target.split('?').next().unwrap_or_default().to_owned();
        RequestLine { method, path, script: request::script_of(read), id }
    }

    /// Number of requests waiting in `lane`. A hint, for status and scaling.
    pub fn queued(&self, lane: Lane) -> u64 {
        self.ring.control().queue(lane).pending().min(QUEUE_LEN as u64)
    }
}
