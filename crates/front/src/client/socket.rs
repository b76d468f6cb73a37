//! Transports of a client's bytes: TCP, Unix sockets, and TLS over either.
//!
//! Plain TCP is the hot path, so its concrete type is used in all layers. All other transports are
//! boxed.

use bytes::Bytes;
use rustix::net::RecvFlags;
use std::fmt::Debug;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A client's connection, below HTTP.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Debug + 'static {
    /// Whether the kernel's buffer has bytes. The runtime learns of them at its next poll.
    fn has_unread(&self) -> bool;

    /// Returns the first unread byte without removing it. `None`: the connection has ended. With
    /// TLS, it is a byte of the encrypted stream.
    fn poll_first(&self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>>;

    /// Whether it may still hold bytes after a write. If so, only a flush shows whether they were
    /// sent.
    fn keeps_written(&self) -> bool;
}

/// Any transport.
pub(super) type AnySocket = Box<dyn Socket>;

fn is_readable(socket: impl AsFd) -> bool {
    matches!(first(socket), Ok(Some(_)))
}

fn first(socket: impl AsFd) -> io::Result<Option<u8>> {
    let mut byte = [0u8; 1];
    let (_, bytes) = rustix::net::recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    Ok((bytes > 0).then_some(byte[0]))
}

/// Calls `look` when the socket is ready. The runtime may report this too early.
fn look_when_ready<T>(
    mut poll_ready: impl FnMut() -> Poll<io::Result<()>>,
    look: impl Fn() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        ready!(poll_ready())?;
        match look() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            looked => return Poll::Ready(looked),
        }
    }
}

impl Socket for TcpStream {
    fn has_unread(&self) -> bool {
        is_readable(self)
    }

    fn poll_first(&self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        let look = || self.try_io(Interest::READABLE, || first(self));
        look_when_ready(|| self.poll_read_ready(cx), look)
    }

    fn keeps_written(&self) -> bool {
        false
    }
}

impl Socket for UnixStream {
    fn has_unread(&self) -> bool {
        is_readable(self)
    }

    fn poll_first(&self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        let look = || self.try_io(Interest::READABLE, || first(self));
        look_when_ready(|| self.poll_read_ready(cx), look)
    }

    fn keeps_written(&self) -> bool {
        false
    }
}

impl Socket for TlsStream<AnySocket> {
    fn has_unread(&self) -> bool {
        self.get_ref().0.has_unread()
    }

    fn poll_first(&self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        self.get_ref().0.poll_first(cx)
    }

    fn keeps_written(&self) -> bool {
        true
    }
}

impl Socket for AnySocket {
    fn has_unread(&self) -> bool {
        (**self).has_unread()
    }

    fn poll_first(&self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        (**self).poll_first(cx)
    }

    fn keeps_written(&self) -> bool {
        (**self).keeps_written()
    }
}

/// A connection with bytes that were already read from it and must be read again.
#[derive(Debug)]
pub(super) struct Prefixed {
    first: Bytes,
    inner: AnySocket,
}

impl Prefixed {
    pub(super) fn wrap(first: Bytes, inner: AnySocket) -> AnySocket {
        if first.is_empty() { inner } else { Box::new(Prefixed { first, inner }) }
    }
}

impl Socket for Prefixed {
    fn has_unread(&self) -> bool {
        !self.first.is_empty() || self.inner.has_unread()
    }

    fn poll_first(&self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        match self.first.first() {
            Some(byte) => Poll::Ready(Ok(Some(*byte))),
            None => self.inner.poll_first(cx),
        }
    }

    fn keeps_written(&self) -> bool {
        self.inner.keeps_written()
    }
}

impl AsyncRead for Prefixed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buffer);
        }
        let given = buffer.remaining().min(self.first.len());
        let bytes = self.first.split_to(given);
        buffer.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Prefixed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
