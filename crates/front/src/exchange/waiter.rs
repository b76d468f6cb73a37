//! One that waits for a slot: the table grants it one, or lets it expire.

use std::cell::{Cell, RefCell};
use std::task::Waker;

/// Somebody who waits for a free slot.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    pub(super) waker: RefCell<Option<Waker>>,
    pub(super) since_ms: u64,
    pub(super) state: Cell<Wait>,
}

/// How it stands with a waiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wait {
    #[default]
    Waiting,
    /// A slot is kept for it.
    Granted,
    Expired,
}

impl Waiter {
    /// A slot is kept for it.
    pub(super) fn grant(&self) {
        self.leave(Wait::Granted);
    }

    /// It has waited too long.
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
