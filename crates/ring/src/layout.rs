//! Layout of the memory file: the control block, then one payload area per slot.
//!
//! `attach` rejects a file of another version. A change to a struct here must change [`VERSION`].

use crate::notifier::{FrontNotifier, Pace, WorkerSet};
use crate::queue::Queue;
use crate::report::RollbackTimes;
use crate::run_permits::RunPermits;
use crate::stream::Stream;
use crate::sync::{AtomicU32, AtomicU64};
use crate::usage::{CELLS_MAX, Usage, UsageCell, UsageDetailsCell};
use crate::word::Word;
use std::ops::Range;

/// First eight bytes of the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SAMOVAR\0");
/// Version of the layout and of the protocol.
pub const VERSION: u32 = 18;

#[cfg(not(loom))]
mod limits {
    /// Cells for worker processes of all generations. A new generation needs its own cells while
    /// the others still use theirs.
    pub const WORKERS_MAX: usize = 4096;
    /// Maximum number of requests queued or in flight.
    pub const SLOTS_MAX: usize = 4096;
    /// Entries of a lane's queue. Stale ones (withdrawn requests) need room in addition to the live
    /// ones.
    pub(crate) const QUEUE_LEN: usize = 4 * SLOTS_MAX;
    /// Number of queues of a pool.
    pub const LANES: usize = 6;
    /// Maximum number of fronts of a ring: threads that fill slots and receive news of them.
    pub const FRONTS_MAX: usize = 16;
    /// Number of duration buckets: up to 4 s.
    pub(crate) const ROLLBACK_BUCKETS: usize = 128;
}
#[cfg(loom)]
// As few as still show every case: loom tries all interleavings of them.
#[allow(missing_docs)]
mod limits {
    pub const WORKERS_MAX: usize = 2;
    pub const SLOTS_MAX: usize = 2;
    pub(crate) const QUEUE_LEN: usize = 8;
    pub const LANES: usize = 2;
    pub const FRONTS_MAX: usize = 2;
    pub(crate) const ROLLBACK_BUCKETS: usize = 1;
}
pub use limits::{FRONTS_MAX, LANES, SLOTS_MAX, WORKERS_MAX};
pub(crate) use limits::{QUEUE_LEN, ROLLBACK_BUCKETS};

/// Bytes of the encoded request head: 64 KiB on the wire, plus the header table and the script's
/// paths.
pub const REQUEST_BYTES: usize = 96 * 1024;
/// Bytes of the request body in flight.
pub const BODY_BYTES: usize = 64 * 1024;
/// Bytes of the status and header lines of a response.
pub(crate) const HEAD_BYTES: usize = 32 * 1024;
/// Bytes of the response body in flight.
pub(crate) const RESPONSE_BYTES: usize = 128 * 1024;
/// Bytes of a worker's report on a request, in addition to its usage: waits, timers, tags. The
/// reader of the report knows its format.
pub const REPORT_BYTES: usize = 8 * 1024;
/// Bytes of one slot's payload area.
pub(crate) const AREA_BYTES: usize =
    REQUEST_BYTES + BODY_BYTES + HEAD_BYTES + RESPONSE_BYTES + REPORT_BYTES;

/// A queue of a pool. Determines the workers that may take from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Requests for the front controller. Resident workers take only these.
    App = 0,
    /// Requests for the front controller, for workers that are held back: probes that run before
    /// these workers take over.
    AppProbe = 1,
    /// Requests for any other script.
    Script = 2,
    /// Requests for any other script, for workers that are held back.
    ScriptProbe = 3,
    /// Requests for the front controller whose call graph is recorded.
    AppTrace = 4,
    /// Requests for any other script whose call graph is recorded.
    ScriptTrace = 5,
}

impl Lane {
    /// All lanes, in the order of their queues.
    pub(crate) const ALL: &[Lane] = if cfg!(loom) {
        &[Lane::App, Lane::AppProbe]
    } else {
        &[
            Lane::App,
            Lane::AppProbe,
            Lane::Script,
            Lane::ScriptProbe,
            Lane::AppTrace,
            Lane::ScriptTrace,
        ]
    };
    /// Lanes that serve clients.
    pub(crate) const SERVING: &[Lane] = if cfg!(loom) {
        &[Lane::App]
    } else {
        &[Lane::App, Lane::Script, Lane::AppTrace, Lane::ScriptTrace]
    };

    /// Whether its requests are for the front controller.
    #[must_use]
    pub fn is_app(self) -> bool {
        matches!(self, Lane::App | Lane::AppProbe | Lane::AppTrace)
    }

    /// The lane for requests of this lane whose call graph is recorded.
    #[must_use]
    pub fn trace(self) -> Lane {
        if self.is_app() { Lane::AppTrace } else { Lane::ScriptTrace }
    }

    /// The lane that a worker of this lane reads while it is held back.
    #[must_use]
    pub fn probe(self) -> Lane {
        match self {
            Lane::App | Lane::AppProbe | Lane::AppTrace => Lane::AppProbe,
            Lane::Script | Lane::ScriptProbe | Lane::ScriptTrace => Lane::ScriptProbe,
        }
    }
}

/// A slot's number, checked against the number of slots of the ring it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotIndex(u16);

impl SlotIndex {
    /// `None` if there is no such slot.
    pub fn new(index: usize, slots: usize) -> Option<SlotIndex> {
        (index < slots.min(SLOTS_MAX)).then_some(SlotIndex(index as u16))
    }

    /// The number.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// Partition of the slots among several fronts: one part each, all of one size.
///
/// Each process has this in its own memory, so no word in the ring decides which front receives
/// news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    fronts: usize,
    /// Slots of all fronts.
    slots: usize,
    /// A slot's number, shifted by this, is the number of its front: one instruction per piece of
    /// news.
    shift: u32,
}

impl Parts {
    /// All slots belong to one front.
    pub(crate) fn whole(slots: usize) -> Parts {
        Parts { fronts: 1, slots, shift: u16::BITS }
    }

    /// Room for `slots` requests of each front, as far as the ring has enough slots.
    pub(crate) fn of(slots: usize, fronts: usize) -> Parts {
        let fronts = fronts.clamp(1, FRONTS_MAX);
        if fronts == 1 {
            return Parts::whole(slots.clamp(1, SLOTS_MAX));
        }
        let most = 1 << (SLOTS_MAX / fronts).ilog2();
        let each = slots.clamp(1, most).next_power_of_two();
        Parts { fronts, slots: each * fronts, shift: each.ilog2() }
    }

    /// The partition that a header describes; `None` if no partition has these numbers.
    pub(crate) fn said(slots: usize, fronts: usize) -> Option<Parts> {
        if slots == 0 || slots > SLOTS_MAX || fronts == 0 || fronts > FRONTS_MAX {
            return None;
        }
        let parts =
            if fronts == 1 { Parts::whole(slots) } else { Parts::of(slots / fronts, fronts) };
        (parts.slots == slots).then_some(parts)
    }

    pub(crate) fn fronts(self) -> usize {
        self.fronts
    }

    #[inline]
    pub(crate) fn slots(self) -> usize {
        self.slots
    }

    /// The front that owns `slot`.
    #[inline]
    pub(crate) fn front_of(self, slot: SlotIndex) -> usize {
        slot.get() >> self.shift
    }

    /// The slots of a front. A number that is too large means the last front.
    pub(crate) fn part(self, front: usize) -> Range<usize> {
        let each = self.slots / self.fronts;
        let from = front.min(self.fronts - 1) * each;
        from..from + each
    }
}

/// Keeps data that different processes write on different cache lines.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct CacheLine<T>(pub T);

/// Header that a reader of the file checks first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) slots: AtomicU32,
    pub(crate) fronts: AtomicU32,
}

/// One slot's control words, grouped by the process that writes them.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotCell {
    /// Written by all processes, by the transitions of [`Word`].
    pub(crate) word: CacheLine<Word>,
    /// Written by the front, before it submits.
    pub(crate) request: CacheLine<RequestMeta>,
    /// Request body: front → worker.
    pub(crate) body: CacheLine<Stream>,
    /// Written by the worker, before it begins the response or finishes.
    pub(crate) response: CacheLine<ResponseMeta>,
    /// Written by the worker, before it finishes.
    pub(crate) details: CacheLine<UsageDetailsCell>,
    /// Response body: worker → front.
    pub(crate) response_stream: CacheLine<Stream>,
    /// The worker sleeps here for bytes or room; the front wakes it.
    pub(crate) notifier: CacheLine<SlotNotifier>,
}

// The usage of a request contains the number of its worker's cell.
const _: () = assert!(WORKERS_MAX <= CELLS_MAX);

impl SlotCell {
    pub(crate) fn store_usage(&self, usage: &Usage) {
        let response = &self.response.0;
        response.usage.store(usage, &self.details.0, &response.ending);
    }

    pub(crate) fn load_usage(&self) -> Usage {
        let response = &self.response.0;
        response.usage.load(&self.details.0, &response.ending)
    }
}

/// Metadata of a request, in addition to its bytes. Written by the front, except where noted.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RequestMeta {
    /// Start of the wait for a worker, `CLOCK_MONOTONIC`.
    pub(crate) submitted_ns: AtomicU64,
    /// An [`Overrun`](crate::Overrun): the script must end now; 0: it may continue.
    pub(crate) overrun: AtomicU32,
    /// Maximum run time of the script if it requests more time, ms; 0: it cannot.
    pub(crate) extended_ms_max: AtomicU32,
    /// Run time that the script requests, ms from its take; 0: none requested. Written by the
    /// worker; it is here because the response's cache line is full.
    pub(crate) wanted_ms: AtomicU32,
    /// Whether the script continues when its client is gone; 0: it does not. Also written by the
    /// worker.
    pub(crate) outlives: AtomicU32,
}

/// Metadata of a response, in addition to its bytes. Written by the worker, except where noted.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ResponseMeta {
    pub(crate) status: AtomicU32,
    pub(crate) head_bytes: AtomicU32,
    pub(crate) usage: UsageCell,
    /// Bytes of interim responses before the response body, in the same stream.
    pub(crate) interim_bytes: AtomicU32,
    /// A [`Death`](crate::Death). Written by the supervisor, before it orphans the slot.
    pub(crate) death: AtomicU32,
    /// Length of the worker's report; 0: there is none.
    pub(crate) report_bytes: AtomicU32,
    /// An [`Ending`](crate::Ending), and a flag for the presence of
    /// [`UsageDetails`](crate::UsageDetails).
    pub(crate) ending: AtomicU32,
}

// All words that most responses use are on one cache line.
const _: () = assert!(cfg!(loom) || size_of::<CacheLine<ResponseMeta>>() == 64);

/// A worker blocked on one slot. `rings` changes with every wake-up; `waiting` is 1 while it
/// sleeps.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotNotifier {
    pub(crate) rings: AtomicU32,
    pub(crate) waiting: AtomicU32,
}

/// One worker's cell: it sleeps on `awake`; the rest is for reports.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WorkerCell {
    pub(crate) awake: AtomicU32,
    pub(crate) state: AtomicU32,
    pub(crate) model: AtomicU32,
    /// Incarnation of the process that uses the cell; 0: none.
    pub(crate) incarnation: AtomicU32,
    pub(crate) requests: AtomicU64,
    /// Slot number + 1 of the request it runs; 0: none.
    pub(crate) slot: AtomicU32,
    /// Pages that a rollback copies.
    pub(crate) hot_pages: AtomicU32,
    pub(crate) rollbacks: AtomicU64,
    /// A [`LeaveReason`](crate::LeaveReason); 0: none.
    pub(crate) leave: AtomicU32,
    /// A [`DesiredState`](crate::DesiredState). Written by the supervisor.
    pub(crate) desired_state: AtomicU32,
    /// Generation of the application that the worker runs. Written by the supervisor, before the
    /// fork.
    pub(crate) generation: AtomicU32,
    /// Changes each time a worker without a request looks for one: at least once a second.
    pub(crate) beat: AtomicU32,
    /// Changes each time the worker begins to run: with a request, and after each wait within one.
    pub(crate) stretch: AtomicU32,
}

/// The control block. All zero is its valid initial state, except for the header.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) header: CacheLine<Header>,
    /// 1: workers leave when their request is done.
    pub(crate) stop: CacheLine<AtomicU32>,
    /// One per front.
    pub(crate) notifiers: [CacheLine<FrontNotifier>; FRONTS_MAX],
    pub(crate) worker_sets: [CacheLine<WorkerSet>; LANES],
    pub(crate) pace: CacheLine<Pace>,
    pub(crate) permits: CacheLine<RunPermits>,
    pub(crate) queues: [Queue; LANES],
    pub(crate) workers: [CacheLine<WorkerCell>; WORKERS_MAX],
    pub(crate) slots: [SlotCell; SLOTS_MAX],
    pub(crate) rollback_times: CacheLine<RollbackTimes>,
}

#[cfg(loom)]
impl Control {
    pub(crate) fn new() -> Control {
        use std::array::from_fn;
        let zero32 = || AtomicU32::new(0);
        let zero64 = || AtomicU64::new(0);
        Control {
            header: CacheLine(Header {
                magic: AtomicU64::new(MAGIC),
                version: AtomicU32::new(VERSION),
                slots: AtomicU32::new(SLOTS_MAX as u32),
                fronts: AtomicU32::new(1),
            }),
            stop: CacheLine(zero32()),
            notifiers: from_fn(|_| CacheLine(FrontNotifier::new())),
            worker_sets: from_fn(|_| CacheLine(WorkerSet::new())),
            pace: CacheLine(Pace::new()),
            permits: CacheLine(RunPermits::new()),
            queues: from_fn(|_| Queue::new()),
            workers: from_fn(|_| {
                CacheLine(WorkerCell {
                    awake: zero32(),
                    state: zero32(),
                    model: zero32(),
                    incarnation: zero32(),
                    requests: zero64(),
                    slot: zero32(),
                    hot_pages: zero32(),
                    rollbacks: zero64(),
                    leave: zero32(),
                    desired_state: zero32(),
                    generation: zero32(),
                    beat: zero32(),
                    stretch: zero32(),
                })
            }),
            slots: from_fn(|_| SlotCell {
                word: CacheLine(Word::new()),
                request: CacheLine(RequestMeta {
                    submitted_ns: zero64(),
                    overrun: zero32(),
                    extended_ms_max: zero32(),
                    wanted_ms: zero32(),
                    outlives: zero32(),
                }),
                body: CacheLine(Stream::new()),
                response: CacheLine(ResponseMeta {
                    status: zero32(),
                    head_bytes: zero32(),
                    usage: UsageCell::new(),
                    interim_bytes: zero32(),
                    death: zero32(),
                    report_bytes: zero32(),
                    ending: zero32(),
                }),
                details: CacheLine(UsageDetailsCell::new()),
                response_stream: CacheLine(Stream::new()),
                notifier: CacheLine(SlotNotifier { rings: zero32(), waiting: zero32() }),
            }),
            rollback_times: CacheLine(RollbackTimes {
                buckets: from_fn(|_| zero64()),
                total_ns: zero64(),
                searches: zero64(),
            }),
        }
    }
}

impl Control {
    /// The workers that serve `lane`.
    pub(crate) fn workers_of(&self, lane: Lane) -> &WorkerSet {
        &self.worker_sets[lane as usize % LANES].0
    }

    /// The notifier of a front; that of the last front if the number is too large.
    #[inline]
    pub(crate) fn notifier(&self, front: usize) -> &FrontNotifier {
        &self.notifiers[front.min(FRONTS_MAX - 1)].0
    }

    pub(crate) fn queue(&self, lane: Lane) -> &Queue {
        &self.queues[lane as usize % LANES]
    }

    pub(crate) fn slot(&self, slot: SlotIndex) -> &SlotCell {
        &self.slots[slot.get()]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_one_front() {
        for slots in [1, 2, 16, 500, 512, 4096] {
            for fronts in 1..=FRONTS_MAX {
                let parts = Parts::of(slots, fronts);
                assert_eq!(Parts::said(parts.slots(), parts.fronts()), Some(parts));
                assert!(parts.slots() <= SLOTS_MAX && parts.fronts() == fronts);
                for at in 0..parts.slots() {
                    let slot = SlotIndex::new(at, parts.slots()).expect("a slot");
                    let front = parts.front_of(slot);
                    assert!(parts.part(front).contains(&at) && front < fronts, "{parts:?} {at}");
                }
                let each = parts.part(0).len();
                assert_eq!(parts.part(fronts - 1).end, parts.slots());
                assert!(each >= slots.min(SLOTS_MAX / fronts / 2), "{parts:?}");
            }
        }
        assert_eq!(Parts::of(500, 1).slots(), 500, "one front gets the requested number");
    }

    #[test]
    fn impossible_header_is_rejected() {
        for (slots, fronts) in
            [(0, 1), (SLOTS_MAX + 1, 1), (64, 0), (64, FRONTS_MAX + 1), (65, 2), (24, 2), (2, 3)]
        {
            assert_eq!(Parts::said(slots, fronts), None, "{slots} for {fronts}");
        }
    }
}
