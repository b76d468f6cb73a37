//! parse → submit: a request's body between the connection's task, which reads it, and whoever wants it.

use crate::runtime::waker::remember;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes that wait for whoever wants them; no more are read meanwhile.
const WAITING_BYTES_MAX: usize = 128 * 1024;

/// The connection's end.
#[derive(Debug)]
pub(super) struct Pipe(Rc<Inner>);

/// The other end: the body as it is read.
#[derive(Debug)]
pub(crate) struct Stdin(Rc<Inner>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    Broken,
    /// Nobody reads it.
    Unwanted,
}

#[derive(Debug)]
struct Inner {
    waiting: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    /// What is still to come of the declared length.
    left: Cell<Option<u64>>,
    declared: Option<u64>,
    state: Cell<State>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

/// Both ends of a body of this length; `None`: it is not known.
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
    /// Whether more may be read. If not, `cx` is woken when it may.
    pub(super) fn has_room(&self, cx: &Context<'_>) -> bool {
        let inner = &*self.0;
        if inner.state.get() == State::Unwanted || inner.bytes.get() < WAITING_BYTES_MAX {
            return true;
        }
        remember(&mut inner.writer.borrow_mut(), cx);
        false
    }

    /// The next bytes. Those behind the declared length are dropped, as php-fpm does.
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

    /// All has come.
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
    /// The length that was declared.
    pub(crate) fn declared(&self) -> Option<u64> {
        self.0.declared
    }

    /// Whether nothing is to come.
    pub(crate) fn is_empty(&self) -> bool {
        let is_over = self.0.state.get() == State::Ended || self.0.declared == Some(0);
        is_over && self.0.bytes.get() == 0
    }

    /// The next bytes; `None` at the end. Err: it has not come whole.
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
    fn bytes_come_in_their_order_and_to_an_end() {
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
    fn a_short_body_is_broken_and_so_is_one_that_breaks_off() {
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
    fn what_nobody_takes_is_not_read() {
        let cx = Context::from_waker(Waker::noop());
        let (pipe, mut stdin) = pipe(None);
        assert!(pipe.has_room(&cx));
        pipe.put(vec![0; WAITING_BYTES_MAX].into());
        assert!(!pipe.has_room(&cx));
        assert!(poll(&mut stdin).is_ready());
        assert!(pipe.has_room(&cx));
        pipe.put(vec![0; WAITING_BYTES_MAX].into());
        drop(stdin);
        assert!(pipe.has_room(&cx), "nobody wants it: it is read and forgotten");
    }
}
