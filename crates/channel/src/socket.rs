//! An end of a channel: `SOCK_SEQPACKET`, one message per datagram, with at most one file
//! descriptor attached (unix(7), `SCM_RIGHTS`).

use crate::encoding::{Garbled, MESSAGE_BYTES_MAX, decode, encode};
use crate::event::{Event, GraphNote, ImageWord, LoadsNote};
use crate::order::{ImageOrder, Order};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// An end that sends one type of message and receives another.
#[derive(Debug)]
pub struct Socket<Says, Hears> {
    fd: OwnedFd,
    grammar: PhantomData<fn(Says) -> Hears>,
}

/// The supervisor's end of a template's channel.
pub type SupervisorEnd = Socket<Order, Event>;
/// The template's end. The image process writes to it as well.
pub type TemplateEnd = Socket<Event, Order>;
/// The template's end of the image process's channel.
pub type TemplateImageEnd = Socket<ImageOrder, ImageWord>;
/// The image process's end.
pub type ImageEnd = Socket<ImageWord, ImageOrder>;

/// The end of the socket for call graphs, of a tracing worker and of their reader.
pub type GraphEnd = Socket<GraphNote, GraphNote>;
/// The end of the socket for reports of loaded files, of their sender and of their reader.
pub type LoadsEnd = Socket<LoadsNote, LoadsNote>;

/// Result of a receive.
#[derive(Debug)]
pub enum Heard<M> {
    /// A message, and the descriptor that was passed with it.
    Message(M, Option<OwnedFd>),
    /// Something that is not a message.
    Garbled(Garbled),
    /// The other side has closed its end.
    End,
}

/// Creates both ends of a channel. Both are closed on exec.
pub fn pair<A, B>() -> io::Result<(Socket<A, B>, Socket<B, A>)> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    Ok((ours.into(), theirs.into()))
}

impl<Says: Serialize, Hears: DeserializeOwned> Socket<Says, Hears> {
    /// Sends one message. Waits for room.
    pub fn send(&self, message: &Says) -> io::Result<()> {
        self.send_as(message, None, SendFlags::empty())
    }

    /// Sends one message and, if given, a copy of a descriptor. Never waits, because a process that
    /// does not read may be stopped.
    pub fn send_now(&self, message: &Says, passed: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send_as(message, passed, SendFlags::DONTWAIT)
    }

    fn send_as(
        &self,
        message: &Says,
        passed: Option<BorrowedFd<'_>>,
        flags: SendFlags,
    ) -> io::Result<()> {
        let bytes = encode(message).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        let passed = passed.as_slice();
        if !passed.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(passed));
        }
        let part = [io::IoSlice::new(&bytes)];
        let flags = flags | SendFlags::NOSIGNAL;
        retry_on_intr(|| rustix::net::sendmsg(&self.fd, &part, &mut control, flags))?;
        Ok(())
    }

    /// Receives the next message. Waits for it.
    pub fn hear(&self) -> io::Result<Heard<Hears>> {
        Ok(self.receive(RecvFlags::empty())?)
    }

    /// Receives the next message, if there is one.
    pub fn hear_now(&self) -> io::Result<Option<Heard<Hears>>> {
        match self.receive(RecvFlags::DONTWAIT) {
            Ok(heard) => Ok(Some(heard)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&self, flags: RecvFlags) -> Result<Heard<Hears>, Errno> {
        let mut buffer = [0u8; MESSAGE_BYTES_MAX];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let got = retry_on_intr(|| {
            let part = io::IoSliceMut::new(&mut buffer);
            rustix::net::recvmsg(&self.fd, &mut [part], &mut control, flags)
        });
        let got = match got {
            // The other end was closed before it had read everything.
            Err(Errno::CONNRESET) => return Ok(Heard::End),
            got => got?,
        };
        let passed = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        let bytes = &buffer[..got.bytes.min(MESSAGE_BYTES_MAX)];
        Ok(if got.flags.contains(ReturnFlags::TRUNC) {
            let why = format!("a message longer than {MESSAGE_BYTES_MAX} bytes");
            Heard::Garbled(Garbled::new(&why, bytes))
        } else if bytes.is_empty() {
            Heard::End
        } else {
            match decode(bytes) {
                Ok(message) => Heard::Message(message, passed),
                Err(garbled) => Heard::Garbled(garbled),
            }
        })
    }

    /// The same end under another descriptor number.
    pub fn try_clone(&self) -> io::Result<Socket<Says, Hears>> {
        self.fd.try_clone().map(Socket::from)
    }
}

impl<Says, Hears> From<OwnedFd> for Socket<Says, Hears> {
    fn from(fd: OwnedFd) -> Socket<Says, Hears> {
        Socket { fd, grammar: PhantomData }
    }
}

impl<Says, Hears> AsFd for Socket<Says, Hears> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<Says, Hears> AsRawFd for Socket<Says, Hears> {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
