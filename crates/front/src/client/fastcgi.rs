//! parse, deliver: a web server speaks FastCGI over one connection, as it would to php-fpm.
//!
//! `record` are the bytes, `protocol` what they mean, `params` makes a request of parameters (`script`: which file
//! they name; `told`: what was said), `pipe` carries the body, `out` what goes back. This file lets all of that go on: one request at a time.

mod out;
mod params;
pub(crate) mod pipe;
mod protocol;
mod script;
pub(crate) mod told;

use super::connection::{Close, ConnectionState, Phase};
use super::handler::Handler;
use super::socket::AnySocket;
use crate::runtime::hostile::Hostile;
use crate::runtime::waker::remember;
use crate::upstream::record::{self, Ended, STDERR};
use bytes::{Bytes, BytesMut};
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
use told::Told;

/// Room for what a read may bring: parameters, mostly all of them.
const READ_BYTES: usize = 8 * 1024;
/// The same while a request is answered: that it is taken back.
const WORD_BYTES: usize = 256;
/// The same for a body.
const BODY_READ_BYTES: usize = 64 * 1024;
/// Bytes that wait for the socket before the answer is asked for more of them.
const WAITING_BYTES_MAX: usize = 64 * 1024;
/// Bytes of replies that a web server does not take.
const REPLIES_BYTES_MAX: usize = 1024 * 1024;
/// How long the rest of a body is read and forgotten after the answer has gone out.
const LINGER: Duration = Duration::from_secs(2);

/// What a web server is told for its own error log. Goes with a response.
#[derive(Clone, Debug)]
pub(crate) struct Complaint(pub(crate) String);

/// Serves one connection to its end; `handler` answers its requests.
pub(super) async fn serve<H, B>(state: &Rc<ConnectionState>, stream: AnySocket, handler: H)
where
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
{
    state.idle_timeout.set(Some(state.shared.setup().settings.fastcgi.idle_timeout));
    let mut wire = Wire::new(stream, state);
    while let Ok(params) = wire.next_request().await {
        let params_max = state.shared.setup().settings.fastcgi.params_max;
        let read = params.map(|params| params::read(params, params_max));
        let (mut told, headers) = match read {
            Some(Ok(Some(found))) => found,
            Some(Err(_)) => return report(state, Hostile::Params),
            None | Some(Ok(None)) => {
                (Told { is_too_large: true, ..Told::default() }, <_>::default())
            }
        };
        if !told.is_too_large {
            script::put_right(&mut told, &state.shared).await;
        }
        state.shared.counters.fastcgi_requests.add(1);
        let (pipe, stdin) = pipe(told.body_bytes());
        let (request, note) = params::request(told, headers, stdin);
        // What has come with the parameters is mostly all: then nobody has to wait for it.
        let Ok(is_aborted) = wire.take_what_is_there(&pipe) else { return };
        let is_head = request.method() == Method::HEAD;
        let outcome = if is_aborted {
            Outcome::Aborted
        } else {
            let answering = pin!(handler(Rc::clone(state), request, note));
            wire.answer(answering, &pipe, is_head).await
        };
        drop(pipe);
        let is_kept = match outcome {
            Outcome::Answered => wire.finish().await,
            Outcome::Aborted => {
                state.shared.counters.fastcgi_aborted.add(1);
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

/// Closed because of what has come: said and counted.
pub(super) fn report(state: &ConnectionState, hostile: Hostile) {
    let shared = &state.shared;
    shared.counters.fastcgi_refused[hostile as usize].add(1);
    if let Some(suppressed) = shared.common.warnings.fastcgi.pass() {
        let (what, hint) = hostile.words();
        let peer = state.ends().peer_text.as_str();
        tracing::warn!(what, peer, suppressed, "closed a FastCGI connection\nhint: {hint}");
    }
}

/// Takes bytes in as a connection does, and says how many requests they were: for fuzzing.
pub fn requests_in(bytes: &[u8], params_max: usize) -> usize {
    let (mut input, mut protocol) = (BytesMut::from(bytes), Protocol::new(64 * 1024, 1));
    let mut count = 0;
    while let Ok(Some(record)) = record::take(&mut input) {
        match protocol.step(record) {
            Ok(Step::Request(Some(params))) => match params::read(params, params_max) {
                Ok(Some((mut told, headers))) => {
                    script::put_right_blindly(&mut told);
                    let (pipe, stdin) = pipe(told.body_bytes());
                    drop((params::request(told, headers, stdin), pipe));
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

/// How a request came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    /// The web server wants no answer any more.
    Aborted,
    /// It has gone, or is to go.
    Gone,
}

/// The connection is at its end.
struct Over;

/// One connection: bytes on their way in and out, and what is known of them.
struct Wire {
    stream: AnySocket,
    state: Rc<ConnectionState>,
    input: BytesMut,
    protocol: Protocol,
    out: Out,
    /// No further request is taken.
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

    /// The parameters of the next request.
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
            // Many connections wait for most of their time.
            self.input = BytesMut::new();
        }
        ready!(self.poll_write(cx))?;
        if self.leaves && self.is_between() { Poll::Ready(Err(Over)) } else { Poll::Pending }
    }

    /// Whether no part of a request is there.
    fn is_between(&self) -> bool {
        self.input.is_empty() && !self.protocol.is_inside_params()
    }

    /// Whether it leaves, and nothing lies in the socket that a request could begin with.
    fn leaves_now(&self) -> bool {
        self.leaves && self.is_between() && !self.stream.has_unread()
    }

    /// What the next record comes to, if it is there.
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

    /// Err: nothing more comes.
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

    /// Passes on what has come of a body; whether the request was taken back.
    fn take_what_is_there(&mut self, pipe: &Pipe) -> Result<bool, Over> {
        while let Some(step) = self.step()? {
            if self.pass(step, pipe)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Obeys what has come while a request is answered; whether that is to stop.
    fn pass(&mut self, step: Step, pipe: &Pipe) -> Result<bool, Over> {
        match step {
            Step::Body(bytes) => pipe.put(bytes),
            Step::BodyEnd => pipe.end(),
            Step::Abort => return Ok(true),
            step => self.reply(step)?,
        }
        Ok(false)
    }

    /// Reads as far as somebody wants it; whether the request was taken back.
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

    /// Has the request answered, and sends what comes.
    async fn answer<F, B>(
        &mut self,
        mut answering: Pin<&mut F>,
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
                && let Poll::Ready(response) = answering.as_mut().poll(cx)
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
                                self.out.answer(id, bytes);
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
                        return Poll::Ready(Outcome::Answered);
                    }
                    // Half an answer must not look whole: nothing says that it has ended.
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

    /// The request is over; whether the connection is kept for another one. What is left of a body is read for a while.
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

    /// Sends what is left.
    async fn say_goodbye(&mut self) {
        let written = poll_fn(|cx| self.poll_write(cx));
        let _ = tokio::time::timeout(LINGER, written).await;
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Waits,
    Sends,
    /// All of it waits for the socket.
    Ends,
    /// It has broken off.
    Breaks,
}
