//! The socket below hyper. Reports to the connection's state when a head begins and when the client
//! takes nothing, and gives hyper the bytes that the screen lets pass.

use super::connection::{ConnectionState, Phase};
use super::head_filter::Screen;
use super::socket::Socket;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Responses up to this size are joined: the kernel takes one piece in less time than two.
const SMALL_BYTES: usize = 1024;

/// The socket with its filtered input.
pub(super) struct Watched<S> {
    pub(super) stream: S,
    state: Rc<ConnectionState>,
    /// hyper has bytes that the socket has not taken yet. No other bytes may be written between
    /// them.
    is_behind: bool,
    held: Held,
}

/// Received bytes that hyper has not got: an unfinished line of a head, or bytes after a head. At
/// most one read, and one line.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    given: usize,
    passed: usize,
}

impl<S: Socket> Watched<S> {
    pub(super) fn new(stream: S, state: Rc<ConnectionState>) -> Watched<S> {
        Watched { stream, state, is_behind: false, held: Held::default() }
    }

    /// Continues after another hyper that got the first bytes of a head, `begun`, and stopped.
    pub(super) fn resume(stream: S, state: Rc<ConnectionState>, begun: &[u8], rest: &[u8]) -> Self {
        let bytes = [begun, rest].concat();
        let held = Held { bytes, given: 0, passed: begun.len() };
        Watched { stream, state, is_behind: false, held }
    }

    /// Returns the socket, and the received bytes that hyper has not got.
    pub(super) fn into_parts(mut self) -> (S, Bytes) {
        self.held.bytes.drain(..self.held.given);
        (self.stream, self.held.bytes.into())
    }

    /// Writes interim responses before hyper's next message, unless the end of its last message is
    /// still being written.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ahead = self.state.ahead.borrow_mut();
        while !self.is_behind && !ahead.is_empty() {
            let result = Pin::new(&mut self.stream).poll_write(cx, &ahead);
            self.state.wrote(result.is_pending());
            let written = ready!(result)?;
            ahead.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// Whether hyper responds to a head that it refuses. Its response has no body, so
    /// `refused_head` sends another one.
    fn takes_refusal(&self, bytes: &[u8]) -> bool {
        if self.is_behind || self.state.is_busy() {
            return false;
        }
        let Some(status) = status_of_refusal(bytes) else { return false };
        let is_refusal = self.state.screen.borrow().awaits_result();
        if is_refusal {
            self.state.refusal.set(Some(status));
        }
        is_refusal
    }

    /// Records the result of a write by hyper.
    fn offered(
        &mut self,
        bytes: usize,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.state.wrote(result.is_pending());
        self.is_behind = !matches!(result, Poll::Ready(Ok(written)) if written == bytes);
        result
    }
}

impl Held {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Keeps the bytes of `buffer` after the first `passed`.
    fn keep(&mut self, buffer: &mut ReadBuf<'_>, passed: usize) {
        if passed < buffer.filled().len() {
            // Removes the bytes that were given. Otherwise a pipeline that always leaves an
            // unfinished line would grow forever.
            self.bytes.drain(..self.given);
            self.passed -= self.given;
            self.given = 0;
            self.bytes.extend_from_slice(&buffer.filled()[passed..]);
            buffer.set_filled(passed);
        }
    }

    /// Gives hyper the bytes that may pass. Returns false if there are none.
    fn give(&mut self, screen: &mut Screen, buffer: &mut ReadBuf<'_>) -> bool {
        if self.passed == self.given {
            self.passed += screen.pass(&mut self.bytes[self.given..]);
        }
        let given = buffer.remaining().min(self.passed - self.given);
        buffer.put_slice(&self.bytes[self.given..self.given + given]);
        self.given += given;
        if self.given == self.bytes.len() {
            // Frees the memory, so that an idle connection holds none.
            *self = Held::default();
        }
        given > 0
    }
}

impl<S: Socket> Watched<S> {
    /// Reads the bytes that hyper may get. They are all that arrive, in place, unless a line of a
    /// head is unfinished or a head is followed by more bytes.
    fn poll_screened(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let mut screen = self.state.screen.borrow_mut();
        loop {
            if !self.held.is_empty() {
                if self.held.give(&mut screen, buffer) {
                    return Poll::Ready(Ok(()));
                }
                if screen.is_broken() {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                if screen.has_preface() {
                    // hyper's HTTP/1.1 must end without a response.
                    return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
                }
                if screen.is_crowded() {
                    // The last response must be sent first. hyper reads again after that.
                    return if self.is_behind || self.state.is_busy() {
                        Poll::Pending
                    } else {
                        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
                    };
                }
            }
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
            let has_ended = buffer.filled().len() == before;
            if !self.held.is_empty() {
                if has_ended {
                    screen.end();
                }
                self.held.keep(buffer, before);
                continue;
            }
            let passed = screen.pass(&mut buffer.filled_mut()[before..]);
            self.held.keep(buffer, before + passed);
            if has_ended || passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Whether a head is arriving that hyper has not parsed.
    fn has_begun(&self) -> bool {
        !self.held.is_empty() || self.state.screen.borrow().is_inside_head()
    }
}

impl<S: Socket> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = self.poll_screened(cx, buffer);
        if self.state.phase.get() == Phase::Idle
            && (buffer.filled().len() > before || self.has_begun())
        {
            self.state.enter(Phase::Head);
        }
        if result.is_pending() && self.state.asks_kernel.get() {
            self.state.has_unread.set(self.stream.has_unread());
        }
        result
    }
}

impl<S: Socket> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ahead(cx))?;
        if self.takes_refusal(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.offered(bytes.len(), result)
    }

    /// hyper calls it when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_behind = false;
        ready!(self.poll_ahead(cx))?;
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        if self.stream.keeps_written() {
            self.state.wrote(result.is_pending());
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_used_later =
            self.state.refusal.get().is_some() || self.state.screen.borrow().is_continued();
        if is_used_later {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ahead(cx))?;
        let len = pieces.iter().map(|piece| piece.len()).sum();
        if pieces.first().is_some_and(|piece| self.takes_refusal(piece)) {
            return Poll::Ready(Ok(len));
        }
        let result = if len <= SMALL_BYTES {
            let mut memory = [0; SMALL_BYTES];
            let whole = joined(pieces, &mut memory);
            Pin::new(&mut self.stream).poll_write(cx, whole)
        } else {
            Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
        };
        self.offered(len, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The status of a response that hyper makes itself. The front's own responses have an id.
fn status_of_refusal(bytes: &[u8]) -> Option<u16> {
    let status = match bytes.get(..12)? {
        b"HTTP/1.1 400" | b"HTTP/1.0 400" => 400,
        b"HTTP/1.1 414" | b"HTTP/1.0 414" => 414,
        b"HTTP/1.1 431" | b"HTTP/1.0 431" => 431,
        _ => return None,
    };
    let has = |text| memchr::memmem::find(bytes, text).is_some();
    let is_empty = has(b"\r\ncontent-length: 0\r\n".as_slice()) && bytes.ends_with(b"\r\n\r\n");
    (is_empty && !has(b"\r\nx-request-id: ".as_slice())).then_some(status)
}

/// Joins all `pieces`, which fit `memory`.
fn joined<'a>(pieces: &[io::IoSlice<'_>], memory: &'a mut [u8]) -> &'a [u8] {
    let mut at = 0;
    for piece in pieces {
        memory[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    &memory[..at]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::head_filter::Framing;

    /// An endless sequence of requests, each cut in the middle of a line: bytes that were given are
    /// not kept.
    #[test]
    fn held_bytes_stay_bounded_for_endless_pipeline() {
        let mut screen = Screen::new(4096, false);
        let mut held = Held::default();
        let mut memory = [0; 256];
        let mut heads = 0;
        held.bytes.extend_from_slice(b"GE");
        for _ in 0..1000 {
            let mut buffer = ReadBuf::new(&mut memory);
            buffer.put_slice(b"T / HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\nGE");
            held.keep(&mut buffer, 0);
            while held.give(&mut screen, &mut buffer) {
                assert!(buffer.filled().ends_with(b"\r\n\r\n"));
                screen.parsed(Framing::Length(0));
                buffer.clear();
                heads += 1;
            }
            assert!(held.bytes.len() < 128, "{} bytes", held.bytes.len());
        }
        assert_eq!(heads, 2000);
    }
}
