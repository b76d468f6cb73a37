//! parse: runs hyper's HTTP/2 on one connection.
//!
//! Each request runs in its own task ([`Spawner`]), within its stream: a long response that it
//! begins belongs to that stream. Interim responses are not sent, because hyper does not support
//! them in servers.

use super::connection::{Close, ConnectionState};
use super::frames::{Frames, Offence, RESET_BY_US_MAX};
use super::handler::Handler;
use super::head_filter::Note;
use super::socket::AnySocket;
use super::streams::Stream;
use crate::runtime::waker::remember;
use bytes::Bytes;
use http::header::Entry;
use http::uri::{Parts, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use http_body::Frame;
use hyper::body::{Body, Incoming, SizeHint};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use samovar_config::Limits;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of concurrent requests per connection.
const STREAMS_MAX: u32 = 100;
/// Maximum number of cancelled requests that have not been processed yet.
const RESET_UNSEEN_MAX: usize = 20;
/// Maximum number of body bytes that a client may send before they are consumed: per stream, and in
/// total.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Number of response bytes handed to h2 at a time. Bytes handed over are no longer watched, even
/// if the client does not take them.
const PIECE_BYTES: usize = 16 * 1024;
/// Maximum number of response bytes of a stream that wait for the socket in h2, where no budget
/// counts them.
const SEND_BYTES_MAX: usize = 32 * 1024;

/// Serves one connection to its end. `handler` answers its requests.
pub(super) async fn serve<H, B>(state: &Rc<ConnectionState>, stream: AnySocket, handler: H)
where
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let shared = &state.shared;
    let frames = Frames::new(shared.clock.now_ms());
    let io = TokioIo::new(Counted { stream, frames, state: Rc::clone(state), is_worn: false });
    let for_requests = Rc::clone(state);
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Rc::clone(&for_requests);
        let (request, note) = as_http1(request);
        // hyper and the runtime move a request's task five times before it runs. The box keeps it
        // small.
        Box::pin(async move {
            let response = handler(Rc::clone(&state), request.map(Into::into), note).await;
            state.streams.responded();
            let stream = state.streams.current();
            Ok::<_, Infallible>(response.map(|body| Paced::new(body, &state, stream)))
        })
    });
    let protocol = protocol(&shared.setup().settings.limits, Spawner(Rc::clone(state)));
    let mut connection = pin!(protocol.serve_connection(io, service));
    let ended = poll_fn(|cx| {
        shared.turn_if_due();
        remember(&mut state.waker.borrow_mut(), cx);
        match state.close.take() {
            Some(Close::WhenIdle) => {
                let since = &state.streams.closing_since_ms;
                if since.get() == 0 {
                    since.set(shared.clock.now_ms().max(1));
                    connection.as_mut().graceful_shutdown();
                }
            }
            Some(Close::SlowHead | Close::Cut) => return Poll::Ready(Ok(())),
            None => {}
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, peer = state.ends().peer_text, "HTTP/2 connection error");
    }
}

fn protocol(limits: &Limits, spawner: Spawner) -> http2::Builder<Spawner> {
    let mut builder = http2::Builder::new(spawner);
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESET_UNSEEN_MAX)
        .max_local_error_reset_streams(RESET_BY_US_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX)
        .max_header_list_size(limits.head_bytes_max as u32);
    builder
}

/// Converts the request to the HTTP/1.1 form that later stages expect: the host is a header, the
/// target is a path.
fn as_http1(mut request: Request<Incoming>) -> (Request<Incoming>, Note) {
    let mut note = Note::default();
    if request.method() == Method::CONNECT {
        return (request, note);
    }
    let Parts { scheme, authority, path_and_query, .. } =
        std::mem::take(request.uri_mut()).into_parts();
    // Without an authority, h2 keeps no scheme.
    if authority.is_some() && scheme.is_none_or(|s| s != Scheme::HTTP && s != Scheme::HTTPS) {
        note.doubt = Some("invalid scheme");
    }
    if let Some(path) = path_and_query {
        if !path.as_str().is_ascii() {
            note.doubt = Some("bytes in the request target that are not ASCII");
        }
        *request.uri_mut() = Uri::from(path);
    }
    let headers = request.headers_mut();
    if let Some(authority) = authority {
        let is_same = |host: &HeaderValue| {
            host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes())
        };
        let hosts = headers.get_all(header::HOST);
        let is_other = !hosts.iter().all(is_same);
        let are_many = hosts.iter().nth(1).is_some();
        match HeaderValue::from_str(authority.as_str()) {
            Ok(_) if is_other => note.doubt = Some("Host and authority differ"),
            Ok(_) if are_many => note.doubt = Some("more than one Host header"),
            Ok(host) => drop(headers.insert(header::HOST, host)),
            Err(_) => note.doubt = Some("invalid authority"),
        }
    }
    if headers.values().any(|value| has_outer_blank(value.as_bytes())) {
        note.doubt = Some("white space around a header value");
    }
    if headers.len() > headers.keys_len() {
        if headers.get_all(header::CONTENT_LENGTH).iter().nth(1).is_some() {
            note.doubt = Some("more than one Content-Length");
        }
        join_cookies(headers);
    }
    (request, note)
}

/// White space at an end of a value, which HTTP/1.1 would remove (RFC 9113, 8.2.1).
fn has_outer_blank(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.first()) || is_blank(value.last())
}

/// Joins the parts into which clients split `Cookie` for compression (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(mut cookies) = headers.entry(header::COOKIE) else { return };
    if cookies.iter().nth(1).is_none() {
        return;
    }
    let parts: Vec<&[u8]> = cookies.iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..])) {
        cookies.insert(joined);
    }
}

/// Spawns the tasks that hyper runs in parallel to the connection: one for each request.
#[derive(Clone)]
struct Spawner(Rc<ConnectionState>);

impl<F: Future<Output = ()> + 'static> Executor<F> for Spawner {
    fn execute(&self, task: F) {
        let open = Open::new(&self.0);
        tokio::task::spawn_local(async move {
            let Open { state, stream } = &open;
            let mut task = pin!(task);
            poll_fn(|cx| {
                if stream.is_cut(cx) {
                    return Poll::Ready(());
                }
                let result = state.streams.within(stream, || task.as_mut().poll(cx));
                if result.is_pending() {
                    stream.absorb(cx);
                }
                result
            })
            .await;
        });
    }
}

/// A counted stream. It leaves its connection when its task ends, in any way.
struct Open {
    state: Rc<ConnectionState>,
    stream: Rc<Stream>,
}

impl Open {
    fn new(state: &Rc<ConnectionState>) -> Open {
        Open { state: Rc::clone(state), stream: state.streams.open() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.state.streams.close(&self.stream);
    }
}

/// A body in pieces, so that bytes the client does not take stay in the front, which can detect
/// this.
struct Paced<B> {
    body: Pin<Box<B>>,
    rest: Bytes,
    state: Rc<ConnectionState>,
    stream: Option<Rc<Stream>>,
}

impl<B: Body<Data = Bytes>> Paced<B> {
    fn new(body: B, state: &Rc<ConnectionState>, stream: Option<Rc<Stream>>) -> Paced<B> {
        let paced =
            Paced { body: Box::pin(body), rest: Bytes::new(), state: Rc::clone(state), stream };
        if !paced.body.is_end_stream() {
            paced.gave();
        }
        paced
    }

    fn gave(&self) {
        if let Some(stream) = &self.stream {
            stream.waits(self.state.shared.clock.now_ms());
        }
    }
}

impl<B> Drop for Paced<B> {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.goes_on();
        }
    }
}

impl<B: Body<Data = Bytes>> Body for Paced<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if let Some(stream) = &this.stream {
            stream.goes_on();
        }
        if this.rest.is_empty() {
            match ready!(this.body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => this.rest = bytes,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        this.gave();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// The socket below hyper. Counts frames, and reports when the client takes no bytes or sends
/// useless frames.
struct Counted {
    stream: AnySocket,
    frames: Frames,
    state: Rc<ConnectionState>,
    /// The connection is worn out, and is being shut down.
    is_worn: bool,
}

impl Counted {
    fn wrote(&mut self, pieces: &[io::IoSlice<'_>], result: &Poll<io::Result<usize>>) {
        self.state.wrote(result.is_pending());
        let &Poll::Ready(Ok(mut bytes)) = result else { return };
        for piece in pieces {
            let taken = bytes.min(piece.len());
            self.frames.wrote(&piece[..taken]);
            bytes -= taken;
        }
    }

    /// Ends a connection after an offence. hyper does not see the requests in its last bytes.
    fn refuse(&mut self, offence: Offence, cx: &mut Context<'_>) -> io::Error {
        // A client that reads nothing does not get this frame.
        if let Some(frame) = self.frames.goodbye(offence)
            && Pin::new(&mut self.stream).poll_write(cx, &frame).is_ready()
        {
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
        }
        io::Error::other(match offence {
            Offence::Flood => "too many frames without effect",
            Offence::FrameSize => "frame of a wrong length",
        })
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.frames.is_turn_of_others() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let now_ms = self.state.shared.clock.now_ms();
        let responded = self.state.streams.take_responded();
        self.frames.responded(responded);
        let came = buffer.filled().len() - before;
        let kept = match self.frames.pass(&mut buffer.filled_mut()[before..], now_ms) {
            Ok(kept) => kept,
            Err(offence) => return Poll::Ready(Err(self.refuse(offence, cx))),
        };
        buffer.set_filled(before + kept);
        if self.frames.is_worn() && !self.is_worn {
            self.is_worn = true;
            self.state.finish();
        }
        let since = &self.state.streams.head_since_ms;
        if !self.frames.is_inside_head() {
            since.set(0);
        } else if since.get() == 0 {
            since.set(now_ms.max(1));
        }
        if kept == 0 && came > 0 {
            // hyper would interpret an empty read as the end.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(&[io::IoSlice::new(bytes)], &result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        if self.stream.keeps_written() {
            self.state.wrote(result.is_pending());
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(pieces, &result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
