//! Queue of requests that wait for a slot while all slots are in use (FIFO).

use super::slot_waiter::{Wait, Waiter};
use super::table::SharedExchanges;
use samovar_ring::Filling;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Waits for a free slot, in FIFO order.
#[derive(Debug)]
pub(crate) struct SlotWait {
    table: SharedExchanges,
    waiter: Rc<Waiter>,
}

impl SlotWait {
    pub(crate) fn new(table: &SharedExchanges) -> SlotWait {
        let mut exchanges = table.borrow_mut();
        let waiter = Rc::new(Waiter { since_ms: exchanges.clock.now_ms(), ..Waiter::default() });
        exchanges.waiters.push_back(Rc::clone(&waiter));
        exchanges.grant_next();
        drop(exchanges);
        SlotWait { table: Rc::clone(table), waiter }
    }

    /// Returns `Err` if no slot became free in time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Filling, ()>> {
        match self.waiter.state.get() {
            Wait::Waiting => {
                self.waiter.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
            Wait::Expired => Poll::Ready(Err(())),
            Wait::Granted => {
                self.waiter.state.set(Wait::Expired);
                let mut exchanges = self.table.borrow_mut();
                exchanges.granted -= 1;
                Poll::Ready(exchanges.front.fill().ok_or(()))
            }
        }
    }
}

impl Drop for SlotWait {
    fn drop(&mut self) {
        let mut exchanges = self.table.borrow_mut();
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
