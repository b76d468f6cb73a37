//! The socket below hyper: tells the connection's state when a head begins and when the client takes nothing.

use super::{ConnectionState, Phase};
use rustix::net::RecvFlags;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The socket, and what passes through it.
pub(super) struct Watched {
    pub(super) stream: TcpStream,
    pub(super) state: Rc<ConnectionState>,
}

impl Watched {
    fn wrote(&self, result: &Poll<io::Result<usize>>) {
        let blocked = &self.state.write_blocked_since_ms;
        match result {
            Poll::Pending if blocked.get() == 0 => {
                blocked.set(self.state.shared.now_ms.get().max(1));
            }
            Poll::Pending => {}
            Poll::Ready(_) => blocked.set(0),
        }
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
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(&result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
