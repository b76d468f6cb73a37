//! The body of any response, as hyper polls it. It owns the values that live until the body ends:
//! the request's log entry, and the guard that marks the connection as busy.

use crate::client::connection::{Busy, ConnectionState};
use crate::exchange::budget::Charge;
use crate::exchange::relay::Relay;
use crate::exchange::{Cost, Lost, Piece};
use crate::log::RequestLogEntry;
use crate::response::compressed_body::{Given, Packed, Written};
use crate::response::file_body::FileBody;
use crate::runtime::development::{Listener, State};
use crate::upstream::PendingResponse;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use samovar_insight::End;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Minimum size of a response in memory that is counted. A smaller one is about as large as the
/// rest of its request's state.
const COUNTED_BYTES_MIN: usize = 4 * 1024;

/// The body of any response. Holds the request's log entry, which is written when the body is
/// complete or dropped.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    kind: Kind,
    request: Option<(Busy, RequestLogEntry)>,
    /// Known cost, if there is no log entry yet or if another body has it.
    cost: Option<Box<Cost>>,
    /// Part of the memory's budget, if the body is counted.
    charge: Option<Box<Charge>>,
}

#[derive(Debug)]
enum Kind {
    Empty,
    Whole(Bytes),
    /// Fewer bytes than its head declares.
    Short(Bytes),
    Stream(Stream),
    /// The connection is to be cut.
    Cut,
    File(Box<FileBody>),
    /// Body from a location's php-fpm, with the rest of the declared length.
    Passed(Rc<ConnectionState>, PendingResponse, Option<u64>),
    Packed(Box<Packed<ResponseBody>>),
    /// Changes of the application, for pages in development mode.
    Events(Listener),
}

/// The body of a response that a worker is still writing.
#[derive(Debug)]
struct Stream {
    connection: Rc<ConnectionState>,
    relay: Rc<Relay>,
    first: Bytes,
    /// Rest of the declared length.
    left: Option<u64>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.end_relay(&self.relay);
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.part();
    }
}

impl ResponseBody {
    fn of(kind: Kind) -> ResponseBody {
        ResponseBody { kind, request: None, cost: None, charge: None }
    }

    pub(crate) fn empty() -> ResponseBody {
        ResponseBody::of(Kind::Empty)
    }

    pub(crate) fn whole(bytes: Bytes) -> ResponseBody {
        let kind = if bytes.is_empty() { Kind::Empty } else { Kind::Whole(bytes) };
        ResponseBody::of(kind)
    }

    /// A body with fewer bytes than its head declares.
    pub(super) fn short(bytes: Bytes) -> ResponseBody {
        ResponseBody::of(Kind::Short(bytes))
    }

    /// A body that is still being written. `left`: its declared length.
    pub(super) fn stream(
        connection: &Rc<ConnectionState>,
        first: Bytes,
        relay: Rc<Relay>,
        left: Option<u64>,
    ) -> ResponseBody {
        connection.begin_relay(&relay);
        let stream = Stream { connection: Rc::clone(connection), relay, first, left };
        ResponseBody::of(Kind::Stream(stream))
    }

    pub(super) fn file(file: FileBody) -> ResponseBody {
        ResponseBody::of(Kind::File(Box::new(file)))
    }

    /// A body that a location's php-fpm writes. `left`: its declared length.
    pub(crate) fn passed(
        connection: &Rc<ConnectionState>,
        pending: PendingResponse,
        left: Option<u64>,
    ) -> ResponseBody {
        ResponseBody::of(Kind::Passed(Rc::clone(connection), pending, left))
    }

    pub(super) fn packed(packed: Packed<ResponseBody>) -> ResponseBody {
        ResponseBody::of(Kind::Packed(Box::new(packed)))
    }

    /// Server-sent events about changes of the application.
    pub(crate) fn events(listener: Listener) -> ResponseBody {
        ResponseBody::of(Kind::Events(listener))
    }

    /// Whether it can end before its declared or announced end.
    pub(crate) fn may_break_off(&self) -> bool {
        matches!(self.kind, Kind::Short(_) | Kind::Stream(_) | Kind::Passed(..))
    }

    /// Takes the bytes if all of them are present.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        match &mut self.kind {
            Kind::Whole(bytes) => Some(std::mem::take(bytes)),
            _ => None,
        }
    }

    /// Replaces another body, which is not needed any more. The script that writes it ends at its
    /// next output, as behind nginx.
    pub(super) fn replace(&mut self, other: &ResponseBody) {
        if let Kind::Stream(stream) = &other.kind {
            self.cost = Some(Box::new(stream.relay.dismiss()));
        }
    }

    /// Counts bytes in memory that the client may leave unread, if there are many.
    pub(crate) fn counted(mut self, charge: impl FnOnce() -> Option<Charge>) -> ResponseBody {
        let bytes = self.memory_bytes();
        if bytes >= COUNTED_BYTES_MIN
            && let Some(charge) = charge()
        {
            charge.set(bytes as u64);
            self.charge = Some(Box::new(charge));
        }
        self
    }

    /// Bytes in memory that were not given yet, without the bytes that a relay buffers.
    fn memory_bytes(&mut self) -> usize {
        match &mut self.kind {
            Kind::Whole(bytes) | Kind::Short(bytes) => bytes.len(),
            Kind::Stream(stream) => stream.first.len(),
            Kind::Packed(packed) => packed.body().memory_bytes(),
            Kind::Empty | Kind::Cut | Kind::File(_) | Kind::Passed(..) | Kind::Events(_) => 0,
        }
    }

    /// Attaches the values that live until the body ends.
    pub(crate) fn carry(mut self, busy: Busy, mut entry: RequestLogEntry) -> ResponseBody {
        if matches!(self.kind, Kind::Empty) {
            entry.complete();
        }
        self.request = Some((busy, entry));
        self
    }

    /// Stops reading the body. Returns its cost, or a way to learn it later.
    fn settle(&mut self) -> Cost {
        match (self.cost.take(), &mut self.kind) {
            (Some(cost), _) => *cost,
            (None, Kind::Stream(stream)) => stream.part(),
            (None, Kind::Packed(packed)) => packed.body().settle(),
            (None, _) => Cost::Unknown,
        }
    }

    /// Settles the body, and records the cost if there is a log entry.
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

    /// The response is incomplete, so the connection must be cut. hyper discards unsent bytes when
    /// a body fails, so the error follows one poll later, after a flush.
    fn cut(
        &mut self,
        why: impl Debug,
        hint: &str,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some((_, entry)) = &mut self.request {
            entry.cut(why, hint);
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

impl Written for ResponseBody {
    fn is_written(&self) -> bool {
        matches!(self.kind, Kind::Stream(_) | Kind::Passed(..))
    }
}

impl Stream {
    /// hyper drops a body that has delivered its declared length. The response is then complete,
    /// and the script may continue.
    fn part(&self) -> Cost {
        if self.left == Some(0) {
            self.relay.let_go(self.connection.presence())
        } else {
            self.relay.give_up()
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let mut piece = if self.first.is_empty() {
            ready!(self.relay.poll_piece(cx))
        } else {
            Ok(Piece::Bytes(std::mem::take(&mut self.first)))
        };
        if let (Ok(Piece::Bytes(bytes)), Some(left)) = (&mut piece, &mut self.left) {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
        }
        Poll::Ready(piece)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        match &mut this.kind {
            // A body longer than declared is truncated, as in nginx.
            Kind::Empty | Kind::Passed(.., Some(0)) => this.ended(),
            Kind::Stream(stream) if stream.left == Some(0) => this.ended(),
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                this.kind = Kind::Empty;
                this.gave(bytes)
            }
            Kind::Short(bytes) if bytes.is_empty() => this.cut(Lost::Short, Lost::Short.hint(), cx),
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
                    this.cut(Lost::Short, Lost::Short.hint(), cx)
                }
                Ok(Piece::End(cost)) => {
                    match &mut this.request {
                        Some((_, entry)) => entry.costs(cost),
                        None => this.cost = Some(Box::new(cost)),
                    }
                    // hyper 1.12 may learn of the end in its last poll after a flush. If the end of
                    // the body is the end of the connection (HTTP/1.0), hyper closes it only when
                    // polled once more.
                    cx.waker().wake_by_ref();
                    this.ended()
                }
                Err(lost) => this.cut(lost, lost.hint(), cx),
            },
            Kind::Passed(connection, pending, left) => match ready!(pending.poll_piece(cx)) {
                Ok(Some(mut bytes)) => {
                    if let Some(left) = left {
                        bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                        *left -= bytes.len() as u64;
                        if *left == 0 {
                            pending.let_go(connection.presence());
                            if let Some((_, entry)) = &mut this.request {
                                entry.complete();
                            }
                        }
                    }
                    this.gave(bytes)
                }
                Ok(None) if left.is_some() => this.cut(Lost::Short, Lost::Short.hint(), cx),
                Ok(None) => {
                    cx.waker().wake_by_ref();
                    this.ended()
                }
                // The reason was logged where the error occurred.
                Err(_) => {
                    if let Some((_, entry)) = &mut this.request {
                        entry.failed(Some(End::Cut));
                    }
                    this.break_off(cx)
                }
            },
            Kind::Packed(packed) => match ready!(packed.poll_given(cx)) {
                Given::Bytes(bytes) => this.gave(bytes),
                Given::Broken(error) => {
                    this.cut(error, "see the messages of this request in the log", cx)
                }
                Given::End => {
                    cx.waker().wake_by_ref();
                    this.ended()
                }
            },
            Kind::Events(listener) => match ready!(listener.poll_state(cx)) {
                Some(State { version, is_failed }) => {
                    let data = format!("{{\"version\":\"{version}\",\"failed\":{is_failed}}}");
                    this.gave(format!("retry: 300\nevent: state\ndata: {data}\n\n").into())
                }
                None => this.ended(),
            },
            Kind::Cut => Poll::Ready(Some(Err(io::Error::other("incomplete response")))),
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
            // With HTTP/2 this ends the stream; the script may continue.
            Kind::Stream(stream) => stream.left == Some(0),
            Kind::Passed(.., left) => *left == Some(0),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Short(_)
            | Kind::Stream(_)
            | Kind::Passed(..)
            | Kind::Packed(_)
            | Kind::Events(_)
            | Kind::Cut => SizeHint::default(),
        }
    }
}
