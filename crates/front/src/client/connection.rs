//! parse: the state of a client connection, and the deadlines that hyper does not enforce.
//!
//! A connection is Idle, reads a Head (or performs a handshake), or is Busy with a request. An
//! HTTP/2 connection is Busy while any of its streams is; `streams` has the details. One sweep over
//! all connections compares the age of each phase with its timeout, and orders the connection's
//! task to close. Therefore a request needs no timer.

use super::head_filter::{Framing, Note, Screen};
use super::peer_info::Ends;
use super::streams::{GOODBYE, Streams};
use crate::exchange::budget::Cutter;
use crate::exchange::relay::Relay;
use crate::runtime::clock::is_over;
use crate::runtime::presence::ClientPresence;
use crate::shared::Shared;
use http::Request;
use hyper::body::{Body, Incoming};
use samovar_config::{Role, Timeouts};
use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// Maximum number of bytes of interim responses that wait for the client.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Head,
    Busy,
}

/// Time after which a client that takes no bytes counts as stalled.
const STALL_MS: u64 = 1_000;

/// Reason why a connection waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stall {
    /// A head, a handshake or a PROXY header is incomplete. Usual clients send these at once.
    Head,
    /// The rest of a body is missing, or the client takes no bytes.
    Client,
}

/// Order to a connection's task to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// As soon as it is idle. The next response contains `Connection: close`.
    WhenIdle,
    /// Immediately, with a 408 response.
    SlowHead,
    /// Immediately, without a response.
    Cut,
}

/// State shared by the front and a connection's task.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) shared: Rc<Shared>,
    /// Purpose of its listener.
    pub(crate) role: Role,
    /// Known by the time of the first request.
    ends: OnceCell<Ends>,
    pub(super) index: Cell<usize>,
    /// The client to which an unfinished request is attributed. `None`: it is a trusted proxy, has
    /// no address, or has not been named yet.
    pub(super) client: Cell<Option<IpAddr>>,
    /// Number of requests whose body is still being received.
    receiving: Cell<u32>,
    pub(super) phase: Cell<Phase>,
    phase_since_ms: Cell<u64>,
    /// Zero while the client takes the bytes it is sent.
    pub(super) write_blocked_since_ms: Cell<u64>,
    pub(super) close: Cell<Option<Close>>,
    pub(super) lingers: Cell<bool>,
    /// Makes the next read that finds nothing check whether the kernel has bytes that the runtime
    /// does not know of yet.
    pub(super) asks_kernel: Cell<bool>,
    pub(super) has_unread: Cell<bool>,
    /// It was notified of the server's shutdown while it was busy.
    knows_end: Cell<bool>,
    /// Filters the bytes for hyper, and keeps details of the heads.
    pub(super) screen: RefCell<Screen>,
    /// Interim responses, sent before hyper's next bytes.
    pub(super) ahead: RefCell<Vec<u8>>,
    /// The response that is being sent, if it is a long one.
    relay: RefCell<Option<Rc<Relay>>>,
    /// Number of requests being processed. At most one, except with HTTP/2.
    active: Cell<u32>,
    /// Idle timeout, if it differs from that of HTTP.
    pub(super) idle_timeout: Cell<Option<Duration>>,
    /// Concurrent streams of an HTTP/2 connection.
    pub(super) streams: Streams,
    pub(super) waker: RefCell<Option<Waker>>,
    /// Status with which hyper refused the last head. Its response was not sent.
    pub(super) refusal: Cell<Option<u16>>,
    /// Shared with scripts that run on after their response. Most connections have none.
    presence: OnceCell<ClientPresence>,
    /// The server has ordered the end of the connection.
    is_ordered: Cell<bool>,
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
            client: Cell::new(None),
            receiving: Cell::new(0),
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
            refusal: Cell::new(None),
            presence: OnceCell::new(),
            is_ordered: Cell::default(),
        }
    }

    /// Shows whether the client has left.
    pub(crate) fn presence(&self) -> &ClientPresence {
        self.presence.get_or_init(ClientPresence::default)
    }

    /// Called when the connection has ended. After an order of the server it is not known whether
    /// the client wanted to leave.
    pub(super) fn ended(&self) {
        if let Some(presence) = self.presence.get().filter(|_| !self.is_ordered.get()) {
            presence.leave();
        }
    }

    /// The connection's ends. Empty until they are known.
    pub(crate) fn ends(&self) -> &Ends {
        self.ends.get_or_init(Ends::default)
    }

    /// Sets the connection's ends.
    pub(super) fn meet(&self, ends: Ends) {
        let _ = self.ends.set(ends);
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.phase_since_ms.set(self.shared.clock.now_ms());
    }

    /// Called when hyper has parsed a head; it reads no further before this call. Returns details
    /// of the head that hyper does not pass on.
    pub(super) fn note(&self, request: &Request<Incoming>) -> Note {
        let framing = match request.body().size_hint().exact() {
            Some(bytes) => Framing::Length(bytes),
            None => Framing::Chunks(self.shared.setup().body_bytes_max),
        };
        self.screen.borrow_mut().parsed(framing)
    }

    /// Whether a request is being processed, or its response is not with hyper yet.
    pub(super) fn is_busy(&self) -> bool {
        self.active.get() > 0
    }

    /// Whether the body was aborted because a chunk of it is too large.
    pub(crate) fn is_body_too_large(&self) -> bool {
        self.screen.borrow().is_too_large()
    }

    /// Marks the start of a request, after its head was parsed. The connection is busy until the
    /// result is dropped: when the response has been handed to hyper, or when there will be none.
    pub(crate) fn begin_request(self: &Rc<Self>) -> Busy {
        self.active.set(self.active.get() + 1);
        self.enter(Phase::Busy);
        Busy(Rc::clone(self))
    }

    /// Marks a request whose body is received before anything else happens, until the result is
    /// dropped.
    pub(crate) fn begin_receiving(self: &Rc<Self>) -> Receiving {
        self.receiving.set(self.receiving.get() + 1);
        Receiving(Rc::clone(self))
    }

    /// Called if the response is sent while the client is still sending. The connection then
    /// continues to read for a short time after the response.
    pub(crate) fn linger(&self) {
        self.lingers.set(true);
    }

    /// Records a write to the socket, which either had no room or took some bytes.
    pub(super) fn wrote(&self, is_blocked: bool) {
        let blocked = &self.write_blocked_since_ms;
        if !is_blocked {
            blocked.set(0);
        } else if blocked.get() == 0 {
            blocked.set(self.shared.clock.now_ms().max(1));
        }
    }

    /// Sends bytes between two of hyper's messages. Must be called while hyper waits for a
    /// response, because hyper flushes after that.
    pub(crate) fn send_ahead(&self, bytes: &[u8]) {
        let mut ahead = self.ahead.borrow_mut();
        // A client that takes no bytes does not get interim responses.
        if ahead.len() + bytes.len() <= AHEAD_BYTES_MAX {
            ahead.extend_from_slice(bytes);
        }
    }

    /// Whether the request that is running is one of several streams.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.current().is_some()
    }

    /// Returns a function that ends the request that is running: its stream or, with HTTP/1, its
    /// connection.
    pub(crate) fn cutter(self: &Rc<Self>) -> Cutter {
        if let Some(stream) = self.streams.current() {
            let stream = Rc::downgrade(&stream);
            return Rc::new(move || {
                if let Some(stream) = stream.upgrade() {
                    stream.cut();
                }
            });
        }
        let state = Rc::downgrade(self);
        Rc::new(move || {
            if let Some(state) = state.upgrade() {
                state.cut();
            }
        })
    }

    /// Registers a long response that is being sent.
    pub(crate) fn begin_relay(&self, relay: &Rc<Relay>) {
        if let Some(stream) = self.streams.current() {
            return stream.begin_relay(relay);
        }
        self.relay.replace(Some(Rc::clone(relay)));
    }

    /// Unregisters a long response that has ended.
    pub(crate) fn end_relay(&self, relay: &Rc<Relay>) {
        if let Some(stream) = self.streams.current() {
            stream.end_relay();
        }
        let mut current = self.relay.borrow_mut();
        if current.as_ref().is_some_and(|current| Rc::ptr_eq(current, relay)) {
            *current = None;
        }
    }

    /// Receives bytes from the worker while hyper waits for the socket and does not poll the
    /// response.
    pub(super) fn absorb_while_blocked(&self, cx: &mut Context<'_>) {
        if self.write_blocked_since_ms.get() == 0 {
            return;
        }
        let relay = self.relay.borrow().clone();
        if let Some(relay) = relay {
            relay.absorb(cx);
        }
    }

    /// Orders the connection to end when possible: a request that has begun to arrive is answered
    /// first.
    pub(crate) fn finish(&self) {
        self.order(Close::WhenIdle);
    }

    /// Ends the connection immediately, in any phase.
    pub(crate) fn cut(&self) {
        self.order(Close::Cut);
    }

    /// Start of the current phase, on the front's clock.
    pub(crate) fn phase_since_ms(&self) -> u64 {
        self.phase_since_ms.get()
    }

    /// Whether the connection has been idle for at least `age_ms`.
    pub(crate) fn is_idle_for(&self, age_ms: u64, now_ms: u64) -> bool {
        self.phase.get() == Phase::Idle
            && now_ms.saturating_sub(self.phase_since_ms.get()) >= age_ms
    }

    /// How the connection waits for its client to send or take bytes, if it does nothing else.
    pub(crate) fn stall(&self, now_ms: u64) -> Option<Stall> {
        let blocked_ms = self.write_blocked_since_ms.get();
        if blocked_ms != 0 {
            let is_long = now_ms.saturating_sub(blocked_ms) >= STALL_MS;
            return is_long.then_some(Stall::Client);
        }
        match self.phase.get() {
            Phase::Head => Some(Stall::Head),
            Phase::Idle => (self.streams.head_since_ms.get() != 0).then_some(Stall::Head),
            Phase::Busy => {
                let is_receiving = self.receiving.get() == self.active.get();
                (is_receiving || self.streams.are_stalled(STALL_MS, now_ms))
                    .then_some(Stall::Client)
            }
        }
    }

    /// Called while the server shuts down. Ends a connection that has been idle for `age_ms`, or
    /// that has not completed its handshake or PROXY header in this time. A busy connection is
    /// ordered once to close when idle.
    pub(crate) fn leave(&self, age_ms: u64, now_ms: u64) {
        let is_old = now_ms.saturating_sub(self.phase_since_ms.get()) >= age_ms;
        if is_old && self.ends.get().is_none() {
            self.order(Close::Cut);
        } else if self.is_idle_for(age_ms, now_ms)
            // An order during its handshake was lost. HTTP/2 has no other way to announce the end.
            || self.phase.get() == Phase::Busy && !self.knows_end.replace(true)
        {
            self.order(Close::WhenIdle);
        }
    }

    /// Whether the client may be about to send its next request.
    pub(crate) fn is_between_requests(&self, age_ms: u64, now_ms: u64) -> bool {
        self.phase.get() == Phase::Idle && !self.is_idle_for(age_ms, now_ms)
    }

    /// Whether a request is arriving, although hyper still considers the connection idle.
    pub(super) fn is_arriving(&self) -> bool {
        self.has_unread.take() || self.phase.get() == Phase::Head
    }

    /// Ends the connection if its current activity exceeds a timeout. Returns the time before which
    /// no timeout can expire, including those of activities that begin later.
    pub(super) fn sweep(&self, timeouts: &Timeouts, now_ms: u64) -> u64 {
        let idle = self.idle_timeout.get().unwrap_or(timeouts.idle);
        // An activity that has not begun lasts at least as long as its timeout.
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
            // A request that has just arrived is answered: the client could not know of the
            // timeout.
            Phase::Idle if next.is_over(idle, since_ms) => self.order(Close::WhenIdle),
            _ => {}
        }
        if self.streams.are_quiet() { next.first_ms } else { now_ms }
    }

    fn order(&self, close: Close) {
        self.is_ordered.set(true);
        self.close.set(Some(close));
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// The deadlines of a connection, and the first of them.
struct Deadlines {
    now_ms: u64,
    first_ms: u64,
}

impl Deadlines {
    /// No activity has begun. One that begins now ends after one of these timeouts. Zero: no
    /// timeout.
    fn after(now_ms: u64, timeouts: &[Duration]) -> Deadlines {
        let mut all = Deadlines { now_ms, first_ms: u64::MAX };
        for timeout in timeouts {
            all.is_over(*timeout, now_ms);
        }
        all
    }

    /// Whether an activity that began at `since_ms` has exceeded its timeout.
    fn is_over(&mut self, timeout: Duration, since_ms: u64) -> bool {
        if !timeout.is_zero() {
            self.first_ms = self.first_ms.min(since_ms.saturating_add(timeout.as_millis() as u64));
        }
        is_over(timeout, since_ms, self.now_ms)
    }
}

/// Held while the body of a request is being received.
#[derive(Debug)]
pub(crate) struct Receiving(Rc<ConnectionState>);

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.receiving.set(self.0.receiving.get() - 1);
    }
}

/// Held while a request of the connection is being answered.
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
    fn next_check_is_before_any_deadline() {
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
