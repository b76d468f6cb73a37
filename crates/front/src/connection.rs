//! parse: one client connection. hyper speaks HTTP/1.1; this file keeps the deadlines that hyper does not.
//!
//! A connection is Idle, reads a Head, or is Busy with a request. One sweep for all connections
//! (`front::sweep`) compares the phase's age with its time-out and gives the connection's task an order;
//! so a request arms no timer. Pipelined answers are flushed one by one: hyper's `pipeline_flush` would hold back
//! a finished answer while the next request of the same connection runs.

mod watched;

use crate::deliver::AnswerBody;
use crate::options::{Limits, Timeouts};
use crate::request;
use crate::shared::Shared;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use watched::Watched;

/// How long, and how many bytes, a client may go on sending after its request was refused. Without it
/// the kernel would reset the connection and the client might never see the answer.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of interim answers that wait for the client to take them.
const AHEAD_BYTES_MAX: usize = 64 * 1024;
/// hyper's own lower bound of its buffer.
const BUFFER_BYTES_MIN: usize = 8 * 1024;
/// hyper keeps room for this many headers on the stack, more cost an allocation per request.
const HYPER_HEADERS: usize = 100;

const SLOW_HEAD_ANSWER: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 41\r\n\r\nThe request head did not arrive in time.\n";

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Head,
    Busy,
}

/// What the sweep wants of a connection's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Close when idle; the next answer says `Connection: close`.
    Finish,
    /// 408 and close.
    SlowHead,
    /// Close at once.
    Cut,
}

/// What front and connection know of each other.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) shared: Rc<Shared>,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    /// The peer's address as text, for `REMOTE_ADDR`.
    pub(crate) peer_text: String,
    /// Ours, for `SERVER_ADDR`.
    pub(crate) local_text: String,
    index: Cell<usize>,
    phase: Cell<Phase>,
    phase_since_ms: Cell<u64>,
    /// 0 while the client takes what it is given.
    write_blocked_since_ms: Cell<u64>,
    order: Cell<Option<Order>>,
    lingers: Cell<bool>,
    /// The next read that finds nothing says whether the kernel has something that the runtime does not know of yet.
    asks_kernel: Cell<bool>,
    has_unread: Cell<bool>,
    /// Goes out before hyper's next bytes: interim answers.
    ahead: RefCell<Vec<u8>>,
    waker: RefCell<Option<Waker>>,
}

impl ConnectionState {
    fn new(shared: &Rc<Shared>, peer: SocketAddr, local: SocketAddr) -> ConnectionState {
        let (peer, local) = (canonical(peer), canonical(local));
        ConnectionState {
            shared: Rc::clone(shared),
            peer,
            local,
            peer_text: peer.ip().to_string(),
            local_text: local.ip().to_string(),
            index: Cell::new(0),
            phase: Cell::new(Phase::Idle),
            phase_since_ms: Cell::new(shared.now_ms.get()),
            write_blocked_since_ms: Cell::new(0),
            order: Cell::new(None),
            lingers: Cell::new(false),
            asks_kernel: Cell::new(false),
            has_unread: Cell::new(false),
            ahead: RefCell::default(),
            waker: RefCell::default(),
        }
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.phase_since_ms.set(self.shared.now_ms.get());
    }

    /// A head was parsed.
    pub(crate) fn begin_request(&self) {
        self.enter(Phase::Busy);
    }

    /// The answer is handed over to hyper, or will never be.
    pub(crate) fn end_request(&self) {
        self.enter(Phase::Idle);
    }

    /// The answer goes out although the client is still sending: keep reading for a moment after it.
    pub(crate) fn linger(&self) {
        self.lingers.set(true);
    }

    /// Sends bytes between two of hyper's messages. Call it while hyper waits for an answer: it flushes after that.
    pub(crate) fn send_ahead(&self, bytes: &[u8]) {
        let mut ahead = self.ahead.borrow_mut();
        // A client that takes nothing does without.
        if ahead.len() + bytes.len() <= AHEAD_BYTES_MAX {
            ahead.extend_from_slice(bytes);
        }
    }

    /// Asks the connection to end when it can: a request that has begun to arrive is answered first.
    pub(crate) fn finish(&self) {
        self.give(Order::Finish);
    }

    /// Whether it has been idle for at least `age_ms`.
    pub(crate) fn is_idle_for(&self, age_ms: u64, now_ms: u64) -> bool {
        self.phase.get() == Phase::Idle
            && now_ms.saturating_sub(self.phase_since_ms.get()) >= age_ms
    }

    /// Whether its client may be about to send its next request.
    pub(crate) fn is_between_requests(&self, age_ms: u64, now_ms: u64) -> bool {
        self.phase.get() == Phase::Idle && !self.is_idle_for(age_ms, now_ms)
    }

    /// A request is on its way in: what hyper counts as idle yet.
    fn is_arriving(&self) -> bool {
        self.has_unread.take() || self.phase.get() == Phase::Head
    }

    /// Compares ages with time-outs.
    pub(crate) fn sweep(&self, timeouts: &Timeouts, now_ms: u64) {
        let is_over = |timeout: Duration, since_ms: u64| {
            !timeout.is_zero() && now_ms.saturating_sub(since_ms) >= timeout.as_millis() as u64
        };
        let since_ms = self.phase_since_ms.get();
        let blocked_ms = self.write_blocked_since_ms.get();
        if blocked_ms != 0 {
            if is_over(timeouts.write, blocked_ms) {
                self.give(Order::Cut);
            }
            return;
        }
        match self.phase.get() {
            Phase::Head if is_over(timeouts.header, since_ms) => self.give(Order::SlowHead),
            Phase::Idle if is_over(timeouts.idle, since_ms) => self.give(Order::Cut),
            _ => {}
        }
    }

    fn give(&self, order: Order) {
        self.order.set(Some(order));
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// IPv4 clients of a dual-stack listener are IPv4 clients.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A connection that counts. Unregisters when its task ends, however it ends.
pub(crate) struct Registered(Rc<ConnectionState>);

impl Registered {
    pub(crate) fn new(shared: &Rc<Shared>, stream: &TcpStream, peer: SocketAddr) -> Registered {
        let unknown = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
        let local = stream.local_addr().unwrap_or(unknown);
        let state = Rc::new(ConnectionState::new(shared, peer, local));
        let mut connections = shared.connections.borrow_mut();
        state.index.set(connections.len());
        connections.push(Rc::clone(&state));
        shared.counters.connections.set(connections.len() as u64);
        shared.counters.connections_accepted.add(1);
        if connections.len() == 1 {
            shared.resume_sweeping();
        }
        drop(connections);
        Registered(state)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        let mut connections = shared.connections.borrow_mut();
        let index = self.0.index.get();
        connections.swap_remove(index);
        if let Some(moved) = connections.get(index) {
            moved.index.set(index);
        }
        shared.counters.connections.set(connections.len() as u64);
        shared.room.notify_one();
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(registered: Registered, stream: TcpStream) {
    let state = &registered.0;
    let shared = &state.shared;
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(Watched::new(stream, Rc::clone(state)));
    let for_requests = Rc::clone(state);
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Rc::clone(&for_requests);
        async move {
            let drains = Rc::clone(&state.shared);
            let mut response = request::serve(state, request).await;
            if drains.draining.get() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<Response<AnswerBody>, Infallible>(response)
        }
    });
    let mut connection = Some(http(&shared.setup().options.limits).serve_connection(io, service));
    if shared.draining.get() {
        state.order.set(Some(Order::Finish));
    }
    let ended = poll_fn(|cx| {
        shared.exchanges.borrow_mut().turn_if_due();
        remember(&state.waker, cx);
        match state.order.take() {
            Some(Order::Finish) => {
                let Some(connection) = connection.as_mut() else { return Poll::Ready(Ended::Done) };
                // hyper closes an idle connection whatever lies in the socket.
                state.asks_kernel.set(true);
                let ended = Pin::new(&mut *connection).poll(cx);
                state.asks_kernel.set(false);
                if let Poll::Ready(ended) = ended {
                    return Poll::Ready(ended.map_or_else(Ended::Error, |()| Ended::Done));
                }
                if state.is_arriving() {
                    // What arrives wakes this task again.
                    state.order.set(Some(Order::Finish));
                    return Poll::Pending;
                }
                Pin::new(connection).graceful_shutdown();
            }
            Some(Order::SlowHead) => return Poll::Ready(Ended::SlowHead),
            Some(Order::Cut) => return Poll::Ready(Ended::Done),
            None => {}
        }
        let Some(connection) = connection.as_mut() else { return Poll::Ready(Ended::Done) };
        match ready!(Pin::new(connection).poll(cx)) {
            Ok(()) => Poll::Ready(Ended::Done),
            Err(error) => Poll::Ready(Ended::Error(error)),
        }
    })
    .await;
    let Some(stream) = connection.take().map(|c| c.into_parts().io.into_inner().stream) else {
        return;
    };
    conclude(&ended, state, stream).await;
}

fn http(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .half_close(false)
        .header_read_timeout(None)
        .max_header_size(limits.head_bytes_max)
        .max_buf_size(limits.head_bytes_max.max(BUFFER_BYTES_MIN));
    if limits.headers_max != HYPER_HEADERS {
        builder.max_headers(limits.headers_max);
    }
    builder
}

/// How hyper's part of a connection came to its end.
enum Ended {
    Done,
    SlowHead,
    Error(hyper::Error),
}

async fn conclude(ended: &Ended, state: &ConnectionState, stream: TcpStream) {
    match ended {
        Ended::SlowHead => {
            let _ = stream.try_write(SLOW_HEAD_ANSWER);
            linger(stream).await;
        }
        Ended::Error(error) if error.is_parse() => {
            tracing::debug!(%error, peer = %state.peer, "a client sent no HTTP");
            linger(stream).await;
        }
        Ended::Error(error) => tracing::debug!(%error, peer = %state.peer, "connection error"),
        Ended::Done if state.lingers.get() => linger(stream).await,
        Ended::Done => {}
    }
}

/// Reads and forgets what the client still sends, for a while, so that it can read our last words.
async fn linger(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let drain = async {
        let mut buffer = [0; 4096];
        let mut left = LINGER_BYTES_MAX;
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, drain).await;
}

fn remember(place: &RefCell<Option<Waker>>, cx: &Context<'_>) {
    let mut place = place.borrow_mut();
    match &*place {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *place = Some(cx.waker().clone()),
    }
}
