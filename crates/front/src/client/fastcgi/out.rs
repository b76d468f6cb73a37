//! deliver: a response as records, on its way to the socket. Small pieces are joined, large ones
//! are not copied.

use crate::client::socket::AnySocket;
use crate::upstream::record::{CONTENT_BYTES_MAX, Ended, STDOUT, put_end, put_header, put_stream};
use bytes::{Buf, Bytes, BytesMut};
use http::response::Parts;
use http::{StatusCode, header};
use hyper::ext::ReasonPhrase;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Pieces up to this size are copied, because one system call for many of them costs less.
const COPIED_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of pieces per system call.
const PIECES_MAX: usize = 16;

/// Bytes that wait for the socket.
#[derive(Debug, Default)]
pub(super) struct Out {
    queue: VecDeque<Bytes>,
    tail: BytesMut,
    bytes: usize,
}

impl Out {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds complete records.
    pub(super) fn put(&mut self, records: &[u8]) {
        self.adding(|tail| tail.extend_from_slice(records));
    }

    /// Adds bytes of a stream.
    pub(super) fn stream(&mut self, kind: u8, id: u16, bytes: &[u8]) {
        self.adding(|tail| put_stream(tail, kind, id, bytes));
    }

    /// Adds status and headers in CGI format. `length`: that of a complete body.
    pub(super) fn head(&mut self, id: u16, parts: &Parts, length: Option<u64>) {
        let mut head = Vec::with_capacity(512);
        if parts.status != StatusCode::OK {
            let own = parts.extensions.get::<ReasonPhrase>().map(ReasonPhrase::as_bytes);
            let reason = own.or_else(|| Some(parts.status.canonical_reason()?.as_bytes()));
            let _ = write!(head, "Status: {}", parts.status.as_u16());
            for part in [&b" "[..], reason.unwrap_or_default(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        for (name, value) in &parts.headers {
            if name == header::CONNECTION {
                continue;
            }
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        let is_bodiless = matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if let Some(length) = length.filter(|_| !is_bodiless)
            && !parts.headers.contains_key(header::CONTENT_LENGTH)
        {
            let _ = write!(head, "content-length: {length}\r\n");
        }
        head.extend_from_slice(b"\r\n");
        self.stream(STDOUT, id, &head);
    }

    /// Adds bytes of the response's body.
    pub(super) fn respond(&mut self, id: u16, mut bytes: Bytes) {
        if bytes.len() <= COPIED_BYTES_MAX {
            return self.stream(STDOUT, id, &bytes);
        }
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(CONTENT_BYTES_MAX));
            self.adding(|tail| put_header(tail, STDOUT, id, piece.len() as u16));
            self.queue.push_back(self.tail.split().freeze());
            self.bytes += piece.len();
            self.queue.push_back(piece);
        }
    }

    /// Adds the end of the response, and of its request.
    pub(super) fn last(&mut self, id: u16) {
        self.adding(|tail| {
            put_header(tail, STDOUT, id, 0);
            put_end(tail, id, Ended::Complete);
        });
    }

    /// Adds the end of a request without a response.
    pub(super) fn end(&mut self, id: u16, ended: Ended) {
        self.adding(|tail| put_end(tail, id, ended));
    }

    fn adding(&mut self, add: impl FnOnce(&mut BytesMut)) {
        let before = self.tail.len();
        add(&mut self.tail);
        self.bytes += self.tail.len() - before;
    }

    /// Writes the bytes that the socket takes immediately.
    pub(super) fn poll_write(
        &mut self,
        stream: &mut AnySocket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let waiting = self.queue.iter().map(|piece| &piece[..]).chain([&self.tail[..]]);
        let mut count = 0;
        for (slot, piece) in pieces.iter_mut().zip(waiting) {
            *slot = IoSlice::new(piece);
            count += 1;
        }
        let written = ready!(Pin::new(stream).poll_write_vectored(cx, &pieces[..count]))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(first) = self.queue.front_mut() {
            if first.len() > written {
                return first.advance(written);
            }
            written -= first.len();
            self.queue.pop_front();
        }
        self.tail.advance(written);
    }
}
