//! deliver: a worker's answer → hyper's response.
//!
//! The worker's header lines are checked one by one: what is no valid header is dropped, and so are those that
//! belong to the connection (`Connection`, `Transfer-Encoding` …) because the connection is ours. A body that is
//! all there goes out with its length; a longer one is read from its slot when hyper asks, that is when
//! the client takes bytes, so a slow client blocks its worker and not our memory.

use crate::error_page::Failure;
use crate::exchange::{Answer, Exchange, Lost, Piece};
use crate::record::Passage;
use crate::shared::Shared;
use crate::static_files::FileBody;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The response for a worker's answer. `headers` is an empty or used map whose memory is used again.
pub(crate) fn respond(
    shared: &Rc<Shared>,
    mut headers: HeaderMap,
    answer: Answer,
    exchange: Option<Exchange>,
    is_head: bool,
    passage: &mut Passage,
) -> Result<Response<AnswerBody>, Failure> {
    let Answer { status: code, bytes, head_bytes, ledger, .. } = answer;
    let status = StatusCode::from_u16(code).map_err(|_| Failure::BrokenAnswer)?;
    if status.is_informational() {
        tracing::debug!(%status, "a script ended with an interim status");
        return Err(Failure::BrokenAnswer);
    }
    headers.clear();
    let declared = read_lines(&bytes, head_bytes, &mut headers, |name| {
        shared.report_dropped(name);
    });
    if let Some(ledger) = ledger {
        passage.costs(ledger);
    }
    let is_bodiless = is_head || matches!(code, 204 | 304);
    if let Some(length) = declared.filter(|_| is_head || !is_bodiless) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let bytes = bytes.slice(head_bytes..);
    let body = match exchange {
        _ if is_bodiless => AnswerBody::empty(),
        Some(exchange) => AnswerBody::stream(bytes, exchange, declared),
        None => whole(bytes, declared),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// A complete body against the length its script declared: a longer one is shortened, as nginx does; after a
/// shorter one the connection is cut.
fn whole(bytes: Bytes, declared: Option<u64>) -> AnswerBody {
    let length = bytes.len() as u64;
    match declared {
        Some(declared) if declared < length => AnswerBody::whole(bytes.slice(..declared as usize)),
        Some(declared) if declared > length => AnswerBody::short(bytes),
        _ => AnswerBody::whole(bytes),
    }
}

/// Reads `Name: value\n` lines into `headers`; returns a valid `Content-Length`, which it leaves out.
pub(crate) fn read_lines(
    bytes: &Bytes,
    head_bytes: usize,
    headers: &mut HeaderMap,
    report: impl Fn(&[u8]),
) -> Option<u64> {
    let mut length = None;
    let mut at = 0;
    while at < head_bytes {
        let rest = &bytes[at..head_bytes];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let start = at;
        at += end + 1;
        let Some(colon) = memchr::memchr(b':', line) else {
            if !line.trim_ascii().is_empty() {
                report(line);
            }
            continue;
        };
        let value = trimmed(line, colon + 1);
        let value = bytes.slice(start + value.start..start + value.end);
        let name = HeaderName::from_bytes(&line[..colon]);
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value)) else {
            report(&line[..colon]);
            continue;
        };
        if name == header::CONTENT_LENGTH {
            length = value.to_str().ok().and_then(|v| v.parse().ok());
        } else if name == header::CONTENT_TYPE && value.is_empty() {
            // `header('Content-Type:')` is how a script says that it wants none.
        } else if !is_ours(&name) {
            headers.append(name, value);
        }
    }
    length
}

/// The part of `line` from `from` on without white space around it.
fn trimmed(line: &[u8], from: usize) -> std::ops::Range<usize> {
    let value = line[from..].trim_ascii_start();
    let start = line.len() - value.len();
    start..start + value.trim_ascii_end().len()
}

/// Headers that are about the connection, and `Status`, which the worker has already obeyed.
fn is_ours(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONNECTION
            | header::TRANSFER_ENCODING
            | header::UPGRADE
            | header::TE
            | header::TRAILER
    ) || matches!(name.as_str(), "status" | "keep-alive" | "proxy-connection")
}

/// Any answer's body. Carries the request's record, which is written when the body is done or dropped.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    kind: Kind,
    passage: Option<Passage>,
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
}

/// The body of an answer that is still being written.
#[derive(Debug)]
struct Stream {
    /// `None` when the body is complete.
    exchange: Option<Exchange>,
    first: Bytes,
    /// What is left of the declared length.
    left: Option<u64>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        // hyper drops a body that has given all it had declared: the client is content, the script runs on.
        if let (Some(exchange), Some(0)) = (&mut self.exchange, self.left) {
            exchange.let_go();
        }
    }
}

impl AnswerBody {
    pub(crate) fn empty() -> AnswerBody {
        AnswerBody { kind: Kind::Empty, passage: None }
    }

    pub(crate) fn whole(bytes: Bytes) -> AnswerBody {
        let kind = if bytes.is_empty() { Kind::Empty } else { Kind::Whole(bytes) };
        AnswerBody { kind, passage: None }
    }

    fn short(bytes: Bytes) -> AnswerBody {
        AnswerBody { kind: Kind::Short(bytes), passage: None }
    }

    fn stream(first: Bytes, exchange: Exchange, left: Option<u64>) -> AnswerBody {
        let stream = Stream { exchange: Some(exchange), first, left };
        AnswerBody { kind: Kind::Stream(stream), passage: None }
    }

    pub(crate) fn file(file: FileBody) -> AnswerBody {
        AnswerBody { kind: Kind::File(Box::new(file)), passage: None }
    }

    /// Ties the request's record to the body.
    pub(crate) fn carry(mut self, mut passage: Passage) -> AnswerBody {
        if matches!(self.kind, Kind::Empty) {
            passage.complete();
        }
        self.passage = Some(passage);
        self
    }

    fn gave(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(passage) = &mut self.passage {
            passage.sent(bytes.len() as u64);
            if matches!(self.kind, Kind::Empty) {
                passage.complete();
            }
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn ended(&mut self) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(passage) = &mut self.passage {
            passage.complete();
        }
        Poll::Ready(None)
    }

    /// The answer breaks off: all that can be done is to cut the connection. hyper forgets what it has not sent when
    /// a body fails, so the failure comes one poll later, after a flush.
    fn cut(
        &mut self,
        why: Lost,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(passage) = &self.passage {
            passage.cut(why);
        }
        self.kind = Kind::Cut;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Stream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let piece = if self.first.is_empty() {
            let Some(exchange) = &mut self.exchange else {
                return Poll::Ready(Ok(Piece::End(None)));
            };
            ready!(exchange.poll_piece(cx))
        } else {
            Ok(Piece::Bytes(std::mem::take(&mut self.first)))
        };
        match &piece {
            Ok(Piece::Bytes(bytes)) => {
                self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
            }
            Ok(Piece::End(_)) | Err(_) => self.exchange = None,
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
            Kind::Empty => this.ended(),
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
                    if let (true, Some(passage)) = (is_all, &mut this.passage) {
                        passage.complete();
                    }
                    this.gave(bytes)
                }
                Ok(Piece::End(_)) if stream.left.is_some_and(|left| left > 0) => {
                    this.cut(Lost::Short, cx)
                }
                Ok(Piece::End(ledger)) => {
                    if let (Some(ledger), Some(passage)) = (ledger, &mut this.passage) {
                        passage.costs(ledger);
                    }
                    // hyper 1.12 may learn of the end in a last look after its flush; where the end is the
                    // connection's (HTTP/1.0), it closes only when it is polled once more.
                    cx.waker().wake_by_ref();
                    this.ended()
                }
                Err(lost) => this.cut(lost, cx),
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
        matches!(self.kind, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Short(_) | Kind::Stream(_) | Kind::Cut => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn check(lines: &str, expected: &[(&str, &str)], length: Option<u64>, dropped: &[&str]) {
        let bytes = Bytes::copy_from_slice(format!("{lines}BODY").as_bytes());
        let mut headers = HeaderMap::new();
        let reported = RefCell::new(Vec::new());
        let report = |name: &[u8]| {
            reported.borrow_mut().push(String::from_utf8_lossy(name).into_owned());
        };
        assert_eq!(read_lines(&bytes, lines.len(), &mut headers, report), length, "{lines:?}");
        let found: Vec<_> =
            headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap_or("?"))).collect();
        assert_eq!(found, expected, "{lines:?}");
        assert_eq!(reported.into_inner(), dropped, "{lines:?}");
    }

    #[test]
    fn header_lines() {
        check("Content-type: text/html\n", &[("content-type", "text/html")], None, &[]);
        check("A:1\nB:  2 \r\nA: 3\n", &[("a", "1"), ("a", "3"), ("b", "2")], None, &[]);
        check("Empty:\nContent-Type:\n", &[("empty", "")], None, &[]);
        check("No-Newline: x", &[("no-newline", "x")], None, &[]);
        check("\n\r\n", &[], None, &[]);
        check("Content-Length: 12\n", &[], Some(12), &[]);
        check("Content-Length: -1\n", &[], None, &[]);
        check("Content-Length: 1, 1\n", &[], None, &[]);
        check(
            "Transfer-Encoding: chunked\nConnection: close\nStatus: 404\nTE: x\n",
            &[],
            None,
            &[],
        );
        check("Keep-Alive: 5\nUpgrade: h2c\nTrailer: x\nProxy-Connection: x\n", &[], None, &[]);
        check(
            "Bad Name: 1\n: 2\nnothing\nOk: 3\n",
            &[("ok", "3")],
            None,
            &["Bad Name", "", "nothing"],
        );
        check("X: a\x01b\nY: a\0b\n", &[], None, &["X", "Y"]);
        check("Location: /\u{e4}\n", &[("location", "?")], None, &[]);
    }
}
