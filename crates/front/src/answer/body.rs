//! Any answer's body, as hyper asks for it. With it goes what ends with it: the request's entry in the log, and the
//! connection's being busy.

use crate::answer::file_body::FileBody;
use crate::answer::packed::{Given, Packed, Written};
use crate::client::connection::{Busy, ConnectionState};
use crate::exchange::relay::Relay;
use crate::exchange::{Cost, Lost, Piece};
use crate::log::RequestLogEntry;
use crate::upstream::Answering;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use samovar_insight::End;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The body of any answer. Carries the request's entry in the log, which is written when the body is done or dropped.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    kind: Kind,
    request: Option<(Busy, RequestLogEntry)>,
    /// What is known of the cost where there is no entry yet, or another body has it.
    cost: Option<Box<Cost>>,
}

#[derive(Debug)]
enum Kind {
    Empty,
    Whole(Bytes),
    /// Fewer bytes than its head promises.
    Short(Bytes),
    Stream(Stream),
    /// The connection is to be cut.
    Cut,
    File(Box<FileBody>),
    /// Of a location's php-fpm, and what is left of the declared length.
    Passed(Answering, Option<u64>),
    Packed(Box<Packed<AnswerBody>>),
}

/// The body of an answer that is still being written.
#[derive(Debug)]
struct Stream {
    connection: Rc<ConnectionState>,
    relay: Rc<Relay>,
    first: Bytes,
    /// What is left of the declared length.
    left: Option<u64>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.end_relay(&self.relay);
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.part();
    }
}

impl AnswerBody {
    fn of(kind: Kind) -> AnswerBody {
        AnswerBody { kind, request: None, cost: None }
    }

    pub(crate) fn empty() -> AnswerBody {
        AnswerBody::of(Kind::Empty)
    }

    pub(crate) fn whole(bytes: Bytes) -> AnswerBody {
        let kind = if bytes.is_empty() { Kind::Empty } else { Kind::Whole(bytes) };
        AnswerBody::of(kind)
    }

    /// A body of fewer bytes than its head promises.
    pub(super) fn short(bytes: Bytes) -> AnswerBody {
        AnswerBody::of(Kind::Short(bytes))
    }

    /// A body that is still being written; `left`: its declared length.
    pub(super) fn stream(
        connection: &Rc<ConnectionState>,
        first: Bytes,
        relay: Rc<Relay>,
        left: Option<u64>,
    ) -> AnswerBody {
        connection.begin_relay(&relay);
        let stream = Stream { connection: Rc::clone(connection), relay, first, left };
        AnswerBody::of(Kind::Stream(stream))
    }

    pub(super) fn file(file: FileBody) -> AnswerBody {
        AnswerBody::of(Kind::File(Box::new(file)))
    }

    /// A body that a location's php-fpm writes; `left`: its declared length.
    pub(crate) fn passed(answering: Answering, left: Option<u64>) -> AnswerBody {
        AnswerBody::of(Kind::Passed(answering, left))
    }

    pub(super) fn packed(packed: Packed<AnswerBody>) -> AnswerBody {
        AnswerBody::of(Kind::Packed(Box::new(packed)))
    }

    /// Its bytes, if they are all there; else itself.
    pub(super) fn into_whole(mut self) -> Result<Bytes, AnswerBody> {
        match &mut self.kind {
            Kind::Whole(bytes) => Ok(std::mem::take(bytes)),
            _ => Err(self),
        }
    }

    /// Takes the place of another one: nobody wants that, and the script that writes it may run on.
    pub(super) fn replace(&mut self, other: &AnswerBody) {
        match &other.kind {
            Kind::Stream(stream) => self.cost = Some(Box::new(stream.relay.let_go())),
            Kind::Passed(answering, _) => answering.let_go(),
            _ => {}
        }
    }

    /// Ties to the body what ends with it.
    pub(crate) fn carry(mut self, busy: Busy, mut entry: RequestLogEntry) -> AnswerBody {
        if matches!(self.kind, Kind::Empty) {
            entry.complete();
        }
        self.request = Some((busy, entry));
        self
    }

    /// Nobody asks for more of it: what it has cost, or will have.
    fn settle(&mut self) -> Cost {
        match (self.cost.take(), &mut self.kind) {
            (Some(cost), _) => *cost,
            (None, Kind::Stream(stream)) => stream.part(),
            (None, Kind::Packed(packed)) => packed.body().settle(),
            (None, _) => Cost::Unknown,
        }
    }

    /// The same, written down if there is where.
    fn part(&mut self) {
        if self.request.is_some() {
            let cost = self.settle();
            if let Some((_, entry)) = &mut self.request {
                entry.costs(cost);
            }
        }
    }

    fn gave(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some((_, entry)) = &mut self.request {
            entry.sent(bytes.len() as u64);
            if matches!(self.kind, Kind::Empty) {
                entry.complete();
            }
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn ended(&mut self) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some((_, entry)) = &mut self.request {
            entry.complete();
        }
        Poll::Ready(None)
    }

    /// The answer breaks off: all that can be done is to cut the connection. hyper forgets what it has not sent when
    /// a body fails, so the failure comes one poll later, after a flush.
    fn cut(
        &mut self,
        why: impl Debug,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some((_, entry)) = &mut self.request {
            entry.cut(why);
        }
        self.break_off(cx)
    }

    fn break_off(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.request {
            Some(_) => self.part(),
            None => self.cost = Some(Box::new(self.settle())),
        }
        self.kind = Kind::Cut;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Written for AnswerBody {
    fn is_written(&self) -> bool {
        matches!(self.kind, Kind::Stream(_) | Kind::Passed(..))
    }
}

impl Stream {
    /// hyper drops a body that has given all it had declared: the client is content, the script runs on.
    fn part(&self) -> Cost {
        if self.left == Some(0) { self.relay.let_go() } else { self.relay.give_up() }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let piece = if self.first.is_empty() {
            ready!(self.relay.poll_piece(cx))
        } else {
            Ok(Piece::Bytes(std::mem::take(&mut self.first)))
        };
        if let Ok(Piece::Bytes(bytes)) = &piece {
            self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        }
        Poll::Ready(piece)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        match &mut this.kind {
            // A longer body than was declared is shortened, as nginx does.
            Kind::Empty | Kind::Passed(_, Some(0)) => this.ended(),
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                this.kind = Kind::Empty;
                this.gave(bytes)
            }
            Kind::Short(bytes) if bytes.is_empty() => this.cut(Lost::Short, cx),
            Kind::Short(bytes) => {
                let bytes = std::mem::take(bytes);
                this.gave(bytes)
            }
            Kind::Stream(stream) => match ready!(stream.poll_piece(cx)) {
                Ok(Piece::Bytes(bytes)) => {
                    let is_all = stream.left == Some(0);
                    if let (true, Some((_, entry))) = (is_all, &mut this.request) {
                        entry.complete();
                    }
                    this.gave(bytes)
                }
                Ok(Piece::End(_)) if stream.left.is_some_and(|left| left > 0) => {
                    this.cut(Lost::Short, cx)
                }
                Ok(Piece::End(cost)) => {
                    match &mut this.request {
                        Some((_, entry)) => entry.costs(cost),
                        None => this.cost = Some(Box::new(cost)),
                    }
                    // hyper 1.12 may learn of the end in a last look after its flush; where the end is the
                    // connection's (HTTP/1.0), it closes only when it is polled once more.
                    cx.waker().wake_by_ref();
                    this.ended()
                }
                Err(lost) => this.cut(lost, cx),
            },
            Kind::Passed(answering, left) => match ready!(answering.poll_piece(cx)) {
                Ok(Some(mut bytes)) => {
                    if let Some(left) = left {
                        bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                        *left -= bytes.len() as u64;
                        if *left == 0 {
                            answering.let_go();
                            if let Some((_, entry)) = &mut this.request {
                                entry.complete();
                            }
                        }
                    }
                    this.gave(bytes)
                }
                Ok(None) if left.is_some() => this.cut(Lost::Short, cx),
                Ok(None) => {
                    cx.waker().wake_by_ref();
                    this.ended()
                }
                // Why was said where it was seen.
                Err(_) => {
                    if let Some((_, entry)) = &mut this.request {
                        entry.failed(Some(End::Cut));
                    }
                    this.break_off(cx)
                }
            },
            Kind::Packed(packed) => match ready!(packed.poll_given(cx)) {
                Given::Bytes(bytes) => this.gave(bytes),
                Given::Broken(error) => this.cut(error, cx),
                Given::End => {
                    cx.waker().wake_by_ref();
                    this.ended()
                }
            },
            Kind::Cut => Poll::Ready(Some(Err(io::Error::other("the answer broke off")))),
            Kind::File(file) => match ready!(file.poll_chunk(cx)) {
                Some(Ok(bytes)) => this.gave(bytes),
                Some(Err(error)) => Poll::Ready(Some(Err(error))),
                None => this.ended(),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            // With HTTP/2 this is what ends it: the script may run on.
            Kind::Stream(stream) => stream.left == Some(0),
            Kind::Passed(_, left) => *left == Some(0),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Short(_) | Kind::Stream(_) | Kind::Passed(..) | Kind::Packed(_) | Kind::Cut => {
                SizeHint::default()
            }
        }
    }
}
