//! Passes a long response from its slot to a client that may read more slowly than the worker
//! writes.
//!
//! While the client keeps up, bytes go directly from the slot to the socket, and each flush is sent
//! immediately. When the socket is full, the worker's output is buffered (`kept`). The buffer is in
//! memory up to `limits.response_memory_bytes_max`, then in an unlinked spill file of up to
//! `limits.response_spill_bytes_max`. So a worker finishes at its own speed, even if the client is
//! slow. When both limits are reached, the slot's window fills up and the worker waits. It also
//! waits when the disk is full. The bytes of all responses have budgets (`budget`).

use super::budget::Charges;
use super::deferred_usage::Cost;
use super::missing_response::Lost;
use super::response_reader::{Exchange, Piece};
use super::spill_buffer::{self, Next, Room, SpillBuffer, Written};
use crate::runtime::disk::{DiskJob, DiskThreads, Reading};
use crate::runtime::presence::ClientPresence;
use crate::setup::Setup;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A response in flight. The connection's task fills it; the body that hyper polls empties it.
#[derive(Debug)]
pub(crate) struct Relay {
    disk: Rc<DiskThreads>,
    setup: Rc<Setup>,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// `None` when the worker has finished its part.
    exchange: Option<Exchange>,
    /// Result to return after the last byte.
    end: Option<Result<Cost, Lost>>,
    kept: SpillBuffer,
    job: Option<Job>,
}

#[derive(Debug)]
enum Job {
    Write(DiskJob<Written>),
    Read(Reading),
}

impl Relay {
    pub(crate) fn new(
        disk: &Rc<DiskThreads>,
        setup: &Rc<Setup>,
        exchange: Exchange,
        charges: Charges,
    ) -> Relay {
        let kept = SpillBuffer::new(charges);
        let state = State { exchange: Some(exchange), end: None, kept, job: None };
        let (disk, setup) = (Rc::clone(disk), Rc::clone(setup));
        Relay { disk, setup, state: RefCell::new(state) }
    }

    /// Returns the next bytes for the client. There are none after an `Err` or the end.
    pub(crate) fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let state = &mut *self.state.borrow_mut();
        loop {
            match state.kept.next() {
                Next::Bytes(bytes) => return Poll::Ready(Ok(Piece::Bytes(bytes))),
                _ if state.job.is_some() => ready!(self.poll_job(state, cx)),
                Next::OfFile(file, at, len) => {
                    state.job = Some(Job::Read(self.disk.read(&file, at, len)));
                }
                Next::Nothing => break,
            }
        }
        if let Some(end) = state.end.take() {
            return Poll::Ready(end.map(Piece::End));
        }
        let Some(exchange) = &mut state.exchange else {
            return Poll::Ready(Ok(Piece::End(Cost::Unknown)));
        };
        let piece = ready!(exchange.poll_piece(cx));
        if !matches!(piece, Ok(Piece::Bytes(_))) {
            state.exchange = None;
        }
        Poll::Ready(piece)
    }

    /// Reads from the worker as much as there is room for, because the client reads nothing now.
    /// Wakes `cx` when more arrives.
    pub(crate) fn absorb(&self, cx: &mut Context<'_>) {
        let state = &mut *self.state.borrow_mut();
        while state.end.is_none() {
            if state.job.is_some() && self.poll_job(state, cx).is_pending() {
                return;
            }
            let room = state.kept.room(&self.setup.settings.limits);
            let Some((exchange, room)) = state.exchange.as_mut().zip(room) else { return };
            match (exchange.poll_piece(cx), room) {
                (Poll::Pending, _) => return,
                (Poll::Ready(Ok(Piece::Bytes(bytes))), Room::Memory) => state.kept.put(bytes),
                (Poll::Ready(Ok(Piece::Bytes(bytes))), Room::File) => {
                    let write =
                        spill_buffer::write(&self.disk, &self.setup.settings, &state.kept, bytes);
                    state.job = Some(Job::Write(write));
                }
                (Poll::Ready(Ok(Piece::End(cost))), _) => state.finish(Ok(cost)),
                (Poll::Ready(Err(lost)), _) => state.finish(Err(lost)),
            }
        }
    }

    /// The client has received the whole promised response; the script may continue to run.
    pub(crate) fn let_go(&self, client: &ClientPresence) -> Cost {
        self.state.borrow_mut().part(|exchange| exchange.let_go(client))
    }

    /// Another body is sent instead of this one.
    pub(crate) fn dismiss(&self) -> Cost {
        self.state.borrow_mut().part(Exchange::dismiss)
    }

    /// The client has disconnected.
    pub(crate) fn give_up(&self) -> Cost {
        self.state.borrow_mut().part(Exchange::give_up)
    }

    /// Advances the pending disk job.
    fn poll_job(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        match &mut state.job {
            None => return Poll::Ready(()),
            Some(Job::Write(job)) => match ready!(Pin::new(job).poll(cx)) {
                Ok(written) => {
                    if let Err(error) = state.kept.has_written(written) {
                        self.disk.report("a response", &self.setup.settings.temp_dir, &error);
                    }
                }
                Err(_) => state.finish(Err(Lost::Disk)),
            },
            Some(Job::Read(reading)) => match ready!(Pin::new(reading).poll(cx)) {
                Ok(bytes) => state.kept.has_read(bytes),
                Err(error) => {
                    self.disk.report("a response", &self.setup.settings.temp_dir, &error);
                    state.kept.has_lost();
                    state.finish(Err(Lost::Disk));
                }
            },
        }
        state.job = None;
        Poll::Ready(())
    }
}

impl State {
    /// Detaches from the worker, which may have finished already.
    fn part(&mut self, how: impl FnOnce(&mut Exchange) -> Cost) -> Cost {
        match (&mut self.exchange, self.end.take()) {
            (Some(exchange), _) => how(exchange),
            (None, Some(Ok(cost))) => cost,
            (None, _) => Cost::Unknown,
        }
    }

    fn finish(&mut self, end: Result<Cost, Lost>) {
        self.exchange = None;
        self.end = Some(end);
    }
}
