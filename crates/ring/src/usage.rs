//! Usage of a request: as its worker reports it, and as words of its slot.

use crate::report::{Ending, Model};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Resources that one request used. The worker writes this before it finishes the slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// From submit to take, ns.
    pub queue_ns: u64,
    /// From take to finish, ns.
    pub run_ns: u64,
    /// CPU time charged to the request, ns: at most `run_ns` plus the rollback before it. An
    /// estimate if that is short (the worker's meter.rs explains why).
    pub cpu_ns: u64,
    /// Peak of PHP's memory, bytes.
    pub peak_bytes: u64,
    /// Execution model of the worker. Filled in by the ring.
    pub model: Model,
    /// The worker that ran the request. Also filled in by the ring.
    pub worker: WorkerName,
    /// How PHP ended the request.
    pub ending: Ending,
    /// Work of the kernel and the rollback for the request.
    pub details: UsageDetails,
}

impl Usage {
    /// Run time that the request would have had without competition for its core, ns. If it also
    /// waited voluntarily, all of its run time counts.
    pub(crate) fn busy_ns(&self) -> u64 {
        let UsageDetails { switches_voluntary, switches_involuntary, .. } = self.details;
        let was_pushed_aside = switches_involuntary > 0 && switches_voluntary == 0;
        if was_pushed_aside { self.cpu_ns.min(self.run_ns) } else { self.run_ns }
    }
}

/// Number of cells that the word can name: it has twelve bits for a worker's cell.
pub(crate) const CELLS_MAX: usize = 1 << 12;

/// Identification of a worker for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerName {
    /// Process id; 0: there is no worker.
    pub pid: u32,
    /// Number of its cell in the ring. Successive workers use the same cell.
    pub cell: u16,
    /// Generation of the application that it runs, as the server counts them; wraps to 0 after
    /// 65,535.
    pub generation: u16,
}

impl WorkerName {
    /// Cell and generation, in the bits above the code of `model`.
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

/// Figures that are all zero for short requests of most models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageDetails {
    /// Duration of the rollback that made the worker ready for this request, ns: a part of
    /// `cpu_ns`.
    pub rollback_ns: u64,
    /// Pages that this rollback copied.
    pub rollback_pages: u32,
    /// Page faults without disk access.
    pub faults_minor: u32,
    /// Page faults with disk access.
    pub faults_major: u32,
    /// Context switches because the worker waited.
    pub switches_voluntary: u32,
    /// Context switches because other processes needed the core.
    pub switches_involuntary: u32,
    /// Memory of PHP that the request has left in a resident worker, bytes; negative if it has
    /// freed memory of earlier requests.
    pub grown_bytes: i64,
}

/// Words of the slot that hold a usage.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct UsageCell {
    queue_ns: AtomicU64,
    run_ns: AtomicU64,
    cpu_ns: AtomicU64,
    peak_bytes: AtomicU64,
    /// Code of the model, with the worker's cell and generation above it.
    model: AtomicU32,
    /// Process id of the worker.
    worker: AtomicU32,
}

/// Flag: the details cell holds values of this request.
const HAS_DETAILS: u32 = 1 << 8;

impl UsageCell {
    /// Stores a usage, including its parts elsewhere in the slot: the details, if there are any,
    /// and in `ending` the ending and whether there are details.
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

    /// Loads the usage that [`Self::store`] stored. Garbage words also result in some usage.
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

/// On a cache line of its own, which is not touched if there are no details.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct UsageDetailsCell {
    rollback_ns: AtomicU64,
    rollback_pages: AtomicU32,
    faults_minor: AtomicU32,
    faults_major: AtomicU32,
    switches_voluntary: AtomicU32,
    switches_involuntary: AtomicU32,
    grown_bytes: AtomicU64,
}

impl UsageDetailsCell {
    fn store(&self, details: &UsageDetails) {
        self.rollback_ns.store(details.rollback_ns, Ordering::Relaxed);
        self.rollback_pages.store(details.rollback_pages, Ordering::Relaxed);
        self.faults_minor.store(details.faults_minor, Ordering::Relaxed);
        self.faults_major.store(details.faults_major, Ordering::Relaxed);
        self.switches_voluntary.store(details.switches_voluntary, Ordering::Relaxed);
        self.switches_involuntary.store(details.switches_involuntary, Ordering::Relaxed);
        self.grown_bytes.store(details.grown_bytes.cast_unsigned(), Ordering::Relaxed);
    }

    fn load(&self) -> UsageDetails {
        UsageDetails {
            rollback_ns: self.rollback_ns.load(Ordering::Relaxed),
            rollback_pages: self.rollback_pages.load(Ordering::Relaxed),
            faults_minor: self.faults_minor.load(Ordering::Relaxed),
            faults_major: self.faults_major.load(Ordering::Relaxed),
            switches_voluntary: self.switches_voluntary.load(Ordering::Relaxed),
            switches_involuntary: self.switches_involuntary.load(Ordering::Relaxed),
            grown_bytes: self.grown_bytes.load(Ordering::Relaxed).cast_signed(),
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
            grown_bytes: AtomicU64::new(0),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn preempted_request_counts_only_its_cpu_time() {
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
