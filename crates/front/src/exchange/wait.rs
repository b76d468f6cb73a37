//! Requests that wait for a slot while all are in use: first come, first served.

use crate::shared::Shared;
use samovar_ring::Filling;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Somebody who waits for a free slot.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    waker: RefCell<Option<Waker>>,
    pub(super) since_ms: u64,
    state: Cell<Wait>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wait {
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

/// Waits for a free slot, first come, first served.
#[derive(Debug)]
pub(crate) struct SlotWait {
    shared: Rc<Shared>,
    waiter: Rc<Waiter>,
}

impl SlotWait {
    pub(crate) fn new(shared: &Rc<Shared>) -> SlotWait {
        let mut exchanges = shared.exchanges.borrow_mut();
        let waiter = Rc::new(Waiter { since_ms: exchanges.now_ms, ..Waiter::default() });
        exchanges.waiters.push_back(Rc::clone(&waiter));
        exchanges.grant_next();
        drop(exchanges);
        SlotWait { shared: Rc::clone(shared), waiter }
    }

    /// Err: no slot in time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Filling, ()>> {
        match self.waiter.state.get() {
            Wait::Waiting => {
                self.waiter.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
            Wait::Expired => Poll::Ready(Err(())),
            Wait::Granted => {
                self.waiter.state.set(Wait::Expired);
                let mut exchanges = self.shared.exchanges.borrow_mut();
                exchanges.granted -= 1;
                Poll::Ready(exchanges.front.fill().ok_or(()))
            }
        }
    }
}

impl Drop for SlotWait {
    fn drop(&mut self) {
        let mut exchanges = self.shared.exchanges.borrow_mut();
        match self.waiter.state.get() {
            Wait::Expired => {}
            Wait::Waiting => exchanges.waiters.retain(|other| !Rc::ptr_eq(other, &self.waiter)),
            Wait::Granted => {
                exchanges.granted -= 1;
                exchanges.grant_next();
            }
        }
    }
}
