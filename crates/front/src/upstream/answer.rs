//! deliver: what a request's own task and the task that talks to php-fpm know of each other.

use crate::exchange::BodyFailure;
use crate::runtime::trouble::Trouble;
use crate::runtime::waker::remember;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The head of an answer, as lines.
#[derive(Debug)]
pub(crate) struct Head(pub(crate) Bytes);

/// Why there is no answer, or no whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is php-fpm's fault.
    Trouble(Trouble),
    /// It closed a connection that was kept before it gave a byte: it may not have seen the request.
    Stale,
    /// The client did not send what it had promised.
    Body(BodyFailure),
}

/// The answer on its way; who drops it wants no more of it.
#[derive(Debug)]
pub(crate) struct Answering(Rc<Inner>);

/// The other end.
#[derive(Debug)]
pub(super) struct Filling(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    head: RefCell<Option<Head>>,
    has_head: Cell<bool>,
    waiting: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    /// No more is read meanwhile.
    bytes_max: usize,
    end: Cell<Option<Result<(), Broken>>>,
    is_unwanted: Cell<bool>,
    /// The client has all it was promised: what else comes is forgotten.
    is_let_go: Cell<bool>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

/// Both ends of an answer of which so many bytes may wait for the client.
pub(super) fn pair(bytes_max: usize) -> (Answering, Filling) {
    let inner = Rc::new(Inner {
        head: RefCell::default(),
        has_head: Cell::new(false),
        waiting: RefCell::default(),
        bytes: Cell::new(0),
        bytes_max,
        end: Cell::new(None),
        is_unwanted: Cell::new(false),
        is_let_go: Cell::new(false),
        reader: RefCell::default(),
        writer: RefCell::default(),
    });
    (Answering(Rc::clone(&inner)), Filling(inner))
}

fn wake(waker: &RefCell<Option<Waker>>) {
    if let Some(waker) = waker.borrow_mut().take() {
        waker.wake();
    }
}

impl Answering {
    /// The answer's head, once.
    pub(crate) fn poll_head(&self, cx: &Context<'_>) -> Poll<Result<Head, Broken>> {
        if let Some(head) = self.0.head.borrow_mut().take() {
            return Poll::Ready(Ok(head));
        }
        match self.0.end.get() {
            Some(Err(broken)) => Poll::Ready(Err(broken)),
            Some(Ok(())) => Poll::Ready(Err(Broken::Trouble(Trouble::Closed))),
            None => {
                remember(&mut self.0.reader.borrow_mut(), cx);
                Poll::Pending
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) fn poll_piece(&self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let inner = &*self.0;
        if let Some(bytes) = inner.waiting.borrow_mut().pop_front() {
            inner.bytes.set(inner.bytes.get() - bytes.len());
            wake(&inner.writer);
            return Poll::Ready(Ok(Some(bytes)));
        }
        if let Some(end) = inner.end.get() {
            return Poll::Ready(end.map(|()| None));
        }
        remember(&mut inner.reader.borrow_mut(), cx);
        Poll::Pending
    }
}

impl Answering {
    /// The client has all it was promised; the script may run on.
    pub(crate) fn let_go(&self) {
        self.0.is_let_go.set(true);
        self.0.waiting.borrow_mut().clear();
        self.0.bytes.set(0);
        wake(&self.0.writer);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.is_unwanted.set(!self.0.is_let_go.get());
        wake(&self.0.writer);
    }
}

impl Filling {
    pub(super) fn head(&self, head: Bytes) {
        *self.0.head.borrow_mut() = Some(Head(head));
        self.0.has_head.set(true);
        wake(&self.0.reader);
    }

    pub(super) fn put(&self, bytes: Bytes) {
        if !bytes.is_empty() && !self.0.is_let_go.get() {
            self.0.bytes.set(self.0.bytes.get() + bytes.len());
            self.0.waiting.borrow_mut().push_back(bytes);
            wake(&self.0.reader);
        }
    }

    pub(super) fn end(&self, end: Result<(), Broken>) {
        self.0.end.set(Some(end));
        wake(&self.0.reader);
    }

    pub(super) fn has_room(&self) -> bool {
        self.0.bytes.get() < self.0.bytes_max
    }

    pub(super) fn is_unwanted(&self) -> bool {
        self.0.is_unwanted.get()
    }

    /// Whether the answer has begun.
    pub(super) fn has_head(&self) -> bool {
        self.0.has_head.get()
    }

    pub(super) fn is_let_go(&self) -> bool {
        self.0.is_let_go.get()
    }

    /// Wakes `cx` when there may be room, or nobody wants any more.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        remember(&mut self.0.writer.borrow_mut(), cx);
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // A task that panics, or that the runtime ends.
        if self.0.end.get().is_none() {
            self.end(Err(Broken::Trouble(Trouble::Closed)));
        }
    }
}
