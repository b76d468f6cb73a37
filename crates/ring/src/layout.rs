//! Where everything lies in the memory file: the control block, then one payload area per slot.
//!
//! A file of another version is refused by `attach`; whoever changes a struct here changes
//! [`VERSION`].

use crate::bell::{FrontBell, Pace, WorkerSet};
use crate::queue::Queue;
use crate::report::RollbackTimes;
use crate::stream::Stream;
use crate::sync::{AtomicU32, AtomicU64};
use crate::turns::Turns;
use crate::usage::{CELLS_MAX, Usage, UsageCell, UsageDetailsCell};
use crate::word::Word;
use std::ops::Range;

/// First eight bytes of the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SAMOVAR\0");
/// Version of the layout and of the protocol.
pub const VERSION: u32 = 18;

#[cfg(not(loom))]
mod limits {
    /// Cells for worker processes: those of all generations, of which one that comes needs its own beside the others'.
    pub const WORKERS_MAX: usize = 4096;
    /// Requests that can be queued or in flight.
    pub const SLOTS_MAX: usize = 4096;
    /// Entries of a lane's queue: stale ones (withdrawn requests) need room beside the live ones.
    pub(crate) const QUEUE_LEN: usize = 4 * SLOTS_MAX;
    /// Queues of a pool.
    pub const LANES: usize = 6;
    /// Fronts of a ring: threads that fill slots and hear of them.
    pub const FRONTS_MAX: usize = 16;
    /// Up to 4 s.
    pub(crate) const ROLLBACK_BUCKETS: usize = 128;
}
#[cfg(loom)]
// As few as show all there is to see: every interleaving of them is tried.
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

/// Encoded request head: 64 KiB on the wire, plus the header table and the script's paths.
pub const REQUEST_BYTES: usize = 96 * 1024;
/// Request body in flight.
pub const BODY_BYTES: usize = 64 * 1024;
/// Status and header lines of an answer.
pub(crate) const HEAD_BYTES: usize = 32 * 1024;
/// Answer body in flight.
pub(crate) const ANSWER_BYTES: usize = 128 * 1024;
/// What a worker says of a request beside its usage: waits, timers, tags. Who reads it knows the grammar.
pub const REPORT_BYTES: usize = 8 * 1024;
/// One slot's payload area.
pub(crate) const AREA_BYTES: usize =
    REQUEST_BYTES + BODY_BYTES + HEAD_BYTES + ANSWER_BYTES + REPORT_BYTES;

/// A queue of a pool: which workers may take from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Requests for the front controller. Resident workers take only these.
    App = 0,
    /// The same, for workers that are held back: what is to be seen before they take over.
    AppProbe = 1,
    /// Requests for any other script.
    Script = 2,
    /// The same, for workers that are held back.
    ScriptProbe = 3,
    /// Requests for the front controller whose call graph is taken down.
    AppTrace = 4,
    /// The same for any other script.
    ScriptTrace = 5,
}

impl Lane {
    /// In the order of their queues.
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
    /// Those that serve clients.
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

    /// Where the requests of this lane go whose call graph is taken down.
    #[must_use]
    pub fn trace(self) -> Lane {
        if self.is_app() { Lane::AppTrace } else { Lane::ScriptTrace }
    }

    /// Where a worker of this lane looks while it is held back.
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

    /// The number again.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// Which slots are whose, of several fronts: a part for each, all of one size.
///
/// Each process has this in memory of its own, so that nothing in the ring says whom news are told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    fronts: usize,
    /// Slots of all of them.
    slots: usize,
    /// A slot's number, shifted, is its front's: one instruction for each piece of news.
    shift: u32,
}

impl Parts {
    /// All of them one front's.
    pub(crate) fn whole(slots: usize) -> Parts {
        Parts { fronts: 1, slots, shift: u16::BITS }
    }

    /// Room for `slots` requests of each front, as far as a ring has so many.
    pub(crate) fn of(slots: usize, fronts: usize) -> Parts {
        let fronts = fronts.clamp(1, FRONTS_MAX);
        if fronts == 1 {
            return Parts::whole(slots.clamp(1, SLOTS_MAX));
        }
        let most = 1 << (SLOTS_MAX / fronts).ilog2();
        let each = slots.clamp(1, most).next_power_of_two();
        Parts { fronts, slots: each * fronts, shift: each.ilog2() }
    }

    /// As a header says it; `None`: nobody shares slots out like that.
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

    /// Whose `slot` is.
    #[inline]
    pub(crate) fn front_of(self, slot: SlotIndex) -> usize {
        slot.get() >> self.shift
    }

    /// The slots of a front, of which there are so many.
    pub(crate) fn part(self, front: usize) -> Range<usize> {
        let each = self.slots / self.fronts;
        let from = front.min(self.fronts - 1) * each;
        from..from + each
    }
}

/// Keeps what different processes write on different cache lines.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct CacheLine<T>(pub T);

/// What the reader of the file checks first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) slots: AtomicU32,
    pub(crate) fronts: AtomicU32,
}

/// One slot's control words, grouped by who writes them.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotCell {
    /// Everybody, by the transitions of [`Word`].
    pub(crate) word: CacheLine<Word>,
    /// The front, before it submits.
    pub(crate) request: CacheLine<RequestMeta>,
    /// Request body: front → worker.
    pub(crate) body: CacheLine<Stream>,
    /// The worker, before it begins the answer or finishes.
    pub(crate) response: CacheLine<ResponseMeta>,
    /// The worker, before it finishes.
    pub(crate) details: CacheLine<UsageDetailsCell>,
    /// Answer body: worker → front.
    pub(crate) answer: CacheLine<Stream>,
    /// The worker sleeps here for bytes or room; the front rings.
    pub(crate) bell: CacheLine<SlotBell>,
}

// What a request has cost names its worker's cell.
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

/// What the front says of a request beside its bytes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RequestMeta {
    /// Since when it waits for a worker, `CLOCK_MONOTONIC`.
    pub(crate) submitted_ns: AtomicU64,
    /// An [`Overrun`](crate::Overrun): its script is to end now; 0: it may go on.
    pub(crate) overrun: AtomicU32,
    /// For how long its script may run at most if it asks for more time, ms; 0: it cannot.
    pub(crate) extended_ms_max: AtomicU32,
    /// For how long the script wants to run, from its take on, ms; 0: it has not asked. The worker's word, here because the
    /// answer's line is full.
    pub(crate) wanted_ms: AtomicU32,
    /// Whether the script goes on when its client has gone; 0: it does not. The worker's word, too.
    pub(crate) outlives: AtomicU32,
}

/// What the worker says of an answer beside its bytes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ResponseMeta {
    pub(crate) status: AtomicU32,
    pub(crate) head_bytes: AtomicU32,
    pub(crate) usage: UsageCell,
    /// How many bytes of interim answers stand before the answer's body, in the same stream.
    pub(crate) interim_bytes: AtomicU32,
    /// A [`Death`](crate::Death); the supervisor's word, before it orphans the slot.
    pub(crate) death: AtomicU32,
    /// How long the worker's report is; 0: it has none.
    pub(crate) report_bytes: AtomicU32,
    /// An [`Ending`](crate::Ending), and whether there are [`UsageDetails`](crate::UsageDetails).
    pub(crate) ending: AtomicU32,
}

// All that most answers have is on one cache line.
const _: () = assert!(cfg!(loom) || size_of::<CacheLine<ResponseMeta>>() == 64);

/// A worker blocked on one slot. `rings` changes with every ring; `waiting` is 1 while it sleeps.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SlotBell {
    pub(crate) rings: AtomicU32,
    pub(crate) waiting: AtomicU32,
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
    /// A [`LeaveReason`](crate::LeaveReason), 0 for none.
    pub(crate) leave: AtomicU32,
    /// A [`DesiredState`](crate::DesiredState); the supervisor's word.
    pub(crate) desired_state: AtomicU32,
    /// Which application its worker runs; the supervisor's word, before the fork.
    pub(crate) generation: AtomicU32,
    /// Changes each time that a worker without a request looks for one: at least once a second.
    pub(crate) beat: AtomicU32,
    /// Changes each time that the worker begins to run: with a request, and after each wait within one.
    pub(crate) stretch: AtomicU32,
}

/// The control block. All zero is its valid initial state, but for the header.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) header: CacheLine<Header>,
    /// 1: workers leave when their request is done.
    pub(crate) stop: CacheLine<AtomicU32>,
    /// Of each front.
    pub(crate) bells: [CacheLine<FrontBell>; FRONTS_MAX],
    pub(crate) worker_sets: [CacheLine<WorkerSet>; LANES],
    pub(crate) pace: CacheLine<Pace>,
    pub(crate) turns: CacheLine<Turns>,
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
            bells: from_fn(|_| CacheLine(FrontBell::new())),
            worker_sets: from_fn(|_| CacheLine(WorkerSet::new())),
            pace: CacheLine(Pace::new()),
            turns: CacheLine(Turns::new()),
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
                answer: CacheLine(Stream::new()),
                bell: CacheLine(SlotBell { rings: zero32(), waiting: zero32() }),
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

    /// The bell of a front; of the last one, if there are fewer.
    #[inline]
    pub(crate) fn bell(&self, front: usize) -> &FrontBell {
        &self.bells[front.min(FRONTS_MAX - 1)].0
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
        assert_eq!(Parts::of(500, 1).slots(), 500, "one front has what it asks for");
    }

    #[test]
    fn a_header_that_nobody_writes_is_refused() {
        for (slots, fronts) in
            [(0, 1), (SLOTS_MAX + 1, 1), (64, 0), (64, FRONTS_MAX + 1), (65, 2), (24, 2), (2, 3)]
        {
            assert_eq!(Parts::said(slots, fronts), None, "{slots} for {fronts}");
        }
    }
}
