//! An end of a channel: `SOCK_SEQPACKET`, one message per datagram, a descriptor beside it (unix(7), `SCM_RIGHTS`).

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

/// An end that says one kind of messages and hears another.
#[derive(Debug)]
pub struct Socket<Says, Hears> {
    fd: OwnedFd,
    grammar: PhantomData<fn(Says) -> Hears>,
}

/// The supervisor's end of a template's channel.
pub type SupervisorEnd = Socket<Order, Event>;
/// The template's end, which the image process writes to as well.
pub type TemplateEnd = Socket<Event, Order>;
/// The template's end of the image process's channel.
pub type TemplateImageEnd = Socket<ImageOrder, ImageWord>;
/// The image process's end.
pub type ImageEnd = Socket<ImageWord, ImageOrder>;

/// A tracing worker's end of the socket that call graphs go to, and their reader's.
pub type GraphEnd = Socket<GraphNote, GraphNote>;
/// The end of the socket on which is told what was loaded, of who tells and of who listens.
pub type LoadsEnd = Socket<LoadsNote, LoadsNote>;

/// What a look at the socket has brought.
#[derive(Debug)]
pub enum Heard<M> {
    /// A message, and the descriptor that was passed with it.
    Message(M, Option<OwnedFd>),
    /// Something that is none.
    Garbled(Garbled),
    /// The other side has closed its end.
    End,
}

/// Both ends of a new channel; programs inherit neither.
pub fn pair<A, B>() -> io::Result<(Socket<A, B>, Socket<B, A>)> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    Ok((ours.into(), theirs.into()))
}

impl<Says: Serialize, Hears: DeserializeOwned> Socket<Says, Hears> {
    /// Sends one message; waits for room.
    pub fn send(&self, message: &Says) -> io::Result<()> {
        self.send_as(message, None, SendFlags::empty())
    }

    /// Sends one message and a copy of a descriptor, if there is one. Never waits: who does not read may be stopped.
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

    /// The next message; waits for it.
    pub fn hear(&self) -> io::Result<Heard<Hears>> {
        Ok(self.receive(RecvFlags::empty())?)
    }

    /// The next message, if one is there.
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
            // It has closed without having read all.
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

    /// The same end under another number.
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
