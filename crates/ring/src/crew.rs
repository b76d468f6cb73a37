//! Several fronts of one ring: what they share beside it, in the memory of the one process whose threads they are.
//!
//! Each has slots, a bell and news of its own, and none touches another's. What they have in common is the end of the queues:
//! where the next entry goes. That position must not be believed to the ring, so it stands here, behind a lock that threads
//! of the server take and no worker knows of. So all requests are in one order, whoever has taken them in, and for the
//! workers there is one queue, as with one front.

use crate::layout::{CacheLine, Control, LANES, Lane, SlotCell, SlotIndex};
use crate::queue::QueueEntry;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// Where the next entry of each queue goes, and its place in the order of all.
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

/// What the fronts of a ring have in common.
#[derive(Debug)]
pub(crate) struct Common {
    tails: Mutex<Tails>,
    /// Of each front, which writes it.
    figures: Vec<CacheLine<Figures>>,
}

/// What the others want to know of a front.
#[derive(Debug, Default)]
struct Figures {
    /// Slots in use.
    in_use: AtomicUsize,
    /// Requests that are over, ever.
    finished: AtomicU64,
}

/// A front's part in it.
#[derive(Debug)]
pub(crate) enum Crew {
    /// There is no other.
    Alone(Tails),
    /// There are others.
    Of(Member),
}

/// One of several fronts.
#[derive(Debug)]
pub(crate) struct Member {
    front: usize,
    common: Arc<Common>,
    /// Of all fronts, when it looked last.
    finished: u64,
}

impl Crew {
    /// For each front of a ring.
    pub(crate) fn of(fronts: usize) -> Vec<Crew> {
        if fronts <= 1 {
            return vec![Crew::Alone(Tails::default())];
        }
        let figures = (0..fronts).map(|_| CacheLine(Figures::default())).collect();
        let common = Arc::new(Common { tails: Mutex::new(Tails::default()), figures });
        let member = |front| Member { front, common: Arc::clone(&common), finished: 0 };
        (0..fronts).map(member).map(Crew::Of).collect()
    }

    /// Its number.
    #[inline]
    pub(crate) fn front(&self) -> usize {
        match self {
            Crew::Alone(_) => 0,
            Crew::Of(member) => member.front,
        }
    }

    /// Queues a slot in its generation; false: the queue is full. `cells`: all slots, of whatever front.
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

    /// Puts right what no honest process writes to a queue.
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
            Crew::Alone(tails) => step(tails),
            // A thread that has panicked with the lock has left a position that is right before or after its entry.
            Crew::Of(member) => {
                step(&mut member.common.tails.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    /// So many of its slots are in use.
    #[inline]
    pub(crate) fn note_in_use(&self, count: usize) {
        if let Crew::Of(Member { front, common, .. }) = self {
            common.figures[*front].0.in_use.store(count, Ordering::Relaxed);
        }
    }

    /// How many slots of all fronts are in use, of which this one uses `own`.
    pub(crate) fn in_use(&self, own: usize) -> usize {
        match self {
            Crew::Alone(_) => own,
            Crew::Of(member) => {
                let lines = member.common.figures.iter();
                lines.map(|line| line.0.in_use.load(Ordering::Relaxed)).sum()
            }
        }
    }

    /// So many more of its requests are over. Returns how many of all fronts are since the last call.
    pub(crate) fn count_finished(&mut self, own: u64) -> u64 {
        match self {
            Crew::Alone(_) => own,
            Crew::Of(Member { front, common, finished }) => {
                let count = |line: &CacheLine<Figures>| line.0.finished.load(Ordering::Relaxed);
                common.figures[*front].0.finished.fetch_add(own, Ordering::Relaxed);
                let all = common.figures.iter().map(count).sum::<u64>();
                all - std::mem::replace(finished, all)
            }
        }
    }
}
