//! What a request has cost: as its worker says it, and as words of its slot.

use crate::report::{Ending, Model};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// What one request cost, written by its worker before the slot is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// From submit to take, ns.
    pub queue_ns: u64,
    /// From take to finish, ns.
    pub run_ns: u64,
    /// CPU time that is charged to it, ns: no more than `run_ns` and the rollback before it, and a guess where that is
    /// short (meter.rs of the worker says why).
    pub cpu_ns: u64,
    /// Peak of PHP's memory, bytes.
    pub peak_bytes: u64,
    /// How it was run; the ring knows, and fills it in.
    pub model: Model,
    /// The worker that ran it; likewise.
    pub worker: WorkerName,
    /// How PHP ended it.
    pub ending: Ending,
    /// What the kernel and the rollback did for it.
    pub details: UsageDetails,
}

impl Usage {
    /// How long it would have taken if nobody else had wanted its core, ns. Where it has waited besides, all of its time counts.
    pub(crate) fn busy_ns(&self) -> u64 {
        let UsageDetails { switches_voluntary, switches_involuntary, .. } = self.details;
        let was_pushed_aside = switches_involuntary > 0 && switches_voluntary == 0;
        if was_pushed_aside { self.cpu_ns.min(self.run_ns) } else { self.run_ns }
    }
}

/// Twelve bits of a word are for a worker's cell.
pub(crate) const CELLS_MAX: usize = 1 << 12;

/// A worker as people know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerName {
    /// Its process's number; 0: there is no worker.
    pub pid: u32,
    /// Its cell in the ring: a place that workers have one after the other.
    pub cell: u16,
    /// Which application it runs, as the server counts them; beyond 65,535 from 0 again.
    pub generation: u16,
}

impl WorkerName {
    /// Cell and generation, above a model's code in its word.
    fn above(self, model: Model) -> u32 {
        (model.code() & 0xf)
            | (u32::from(self.cell) & 0xfff) << 4
            | u32::from(self.generation) << 16
    }

    fn beneath(pid: u32, word: u32) -> (WorkerName, Model) {
        let (model, cell, generation) = (word & 0xf, word >> 4 & 0xfff, word >> 16);
        let name = WorkerName { pid, cell: cell as u16, generation: generation as u16 };
        (name, Model::from_code(model).unwrap_or(Model::Script))
    }
}

/// What short requests of most models have nothing of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageDetails {
    /// The rollback that made the worker ready for this request, ns: a part of `cpu_ns`.
    pub rollback_ns: u64,
    /// Pages that it copied.
    pub rollback_pages: u32,
    /// Page faults without a disk.
    pub faults_minor: u32,
    /// Page faults with one.
    pub faults_major: u32,
    /// Context switches because it waited.
    pub switches_voluntary: u32,
    /// Context switches because others wanted the core.
    pub switches_involuntary: u32,
}

/// Its place in the slot.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct UsageCell {
    queue_ns: AtomicU64,
    run_ns: AtomicU64,
    cpu_ns: AtomicU64,
    peak_bytes: AtomicU64,
    /// With the worker's cell and generation above it.
    model: AtomicU32,
    /// Its process.
    worker: AtomicU32,
}

/// The cell of the details has some of this request.
const HAS_DETAILS: u32 = 1 << 8;

impl UsageCell {
    /// With what stands elsewhere in the slot: details, if there are any, and in `ending` how it ended and whether there are.
    pub(crate) fn store(&self, usage: &Usage, details: &UsageDetailsCell, ending: &AtomicU32) {
        self.queue_ns.store(usage.queue_ns, Ordering::Relaxed);
        self.run_ns.store(usage.run_ns, Ordering::Relaxed);
        self.cpu_ns.store(usage.cpu_ns, Ordering::Relaxed);
        self.peak_bytes.store(usage.peak_bytes, Ordering::Relaxed);
        self.model.store(usage.worker.above(usage.model), Ordering::Relaxed);
        self.worker.store(usage.worker.pid, Ordering::Relaxed);
        let has_details = usage.details != UsageDetails::default();
        if has_details {
            details.store(&usage.details);
        }
        let has_details = if has_details { HAS_DETAILS } else { 0 };
        ending.store(usage.ending.code() | has_details, Ordering::Relaxed);
    }

    /// What [`Self::store`] has stored; any other words are some usage, too.
    pub(crate) fn load(&self, details: &UsageDetailsCell, ending: &AtomicU32) -> Usage {
        let ending = ending.load(Ordering::Relaxed);
        let pid = self.worker.load(Ordering::Relaxed);
        let (worker, model) = WorkerName::beneath(pid, self.model.load(Ordering::Relaxed));
        let has_details = ending & HAS_DETAILS != 0;
        Usage {
            queue_ns: self.queue_ns.load(Ordering::Relaxed),
            run_ns: self.run_ns.load(Ordering::Relaxed),
            cpu_ns: self.cpu_ns.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
            model,
            worker,
            ending: Ending::from_code(ending & !HAS_DETAILS).unwrap_or(Ending::Returned),
            details: if has_details { details.load() } else { UsageDetails::default() },
        }
    }
}

/// On a cache line of its own, which is left alone where there are none.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct UsageDetailsCell {
    rollback_ns: AtomicU64,
    rollback_pages: AtomicU32,
    faults_minor: AtomicU32,
    faults_major: AtomicU32,
    switches_voluntary: AtomicU32,
    switches_involuntary: AtomicU32,
}

impl UsageDetailsCell {
    fn store(&self, details: &UsageDetails) {
        self.rollback_ns.store(details.rollback_ns, Ordering::Relaxed);
        self.rollback_pages.store(details.rollback_pages, Ordering::Relaxed);
        self.faults_minor.store(details.faults_minor, Ordering::Relaxed);
        self.faults_major.store(details.faults_major, Ordering::Relaxed);
        self.switches_voluntary.store(details.switches_voluntary, Ordering::Relaxed);
        self.switches_involuntary.store(details.switches_involuntary, Ordering::Relaxed);
    }

    fn load(&self) -> UsageDetails {
        UsageDetails {
            rollback_ns: self.rollback_ns.load(Ordering::Relaxed),
            rollback_pages: self.rollback_pages.load(Ordering::Relaxed),
            faults_minor: self.faults_minor.load(Ordering::Relaxed),
            faults_major: self.faults_major.load(Ordering::Relaxed),
            switches_voluntary: self.switches_voluntary.load(Ordering::Relaxed),
            switches_involuntary: self.switches_involuntary.load(Ordering::Relaxed),
        }
    }
}

#[cfg(loom)]
impl UsageCell {
    pub(crate) fn new() -> UsageCell {
        UsageCell {
            queue_ns: AtomicU64::new(0),
            run_ns: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            model: AtomicU32::new(0),
            worker: AtomicU32::new(0),
        }
    }
}

#[cfg(loom)]
impl UsageDetailsCell {
    pub(crate) fn new() -> UsageDetailsCell {
        UsageDetailsCell {
            rollback_ns: AtomicU64::new(0),
            rollback_pages: AtomicU32::new(0),
            faults_minor: AtomicU32::new(0),
            faults_major: AtomicU32::new(0),
            switches_voluntary: AtomicU32::new(0),
            switches_involuntary: AtomicU32::new(0),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_was_pushed_aside_was_busy_for_its_own_time_alone() {
        let details = |switches_voluntary, switches_involuntary| UsageDetails {
            switches_voluntary,
            switches_involuntary,
            ..UsageDetails::default()
        };
        for (details, expected) in
            [(details(0, 3), 20), (details(1, 3), 900), (details(0, 0), 900), (details(2, 0), 900)]
        {
            let usage = Usage { run_ns: 900, cpu_ns: 20, details, ..Usage::default() };
            assert_eq!(usage.busy_ns(), expected, "{details:?}");
        }
    }
}
