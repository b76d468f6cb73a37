//! The way of a long answer from its slot to a client that may take it more slowly than the worker gives it.
//!
//! While the client keeps up, bytes go straight from the slot to the socket, each flush at once. When the socket is
//! full, what the worker gives is kept: in memory up to `limits.answer_memory_bytes_max`, then in an unlinked file of
//! up to `limits.answer_file_bytes_max` (`kept`); so a worker is done at its own speed, however slow its client is. Beyond
//! both the slot's window fills, and the worker waits, as it does when there is no room on the disk.

use super::answer::{Exchange, Piece};
use super::kept::{self, Kept, Next, Room, Written};
use super::later::Cost;
use super::lost::Lost;
use crate::runtime::disk::{DiskJob, DiskThreads, Reading};
use crate::setup::Setup;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// An answer on its way. The connection's task fills it, the body that hyper asks empties it.
#[derive(Debug)]
pub(crate) struct Relay {
    disk: Rc<DiskThreads>,
    setup: Rc<Setup>,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// `None` when the worker's part is over.
    exchange: Option<Exchange>,
    /// What comes after the last byte.
    end: Option<Result<Cost, Lost>>,
    kept: Kept,
    job: Option<Job>,
}

#[derive(Debug)]
enum Job {
    Write(DiskJob<Written>),
    Read(Reading),
}

impl Relay {
    pub(crate) fn new(disk: &Rc<DiskThreads>, setup: &Rc<Setup>, exchange: Exchange) -> Relay {
        let state = State { exchange: Some(exchange), end: None, kept: Kept::default(), job: None };
        let (disk, setup) = (Rc::clone(disk), Rc::clone(setup));
        Relay { disk, setup, state: RefCell::new(state) }
    }

    /// The next bytes for the client. After an `Err` or the end there are none.
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

    /// Takes from the worker what there is room for, because the client takes nothing now. Wakes `cx` when more comes.
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
                    let write = kept::write(&self.disk, &self.setup.settings, &state.kept, bytes);
                    state.job = Some(Job::Write(write));
                }
                (Poll::Ready(Ok(Piece::End(cost))), _) => state.finish(Ok(cost)),
                (Poll::Ready(Err(lost)), _) => state.finish(Err(lost)),
            }
        }
    }

    /// The client has all it was promised; the script may run on.
    pub(crate) fn let_go(&self) -> Cost {
        self.state.borrow_mut().part(Exchange::let_go)
    }

    /// The client has gone.
    pub(crate) fn give_up(&self) -> Cost {
        self.state.borrow_mut().part(Exchange::give_up)
    }

    /// Goes on with what a thread does.
    fn poll_job(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        match &mut state.job {
            None => return Poll::Ready(()),
            Some(Job::Write(job)) => match ready!(Pin::new(job).poll(cx)) {
                Ok(written) => {
                    if let Err(error) = state.kept.has_written(written) {
                        self.disk.report("an answer", &self.setup.settings.temp_dir, &error);
                    }
                }
                Err(_) => state.finish(Err(Lost::Disk)),
            },
            Some(Job::Read(reading)) => match ready!(Pin::new(reading).poll(cx)) {
                Ok(bytes) => state.kept.has_read(bytes),
                Err(error) => {
                    self.disk.report("an answer", &self.setup.settings.temp_dir, &error);
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
    /// Parts with the worker, who may be done already.
    fn part(&mut self, how: fn(&mut Exchange) -> Cost) -> Cost {
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
