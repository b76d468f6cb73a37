//! The socket below hyper: tells the connection's state when a head begins and when the client takes nothing.

use super::{ConnectionState, Phase};
use rustix::net::RecvFlags;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The socket, and what passes through it.
pub(super) struct Watched {
    pub(super) stream: TcpStream,
    state: Rc<ConnectionState>,
    /// hyper has bytes that the socket did not take yet: nothing may come between them.
    is_behind: bool,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, state: Rc<ConnectionState>) -> Watched {
        Watched { stream, state, is_behind: false }
    }

    fn wrote(&self, is_blocked: bool) {
        let blocked = &self.state.write_blocked_since_ms;
        if !is_blocked {
            blocked.set(0);
        } else if blocked.get() == 0 {
            blocked.set(self.state.shared.now_ms.get().max(1));
        }
    }

    /// Writes what goes ahead of hyper's next message, unless the end of its last one is still on its way.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ahead = self.state.ahead.borrow_mut();
        while !self.is_behind && !ahead.is_empty() {
            let result = Pin::new(&mut self.stream).poll_write(cx, &ahead);
            self.wrote(result.is_pending());
            let written = ready!(result)?;
            ahead.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// hyper has offered `bytes`.
    fn offered(
        &mut self,
        bytes: usize,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.wrote(result.is_pending());
        self.is_behind = !matches!(result, Poll::Ready(Ok(written)) if written == bytes);
        result
    }
}

impl Watched {
    /// Whether bytes lie in the kernel's buffer. The runtime learns of them when it next looks.
    fn has_unread(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut byte = [0u8; 1];
        matches!(rustix::net::recv(&self.stream, &mut byte, flags), Ok((_, 1..)))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before && self.state.phase.get() == Phase::Idle {
            self.state.enter(Phase::Head);
        }
        if result.is_pending() && self.state.asks_kernel.get() {
            self.state.has_unread.set(self.has_unread());
        }
        result
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ahead(cx))?;
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.offered(bytes.len(), result)
    }

    /// hyper calls it when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_behind = false;
        ready!(self.poll_ahead(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ahead(cx))?;
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.offered(pieces.iter().map(|piece| piece.len()).sum(), result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
