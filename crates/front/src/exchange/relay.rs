//! The way of a long answer from its slot to a client that may take it more slowly than the worker gives it.
//!
//! While the client keeps up, bytes go straight from the slot to the socket, each flush at once. When the socket is
//! full, what the worker gives is kept: in memory up to `limits.answer_memory_bytes_max`, then in an unlinked file of
//! up to `limits.answer_file_bytes_max`; so a worker is done at its own speed, however slow its client is. Beyond both
//! the slot's window fills, and the worker waits, as it does when there is no room on the disk.
//!
//! The order of bytes is: memory, file, what a full disk refused, slot. Memory is given nothing new while the file holds
//! anything.

use super::answer::{Exchange, Piece};
use super::later::Cost;
use super::lost::Lost;
use crate::runtime::disk::{DiskJob, DiskThreads, Reading};
use crate::setup::Setup;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes read back from the file at a time.
const CHUNK_BYTES: usize = 64 * 1024;

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
    memory: VecDeque<Bytes>,
    memory_bytes: usize,
    file: Option<Arc<File>>,
    written: u64,
    read: u64,
    job: Option<Job>,
    /// What the disk did not take: it comes behind what the file holds.
    untaken: Option<Bytes>,
    /// The disk has failed this answer once: it is not asked again.
    is_diskless: bool,
}

#[derive(Debug)]
enum Job {
    Write(DiskJob<Written>),
    Read(Reading),
}

/// What became of a write: the bytes come back if the disk did not take them.
#[derive(Debug)]
struct Written {
    file: Option<Arc<File>>,
    bytes: Bytes,
    result: io::Result<()>,
}

impl Relay {
    pub(crate) fn new(disk: &Rc<DiskThreads>, setup: &Rc<Setup>, exchange: Exchange) -> Relay {
        let state = State {
            exchange: Some(exchange),
            end: None,
            memory: VecDeque::new(),
            memory_bytes: 0,
            file: None,
            written: 0,
            read: 0,
            job: None,
            untaken: None,
            is_diskless: false,
        };
        let (disk, setup) = (Rc::clone(disk), Rc::clone(setup));
        Relay { disk, setup, state: RefCell::new(state) }
    }

    /// The next bytes for the client. After an `Err` or the end there are none.
    pub(crate) fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let state = &mut *self.state.borrow_mut();
        loop {
            if let Some(bytes) = state.memory.pop_front() {
                state.memory_bytes -= bytes.len();
                return Poll::Ready(Ok(Piece::Bytes(bytes)));
            }
            if state.job.is_some() {
                ready!(self.poll_job(state, cx));
            } else if state.read < state.written {
                let Some(file) = &state.file else { return Poll::Ready(Err(Lost::Disk)) };
                let len = (state.written - state.read).min(CHUNK_BYTES as u64) as usize;
                state.job = Some(Job::Read(self.disk.read(file, state.read, len)));
            } else if let Some(bytes) = state.untaken.take() {
                return Poll::Ready(Ok(Piece::Bytes(bytes)));
            } else {
                break;
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
            let limits = &self.setup.settings.limits;
            let is_file_empty = state.read == state.written;
            if is_file_empty {
                (state.read, state.written) = (0, 0);
            }
            let has_memory = is_file_empty
                && state.untaken.is_none()
                && (state.memory_bytes as u64) < limits.answer_memory_bytes_max;
            let has_file = !state.is_diskless && state.written < limits.answer_file_bytes_max;
            let Some(exchange) = state.exchange.as_mut().filter(|_| has_memory || has_file) else {
                return;
            };
            match exchange.poll_piece(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(Piece::Bytes(bytes))) if has_memory => state.keep(bytes),
                Poll::Ready(Ok(Piece::Bytes(bytes))) => state.job = Some(self.write(state, bytes)),
                Poll::Ready(Ok(Piece::End(cost))) => state.finish(Ok(cost)),
                Poll::Ready(Err(lost)) => state.finish(Err(lost)),
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

    fn write(&self, state: &State, bytes: Bytes) -> Job {
        let (file, at) = (state.file.clone(), state.written);
        let folder = self.setup.settings.temp_dir.clone();
        Job::Write(self.disk.run(move || {
            let file = match file {
                Some(file) => Ok(file),
                None => tempfile::tempfile_in(folder).map(Arc::new),
            };
            let result = file.as_ref().map(|file| file.write_all_at(&bytes, at));
            let result = result.unwrap_or_else(|error| Err(error.kind().into()));
            Ok(Written { file: file.ok(), bytes, result })
        }))
    }

    /// Goes on with what a thread does.
    fn poll_job(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        match &mut state.job {
            None => return Poll::Ready(()),
            Some(Job::Write(job)) => match ready!(Pin::new(job).poll(cx)) {
                Ok(Written { file, bytes, result: Ok(()) }) => {
                    state.file = file;
                    state.written += bytes.len() as u64;
                }
                Ok(Written { bytes, result: Err(error), .. }) => {
                    self.disk.report("an answer", &self.setup.settings.temp_dir, &error);
                    state.is_diskless = true;
                    state.untaken = Some(bytes);
                }
                Err(_) => state.finish(Err(Lost::Disk)),
            },
            Some(Job::Read(reading)) => match ready!(Pin::new(reading).poll(cx)) {
                Ok(bytes) => {
                    state.read += bytes.len() as u64;
                    state.keep(bytes);
                }
                Err(error) => {
                    self.disk.report("an answer", &self.setup.settings.temp_dir, &error);
                    // What comes behind a gap is none of the answer.
                    state.read = state.written;
                    state.untaken = None;
                    state.finish(Err(Lost::Disk));
                }
            },
        }
        state.job = None;
        Poll::Ready(())
    }
}

impl State {
    fn keep(&mut self, bytes: Bytes) {
        self.memory_bytes += bytes.len();
        self.memory.push_back(bytes);
    }

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
