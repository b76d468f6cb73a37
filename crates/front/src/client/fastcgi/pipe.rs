//! parse → submit: a request's body, between the connection's task, which reads it, and its
//! consumer.

use crate::runtime::waker::remember;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Maximum number of bytes that wait for the consumer. Reading pauses at this limit.
const WAITING_BYTES_MAX: usize = 128 * 1024;

/// The connection's side.
#[derive(Debug)]
pub(super) struct Pipe(Rc<Inner>);

/// The consumer's side: the body as it arrives.
#[derive(Debug)]
pub(crate) struct Stdin(Rc<Inner>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    Broken,
    /// The consumer was dropped.
    Unwanted,
}

#[derive(Debug)]
struct Inner {
    waiting: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    /// Rest of the declared length, not received yet.
    left: Cell<Option<u64>>,
    declared: Option<u64>,
    state: Cell<State>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

/// Creates both sides of a body of this length. `None`: the length is unknown.
pub(super) fn pipe(declared: Option<u64>) -> (Pipe, Stdin) {
    let inner = Rc::new(Inner {
        waiting: RefCell::default(),
        bytes: Cell::new(0),
        left: Cell::new(declared),
        declared,
        state: Cell::new(State::Open),
        reader: RefCell::default(),
        writer: RefCell::default(),
    });
    (Pipe(Rc::clone(&inner)), Stdin(inner))
}

impl Pipe {
    /// Whether more may be read. If not, `cx` is woken when there is room.
    pub(super) fn has_room(&self, cx: &Context<'_>) -> bool {
        let inner = &*self.0;
        if inner.state.get() == State::Unwanted || inner.bytes.get() < WAITING_BYTES_MAX {
            return true;
        }
        remember(&mut inner.writer.borrow_mut(), cx);
        false
    }

    /// Adds the next bytes. Bytes after the declared length are dropped, as in php-fpm.
    pub(super) fn put(&self, mut bytes: Bytes) {
        let inner = &*self.0;
        if inner.state.get() != State::Open {
            return;
        }
        if let Some(left) = inner.left.get() {
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            inner.left.set(Some(left - bytes.len() as u64));
        }
        if !bytes.is_empty() {
            inner.bytes.set(inner.bytes.get() + bytes.len());
            inner.waiting.borrow_mut().push_back(bytes);
            self.wake();
        }
    }

    /// Marks the body as complete.
    pub(super) fn end(&self) {
        let is_short = self.0.left.get().is_some_and(|left| left > 0);
        self.leave(if is_short { State::Broken } else { State::Ended });
    }

    fn leave(&self, state: State) {
        if self.0.state.get() == State::Open {
            self.0.state.set(state);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.0.reader.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.leave(State::Broken);
    }
}

impl Stdin {
    /// The declared length.
    pub(crate) fn declared(&self) -> Option<u64> {
        self.0.declared
    }

    /// Whether no more bytes follow.
    pub(crate) fn is_empty(&self) -> bool {
        let is_over = self.0.state.get() == State::Ended || self.0.declared == Some(0);
        is_over && self.0.bytes.get() == 0
    }

    /// Returns the next bytes, or `None` at the end. `Err`: the body is incomplete.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, ()>>> {
        let inner = &*self.0;
        if let Some(bytes) = inner.waiting.borrow_mut().pop_front() {
            inner.bytes.set(inner.bytes.get() - bytes.len());
            if let Some(waker) = inner.writer.borrow_mut().take() {
                waker.wake();
            }
            return Poll::Ready(Some(Ok(bytes)));
        }
        match inner.state.get() {
            State::Ended => Poll::Ready(None),
            _ if inner.declared == Some(0) => Poll::Ready(None),
            State::Broken | State::Unwanted => Poll::Ready(Some(Err(()))),
            State::Open => {
                remember(&mut inner.reader.borrow_mut(), cx);
                Poll::Pending
            }
        }
    }
}

impl Drop for Stdin {
    fn drop(&mut self) {
        let inner = &*self.0;
        if inner.state.get() == State::Open {
            inner.state.set(State::Unwanted);
        }
        inner.waiting.borrow_mut().clear();
        inner.bytes.set(0);
        if let Some(waker) = inner.writer.borrow_mut().take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(stdin: &mut Stdin) -> Poll<Option<Result<Bytes, ()>>> {
        stdin.poll(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn bytes_arrive_in_order_and_end_at_declared_length() {
        let (pipe, mut stdin) = pipe(Some(3));
        assert_eq!(poll(&mut stdin), Poll::Pending);
        pipe.put(Bytes::from("ab"));
        pipe.put(Bytes::from("cd"));
        pipe.end();
        drop(pipe);
        assert_eq!(poll(&mut stdin), Poll::Ready(Some(Ok(Bytes::from("ab")))));
        assert_eq!(poll(&mut stdin), Poll::Ready(Some(Ok(Bytes::from("c")))));
        assert_eq!(poll(&mut stdin), Poll::Ready(None));
        assert!(stdin.is_empty());
    }

    #[test]
    fn short_or_aborted_body_is_an_error() {
        for ends in [true, false] {
            let (pipe, mut stdin) = pipe(if ends { Some(3) } else { None });
            pipe.put(Bytes::from("ab"));
            if ends {
                pipe.end();
            }
            drop(pipe);
            assert_eq!(poll(&mut stdin), Poll::Ready(Some(Ok(Bytes::from("ab")))));
            assert_eq!(poll(&mut stdin), Poll::Ready(Some(Err(()))));
        }
    }

    #[test]
    fn full_pipe_pauses_reading_until_consumed_or_dropped() {
        let cx = Context::from_waker(Waker::noop());
        let (pipe, mut stdin) = pipe(None);
        assert!(pipe.has_room(&cx));
        pipe.put(vec![0; WAITING_BYTES_MAX].into());
        assert!(!pipe.has_room(&cx));
        assert!(poll(&mut stdin).is_ready());
        assert!(pipe.has_room(&cx));
        pipe.put(vec![0; WAITING_BYTES_MAX].into());
        drop(stdin);
        assert!(pipe.has_room(&cx), "unwanted bytes are read and discarded");
    }
}
