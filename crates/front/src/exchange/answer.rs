//! One submitted request: its answer, piece by piece, out of the slot.

use super::{Feed, Lost, Use, register};
use crate::shared::Shared;
use bytes::Bytes;
use samovar_ring::{End, Ledger, Progress, SlotIndex};
use std::rc::Rc;
use std::task::{Context, Poll};

/// A submitted request. Dropped before its answer is complete, it is cancelled.
#[derive(Debug)]
pub(crate) struct Exchange {
    shared: Rc<Shared>,
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
    /// What it cost, once that is known.
    pub(crate) ledger: Option<Ledger>,
}

/// What a worker has told: the answer, or something ahead of it.
#[derive(Debug)]
pub(crate) enum Told {
    /// A status of 1xx and its header lines.
    Interim(u16, Bytes),
    Answer(Answer),
}

/// A piece of a long answer.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    End(Option<Ledger>),
}

impl Exchange {
    pub(crate) fn new(shared: &Rc<Shared>, (slot, epoch): (SlotIndex, u32)) -> Exchange {
        Exchange { shared: Rc::clone(shared), slot, epoch, is_settled: false }
    }

    /// The body's way into the same slot.
    pub(crate) fn feed(&self) -> Feed {
        Feed::new(Rc::clone(&self.shared), self.slot, self.epoch)
    }

    /// Waits for the answer's head, or for an interim answer. With `is_head_only` the body is left unread.
    pub(crate) fn poll_answer(
        &mut self,
        is_head_only: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Told, Lost>> {
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
    ) -> Poll<Result<Told, Lost>> {
        let mut table = self.shared.exchanges.borrow_mut();
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
            return Poll::Ready(Ok(Told::Interim(status, lines)));
        }
        match progress {
            Progress::Queued | Progress::Running => {
                register(&mut entry.waker, cx);
                return Poll::Pending;
            }
            Progress::Orphaned => return Poll::Ready(Err(Lost::Orphaned)),
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
        let mut ledger = None;
        if !is_open {
            self.is_settled = true;
            if progress == Progress::Answered {
                ledger = Some(table.front.ledger(slot));
                table.release(slot);
            } else {
                table.forget(slot, Use::Background);
                table.discard(slot);
            }
        }
        let answer = Answer { status, bytes, head_bytes, is_open, ledger };
        Poll::Ready(Ok(Told::Answer(answer)))
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
        let mut table = self.shared.exchanges.borrow_mut();
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
            (End::Complete, Progress::Answered) => {
                let ledger = table.front.ledger(slot);
                self.is_settled = true;
                table.release(slot);
                Poll::Ready(Ok(Piece::End(Some(ledger))))
            }
            (End::Complete, _) => {
                self.is_settled = true;
                table.forget(slot, Use::Background);
                table.discard(slot);
                Poll::Ready(Ok(Piece::End(None)))
            }
            (_, Progress::Orphaned) => Poll::Ready(Err(Lost::Orphaned)),
            (End::Aborted, _) => Poll::Ready(Err(Lost::Aborted)),
            (End::Open, Progress::Answered) => Poll::Ready(Err(Lost::Broken("open answer"))),
            (End::Open, _) => {
                register(&mut entry.waker, cx);
                Poll::Pending
            }
        }
    }

    /// The client has all it was promised; the script shall run to its end all the same.
    pub(crate) fn let_go(&mut self) {
        if !std::mem::replace(&mut self.is_settled, true) {
            let mut table = self.shared.exchanges.borrow_mut();
            table.forget(self.slot, Use::Background);
            table.discard(self.slot);
        }
    }

    fn settle_broken(&mut self, lost: Lost) {
        if let Lost::Broken(what) = lost {
            self.is_settled = true;
            let mut kills = Vec::new();
            self.shared.exchanges.borrow_mut().accuse(self.slot, &mut kills);
            self.shared.report_broken(what, kills);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_settled {
            self.shared.exchanges.borrow_mut().cancel(self.slot);
        }
    }
}
