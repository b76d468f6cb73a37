//! parse: what goes on at the same time over one HTTP/2 connection.
//!
//! Each request has a task. hyper asks for the next bytes of an answer when the client has room for them: meanwhile the
//! task takes what the worker gives ([`Relay::absorb`]), and the sweep sees who takes nothing for too long.

use crate::exchange::relay::Relay;
use crate::runtime::clock::is_over;
use crate::runtime::waker::remember;
use samovar_config::Timeouts;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// How long a client has to leave when it is told to.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);
/// And to take the last bytes of its answers.
const TAKE: Duration = Duration::from_secs(5);

/// The streams of one connection, and its own deadlines.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: RefCell<Vec<Rc<Stream>>>,
    /// Whose task is running now.
    current: RefCell<Option<Rc<Stream>>>,
    /// Since when a head is on its way in; 0: none is.
    pub(super) head_since_ms: Cell<u64>,
    /// Since when no new requests are taken; 0: they are.
    pub(super) closing_since_ms: Cell<u64>,
    /// Requests that have had an answer since somebody asked.
    answered: Cell<u64>,
}

/// One request and its answer.
#[derive(Debug, Default)]
pub(super) struct Stream {
    index: Cell<usize>,
    relay: RefCell<Option<Rc<Relay>>>,
    /// Since when the client has had no room for the next bytes; 0: it has.
    waits_since_ms: Cell<u64>,
    is_cut: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Streams {
    /// Another one.
    pub(super) fn open(&self) -> Rc<Stream> {
        let stream = Rc::new(Stream::default());
        let mut open = self.open.borrow_mut();
        stream.index.set(open.len());
        open.push(Rc::clone(&stream));
        stream
    }

    /// It has ended.
    pub(super) fn close(&self, stream: &Stream) {
        let mut open = self.open.borrow_mut();
        let index = stream.index.get();
        open.swap_remove(index);
        if let Some(moved) = open.get(index) {
            moved.index.set(index);
        }
    }

    /// A request has its answer, or the beginning of it.
    pub(super) fn answered(&self) {
        self.answered.set(self.answered.get() + 1);
    }

    /// How many have had theirs since the last call.
    pub(super) fn take_answered(&self) -> u64 {
        self.answered.take()
    }

    /// Whose task is running now, if HTTP/2 is spoken.
    pub(super) fn current(&self) -> Option<Rc<Stream>> {
        self.current.borrow().clone()
    }

    /// Runs `act` as a part of the stream's task.
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

    /// Whether nothing goes on that [`Self::sweep`] might end.
    pub(super) fn are_quiet(&self) -> bool {
        self.open.borrow().is_empty()
            && self.head_since_ms.get() == 0
            && self.closing_since_ms.get() == 0
    }

    /// Ends streams whose clients take nothing; true: the connection is to be cut.
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
        // A client that never takes the end of an answer, or does not leave, would keep the connection for ever.
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

    /// Takes from the worker what the client has no room for.
    pub(super) fn absorb(&self, cx: &mut Context<'_>) {
        let relay = self.relay.borrow().clone();
        if let Some(relay) = relay {
            relay.absorb(cx);
        }
    }

    /// The client has got bytes, and is to take them before it gets more.
    pub(super) fn waits(&self, now_ms: u64) {
        self.waits_since_ms.set(now_ms.max(1));
    }

    /// It has taken them.
    pub(super) fn goes_on(&self) {
        self.waits_since_ms.set(0);
    }

    /// Whether it is to end at once.
    pub(super) fn is_cut(&self, cx: &Context<'_>) -> bool {
        remember(&mut self.waker.borrow_mut(), cx);
        self.is_cut.get()
    }

    fn cut(&self) {
        self.is_cut.set(true);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}
