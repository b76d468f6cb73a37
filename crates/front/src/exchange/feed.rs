//! Writes a request body into its slot while another task awaits the response.

use super::missing_response::{BodyFailure, Lost};
use super::slot::SlotUse;
use super::table::{Exchanges, SharedExchanges};
use crate::runtime::waker::remember;
use samovar_ring::{End, SlotIndex};
use std::task::{Context, Poll};

/// Writer of a request's body. The `Exchange` of the same slot awaits the response.
#[derive(Debug)]
pub(crate) struct Feed {
    table: SharedExchanges,
    slot: SlotIndex,
    epoch: u32,
}

impl Feed {
    pub(super) fn new(table: SharedExchanges, slot: SlotIndex, epoch: u32) -> Feed {
        Feed { table, slot, epoch }
    }

    /// Writes as much of `bytes` as fits; pending while nothing fits. Returns `Err` if the exchange
    /// is over.
    pub(crate) fn poll_write(&self, bytes: &[u8], cx: &mut Context<'_>) -> Poll<Result<usize, ()>> {
        let mut table = self.table.borrow_mut();
        let table = &mut *table;
        if !self.is_on(table) {
            return Poll::Ready(Err(()));
        }
        match table.front.write_body(self.slot, bytes) {
            Ok(0) if !bytes.is_empty() => {
                remember(&mut table.entries[self.slot.get()].pump, cx);
                Poll::Pending
            }
            Ok(written) => Poll::Ready(Ok(written)),
            // The task that awaits the response meets the same error and handles it.
            Err(_) => Poll::Ready(Err(())),
        }
    }

    /// Ready when the body is not needed any more. Wakes `cx` when that may have changed.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut table = self.table.borrow_mut();
        if !self.is_on(&table) {
            return Poll::Ready(());
        }
        remember(&mut table.entries[self.slot.get()].pump, cx);
        Poll::Pending
    }

    /// While this is set, the worker may be waiting for the client, and its response timeout does
    /// not run.
    pub(crate) fn set_feeding(&self, is_feeding: bool) {
        let mut table = self.table.borrow_mut();
        if self.is_on(&table) {
            table.entries[self.slot.get()].is_feeding = is_feeding;
        }
    }

    pub(crate) fn end(&self, end: End) {
        let table = self.table.borrow();
        if self.is_on(&table) {
            table.front.end_body(self.slot, end);
        }
    }

    /// Reports that the rest of the body is missing. The request gets an error response, or its
    /// connection is closed.
    pub(crate) fn fail(&self, failure: BodyFailure) {
        self.end(End::Aborted);
        let mut table = self.table.borrow_mut();
        if self.is_on(&table) {
            let entry = &mut table.entries[self.slot.get()];
            entry.lost = Some(Lost::Body(failure));
            entry.wake();
        }
    }

    fn is_on(&self, table: &Exchanges) -> bool {
        let entry = &table.entries[self.slot.get()];
        let is_workers = matches!(entry.used, SlotUse::Awaited | SlotUse::Background);
        entry.epoch == self.epoch && is_workers
    }
}
