//! Ownership of a slot: one 64-bit word, changed only by the named transitions below.
//!
//! ```text
//!          fill          submit          take              begin            finish
//!   Free ───────▶ Filling ─────▶ Queued ─────▶ Taken(w) ───────▶ Answering(w) ─────▶ Answered(w)
//!    ▲               │ release     │ withdraw     │  cancel          │ cancel            │ release
//!    ├───────────────┴─────────────┘              └──▶ Cancelled(w) ◀┘──── finish ───────▶│
//!    └──────────────────────────── release ◀── Orphaned ◀── orphan (owner w is dead)      │
//!    └────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! * Free, Filling, Answered and Orphaned slots belong to the front.
//! * A Queued slot has no owner: a worker may `take` it, the front may `withdraw` it.
//! * Taken, Answering and Cancelled slots belong to the worker whose incarnation is in the word.
//!   The front may only `cancel`, which requests the worker to stop; the worker still finishes the
//!   slot.
//! * Only the supervisor calls `orphan`, after `wait` has reported the worker's death.
//!
//! The generation counts the uses of the slot. It makes a stale queue entry, or a late transition
//! of a worker that was considered dead, fail instead of affecting the next request.

use crate::codes::codes;
use crate::sync::{AtomicU64, Ordering};

codes! {
    /// State of a slot. It determines the allowed transitions and the process that may make them.
    pub(crate) enum State {
        /// Unused: the front may fill it.
        Free = 0, "free";
        /// The front writes a request into it.
        Filling = 1, "filling";
        /// Waits for a worker.
        Queued = 2, "queued";
        /// A worker runs the request; nothing of the response is published.
        Taken = 3, "taken";
        /// The response head is published; body bytes follow.
        Responding = 4, "responding";
        /// The worker is done with the slot; the front delivers and releases.
        Responded = 5, "responded";
        /// The client is gone or the deadline has passed; the worker has not noticed yet.
        Cancelled = 6, "cancelled";
        /// The worker that owned it died.
        Orphaned = 7, "orphaned";
    }
}

impl State {
    pub(crate) fn is_workers(self) -> bool {
        matches!(self, State::Taken | State::Responding | State::Cancelled)
    }
}

/// Number of a worker's life: unique per fork, never 0, 24 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(u32);

impl Incarnation {
    /// The largest number that fits the word.
    pub const MAX: u32 = (1 << 24) - 1;

    /// The first incarnation of a server.
    pub const FIRST: Incarnation = Incarnation(1);

    /// `None` for 0 and for numbers that do not fit 24 bits.
    pub fn new(number: u32) -> Option<Incarnation> {
        (1..=Self::MAX).contains(&number).then_some(Incarnation(number))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The next incarnation. Wraps to 1 after 16 million forks, long after the first owner has
    /// died.
    #[must_use]
    pub fn next(self) -> Incarnation {
        Incarnation(if self.0 == Self::MAX { 1 } else { self.0 + 1 })
    }
}

/// A value of the word: state (bits 0-7), owner (8-31), generation (32-63).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value(u64);

impl Value {
    fn new(state: State, owner: u32, generation: u32) -> Value {
        Value(u64::from(state.code()) | u64::from(owner) << 8 | u64::from(generation) << 32)
    }

    /// `None` if another process wrote an invalid state.
    pub(crate) fn state(self) -> Option<State> {
        State::from_code((self.0 & 0xff) as u32)
    }

    /// The incarnation in the word; 0: none.
    pub(crate) fn owner(self) -> u32 {
        (self.0 >> 8) as u32 & Incarnation::MAX
    }

    /// Number of times the slot has been filled, modulo 2³².
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The word in shared memory.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    #[cfg(loom)]
    pub(crate) fn new() -> Word {
        Word(AtomicU64::new(0))
    }

    /// The present value. Acquire: everything that the writer published before its transition is
    /// visible.
    pub(crate) fn load(&self) -> Value {
        Value(self.0.load(Ordering::Acquire))
    }

    /// Front: Free → Filling with the next `generation`. A plain store is enough: no other process
    /// changes a Free slot. The front knows from its own memory which slots are free, not from this
    /// word.
    pub(crate) fn fill(&self, generation: u32) {
        self.0.store(Value::new(State::Filling, 0, generation).0, Ordering::Relaxed);
    }

    /// Front: Filling → Queued. PAIRS WITH `take` (Acquire): the request bytes are visible.
    pub(crate) fn submit(&self, generation: u32) {
        self.0.store(Value::new(State::Queued, 0, generation).0, Ordering::Release);
    }

    /// Front: Queued → Free, unless a worker was faster.
    #[must_use]
    pub(crate) fn withdraw(&self, generation: u32) -> bool {
        self.change(Value::new(State::Queued, 0, generation), State::Free, 0)
    }

    /// Worker: Queued → Taken, if the slot is still in the `generation` that was queued.
    #[must_use]
    pub(crate) fn take(&self, generation: u32, worker: Incarnation) -> bool {
        self.change(Value::new(State::Queued, 0, generation), State::Taken, worker.0)
    }

    /// Worker: Taken → Answering; publishes the response head. Returns false if the slot is
    /// cancelled or not this worker's.
    #[must_use]
    pub(crate) fn begin(&self, worker: Incarnation) -> bool {
        let now = self.load();
        now.state() == Some(State::Taken)
            && now.owner() == worker.0
            && self.change(now, State::Responding, worker.0)
    }

    /// Worker: Taken, Answering or Cancelled → Answered. Returns false if the slot is no longer
    /// this worker's.
    #[must_use]
    pub(crate) fn finish(&self, worker: Incarnation) -> bool {
        self.leave(worker, State::Responded)
    }

    /// Supervisor: a slot that the dead `worker` owned → Orphaned.
    #[must_use]
    pub(crate) fn orphan(&self, worker: Incarnation) -> bool {
        self.leave(worker, State::Orphaned)
    }

    /// Front: Taken or Answering → Cancelled. Returns false if there is nothing left to cancel.
    #[must_use]
    pub(crate) fn cancel(&self, generation: u32) -> bool {
        loop {
            let now = self.load();
            let running = matches!(now.state(), Some(State::Taken | State::Responding));
            if !running || now.generation() != generation {
                return false;
            }
            // The worker may go from Taken to Answering in the meantime: at most one more round.
            if self.change(now, State::Cancelled, now.owner()) {
                return true;
            }
        }
    }

    /// Front: back to Free, from a state that the front owns (or from garbage).
    pub(crate) fn release(&self, generation: u32) {
        self.0.store(Value::new(State::Free, 0, generation).0, Ordering::Release);
    }

    fn leave(&self, worker: Incarnation, to: State) -> bool {
        loop {
            let now = self.load();
            if !now.state().is_some_and(State::is_workers) || now.owner() != worker.0 {
                return false;
            }
            // Only the front's `cancel` can interfere, once: at most one more round.
            if self.change(now, to, worker.0) {
                return true;
            }
        }
    }

    fn change(&self, from: Value, to: State, owner: u32) -> bool {
        let to = Value::new(to, owner, from.generation());
        self.0.compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn word() -> Word {
        Word(AtomicU64::new(0))
    }
    fn worker(n: u32) -> Incarnation {
        Incarnation::new(n).expect("not 0")
    }

    #[test]
    fn request_passes_through_all_states() {
        let w = word();
        w.fill(7);
        w.submit(7);
        assert!(w.take(7, worker(3)));
        assert!(w.begin(worker(3)));
        assert_eq!(w.load().state(), Some(State::Responding));
        assert!(w.finish(worker(3)));
        w.release(7);
        assert_eq!((w.load().state(), w.load().generation()), (Some(State::Free), 7));
    }

    #[test]
    fn one_worker_takes_and_only_owner_finishes() {
        let w = word();
        w.fill(1);
        w.submit(1);
        assert!(w.take(1, worker(1)));
        assert!(!w.take(1, worker(2)));
        assert!(!w.begin(worker(2)));
        assert!(!w.finish(worker(2)));
        assert!(!w.orphan(worker(2)));
        assert!(!w.withdraw(1));
    }

    #[test]
    fn stale_entry_is_rejected() {
        let w = word();
        w.fill(1);
        w.submit(1);
        assert!(w.withdraw(1));
        w.fill(2);
        w.submit(2);
        assert!(!w.take(1, worker(1)));
        assert!(w.take(2, worker(1)));
    }

    #[test]
    fn cancelled_request_leaves_slot_with_worker() {
        let w = word();
        w.fill(1);
        w.submit(1);
        assert!(!w.cancel(1));
        assert!(w.take(1, worker(9)));
        assert!(w.cancel(1));
        assert!(!w.cancel(1));
        assert!(!w.begin(worker(9)));
        assert!(w.finish(worker(9)));
    }

    #[test]
    fn garbage_word_has_no_state() {
        let w = Word(AtomicU64::new(0xdead_beef_dead_beef));
        assert_eq!(w.load().state(), None);
        assert!(!w.finish(worker(1)));
        assert!(!w.cancel(0));
    }
}
