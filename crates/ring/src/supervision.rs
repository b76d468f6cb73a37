//! The supervisor's view of the protocol: cleans up after a dead worker, steers the living and reports on them, stops
//! them all.

use crate::front_end::Run;
use crate::layout::{Lane, QUEUE_LEN, SlotIndex, WorkerCell};
use crate::map::{Part, Ring};
use crate::os::monotonic_ns;
use crate::report::{Death, DesiredState, RollbackReport, WorkerReport};
use crate::request;
use crate::sync::Ordering;
use crate::turns::TurnWatch;
use crate::word::{Incarnation, State};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The request that a worker says it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which run of which worker.
    pub run: Run,
    /// When it was queued, `CLOCK_MONOTONIC`.
    pub submitted_ns: u64,
}

/// What the front has said of a request, as far as its worker has left it alone: cut, and of valid UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLine {
    /// `GET`.
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

    /// After `wait` said that worker `index` in the life `dead` is gone: its slots become the front's, which is told how
    /// it ended, and everybody is woken, because it may have died between taking a wake-up and passing it on.
    /// Returns how many requests lost their worker.
    pub fn repair(&self, index: usize, dead: Incarnation, death: Death) -> usize {
        let orphans = self.ring.control().repair(index, dead, death, self.ring.parts());
        self.ring.ring_fronts();
        self.ring.control().wake_all_workers();
        orphans
    }

    /// Tells all workers to leave when their request is done.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.ring.control().stop.0.store(1, Ordering::SeqCst);
        self.ring.control().wake_all_workers();
    }

    /// Says what worker `index` is to do, and wakes it to see that. Also before a fork: its first look finds it.
    pub fn set_desired_state(&self, index: usize, desired: DesiredState) {
        self.ring.control().use_cell(index);
        self.ring.control().set_desired_state(index, desired);
    }

    /// Before a fork: which application the worker of that cell will run.
    pub fn set_generation(&self, index: usize, generation: u64) {
        if let Some(cell) = self.ring.control().workers.get(index) {
            cell.0.generation.store(generation as u32, Ordering::Relaxed);
        }
    }

    /// Says it again if somebody else has written there.
    pub fn insist(&self, index: usize, desired: DesiredState) {
        let is_other =
            |cell: &WorkerCell| cell.desired_state.load(Ordering::Relaxed) != desired.code();
        let cell = self.ring.control().workers.get(index);
        if cell.is_some_and(|line| is_other(&line.0)) {
            self.set_desired_state(index, desired);
        }
    }

    /// What worker `index` says of itself; `None`: there is no such cell.
    pub fn report(&self, index: usize) -> Option<WorkerReport> {
        self.ring.control().workers.get(index).map(|cell| cell.0.report())
    }

    /// What all workers' rollbacks took, since the server began.
    pub fn rollbacks(&self) -> RollbackReport {
        self.ring.control().rollback_times.0.report()
    }

    /// Whether that run still goes on: its worker has not finished, and so begun nothing else.
    pub fn is_running(&self, run: Run) -> bool {
        let cell = self.ring.cells().get(run.slot.get());
        let word = cell.map(|cell| cell.word.0.load());
        word.is_some_and(|word| {
            word.generation() == run.generation
                && word.owner() == run.worker.get()
                && word.state().is_some_and(State::is_workers)
        })
    }

    /// So many workers may run at once (0: any number, of which so many may be on their way; 0: any number), and so many cells
    /// are in use, from the first.
    pub fn set_turns(&self, limit: usize, woken_max: usize, cells: usize) {
        self.ring.control().set_turns(limit, woken_max, cells);
    }

    /// Ends turns that have gone on since the last look, which is no shorter ago than a turn may be; and those of cells
    /// that are nobody's. Returns how many.
    pub fn mend_turns(&self, watch: &mut TurnWatch, is_live: impl Fn(usize) -> bool) -> usize {
        watch.look(self.ring.control(), is_live)
    }

    /// How many workers run, where that is limited.
    pub fn running(&self) -> usize {
        self.ring.control().running()
    }

    /// Cells that may be in use, from the first.
    pub fn cells(&self) -> usize {
        self.ring.control().cells()
    }

    /// For how long the oldest request in `lane` has waited, ns; 0: none waits. A hint.
    pub fn oldest_wait_ns(&self, lane: Lane) -> u64 {
        let oldest = self.ring.control().queue(lane).oldest();
        let slot = oldest.and_then(|(_, entry)| self.ring.cells().get(entry.slot()?.get()));
        let submitted = slot.map(|slot| slot.request.0.submitted_ns.load(Ordering::Relaxed));
        submitted.map_or(0, |at| monotonic_ns().saturating_sub(at))
    }

    /// What worker `index` runs; `None`: no request, or its words contradict one another.
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

    /// What is asked for in a slot. To be believed if [`Self::is_running`] holds afterwards.
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

    /// Requests waiting in `lane`: a hint, for status and scaling.
    pub fn queued(&self, lane: Lane) -> u64 {
        self.ring.control().queue(lane).pending().min(QUEUE_LEN as u64)
    }
}
