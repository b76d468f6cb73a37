//! A request that waits for a slot: the table grants it a slot or lets it expire.

use std::cell::{Cell, RefCell};
use std::task::Waker;

/// Position in a queue: start in virtual time, in µs, then the order of arrival.
pub(super) type Position = (u64, u64);

/// A request that waits for a free slot.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    pub(super) waker: RefCell<Option<Waker>>,
    pub(super) since_ms: u64,
    pub(super) state: Cell<Wait>,
    /// Its queue, and its position there.
    pub(super) group: usize,
    pub(super) position: Cell<Position>,
}

/// State of a waiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wait {
    #[default]
    Waiting,
    /// A slot is reserved for this waiter.
    Granted,
    Expired,
}

impl Waiter {
    /// Notifies the waiter that a slot is reserved for it.
    pub(super) fn grant(&self) {
        self.leave(Wait::Granted);
    }

    /// Notifies the waiter that its time is over.
    pub(super) fn expire(&self) {
        self.leave(Wait::Expired);
    }

    fn leave(&self, state: Wait) {
        self.state.set(state);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
