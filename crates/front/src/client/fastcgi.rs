//! parse, deliver: serves FastCGI to a web server over one connection, in place of php-fpm.
//!
//! - `record` encodes and decodes records, `protocol` is the state machine of a connection.
//! - `params_decoder` converts parameters to a request. `script` finds the file that they name,
//!   `fastcgi_params` stores them.
//! - `pipe` is the request body, `out` the output of the connection.
//!
//! This file connects these parts. It processes one request at a time.

pub(crate) mod fastcgi_params;
mod out;
mod params_decoder;
pub(crate) mod pipe;
mod protocol;
mod script;

use super::connection::{Close, ConnectionState, Phase};
use super::handler::Handler;
use super::socket::AnySocket;
use crate::runtime::hostile::Hostile;
use crate::runtime::waker::remember;
use crate::upstream::record::{self, Ended, STDERR};
use bytes::{Bytes, BytesMut};
use fastcgi_params::FastcgiParams;
use http::{Method, Response};
use hyper::body::Body;
use out::Out;
use pipe::{Pipe, pipe};
use protocol::{Protocol, Step};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Read size for parameters. One read usually gets all of them.
const READ_BYTES: usize = 8 * 1024;
/// Read size while a request is processed, when only an abort is expected.
const WORD_BYTES: usize = 256;
/// Read size for a body.
const BODY_READ_BYTES: usize = 64 * 1024;
/// Number of bytes waiting for the socket at which the response is not polled for more.
const WAITING_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of replies that a web server does not take.
const REPLIES_BYTES_MAX: usize = 1024 * 1024;
/// Time limit for reading and discarding the rest of a body after the response was sent.
const LINGER: Duration = Duration::from_secs(2);

/// A message for the web server's own error log. Attached to a response.
#[derive(Clone, Debug)]
pub(crate) struct Complaint(pub(crate) String);

/// Serves one connection to its end. `handler` answers its requests.
pub(super) async fn serve<H, B>(state: &Rc<ConnectionState>, stream: AnySocket, handler: H)
where
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
{
    state.idle_timeout.set(Some(state.shared.setup().settings.fastcgi.idle_timeout));
    let mut wire = Wire::new(stream, state);
    while let Ok(params) = wire.next_request().await {
        let params_max = state.shared.setup().settings.fastcgi.params_max;
        let read = params.map(|params| params_decoder::read(params, params_max));
        let (mut told, headers) = match read {
            Some(Ok(Some(found))) => found,
            Some(Err(_)) => return report(state, Hostile::Params),
            None | Some(Ok(None)) => {
                (FastcgiParams { is_too_large: true, ..FastcgiParams::default() }, <_>::default())
            }
        };
        if !told.is_too_large {
            script::put_right(&mut told, &state.shared).await;
        }
        state.shared.counters.server.fastcgi_requests_total.add(1);
        let (pipe, stdin) = pipe(told.body_bytes());
        let (request, note) = params_decoder::request(told, headers, stdin);
        // The parameters usually arrive together with the whole body. Then no task has to wait for
        // it.
        let Ok(is_aborted) = wire.take_what_is_there(&pipe) else { return };
        let is_head = request.method() == Method::HEAD;
        let outcome = if is_aborted {
            Outcome::Aborted
        } else {
            let pending = pin!(handler(Rc::clone(state), request, note));
            wire.respond(pending, &pipe, is_head).await
        };
        drop(pipe);
        let is_kept = match outcome {
            Outcome::Responded => wire.finish().await,
            Outcome::Aborted => {
                state.shared.counters.server.fastcgi_aborted_total.add(1);
                wire.out.end(wire.protocol.id(), Ended::Complete);
                wire.finish().await
            }
            Outcome::Gone => return,
        };
        if !is_kept {
            return wire.say_goodbye().await;
        }
    }
}

/// Logs and counts a connection that is closed because of invalid input.
pub(super) fn report(state: &ConnectionState, hostile: Hostile) {
    let shared = &state.shared;
    shared.counters.fastcgi_rejected[hostile as usize].add(1);
    if let Some(suppressed) = shared.common.warnings.fastcgi.pass() {
        let (what, hint) = hostile.words();
        let peer = state.ends().peer_text.as_str();
        tracing::warn!(what, peer, suppressed, "closed FastCGI connection\nhint: {hint}");
    }
}

/// Reads bytes like a connection, and returns the number of requests in them. For fuzzing.
pub fn requests_in(bytes: &[u8], params_max: usize) -> usize {
    let (mut input, mut protocol) = (BytesMut::from(bytes), Protocol::new(64 * 1024, 1));
    let mut count = 0;
    while let Ok(Some(record)) = record::take(&mut input) {
        match protocol.step(record) {
            Ok(Step::Request(Some(params))) => match params_decoder::read(params, params_max) {
                Ok(Some((mut told, headers))) => {
                    script::put_right_blindly(&mut told);
                    let (pipe, stdin) = pipe(told.body_bytes());
                    drop((params_decoder::request(told, headers, stdin), pipe));
                    count += 1;
                }
                Ok(None) => count += 1,
                Err(_) => break,
            },
            Ok(Step::BodyEnd | Step::Abort) => drop(protocol.finish()),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    count
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Responded,
    /// The web server has aborted the request.
    Aborted,
    /// The connection has ended, or must end.
    Gone,
}

/// The connection has ended.
struct Over;

/// One connection: its input and output, and its state.
struct Wire {
    stream: AnySocket,
    state: Rc<ConnectionState>,
    input: BytesMut,
    protocol: Protocol,
    out: Out,
    /// No further request is accepted.
    leaves: bool,
}

impl Wire {
    fn new(stream: AnySocket, state: &Rc<ConnectionState>) -> Wire {
        let setup = state.shared.setup();
        let limits = &setup.settings.limits;
        let params_bytes_max = usize::try_from(limits.head_bytes_max).unwrap_or(usize::MAX);
        Wire {
            stream,
            state: Rc::clone(state),
            input: BytesMut::new(),
            protocol: Protocol::new(params_bytes_max, limits.connections_max),
            out: Out::default(),
            leaves: false,
        }
    }

    /// Returns the parameters of the next request.
    async fn next_request(&mut self) -> Result<Option<Bytes>, Over> {
        poll_fn(|cx| self.poll_request(cx)).await
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Over>> {
        remember(&mut self.state.waker.borrow_mut(), cx);
        match self.state.close.take() {
            Some(Close::SlowHead) => {
                report(&self.state, Hostile::Slow);
                return Poll::Ready(Err(Over));
            }
            Some(Close::Cut) => return Poll::Ready(Err(Over)),
            Some(Close::WhenIdle) => self.leaves = true,
            None => {}
        }
        loop {
            match self.step()? {
                Some(Step::Request(params)) => return Poll::Ready(Ok(params)),
                Some(step) => self.reply(step)?,
                None if self.leaves_now() => break,
                None => match self.poll_read(cx, READ_BYTES)? {
                    Poll::Ready(()) if self.state.phase.get() == Phase::Idle => {
                        self.state.enter(Phase::Head);
                    }
                    Poll::Ready(()) => {}
                    Poll::Pending => break,
                },
            }
        }
        if self.is_between() {
            if self.state.phase.get() == Phase::Head {
                self.state.enter(Phase::Idle);
            }
            // Many connections wait most of the time, so they hold no buffer.
            self.input = BytesMut::new();
        }
        ready!(self.poll_write(cx))?;
        if self.leaves && self.is_between() { Poll::Ready(Err(Over)) } else { Poll::Pending }
    }

    /// Whether no part of a request has been received.
    fn is_between(&self) -> bool {
        self.input.is_empty() && !self.protocol.is_inside_params()
    }

    /// Whether the connection can end now, because no start of a request is in the socket.
    fn leaves_now(&self) -> bool {
        self.leaves && self.is_between() && !self.stream.has_unread()
    }

    /// Processes the next record if it is complete.
    fn step(&mut self) -> Result<Option<Step>, Over> {
        let step = match record::take(&mut self.input) {
            Ok(None) => return Ok(None),
            Ok(Some(record)) => self.protocol.step(record),
            Err(_) => Err(Hostile::Version),
        };
        step.map(Some).map_err(|hostile| {
            report(&self.state, hostile);
            Over
        })
    }

    fn reply(&mut self, step: Step) -> Result<(), Over> {
        let bytes = match step {
            Step::Reply(bytes) => bytes,
            Step::Refuse(bytes) => {
                self.leaves = true;
                bytes
            }
            _ => return Ok(()),
        };
        self.out.put(&bytes);
        if self.out.bytes() > REPLIES_BYTES_MAX {
            report(&self.state, Hostile::Flood);
            return Err(Over);
        }
        Ok(())
    }

    /// `Err`: no more bytes will arrive.
    fn poll_read(&mut self, cx: &mut Context<'_>, room: usize) -> Result<Poll<()>, Over> {
        self.input.reserve(room);
        match pin!(self.stream.read_buf(&mut self.input)).poll(cx) {
            Poll::Ready(Ok(1..)) => Ok(Poll::Ready(())),
            Poll::Ready(Ok(0) | Err(_)) => Err(Over),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Over>> {
        while !self.out.is_empty() {
            let result = self.out.poll_write(&mut self.stream, cx);
            self.state.wrote(result.is_pending());
            if ready!(result).is_err() {
                return Poll::Ready(Err(Over));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Forwards the received part of a body. Returns true if the request was aborted.
    fn take_what_is_there(&mut self, pipe: &Pipe) -> Result<bool, Over> {
        while let Some(step) = self.step()? {
            if self.pass(step, pipe)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Processes a step while a request is being answered. Returns true if the request was aborted.
    fn pass(&mut self, step: Step, pipe: &Pipe) -> Result<bool, Over> {
        match step {
            Step::Body(bytes) => pipe.put(bytes),
            Step::BodyEnd => pipe.end(),
            Step::Abort => return Ok(true),
            step => self.reply(step)?,
        }
        Ok(false)
    }

    /// Reads as much as the request can take. Returns true if the request was aborted.
    fn read(&mut self, pipe: &Pipe, cx: &mut Context<'_>) -> Result<bool, Over> {
        while self.protocol.has_body() || pipe.has_room(cx) {
            let room = if self.protocol.has_body() { WORD_BYTES } else { BODY_READ_BYTES };
            match self.step()? {
                Some(step) => {
                    if self.pass(step, pipe)? {
                        return Ok(true);
                    }
                }
                None => {
                    if self.poll_read(cx, room)?.is_pending() {
                        break;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Runs the request, and sends its response as it arrives.
    async fn respond<F, B>(
        &mut self,
        mut pending: Pin<&mut F>,
        pipe: &Pipe,
        is_head: bool,
    ) -> Outcome
    where
        F: Future<Output = Response<B>>,
        B: Body<Data = Bytes>,
    {
        let id = self.protocol.id();
        let mut body = pin!(None::<B>);
        let mut progress = Progress::Waits;
        poll_fn(|cx| {
            self.state.shared.turn_if_due();
            remember(&mut self.state.waker.borrow_mut(), cx);
            match self.state.close.take() {
                Some(Close::WhenIdle) => self.leaves = true,
                Some(Close::SlowHead | Close::Cut) => return Poll::Ready(Outcome::Gone),
                None => {}
            }
            match self.read(pipe, cx) {
                Ok(false) => {}
                Ok(true) => return Poll::Ready(Outcome::Aborted),
                Err(Over) => return Poll::Ready(Outcome::Gone),
            }
            if progress == Progress::Waits
                && let Poll::Ready(response) = pending.as_mut().poll(cx)
            {
                let (parts, of) = response.into_parts();
                if let Some(Complaint(text)) = parts.extensions.get() {
                    self.out.stream(STDERR, id, text.as_bytes());
                }
                self.out.head(id, &parts, of.size_hint().exact().filter(|_| !is_head));
                body.set(Some(of));
                progress = Progress::Sends;
            }
            loop {
                while progress == Progress::Sends && self.out.bytes() < WAITING_BYTES_MAX {
                    let Some(sent) = body.as_mut().as_pin_mut() else { break };
                    if sent.is_end_stream() {
                        self.out.last(id);
                        progress = Progress::Ends;
                        body.set(None);
                        break;
                    }
                    match sent.poll_frame(cx) {
                        Poll::Pending => break,
                        Poll::Ready(Some(Ok(frame))) => {
                            if let Ok(bytes) = frame.into_data() {
                                self.out.respond(id, bytes);
                            }
                        }
                        Poll::Ready(Some(Err(_))) => progress = Progress::Breaks,
                        Poll::Ready(None) => {
                            self.out.last(id);
                            progress = Progress::Ends;
                            body.set(None);
                        }
                    }
                }
                let had = self.out.bytes();
                match self.poll_write(cx) {
                    Poll::Ready(Err(Over)) => return Poll::Ready(Outcome::Gone),
                    Poll::Ready(Ok(())) if progress == Progress::Ends => {
                        return Poll::Ready(Outcome::Responded);
                    }
                    // An incomplete response must not look complete, so no end record is sent.
                    Poll::Ready(Ok(())) if progress == Progress::Breaks => {
                        return Poll::Ready(Outcome::Gone);
                    }
                    Poll::Ready(Ok(())) if had >= WAITING_BYTES_MAX => {}
                    _ => break,
                }
            }
            self.state.absorb_while_blocked(cx);
            Poll::Pending
        })
        .await
    }

    /// Ends the request. Returns whether the connection is kept for another one. The rest of a body
    /// is read for a limited time.
    async fn finish(&mut self) -> bool {
        if !self.protocol.has_body() {
            let rest = poll_fn(|cx| {
                while !self.protocol.has_body() {
                    match self.step() {
                        Ok(Some(step)) => {
                            if self.reply(step).is_err() {
                                return Poll::Ready(());
                            }
                        }
                        Ok(None) => match self.poll_read(cx, BODY_READ_BYTES) {
                            Ok(Poll::Ready(())) => {}
                            Ok(Poll::Pending) => return Poll::Pending,
                            Err(Over) => return Poll::Ready(()),
                        },
                        Err(Over) => return Poll::Ready(()),
                    }
                }
                Poll::Ready(())
            });
            let _ = tokio::time::timeout(LINGER, rest).await;
        }
        let is_kept = self.protocol.finish();
        self.state.enter(Phase::Idle);
        is_kept
    }

    /// Sends the remaining output.
    async fn say_goodbye(&mut self) {
        let written = poll_fn(|cx| self.poll_write(cx));
        let _ = tokio::time::timeout(LINGER, written).await;
    }
}

/// Progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Waits,
    Sends,
    /// All of it waits for the socket.
    Ends,
    /// It is incomplete and has failed.
    Breaks,
}
