//! parse: runs hyper's HTTP/1.1 on one connection, and decides whether it continues or ends. HTTP/2
//! is in `http2`.
//!
//! Pipelined responses are flushed one by one. hyper's `pipeline_flush` would hold back a finished
//! response while the next request of the same connection runs.

use super::connection::{Close, ConnectionState};
use super::handler::Handler;
use super::io_observer::Watched;
use super::refused_head::{RefusedHead, refuse};
use super::socket::Socket;
use crate::runtime::waker::remember;
use bytes::Bytes;
use http::Request;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use samovar_config::Limits;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Limits, in time and bytes, on reading from a client after its request was refused. Without
/// reading, the kernel would reset the connection and the client might never see the response.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1024 * 1024;
/// Minimum size of hyper's buffer.
const BUFFER_BYTES_MIN: usize = 8 * 1024;
/// hyper keeps room for this many headers on the stack. More room costs two allocations per
/// request, so only connections that need it have it.
const HYPER_HEADERS: usize = 100;

/// Continuation of a connection after HTTP/1.1.
pub(super) enum After<S> {
    Nothing,
    /// The client speaks HTTP/2: its socket, and the bytes that were read.
    Http2(S, Bytes),
}

/// Serves one connection as long as it speaks HTTP/1.1. `handler` answers its requests.
pub(super) async fn serve<S, H, B>(state: &Rc<ConnectionState>, stream: S, handler: H) -> After<S>
where
    S: Socket,
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let shared = &state.shared;
    let mut io = Watched::new(stream, Rc::clone(state));
    let mut room = HYPER_HEADERS.min(shared.setup().settings.limits.headers_max);
    loop {
        let for_requests = Rc::clone(state);
        let service = service_fn(move |request: Request<Incoming>| {
            let note = for_requests.note(&request);
            let pending = handler(Rc::clone(&for_requests), request.map(Into::into), note);
            Unfailing { pending }
        });
        let protocol = {
            let limits = &shared.setup().settings.limits;
            let is_all_room = room >= limits.headers_max;
            let stop_at = if is_all_room { usize::MAX } else { room };
            state.screen.borrow_mut().limit_headers(stop_at);
            protocol(limits, room)
        };
        let mut connection = protocol.serve_connection(TokioIo::new(io), service);
        let ended = poll_fn(|cx| {
            shared.turn_if_due();
            remember(&mut state.waker.borrow_mut(), cx);
            poll_once(state, &mut connection, http1::Connection::graceful_shutdown, cx)
        })
        .await;
        let parts = connection.into_parts();
        let (stream, unread) = parts.io.into_inner().into_parts();
        if state.screen.borrow().has_preface() {
            return After::Http2(stream, unread);
        }
        if matches!(ended, Ended::Error(_)) && state.screen.borrow().is_crowded() {
            room = shared.setup().settings.limits.headers_max;
            io = Watched::resume(stream, Rc::clone(state), &parts.read_buf, &unread);
            continue;
        }
        let begun = match parts.read_buf {
            // hyper has taken a whole head out of its buffer; the other bytes come after it.
            empty if empty.is_empty() && state.screen.borrow().has_given_head() => empty,
            empty if empty.is_empty() => unread,
            begun => begun,
        };
        conclude(&ended, state, stream, &begun).await;
        return After::Nothing;
    }
}

pin_project_lite::pin_project! {
    /// A response future that cannot fail, in the form that hyper requires.
    struct Unfailing<F> {
        #[pin]
        pending: F,
    }
}

impl<F: Future> Future for Unfailing<F> {
    type Output = Result<F::Output, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().pending.poll(cx).map(Ok)
    }
}

/// Polls hyper, unless the connection has an order to close.
fn poll_once<C: Future<Output = hyper::Result<()>> + Unpin>(
    state: &ConnectionState,
    connection: &mut C,
    shut_down: impl FnOnce(Pin<&mut C>),
    cx: &mut Context<'_>,
) -> Poll<Ended> {
    match state.close.take() {
        Some(Close::WhenIdle) => {
            // hyper closes an idle connection even if its socket has unread bytes.
            state.asks_kernel.set(true);
            let ended = Pin::new(&mut *connection).poll(cx);
            state.asks_kernel.set(false);
            if let Poll::Ready(ended) = ended {
                return Poll::Ready(ended.into());
            }
            if state.is_arriving() {
                state.absorb_while_blocked(cx);
                // Bytes that arrive wake this task again.
                state.close.set(Some(Close::WhenIdle));
                return Poll::Pending;
            }
            shut_down(Pin::new(connection));
        }
        Some(Close::SlowHead) => return Poll::Ready(Ended::SlowHead),
        Some(Close::Cut) => return Poll::Ready(Ended::Done),
        None => {}
    }
    let ended = Pin::new(connection).poll(cx);
    if ended.is_pending() {
        state.absorb_while_blocked(cx);
    }
    ended.map(Ended::from)
}

fn protocol(limits: &Limits, room: usize) -> http1::Builder {
    let head_bytes_max = limits.head_bytes_max as usize;
    let mut builder = http1::Builder::new();
    builder
        .half_close(false)
        .header_read_timeout(None)
        .max_header_size(head_bytes_max)
        .max_buf_size(head_bytes_max.max(BUFFER_BYTES_MIN));
    if room != HYPER_HEADERS {
        builder.max_headers(room);
    }
    builder
}

/// How hyper's part of a connection ended.
enum Ended {
    Done,
    SlowHead,
    Error(hyper::Error),
}

impl From<hyper::Result<()>> for Ended {
    fn from(ended: hyper::Result<()>) -> Ended {
        ended.map_or_else(Ended::Error, |()| Ended::Done)
    }
}

/// The last writes are boxed. Otherwise each connection would reserve memory for them, and few need
/// it.
async fn conclude(ended: &Ended, state: &ConnectionState, stream: impl Socket, begun: &[u8]) {
    let peer = &state.ends().peer_text;
    match ended {
        Ended::SlowHead => {
            let response = refuse(state, peer, RefusedHead::Slow, begun);
            Box::pin(linger(stream, &response)).await;
        }
        Ended::Error(error) if error.is_parse() => {
            tracing::debug!(%error, peer, "request is not valid HTTP");
            let headers_max = state.shared.setup().settings.limits.headers_max;
            let has_too_many = state.screen.borrow().headers() > headers_max;
            // `None`: these are the bytes after a request whose response closes the connection.
            let response = state.refusal.take().map_or_else(Vec::new, |status| {
                refuse(state, peer, RefusedHead::of(status, has_too_many), begun)
            });
            Box::pin(linger(stream, &response)).await;
        }
        Ended::Error(error) => {
            tracing::debug!(%error, peer, "connection error");
        }
        Ended::Done if state.lingers.get() => Box::pin(linger(stream, b"")).await,
        Ended::Done => {}
    }
}

/// Sends `words`, then reads and discards the client's bytes for a while, so that the client can
/// read the last response.
async fn linger(mut stream: impl Socket, words: &[u8]) {
    let drain = async {
        let _ = stream.write_all(words).await;
        let _ = stream.shutdown().await;
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
