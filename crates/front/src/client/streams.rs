//! parse: the concurrent streams of one HTTP/2 connection.
//!
//! Each request has a task. hyper requests the next bytes of a response when the client has room
//! for them. Meanwhile the task receives bytes from the worker ([`Relay::absorb`]), and the sweep
//! detects clients that take nothing for too long.

use crate::exchange::relay::Relay;
use crate::runtime::clock::is_over;
use crate::runtime::waker::remember;
use samovar_config::Timeouts;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// Time limit for a client to leave after it was notified of the close.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);
/// Time limit for a client to take the last bytes of its responses.
const TAKE: Duration = Duration::from_secs(5);

/// The streams of one connection, and its own deadlines.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: RefCell<Vec<Rc<Stream>>>,
    /// The stream whose task is running.
    current: RefCell<Option<Rc<Stream>>>,
    /// Time since which a head has been arriving. Zero: none is.
    pub(super) head_since_ms: Cell<u64>,
    /// Time since which no new requests are accepted. Zero: they are.
    pub(super) closing_since_ms: Cell<u64>,
    /// Number of requests answered since the last [`Self::take_responded`].
    responded: Cell<u64>,
}

/// One request and its response.
#[derive(Debug, Default)]
pub(super) struct Stream {
    index: Cell<usize>,
    relay: RefCell<Option<Rc<Relay>>>,
    /// Time since which the client has had no room for the next bytes. Zero: it has.
    waits_since_ms: Cell<u64>,
    is_cut: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Streams {
    /// Opens a stream.
    pub(super) fn open(&self) -> Rc<Stream> {
        let stream = Rc::new(Stream::default());
        let mut open = self.open.borrow_mut();
        stream.index.set(open.len());
        open.push(Rc::clone(&stream));
        stream
    }

    /// Removes a stream that has ended.
    pub(super) fn close(&self, stream: &Stream) {
        let mut open = self.open.borrow_mut();
        let index = stream.index.get();
        open.swap_remove(index);
        if let Some(moved) = open.get(index) {
            moved.index.set(index);
        }
    }

    /// Counts a request whose response, or its start, is ready.
    pub(super) fn responded(&self) {
        self.responded.set(self.responded.get() + 1);
    }

    /// Number of requests answered since the last call.
    pub(super) fn take_responded(&self) -> u64 {
        self.responded.take()
    }

    /// The stream whose task is running, if the connection uses HTTP/2.
    pub(super) fn current(&self) -> Option<Rc<Stream>> {
        self.current.borrow().clone()
    }

    /// Runs `act` as part of the stream's task.
    pub(super) fn within<T>(&self, stream: &Rc<Stream>, act: impl FnOnce() -> T) -> T {
        struct Leave<'a>(&'a Streams);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.current.take();
            }
        }
        self.current.replace(Some(Rc::clone(stream)));
        let _leave = Leave(self);
        act()
    }

    /// Whether there is nothing that [`Self::sweep`] might end.
    pub(super) fn are_quiet(&self) -> bool {
        self.open.borrow().is_empty()
            && self.head_since_ms.get() == 0
            && self.closing_since_ms.get() == 0
    }

    /// Whether the client has taken no bytes of any of its responses for `age_ms`.
    pub(super) fn are_stalled(&self, age_ms: u64, now_ms: u64) -> bool {
        let open = self.open.borrow();
        let is_stalled = |stream: &Rc<Stream>| {
            let since_ms = stream.waits_since_ms.get();
            since_ms != 0 && now_ms.saturating_sub(since_ms) >= age_ms
        };
        !open.is_empty() && open.iter().all(is_stalled)
    }

    /// Ends streams whose clients take nothing. Returns true if the connection must be cut.
    pub(super) fn sweep(
        &self,
        timeouts: &Timeouts,
        now_ms: u64,
        idle_since_ms: Option<u64>,
    ) -> bool {
        for stream in self.open.borrow().iter() {
            let since_ms = stream.waits_since_ms.get();
            if since_ms != 0 && is_over(timeouts.write, since_ms, now_ms) {
                stream.cut();
            }
        }
        let head_ms = self.head_since_ms.get();
        // A client that never takes the end of a response, or does not leave, would keep the
        // connection forever.
        let closing_ms = self.closing_since_ms.get();
        let is_over_since = |span, since_ms| is_over(span, since_ms, now_ms);
        (head_ms != 0 && is_over_since(timeouts.header, head_ms))
            || (closing_ms != 0
                && is_over_since(GOODBYE, closing_ms)
                && idle_since_ms.is_some_and(|since_ms| is_over_since(TAKE, since_ms)))
    }
}

impl Stream {
    pub(super) fn begin_relay(&self, relay: &Rc<Relay>) {
        self.relay.replace(Some(Rc::clone(relay)));
    }

    pub(super) fn end_relay(&self) {
        self.relay.take();
    }

    /// Receives bytes from the worker that the client has no room for.
    pub(super) fn absorb(&self, cx: &mut Context<'_>) {
        let relay = self.relay.borrow().clone();
        if let Some(relay) = relay {
            relay.absorb(cx);
        }
    }

    /// The client got bytes, and must take them before it gets more.
    pub(super) fn waits(&self, now_ms: u64) {
        self.waits_since_ms.set(now_ms.max(1));
    }

    /// The client has taken them.
    pub(super) fn goes_on(&self) {
        self.waits_since_ms.set(0);
    }

    /// Whether the stream must end immediately.
    pub(super) fn is_cut(&self, cx: &Context<'_>) -> bool {
        remember(&mut self.waker.borrow_mut(), cx);
        self.is_cut.get()
    }

    pub(super) fn cut(&self) {
        self.is_cut.set(true);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}
