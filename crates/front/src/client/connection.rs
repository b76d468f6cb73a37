//! parse: what the front knows of one client connection, and the deadlines that hyper does not keep.
//!
//! A connection is Idle, reads a Head (or shakes hands), or is Busy with a request; with HTTP/2 it is Busy while any of
//! its streams is, and `streams` knows more. One sweep for all connections compares the phase's
//! age with its time-out and tells the connection's task how to close; so a request arms no timer.

use super::ends::Ends;
use super::screen::{Framing, Note, Screen};
use super::streams::{GOODBYE, Streams};
use crate::exchange::relay::Relay;
use crate::runtime::clock::is_over;
use crate::shared::Shared;
use http::Request;
use hyper::body::{Body, Incoming};
use samovar_config::{Role, Timeouts};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// Most bytes of interim answers that wait for the client to take them.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Head,
    Busy,
}

/// How a connection's task is told to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// As soon as it is idle; the next answer says `Connection: close`.
    WhenIdle,
    /// At once, with the answer 408.
    SlowHead,
    /// At once, without a word.
    Cut,
}

/// What front and connection know of each other.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) shared: Rc<Shared>,
    /// What its listener is for.
    pub(crate) role: Role,
    /// Known once the first request is.
    ends: OnceCell<Ends>,
    pub(super) index: Cell<usize>,
    pub(super) phase: Cell<Phase>,
    phase_since_ms: Cell<u64>,
    /// 0 while the client takes what it is given.
    pub(super) write_blocked_since_ms: Cell<u64>,
    pub(super) close: Cell<Option<Close>>,
    pub(super) lingers: Cell<bool>,
    /// The next read that finds nothing says whether the kernel has something that the runtime does not know of yet.
    pub(super) asks_kernel: Cell<bool>,
    pub(super) has_unread: Cell<bool>,
    /// It was told that the server ends while it was busy.
    knows_end: Cell<bool>,
    /// What passes to hyper, and what the heads have said besides.
    pub(super) screen: RefCell<Screen>,
    /// Goes out before hyper's next bytes: interim answers.
    pub(super) ahead: RefCell<Vec<u8>>,
    /// The answer that is on its way, if it is a long one.
    relay: RefCell<Option<Rc<Relay>>>,
    /// Requests that are being answered: one at most, but for HTTP/2.
    active: Cell<u32>,
    /// How long it may be idle, if that is not as long as HTTP's may.
    pub(super) idle_timeout: Cell<Option<Duration>>,
    /// What goes on at the same time, if HTTP/2 is spoken.
    pub(super) streams: Streams,
    pub(super) waker: RefCell<Option<Waker>>,
}

impl ConnectionState {
    pub(super) fn new(shared: &Rc<Shared>, role: Role) -> ConnectionState {
        let setup = shared.setup();
        let head_bytes_max = setup.settings.limits.head_bytes_max as usize;
        ConnectionState {
            shared: Rc::clone(shared),
            role,
            ends: OnceCell::new(),
            index: Cell::new(0),
            phase: Cell::new(Phase::Idle),
            phase_since_ms: Cell::new(shared.clock.now_ms()),
            write_blocked_since_ms: Cell::new(0),
            close: Cell::new(None),
            lingers: Cell::new(false),
            asks_kernel: Cell::new(false),
            has_unread: Cell::new(false),
            knows_end: Cell::default(),
            screen: RefCell::new(Screen::new(head_bytes_max, setup.settings.http2)),
            ahead: RefCell::default(),
            relay: RefCell::default(),
            active: Cell::new(0),
            idle_timeout: Cell::new(None),
            streams: Streams::default(),
            waker: RefCell::default(),
        }
    }

    /// Who is at its two ends; nobody, before they are known.
    pub(crate) fn ends(&self) -> &Ends {
        self.ends.get_or_init(Ends::default)
    }

    /// They are known.
    pub(super) fn meet(&self, ends: Ends) {
        let _ = self.ends.set(ends);
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.phase_since_ms.set(self.shared.clock.now_ms());
    }

    /// hyper has parsed a head, and reads no further before this was called. What else it said.
    pub(super) fn note(&self, request: &Request<Incoming>) -> Note {
        let framing = match request.body().size_hint().exact() {
            Some(bytes) => Framing::Length(bytes),
            None => Framing::Chunks(self.shared.setup().body_bytes_max),
        };
        self.screen.borrow_mut().parsed(framing)
    }

    /// Whether the body was broken off because a chunk of it is too large.
    pub(crate) fn is_body_too_large(&self) -> bool {
        self.screen.borrow().is_too_large()
    }

    /// A head was parsed. The connection is busy until what this returns is dropped: when the answer is handed over to
    /// hyper, or will never be.
    pub(crate) fn begin_request(self: &Rc<Self>) -> Busy {
        self.active.set(self.active.get() + 1);
        self.enter(Phase::Busy);
        Busy(Rc::clone(self))
    }

    /// The answer goes out although the client is still sending: keep reading for a moment after it.
    pub(crate) fn linger(&self) {
        self.lingers.set(true);
    }

    /// The socket has been given bytes, and has no room for them or has taken some.
    pub(super) fn wrote(&self, is_blocked: bool) {
        let blocked = &self.write_blocked_since_ms;
        if !is_blocked {
            blocked.set(0);
        } else if blocked.get() == 0 {
            blocked.set(self.shared.clock.now_ms().max(1));
        }
    }

    /// Sends bytes between two of hyper's messages. Call it while hyper waits for an answer: it flushes after that.
    pub(crate) fn send_ahead(&self, bytes: &[u8]) {
        let mut ahead = self.ahead.borrow_mut();
        // A client that takes nothing does without.
        if ahead.len() + bytes.len() <= AHEAD_BYTES_MAX {
            ahead.extend_from_slice(bytes);
        }
    }

    /// A long answer goes out.
    pub(crate) fn begin_relay(&self, relay: &Rc<Relay>) {
        if let Some(stream) = self.streams.current() {
            return stream.begin_relay(relay);
        }
        self.relay.replace(Some(Rc::clone(relay)));
    }

    /// The long answer has ended.
    pub(crate) fn end_relay(&self, relay: &Rc<Relay>) {
        if let Some(stream) = self.streams.current() {
            stream.end_relay();
        }
        let mut current = self.relay.borrow_mut();
        if current.as_ref().is_some_and(|current| Rc::ptr_eq(current, relay)) {
            *current = None;
        }
    }

    /// hyper waits for the socket, and asks for no bytes of the answer meanwhile: they are taken from the worker all the
    /// same.
    pub(super) fn absorb_while_blocked(&self, cx: &mut Context<'_>) {
        if self.write_blocked_since_ms.get() == 0 {
            return;
        }
        let relay = self.relay.borrow().clone();
        if let Some(relay) = relay {
            relay.absorb(cx);
        }
    }

    /// Asks the connection to end when it can: a request that has begun to arrive is answered first.
    pub(crate) fn finish(&self) {
        self.order(Close::WhenIdle);
    }

    /// Has the connection end at once, whatever it does.
    pub(crate) fn cut(&self) {
        self.order(Close::Cut);
    }

    /// Since when the connection is in its phase, by the front's clock.
    pub(crate) fn phase_since_ms(&self) -> u64 {
        self.phase_since_ms.get()
    }

    /// Whether the connection has been idle for at least `age_ms`.
    pub(crate) fn is_idle_for(&self, age_ms: u64, now_ms: u64) -> bool {
        self.phase.get() == Phase::Idle
            && now_ms.saturating_sub(self.phase_since_ms.get()) >= age_ms
    }

    /// The server ends: whoever has not asked for `age_ms` is let go, or never will have (a handshake, a PROXY header).
    pub(crate) fn leave(&self, age_ms: u64, now_ms: u64) {
        let is_old = now_ms.saturating_sub(self.phase_since_ms.get()) >= age_ms;
        if is_old && self.ends.get().is_none() {
            self.order(Close::Cut);
        } else if self.is_idle_for(age_ms, now_ms)
            // What it was told in its handshake is forgotten; HTTP/2 has no other way to say it.
            || self.phase.get() == Phase::Busy && !self.knows_end.replace(true)
        {
            self.order(Close::WhenIdle);
        }
    }

    /// Whether its client may be about to send its next request.
    pub(crate) fn is_between_requests(&self, age_ms: u64, now_ms: u64) -> bool {
        self.phase.get() == Phase::Idle && !self.is_idle_for(age_ms, now_ms)
    }

    /// A request is on its way in: what hyper counts as idle yet.
    pub(super) fn is_arriving(&self) -> bool {
        self.has_unread.take() || self.phase.get() == Phase::Head
    }

    /// Ends the connection if what it does has taken longer than its time-out. Returns until when nothing of it can take too
    /// long, whatever it begins meanwhile.
    pub(super) fn sweep(&self, timeouts: &Timeouts, now_ms: u64) -> u64 {
        let idle = self.idle_timeout.get().unwrap_or(timeouts.idle);
        // What has not begun yet lasts as long as its time-out.
        let mut next = Deadlines::after(now_ms, &[idle, timeouts.header, timeouts.write, GOODBYE]);
        let since_ms = self.phase_since_ms.get();
        let blocked_ms = self.write_blocked_since_ms.get();
        if blocked_ms != 0 {
            if next.is_over(timeouts.write, blocked_ms) {
                self.order(Close::Cut);
            }
            return next.first_ms;
        }
        let idle_since_ms = (self.phase.get() == Phase::Idle).then_some(since_ms);
        if self.streams.sweep(timeouts, now_ms, idle_since_ms) {
            self.order(Close::Cut);
            return now_ms;
        }
        match self.phase.get() {
            Phase::Head if next.is_over(timeouts.header, since_ms) => self.order(Close::SlowHead),
            // What has just arrived is answered: the client could not know.
            Phase::Idle if next.is_over(idle, since_ms) => self.order(Close::WhenIdle),
            _ => {}
        }
        if self.streams.are_quiet() { next.first_ms } else { now_ms }
    }

    fn order(&self, close: Close) {
        self.close.set(Some(close));
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// What is waited for, and which of it ends first.
struct Deadlines {
    now_ms: u64,
    first_ms: u64,
}

impl Deadlines {
    /// Nothing has begun, and what begins now ends after one of these time-outs; zero: never.
    fn after(now_ms: u64, timeouts: &[Duration]) -> Deadlines {
        let mut all = Deadlines { now_ms, first_ms: u64::MAX };
        for timeout in timeouts {
            all.is_over(*timeout, now_ms);
        }
        all
    }

    /// Whether what began at `since_ms` has had its time.
    fn is_over(&mut self, timeout: Duration, since_ms: u64) -> bool {
        if !timeout.is_zero() {
            self.first_ms = self.first_ms.min(since_ms.saturating_add(timeout.as_millis() as u64));
        }
        is_over(timeout, since_ms, self.now_ms)
    }
}

/// Held while a request of the connection is answered.
#[derive(Debug)]
pub(crate) struct Busy(Rc<ConnectionState>);

impl Drop for Busy {
    fn drop(&mut self) {
        let left = self.0.active.get() - 1;
        self.0.active.set(left);
        if left == 0 {
            self.0.enter(Phase::Idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_in_time_for_what_begins_meanwhile() {
        let [none, second, minute] = [0, 1, 60].map(Duration::from_secs);
        let mut quiet = Deadlines::after(5_000, &[none, minute, second]);
        assert_eq!(quiet.first_ms, 6_000);
        assert!(!quiet.is_over(minute, 4_000));
        assert_eq!(quiet.first_ms, 6_000);
        assert!(!quiet.is_over(second, 4_500));
        assert_eq!(quiet.first_ms, 5_500);
        assert!(quiet.is_over(second, 4_000));
        assert_eq!(Deadlines::after(5_000, &[none]).first_ms, u64::MAX);
        assert!(!Deadlines::after(5_000, &[none]).is_over(none, 0));
    }
}
