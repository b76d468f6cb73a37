//! A request that waits for a slot, until the table grants it one.

use super::slot_waiter::{Wait, Waiter};
use super::table::SharedExchanges;
use super::turn_queue::{Turn, group};
use samovar_ring::Filling;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Waits for a slot, in the order of `turn_queue`.
#[derive(Debug)]
pub(crate) struct SlotWait {
    table: SharedExchanges,
    waiter: Rc<Waiter>,
}

impl SlotWait {
    pub(crate) fn new(table: &SharedExchanges, turn: Option<Turn>) -> SlotWait {
        let mut exchanges = table.borrow_mut();
        let since_ms = exchanges.clock.now_ms();
        let waiter = Rc::new(Waiter { since_ms, group: group(turn), ..Waiter::default() });
        exchanges.wait(&waiter, turn);
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
                exchanges.granted[self.waiter.group] -= 1;
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
            Wait::Waiting => exchanges.leave_queue(&self.waiter),
            Wait::Granted => {
                exchanges.granted[self.waiter.group] -= 1;
                exchanges.grant_next();
            }
        }
    }
}
