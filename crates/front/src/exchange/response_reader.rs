//! One submitted request: reads its response from the slot, piece by piece.

use super::deferred_usage::Cost;
use super::feed::Feed;
use super::missing_response::Lost;
use super::table::SharedExchanges;
use crate::runtime::presence::ClientPresence;
use crate::runtime::recordings::ResponseTap;
use crate::runtime::waker::remember;
use bytes::Bytes;
use samovar_ring::{End, Progress, SlotIndex};
use std::rc::Rc;
use std::task::{Context, Poll};

/// A submitted request. If it is dropped before its response is complete, the request is cancelled.
#[derive(Debug)]
pub(crate) struct Exchange {
    table: SharedExchanges,
    slot: SlotIndex,
    epoch: u32,
    is_settled: bool,
    tap: Option<ResponseTap>,
}

/// The start of a response; the whole response if it is short.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    pub(crate) status: u16,
    /// Header lines, followed by the body bytes available so far.
    pub(crate) bytes: Bytes,
    pub(crate) head_bytes: usize,
    /// More of the body is to be read from the exchange.
    pub(crate) is_open: bool,
    /// Usage of the request, if already known.
    pub(crate) cost: Cost,
}

/// A message from a worker: the response, or an interim response before it.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// A status of 1xx and its header lines.
    Interim(u16, Bytes),
    ResponseReader(ResponseReader),
}

/// A piece of a long response.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    End(Cost),
}

impl Exchange {
    pub(crate) fn new(table: &SharedExchanges, (slot, epoch): (SlotIndex, u32)) -> Exchange {
        Exchange { table: Rc::clone(table), slot, epoch, is_settled: false, tap: None }
    }

    /// Lets the tap read the rest of the response.
    pub(crate) fn set_tap(&mut self, tap: ResponseTap) {
        self.tap = Some(tap);
    }

    /// Writer of the request body for the same slot.
    pub(crate) fn feed(&self) -> Feed {
        Feed::new(Rc::clone(&self.table), self.slot, self.epoch)
    }

    /// Waits for the response head or an interim response. With `is_head_only` the body is not
    /// read.
    pub(crate) fn poll_response(
        &mut self,
        is_head_only: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<WorkerMessage, Lost>> {
        let result = std::task::ready!(self.look_for_response(is_head_only, cx));
        if let Err(lost) = result {
            self.settle_broken(lost);
        }
        Poll::Ready(result)
    }

    fn look_for_response(
        &mut self,
        is_head_only: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<WorkerMessage, Lost>> {
        let mut table = self.table.borrow_mut();
        let table = &mut *table;
        let slot = self.slot;
        let entry = &mut table.entries[slot.get()];
        entry.unseen = false;
        if let Some(lost) = entry.lost {
            return Poll::Ready(Err(lost));
        }
        let progress = table.front.progress(slot)?;
        if progress != Progress::Queued
            && let Some(status) = table.front.read_interim(slot, &mut table.scratch)?
        {
            let lines = Bytes::copy_from_slice(&table.scratch);
            return Poll::Ready(Ok(WorkerMessage::Interim(status, lines)));
        }
        match progress {
            Progress::Queued | Progress::Running => {
                remember(&mut entry.waker, cx);
                return Poll::Pending;
            }
            Progress::Orphaned => {
                return Poll::Ready(Err(Lost::Orphaned(table.front.death(slot))));
            }
            Progress::Responding | Progress::Responded => {}
        }
        let scratch = &mut table.scratch;
        let status = table.front.read_head(slot, scratch)?;
        let head_bytes = scratch.len();
        if status == 0 {
            return Poll::Ready(Err(Lost::Broken("empty response")));
        }
        let is_bodiless = is_head_only || matches!(status, 204 | 304);
        let end = table.front.read_body(slot, scratch)?;
        if is_bodiless {
            scratch.truncate(head_bytes);
        }
        let bytes = Bytes::copy_from_slice(scratch);
        let is_open = end != End::Complete && !is_bodiless;
        self.is_settled = !is_open;
        let cost = match progress {
            _ if is_open => Cost::Unknown,
            Progress::Responded => table.settle(slot),
            _ if end == End::Complete => table.leave(slot),
            // nginx closes its connection to php-fpm here.
            _ => table.dismiss(slot),
        };
        let response = ResponseReader { status, bytes, head_bytes, is_open, cost };
        Poll::Ready(Ok(WorkerMessage::ResponseReader(response)))
    }

    /// Waits for the next piece of the body. After an `Err` or the end, the exchange is over.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let result = std::task::ready!(self.look_for_piece(cx));
        if let Some(tap) = &self.tap {
            match &result {
                Ok(Piece::Bytes(bytes)) => tap.add(bytes),
                Ok(Piece::End(_)) => tap.complete(),
                Err(_) => {}
            }
        }
        if let Err(lost) = result {
            self.settle_broken(lost);
        }
        Poll::Ready(result)
    }

    fn look_for_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let mut table = self.table.borrow_mut();
        let table = &mut *table;
        let slot = self.slot;
        let entry = &mut table.entries[slot.get()];
        entry.unseen = false;
        if let Some(lost) = entry.lost {
            return Poll::Ready(Err(lost));
        }
        // The progress is read before the bytes, so "Answered and nothing to read" is final.
        let progress = table.front.progress(slot)?;
        table.scratch.clear();
        let end = table.front.read_body(slot, &mut table.scratch)?;
        if !table.scratch.is_empty() {
            return Poll::Ready(Ok(Piece::Bytes(Bytes::copy_from_slice(&table.scratch))));
        }
        match (end, progress) {
            (End::Complete, _) => {
                self.is_settled = true;
                Poll::Ready(Ok(Piece::End(table.leave(slot))))
            }
            (_, Progress::Orphaned) => Poll::Ready(Err(Lost::Orphaned(table.front.death(slot)))),
            (End::Aborted, _) => Poll::Ready(Err(Lost::Aborted)),
            (End::Open, Progress::Responded) => {
                Poll::Ready(Err(Lost::Broken("response without an end")))
            }
            (End::Open, _) => {
                remember(&mut entry.waker, cx);
                Poll::Pending
            }
        }
    }

    /// Detaches from the worker: the client has the whole promised response, but the script still
    /// runs to its end, or until the client leaves.
    pub(crate) fn let_go(&mut self, client: &ClientPresence) -> Cost {
        if std::mem::replace(&mut self.is_settled, true) {
            return Cost::Unknown;
        }
        self.table.borrow_mut().leave_with(self.slot, client)
    }

    /// Detaches from the worker: the rest of the response is not needed, so the script ends at its
    /// next output.
    pub(crate) fn dismiss(&mut self) -> Cost {
        if std::mem::replace(&mut self.is_settled, true) {
            return Cost::Unknown;
        }
        self.table.borrow_mut().dismiss(self.slot)
    }

    /// Cancels the request: no client waits for the response any more, so the script is to end.
    pub(crate) fn give_up(&mut self) -> Cost {
        if std::mem::replace(&mut self.is_settled, true) {
            return Cost::Unknown;
        }
        self.table.borrow_mut().cancel(self.slot)
    }

    fn settle_broken(&mut self, lost: Lost) {
        if let Lost::Broken(what) = lost {
            self.is_settled = true;
            self.table.borrow_mut().accuse(self.slot, what);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.give_up();
    }
}
