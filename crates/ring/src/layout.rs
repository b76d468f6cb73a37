//! Where everything lies in the memory file: the control block, then one payload area per slot.
//!
//! A file of another version is refused by `attach`; whoever changes a struct here changes
//! [`VERSION`].

use crate::bell::{Crew, FrontBell, Pace};
use crate::queue::Queue;
use crate::stream::Stream;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::word::Word;

/// First eight bytes of the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SAMOVAR\0");
/// Version of the layout and of the protocol.
pub const VERSION: u32 = 3;

#[cfg(not(loom))]
mod limits {
    /// Worker processes a pool can have.
    pub const WORKERS_MAX: usize = 256;
    /// Requests that can be queued or in flight.
    pub const SLOTS_MAX: usize = 4096;
    /// Entries of a lane's queue: stale ones (withdrawn requests) need room beside the live ones.
    pub(crate) const QUEUE_LEN: usize = 4 * SLOTS_MAX;
    /// Queues of a pool.
    pub const LANES: usize = 2;
    /// Up to 4 s.
    pub(crate) const ROLLBACK_BUCKETS: usize = 128;
}
#[cfg(loom)]
mod limits {
    pub const WORKERS_MAX: usize = 2;
    pub const SLOTS_MAX: usize = 2;
    pub(crate) const QUEUE_LEN: usize = 8;
    pub const LANES: usize = 1;
    pub(crate) const ROLLBACK_BUCKETS: usize = 1;
}
pub use limits::{LANES, SLOTS_MAX, WORKERS_MAX};
pub(crate) use limits::{QUEUE_LEN, ROLLBACK_BUCKETS};

/// Encoded request head: 64 KiB on the wire, plus the header table and the script's paths.
pub const REQUEST_BYTES: usize = 96 * 1024;
/// Request body in flight.
pub const BODY_BYTES: usize = 64 * 1024;
/// Status and header lines of an answer.
pub(crate) const HEAD_BYTES: usize = 32 * 1024;
/// Answer body in flight.
pub(crate) const ANSWER_BYTES: usize = 128 * 1024;
/// One slot's payload area.
pub(crate) const AREA_BYTES: usize = REQUEST_BYTES + BODY_BYTES + HEAD_BYTES + ANSWER_BYTES;

/// A queue of a pool: which workers may take from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Requests for the front controller. Resident workers take only these.
    App = 0,
    /// Requests for any other script.
    Script = 1,
}

/// A slot's number, checked against the number of slots of the ring it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotIndex(u16);

impl SlotIndex {
    /// `None` if there is no such slot.
    pub fn new(index: usize, slots: usize) -> Option<SlotIndex> {
        (index < slots.min(SLOTS_MAX)).then_some(SlotIndex(index as u16))
    }

    /// The number again.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// Keeps what different processes write on different cache lines.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub T);

/// What the reader of the file checks first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) slots: AtomicU32,
}

/// Most bytes of a request's interim answers, frames included: they wait in the window of its answer.
pub(crate) const INTERIM_BYTES_MAX: usize = 16 * 1024;
/// An interim answer in the stream: status, length of its header lines (both u32, little-endian), the lines.
pub(crate) const INTERIM_FRAME_BYTES: usize = 8;

/// What one request cost, written by its worker before the slot is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// From submit to take, ns.
    pub queue_ns: u64,
    /// From take to finish, ns.
    pub run_ns: u64,
    /// CPU time of the worker since its previous request, ns.
    pub cpu_ns: u64,
    /// Peak of PHP's memory, bytes.
    pub peak_bytes: u64,
}

/// The ledger's place in the slot.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LedgerCell {
    queue_ns: AtomicU64,
    run_ns: AtomicU64,
    cpu_ns: AtomicU64,
    peak_bytes: AtomicU64,
}

impl LedgerCell {
    pub(crate) fn store(&self, ledger: &Ledger) {
        self.queue_ns.store(ledger.queue_ns, Ordering::Relaxed);
        self.run_ns.store(ledger.run_ns, Ordering::Relaxed);
        self.cpu_ns.store(ledger.cpu_ns, Ordering::Relaxed);
        self.peak_bytes.store(ledger.peak_bytes, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> Ledger {
        Ledger {
            queue_ns: self.queue_ns.load(Ordering::Relaxed),
            run_ns: self.run_ns.load(Ordering::Relaxed),
            cpu_ns: self.cpu_ns.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
        }
    }
}

/// One slot's control words, grouped by who writes them.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotCell {
    /// Everybody, by the transitions of [`Word`].
    pub(crate) word: Line<Word>,
    /// The front, before it submits.
    pub(crate) asked: Line<Asked>,
    /// Request body: front → worker.
    pub(crate) body: Line<Stream>,
    /// The worker, before it begins the answer or finishes.
    pub(crate) told: Line<Told>,
    /// Answer body: worker → front.
    pub(crate) answer: Line<Stream>,
    /// The worker sleeps here for bytes or room; the front rings.
    pub(crate) bell: Line<SlotBell>,
}

/// What the front says of a request beside its bytes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request_bytes: AtomicU32,
    pub(crate) attempt: AtomicU32,
    pub(crate) submitted_ns: AtomicU64,
}

/// What the worker says of an answer beside its bytes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: AtomicU32,
    pub(crate) head_bytes: AtomicU32,
    pub(crate) ledger: LedgerCell,
    /// How many bytes of interim answers stand before the answer's body, in the same stream.
    pub(crate) interim_bytes: AtomicU32,
    _pad: u32,
}

/// A worker blocked on one slot. `rings` changes with every ring; `waiting` is 1 while it sleeps.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotBell {
    pub(crate) rings: AtomicU32,
    pub(crate) waiting: AtomicU32,
}

/// What a worker does, for `samovar status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// No process, or not yet in its loop.
    Starting = 0,
    /// Runs the application's boot.
    Booting = 1,
    /// Waits for a request.
    Idle = 2,
    /// Runs a request.
    Busy = 3,
}

impl WorkerState {
    /// Lower-case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            WorkerState::Starting => "starting",
            WorkerState::Booting => "booting",
            WorkerState::Idle => "idle",
            WorkerState::Busy => "busy",
        }
    }

    pub(crate) fn from_bits(bits: u32) -> WorkerState {
        match bits {
            1 => WorkerState::Booting,
            2 => WorkerState::Idle,
            3 => WorkerState::Busy,
            _ => WorkerState::Starting,
        }
    }
}

/// Which execution model the worker's application chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each request runs the script.
    Script = 0,
    /// `Samovar\serve` calls a handler for each request.
    Resident = 1,
    /// The process returns to its image after requests.
    Checkpoint = 2,
}

impl Model {
    /// Lower-case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            Model::Script => "script",
            Model::Resident => "resident",
            Model::Checkpoint => "checkpoint",
        }
    }
}

impl Model {
    pub(crate) fn from_bits(bits: u32) -> Model {
        match bits {
            1 => Model::Resident,
            2 => Model::Checkpoint,
            _ => Model::Script,
        }
    }
}

/// What the supervisor wants of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Take requests.
    Serve = 0,
    /// Get ready, and wait: another generation serves yet.
    Hold = 1,
    /// Leave when the request is done.
    Retire = 2,
}

impl Standing {
    pub(crate) fn from_bits(bits: u32) -> Standing {
        match bits {
            1 => Standing::Hold,
            2 => Standing::Retire,
            _ => Standing::Serve,
        }
    }
}

/// Why a worker asked to be replaced by a fresh fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeaveReason {
    /// A request left a child process.
    Child = 1,
    /// A request left a thread.
    Thread = 2,
    /// A request closed a descriptor of the image.
    Descriptor = 3,
    /// A connection of the image died, or had bytes left.
    Connection = 4,
    /// A request unmapped memory of the image, or changed more of it than can be followed.
    Mapping = 5,
    /// A request changed user, limits, root … of the process.
    Privileges = 6,
    /// It ran whole scripts, and one of them has a checkpoint.
    Checkpoint = 7,
    /// The application cannot go on.
    Fatal = 8,
    /// A request left a System V semaphore changed.
    Lock = 9,
    /// A request made a POSIX timer.
    Timer = 10,
    /// The application's own loop over requests has ended.
    End = 11,
}

impl LeaveReason {
    /// Lower-case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            LeaveReason::Child => "child",
            LeaveReason::Thread => "thread",
            LeaveReason::Descriptor => "descriptor",
            LeaveReason::Connection => "connection",
            LeaveReason::Mapping => "mapping",
            LeaveReason::Privileges => "privileges",
            LeaveReason::Checkpoint => "checkpoint",
            LeaveReason::Fatal => "fatal",
            LeaveReason::Lock => "lock",
            LeaveReason::Timer => "timer",
            LeaveReason::End => "end",
        }
    }

    /// The reason of that number.
    pub fn from_bits(bits: u32) -> Option<LeaveReason> {
        use LeaveReason as L;
        let all = [
            L::Child,
            L::Thread,
            L::Descriptor,
            L::Connection,
            L::Mapping,
            L::Privileges,
            L::Checkpoint,
            L::Fatal,
            L::Lock,
            L::Timer,
            L::End,
        ];
        all.into_iter().find(|reason| *reason as u32 == bits)
    }
}

/// How long rollbacks took, of all workers together: four buckets per power of two of nanoseconds.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RollbackTimes {
    pub(crate) buckets: [AtomicU64; ROLLBACK_BUCKETS],
}

impl RollbackTimes {
    pub(crate) fn record(&self, ns: u64) {
        self.buckets[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn bucket_of(ns: u64) -> usize {
    let ns = ns.max(4);
    let power = ns.ilog2();
    (4 * power as usize + (ns >> (power - 2) & 3) as usize).min(ROLLBACK_BUCKETS - 1)
}

/// The smallest time of the bucket after this one, ns.
pub(crate) fn bucket_end(bucket: usize) -> u64 {
    let (power, quarter) = ((bucket + 1) / 4, (bucket + 1) as u64 % 4);
    (1 << power) + quarter * (1 << power) / 4
}

/// One worker's place: it sleeps on `awake`, the rest is for reports.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WorkerCell {
    pub(crate) awake: AtomicU32,
    pub(crate) state: AtomicU32,
    pub(crate) model: AtomicU32,
    /// Incarnation of the process that uses the cell, 0 for none.
    pub(crate) incarnation: AtomicU32,
    pub(crate) requests: AtomicU64,
    /// Slot number + 1 of the request it runs, 0 for none.
    pub(crate) slot: AtomicU32,
    /// Pages that a rollback copies.
    pub(crate) hot_pages: AtomicU32,
    pub(crate) rollbacks: AtomicU64,
    /// A [`LeaveReason`], 0 for none.
    pub(crate) leave: AtomicU32,
    /// A [`Standing`]; the supervisor's word.
    pub(crate) standing: AtomicU32,
}

/// The control block. All zero is its valid initial state, but for the header.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) header: Line<Header>,
    /// 1: workers leave when their request is done.
    pub(crate) stop: Line<AtomicU32>,
    pub(crate) bell: Line<FrontBell>,
    pub(crate) crews: [Line<Crew>; LANES],
    pub(crate) pace: Line<Pace>,
    pub(crate) queues: [Queue; LANES],
    pub(crate) workers: [Line<WorkerCell>; WORKERS_MAX],
    pub(crate) slots: [SlotCell; SLOTS_MAX],
    pub(crate) rollback_times: Line<RollbackTimes>,
}

#[cfg(loom)]
impl Control {
    pub(crate) fn new() -> Control {
        use std::array::from_fn;
        let zero32 = || AtomicU32::new(0);
        let zero64 = || AtomicU64::new(0);
        Control {
            header: Line(Header {
                magic: AtomicU64::new(MAGIC),
                version: AtomicU32::new(VERSION),
                slots: AtomicU32::new(SLOTS_MAX as u32),
            }),
            stop: Line(zero32()),
            bell: Line(FrontBell::new()),
            crews: from_fn(|_| Line(Crew::new())),
            pace: Line(Pace::new()),
            queues: from_fn(|_| Queue::new()),
            workers: from_fn(|_| {
                Line(WorkerCell {
                    awake: zero32(),
                    state: zero32(),
                    model: zero32(),
                    incarnation: zero32(),
                    requests: zero64(),
                    slot: zero32(),
                    hot_pages: zero32(),
                    rollbacks: zero64(),
                    leave: zero32(),
                    standing: zero32(),
                })
            }),
            slots: from_fn(|_| SlotCell {
                word: Line(Word::new()),
                asked: Line(Asked {
                    request_bytes: zero32(),
                    attempt: zero32(),
                    submitted_ns: zero64(),
                }),
                body: Line(Stream::new()),
                told: Line(Told {
                    status: zero32(),
                    head_bytes: zero32(),
                    ledger: LedgerCell {
                        queue_ns: zero64(),
                        run_ns: zero64(),
                        cpu_ns: zero64(),
                        peak_bytes: zero64(),
                    },
                    interim_bytes: zero32(),
                    _pad: 0,
                }),
                answer: Line(Stream::new()),
                bell: Line(SlotBell { rings: zero32(), waiting: zero32() }),
            }),
            rollback_times: Line(RollbackTimes { buckets: from_fn(|_| zero64()) }),
        }
    }
}

impl Control {
    pub(crate) fn crew(&self, lane: Lane) -> &Crew {
        &self.crews[lane as usize % LANES].0
    }

    pub(crate) fn queue(&self, lane: Lane) -> &Queue {
        &self.queues[lane as usize % LANES]
    }

    pub(crate) fn slot(&self, slot: SlotIndex) -> &SlotCell {
        &self.slots[slot.get()]
    }

    /// Whether worker `index`, which serves `lanes`, has something to look at.
    pub(crate) fn has_work(&self, index: usize, lanes: &[Lane]) -> bool {
        lanes.iter().any(|lane| self.queue(*lane).pending() > 0)
            || self.stop.0.load(Ordering::SeqCst) != 0
            || self.standing(index) == Standing::Retire
    }

    /// What is wanted of worker `index`.
    pub(crate) fn standing(&self, index: usize) -> Standing {
        Standing::from_bits(self.workers[index].0.standing.load(Ordering::SeqCst))
    }
}
