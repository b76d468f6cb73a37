//! parse: one client connection from the socket to its end: its client and protocol, then its
//! requests.
//!
//! The steps, as far as the listener requires them, are a PROXY header, the TLS handshake, then
//! HTTP/1.1 (`http1`) or HTTP/2 (`http2`). Until the first request, the sweep treats the connection
//! as one that receives a head.

use super::connection::{Close, ConnectionState, Phase};
use super::fastcgi;
use super::handler::Handler;
use super::http1::{self, After};
use super::http2;
use super::peer_info::Ends;
use super::proxy_header::{self, ProxyHeader, Unfinished};
use super::refused_head::{RefusedHead, refuse};
use super::registry::{Registered, attributed, hold_place};
use super::socket::{AnySocket, Prefixed, Socket};
use crate::exchange::shares::Held;
use crate::runtime::hostile::Hostile;
use crate::runtime::waker::remember;
use crate::tls::{self, client};
use bytes::{Bytes, BytesMut};
use hyper::body::Body;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

/// Limits on reading a plain HTTP request on a TLS port before its connection is closed: the size
/// of a piece, and the number of pieces.
const IN_THE_CLEAR_PIECE_BYTES: usize = 4 * 1024;
const IN_THE_CLEAR_PIECES_MAX: usize = 64;

/// Steps before the first request.
#[derive(Clone, Default)]
pub(crate) struct Before {
    pub(crate) has_proxy_header: bool,
    pub(crate) tls: Option<tls::Session>,
    /// The client is a web server that speaks FastCGI.
    pub(crate) is_fastcgi: bool,
}

impl Before {
    fn is_nothing(&self) -> bool {
        !self.has_proxy_header && self.tls.is_none() && !self.is_fastcgi
    }
}

/// Serves one connection to its end. `handler` answers its requests.
///
/// State that is needed only during a part of a connection's life is boxed separately. Most
/// connections wait for their next request most of the time, and use the memory of this future.
pub(crate) async fn serve<S, H, B>(
    registered: Registered,
    stream: S,
    ends: Ends,
    before: Before,
    handler: H,
) where
    S: Socket,
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let state = &registered.state;
    if before.is_nothing() {
        state.meet(ends);
        if let After::Http2(stream, said) = http1::serve(state, stream, handler).await {
            let stream = Prefixed::wrap(said, Box::new(stream));
            Box::pin(http2::serve(state, stream, handler)).await;
        }
        return;
    }
    Box::pin(serve_guarded(state, Box::new(stream), ends, before, handler)).await;
}

/// Serves a connection that has steps before the first request.
async fn serve_guarded<H, B>(
    state: &Rc<ConnectionState>,
    stream: AnySocket,
    ends: Ends,
    before: Before,
    handler: H,
) where
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if before.is_fastcgi {
        let may_come = may_introduce(state, &ends) || is_local(&ends);
        state.meet(ends);
        if !may_come {
            return fastcgi::report(state, Hostile::Stranger);
        }
        return Box::pin(fastcgi::serve(state, stream, handler)).await;
    }
    let Some(Opened { stream, is_http2, held: _held }) =
        Box::pin(open(state, stream, ends, before)).await
    else {
        return;
    };
    if is_http2 {
        return Box::pin(http2::serve(state, stream, handler)).await;
    }
    if let After::Http2(stream, said) = Box::pin(http1::serve(state, stream, handler)).await {
        Box::pin(http2::serve(state, Prefixed::wrap(said, stream), handler)).await;
    }
}

/// A connection whose client and protocol are known.
struct Opened {
    stream: AnySocket,
    is_http2: bool,
    /// Place of the client that a proxy has named.
    held: Option<Held>,
}

/// Performs the steps before the first request. `None`: there will be no request.
async fn open(
    state: &Rc<ConnectionState>,
    mut stream: AnySocket,
    mut ends: Ends,
    before: Before,
) -> Option<Opened> {
    state.enter(Phase::Head);
    let mut held = None;
    if before.has_proxy_header {
        match unless_closed(state, introduce(stream)).await? {
            Ok((introduced, header)) if may_introduce(state, &ends) => {
                stream = introduced;
                ends.believe(&header);
                let client = ends.peer.filter(|_| header.ends.is_some());
                held = hold_place(&state.shared, client).ok()?;
                state.client.set(attributed(&state.shared, ends.peer));
            }
            Ok(_) => {
                tracing::debug!(peer = ends.peer_text, "PROXY header from an untrusted client");
                return None;
            }
            Err(error) => {
                tracing::debug!(%error, peer = ends.peer_text, "cannot read the PROXY header");
                return None;
            }
        }
    }
    let mut is_http2 = false;
    if let Some(session) = before.tls {
        let (asks_client, tells_how) = (session.asks_client, session.tells_how);
        if unless_closed(state, is_in_the_clear(&stream)).await? {
            tracing::debug!(peer = ends.peer_text, "plain HTTP on a TLS port");
            let response = refuse(state, &ends.peer_text, RefusedHead::InTheClear, b"");
            let _ = unless_closed(state, ask_for_https(stream, response)).await;
            return None;
        }
        match unless_closed(state, secure(stream, session)).await? {
            Ok(mut secured) if tls::is_proof(secured.get_ref().1.alpn_protocol()) => {
                let _ = unless_closed(state, secured.shutdown()).await;
                return None;
            }
            Ok(secured) => {
                let session = secured.get_ref().1;
                ends.is_tls = true;
                is_http2 = tls::is_http2(session.alpn_protocol());
                if asks_client {
                    let shown = session.peer_certificates().and_then(<[_]>::first);
                    ends.variables = client::variables(shown);
                }
                if tells_how {
                    ends.variables.extend(client::connection(session));
                }
                stream = Box::new(secured);
            }
            Err(error) => {
                tracing::debug!(%error, peer = ends.peer_text, "TLS handshake failed");
                return None;
            }
        }
    }
    state.enter(Phase::Idle);
    state.meet(ends);
    Some(Opened { stream, is_http2, held })
}

/// Whether a client speaks HTTP where it should start a handshake: a method starts with a capital
/// letter, and no TLS record does.
async fn is_in_the_clear(stream: &AnySocket) -> bool {
    let first = poll_fn(|cx| stream.poll_first(cx)).await;
    matches!(first, Ok(Some(byte)) if byte.is_ascii_uppercase())
}

/// Sends an error to a client that used `http://` with the port of `https://`. The bytes of its
/// request are read, because a client that is still sending when the connection closes does not
/// read the response.
async fn ask_for_https(mut stream: AnySocket, response: Vec<u8>) -> io::Result<()> {
    stream.write_all(&response).await?;
    stream.shutdown().await?;
    let mut request = BytesMut::with_capacity(IN_THE_CLEAR_PIECE_BYTES);
    for _ in 0..IN_THE_CLEAR_PIECES_MAX {
        request.clear();
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// Performs the TLS handshake. An authority that validates a domain announces this in its first
/// message, and gets a different certificate.
async fn secure(stream: AnySocket, session: tls::Session) -> io::Result<TlsStream<AnySocket>> {
    let tls::Session { config, proofs, .. } = session;
    let Some(proofs) = proofs else { return TlsAcceptor::from(config).accept(stream).await };
    let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let is_authority = begun.client_hello().alpn().is_some_and(tls::is_authority);
    begun.into_stream(if is_authority { proofs } else { config }).await
}

/// Whether PROXY headers of a peer are trusted: always, unless the settings list the proxies.
fn may_introduce(state: &ConnectionState, ends: &Ends) -> bool {
    let setup = state.shared.setup();
    let proxies = &setup.settings.trusted_proxies;
    let is_named = |peer: SocketAddr| proxies.iter().any(|net| net.contains(&peer.ip()));
    proxies.is_empty() || ends.peer.is_none_or(is_named)
}

fn is_local(ends: &Ends) -> bool {
    ends.peer.is_none_or(|peer| peer.ip().is_loopback())
}

/// Returns `None` if the connection was ordered to end. An order to close when idle has no effect,
/// because the client has not sent a request yet.
async fn unless_closed<T>(state: &ConnectionState, doing: impl Future<Output = T>) -> Option<T> {
    let mut doing = pin!(doing);
    poll_fn(|cx| {
        remember(&mut state.waker.borrow_mut(), cx);
        if matches!(state.close.take(), Some(Close::SlowHead | Close::Cut)) {
            return Poll::Ready(None);
        }
        doing.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Reads a PROXY header, and puts the bytes after it back into the stream.
async fn introduce(mut stream: AnySocket) -> io::Result<(AnySocket, ProxyHeader)> {
    let mut bytes = BytesMut::with_capacity(256);
    loop {
        match proxy_header::read(&bytes) {
            Ok((header, used)) => {
                let rest = bytes.split_off(used).freeze();
                return Ok((Prefixed::wrap(rest, stream), header));
            }
            Err(Unfinished::Wrong(what)) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            Err(Unfinished::More) => {}
        }
        // The buffer never gets much longer than a header may be: longer headers are refused by
        // their start.
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
