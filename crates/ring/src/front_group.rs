//! Front group: the state that several fronts of one ring share outside the ring. It is in the
//! memory of the server process, whose threads the fronts are.
//!
//! Each front has its own slots, notifier (bell) and news, and does not touch those of other
//! fronts. The fronts share only the tails of the queues: the positions of the next entries. These
//! positions must not be read from the ring, where a worker could have changed them. They are kept
//! here, under a lock that only threads of the server take. Workers do not know of it.
//!
//! So all requests are in one order, regardless of the front that submits them. The workers see one
//! queue, as with a single front.

use crate::cells::{CacheLine, SlotCell};
use crate::layout::{Control, Lane};
use crate::limits::{LANES, SlotIndex};
use crate::queue::QueueEntry;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// Position of the next entry of each queue, and its number in the order of all entries.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    at: [u64; LANES],
    order: u32,
}

impl Tails {
    #[inline]
    fn push(&mut self, control: &Control, slot: SlotIndex, generation: u32, lane: Lane) {
        self.order = self.order.wrapping_add(1);
        let entry = QueueEntry::new(slot, generation, self.order);
        let tail = self.at[lane as usize];
        control.submit(slot, generation, lane, tail, entry);
        self.at[lane as usize] = tail + 1;
    }
}

/// State that the fronts of a ring share.
#[derive(Debug)]
pub(crate) struct Common {
    tails: Mutex<Tails>,
    /// One per front, written by that front.
    figures: Vec<CacheLine<Figures>>,
}

/// Figures of a front that the other fronts read.
#[derive(Debug, Default)]
struct Figures {
    /// Slots in use.
    in_use: AtomicUsize,
    /// Requests finished since the start.
    finished: AtomicU64,
}

/// One front's membership in the front group.
#[derive(Debug)]
pub(crate) enum FrontGroup {
    /// The ring has no other front.
    Alone(Tails),
    /// The ring has other fronts.
    Of(Member),
}

/// One of several fronts.
#[derive(Debug)]
pub(crate) struct Member {
    front: usize,
    common: Arc<Common>,
    /// Finished requests of all fronts at the last call of `count_finished`.
    finished: u64,
}

impl FrontGroup {
    /// Creates the memberships of a ring's fronts, one each.
    pub(crate) fn of(fronts: usize) -> Vec<FrontGroup> {
        if fronts <= 1 {
            return vec![FrontGroup::Alone(Tails::default())];
        }
        let figures = (0..fronts).map(|_| CacheLine(Figures::default())).collect();
        let common = Arc::new(Common { tails: Mutex::new(Tails::default()), figures });
        let member = |front| Member { front, common: Arc::clone(&common), finished: 0 };
        (0..fronts).map(member).map(FrontGroup::Of).collect()
    }

    /// Number of the front.
    #[inline]
    pub(crate) fn front(&self) -> usize {
        match self {
            FrontGroup::Alone(_) => 0,
            FrontGroup::Of(member) => member.front,
        }
    }

    /// Queues a slot in its generation. Returns false if the queue is full. `cells` holds the slots
    /// of all fronts.
    #[inline]
    #[must_use]
    pub(crate) fn submit(
        &mut self,
        (control, cells): (&Control, &[SlotCell]),
        (slot, generation): (SlotIndex, u32),
        lane: Lane,
    ) -> bool {
        self.with(|tails| {
            let has_room = control.queue(lane).has_room(tails.at[lane as usize], cells);
            if has_room {
                tails.push(control, slot, generation, lane);
            }
            has_room
        })
    }

    /// Repairs queue positions that no honest process writes.
    pub(crate) fn mend(&mut self, control: &Control) {
        self.with(|tails| {
            for &lane in Lane::ALL {
                control.queue(lane).mend(tails.at[lane as usize]);
            }
        });
    }

    #[inline]
    fn with<T>(&mut self, step: impl FnOnce(&mut Tails) -> T) -> T {
        match self {
            FrontGroup::Alone(tails) => step(tails),
            // A thread that panicked while it held the lock left a valid position: that before or
            // that after its entry.
            FrontGroup::Of(member) => {
                step(&mut member.common.tails.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    /// Records the number of this front's slots in use.
    #[inline]
    pub(crate) fn note_in_use(&self, count: usize) {
        if let FrontGroup::Of(Member { front, common, .. }) = self {
            common.figures[*front].0.in_use.store(count, Ordering::Relaxed);
        }
    }

    /// Number of slots in use by all fronts, `own` of them by this one.
    pub(crate) fn in_use(&self, own: usize) -> usize {
        match self {
            FrontGroup::Alone(_) => own,
            FrontGroup::Of(member) => {
                let lines = member.common.figures.iter();
                lines.map(|line| line.0.in_use.load(Ordering::Relaxed)).sum()
            }
        }
    }

    /// Adds `own` to this front's finished requests. Returns the number of requests that all fronts
    /// finished since the last call.
    pub(crate) fn count_finished(&mut self, own: u64) -> u64 {
        match self {
            FrontGroup::Alone(_) => own,
            FrontGroup::Of(Member { front, common, finished }) => {
                let count = |line: &CacheLine<Figures>| line.0.finished.load(Ordering::Relaxed);
                common.figures[*front].0.finished.fetch_add(own, Ordering::Relaxed);
                let all = common.figures.iter().map(count).sum::<u64>();
                all - std::mem::replace(finished, all)
            }
        }
    }
}
