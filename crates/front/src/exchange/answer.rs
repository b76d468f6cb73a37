//! One submitted request: its answer, piece by piece, out of the slot.

use super::feed::Feed;
use super::later::Cost;
use super::lost::Lost;
use super::table::SharedExchanges;
use crate::runtime::waker::remember;
use bytes::Bytes;
use samovar_ring::{End, Progress, SlotIndex};
use std::rc::Rc;
use std::task::{Context, Poll};

/// A submitted request. Dropped before its answer is complete, it is cancelled.
#[derive(Debug)]
pub(crate) struct Exchange {
    table: SharedExchanges,
    slot: SlotIndex,
    epoch: u32,
    is_settled: bool,
}

/// The start of an answer; all of it, if it is short.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Header lines, then the body bytes that were there.
    pub(crate) bytes: Bytes,
    pub(crate) head_bytes: usize,
    /// More of the body is to be read from the exchange.
    pub(crate) is_open: bool,
    /// What it cost, as far as that is known.
    pub(crate) cost: Cost,
}

/// What a worker says: the answer, or something ahead of it.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// A status of 1xx and its header lines.
    Interim(u16, Bytes),
    Answer(Answer),
}

/// A piece of a long answer.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    End(Cost),
}

impl Exchange {
    pub(crate) fn new(table: &SharedExchanges, (slot, epoch): (SlotIndex, u32)) -> Exchange {
        Exchange { table: Rc::clone(table), slot, epoch, is_settled: false }
    }

    /// The body's way into the same slot.
    pub(crate) fn feed(&self) -> Feed {
        Feed::new(Rc::clone(&self.table), self.slot, self.epoch)
    }

    /// Waits for the answer's head, or for an interim answer. With `is_head_only` the body is left unread.
    pub(crate) fn poll_answer(
        &mut self,
        is_head_only: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<WorkerMessage, Lost>> {
        let result = std::task::ready!(self.look_for_answer(is_head_only, cx));
        if let Err(lost) = result {
            self.settle_broken(lost);
        }
        Poll::Ready(result)
    }

    fn look_for_answer(
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
            Progress::Answering | Progress::Answered => {}
        }
        let scratch = &mut table.scratch;
        let status = table.front.read_head(slot, scratch)?;
        let head_bytes = scratch.len();
        if status == 0 {
            return Poll::Ready(Err(Lost::Broken("empty answer")));
        }
        let is_bodiless = is_head_only || matches!(status, 204 | 304);
        let end = if is_bodiless { End::Complete } else { table.front.read_body(slot, scratch)? };
        let bytes = Bytes::copy_from_slice(scratch);
        let is_open = end != End::Complete;
        self.is_settled = !is_open;
        let cost = match progress {
            _ if is_open => Cost::Unknown,
            Progress::Answered => table.settle(slot),
            _ => table.leave(slot),
        };
        let answer = Answer { status, bytes, head_bytes, is_open, cost };
        Poll::Ready(Ok(WorkerMessage::Answer(answer)))
    }

    /// Waits for the next piece of the body. After an `Err` or the end the exchange is over.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let result = std::task::ready!(self.look_for_piece(cx));
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
        // Progress first, bytes second: "Answered and nothing to read" is then final.
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
            (End::Open, Progress::Answered) => Poll::Ready(Err(Lost::Broken("open answer"))),
            (End::Open, _) => {
                remember(&mut entry.waker, cx);
                Poll::Pending
            }
        }
    }

    /// The client has all it was promised; the script shall run to its end all the same.
    pub(crate) fn let_go(&mut self) -> Cost {
        if std::mem::replace(&mut self.is_settled, true) {
            return Cost::Unknown;
        }
        self.table.borrow_mut().leave(self.slot)
    }

    /// Nobody wants the answer any more: the script is to end.
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
