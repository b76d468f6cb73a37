//! Layout of the memory file: the control block, then one payload area per slot. `cells` has the
//! words of a slot and of a worker.
//!
//! `attach` rejects a file of another version. A change to a struct of the control block, here or
//! in another file, must change [`VERSION`].

use crate::cells::{CacheLine, SlotCell, WorkerCell};
use crate::limits::{FRONTS_MAX, LANES, SLOTS_MAX, SlotIndex, WORKERS_MAX};
use crate::notifier::{FrontNotifier, Pace, WorkerSet};
use crate::permit_words::RunPermits;
use crate::queue::Queue;
use crate::report::{MessageCounts, RollbackTimes};
use crate::sync::{AtomicU32, AtomicU64};
use std::ops::Range;

/// First eight bytes of the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SAMOVAR\0");
/// Version of the layout and of the protocol.
pub const VERSION: u32 = 20;

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

    /// The lane of requests of this lane that any worker in service may take.
    #[must_use]
    pub fn serving(self) -> Lane {
        if self.is_app() { Lane::App } else { Lane::Script }
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

/// Header that a reader of the file checks first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) slots: AtomicU32,
    pub(crate) fronts: AtomicU32,
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
    pub(crate) messages: CacheLine<MessageCounts>,
}

#[cfg(loom)]
impl Control {
    pub(crate) fn new() -> Control {
        use crate::cells::{RequestMeta, ResponseMeta, SlotNotifier};
        use crate::stream::Stream;
        use crate::usage::{UsageCell, UsageDetailsCell};
        use crate::word::Word;
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
                connection_resets: zero64(),
            }),
            messages: CacheLine(MessageCounts { by_level: from_fn(|_| zero64()) }),
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
