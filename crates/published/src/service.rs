//! Process → server: a value to publish, in a memory file that is passed with a datagram; and the
//! server's reply.
//!
//! All PHP processes have the same end of one socket. A sender also passes a socket for the reply.
//! So no process receives a reply meant for another, and a sender that is killed leaves only a
//! socket that is not read.
//!
//! The system calls go through rustix. So they use neither libc's state, which a rollback restores,
//! nor the functions that a worker interposes.

use crate::limits::NAME_BYTES_MAX;
use crate::publisher::Publisher;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum wait for the server, which lays values out one after another.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a reply, bytes.
const RESPONSE_BYTES_MAX: usize = 1024;
/// Pause of the server after its socket has failed.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum ratio of encoded bytes to bytes in the region. Equal strings are stored once in the
/// region, but encoded each time.
const SENT_PER_BYTE_MAX: u64 = 4;

const PUBLISH: u8 = 1;
const WITHDRAW: u8 = 2;

const DONE: u8 = 0;
const VALUE: u8 = 1;
const NO_ROOM: u8 = 2;

/// Both ends of the socket.
#[derive(Debug)]
pub struct Ends {
    /// The server's end.
    pub server: OwnedFd,
    /// The end of all other processes.
    pub others: OwnedFd,
}

impl Ends {
    /// Creates the two ends. Both are closed on exec.
    pub fn new() -> io::Result<Ends> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let (server, others) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok(Ends { server, others })
    }
}

/// A value to be sent.
#[derive(Debug)]
pub struct Outgoing {
    file: OwnedFd,
    at: *mut u8,
    bytes: usize,
}

impl Outgoing {
    /// Creates room for an encoding of `bytes`.
    pub fn new(bytes: usize) -> io::Result<Outgoing> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("samovar-publish", flags)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        // Reports a lack of memory as an error; during a write the process could only be killed.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes.max(1) as u64)
            .or_else(|error| if bytes == 0 { Ok(()) } else { Err(error) })?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe {
            mmap(std::ptr::null_mut(), bytes.max(1), protection, MapFlags::SHARED, &file, 0)
        }?;
        Ok(Outgoing { file, at: at.cast(), bytes })
    }

    /// Address to write the encoding to.
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// Length of the encoding.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // SAFETY: the address that mmap returned and the length that it got; there are no
        // borrowers.
        let _ = unsafe { munmap(self.at.cast(), self.bytes.max(1)) };
    }
}

/// Why a value was not published, for the sender.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The name is empty or too long.
    #[error("the name of a published value has 1 to {NAME_BYTES_MAX} bytes, not {0}")]
    Name(usize),
    /// The value is invalid.
    #[error("{0}")]
    Value(String),
    /// There is no room for it.
    #[error("{0}")]
    NoRoom(String),
    /// The server did not reply.
    #[error(
        "the server did not respond within {RESPONSE_TIMEOUT:?}; it may still publish the value"
    )]
    Timeout,
    /// A system call failed.
    #[error("cannot ask the server to publish a value: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for SendError {
    fn from(error: Errno) -> SendError {
        SendError::Io(error.into())
    }
}

/// Waits until `fd` is ready, at most until `until`.
fn wait_for(fd: BorrowedFd<'_>, what: PollFlags, until: Instant) -> Result<(), SendError> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::from_borrowed_fd(fd, what)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(SendError::Timeout),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Requests the server to publish or withdraw a value, and waits for the reply.
pub fn ask(server: BorrowedFd<'_>, name: &[u8], value: Option<Outgoing>) -> Result<(), SendError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(SendError::Name(name.len()));
    }
    let until = Instant::now() + RESPONSE_TIMEOUT;
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    let message = [&[if value.is_some() { PUBLISH } else { WITHDRAW }][..], name].concat();
    let fds: Vec<BorrowedFd<'_>> = [Some(theirs.as_fd()), value.as_ref().map(|v| v.file.as_fd())]
        .into_iter()
        .flatten()
        .collect();
    loop {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let part = [io::IoSlice::new(&message)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(server, &part, &mut control, flags) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            // Other processes send requests, too.
            Err(Errno::AGAIN) => wait_for(server, PollFlags::OUT, until)?,
            Err(error) => return Err(error.into()),
        }
    }
    drop((theirs, value));
    wait_for(ours.as_fd(), PollFlags::IN, until)?;
    let mut response = [0; RESPONSE_BYTES_MAX];
    let (got, _) =
        retry_on_intr(|| rustix::net::recv(&ours, &mut response[..], RecvFlags::DONTWAIT))?;
    let text = |from: &[u8]| String::from_utf8_lossy(from).into_owned();
    match &response[..got] {
        [DONE] => Ok(()),
        [VALUE, why @ ..] => Err(SendError::Value(text(why))),
        [NO_ROOM, why @ ..] => Err(SendError::NoRoom(text(why))),
        // The server closed the socket without a reply.
        _ => Err(SendError::NoRoom("the server could not read the value".into())),
    }
}

/// Result of a request, for tests and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It was done.
    Done,
    /// It was rejected.
    Refused,
    /// It was not a valid request.
    Garbled,
}

/// The server's end.
#[derive(Debug)]
pub struct Service {
    socket: OwnedFd,
}

impl Service {
    /// Creates a service on the server's end of the socket.
    pub fn new(socket: OwnedFd) -> Service {
        Service { socket }
    }

    /// Serves requests forever.
    pub fn run(&self, publisher: &Publisher) -> ! {
        loop {
            if self.respond(publisher).is_err() {
                // Most likely there are no free descriptors. The senders wait in the meantime.
                std::thread::sleep(FAILURE_PAUSE);
            }
        }
    }

    /// Waits for a request and replies to it.
    pub fn respond(&self, publisher: &Publisher) -> io::Result<Asked> {
        let mut message = [0; NAME_BYTES_MAX + 2];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let got = retry_on_intr(|| {
            let part = io::IoSliceMut::new(&mut message);
            let flags = RecvFlags::CMSG_CLOEXEC;
            rustix::net::recvmsg(&self.socket, &mut [part], &mut control, flags)
        })?;
        let fds: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        let mut fds = fds.into_iter();
        let (Some(reply), value) = (fds.next(), fds.next()) else { return Ok(Asked::Garbled) };
        if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Ok(Asked::Garbled);
        }
        let done = match (&message[..got.bytes], value) {
            ([PUBLISH, name @ ..], Some(value)) => {
                let sent_max = publisher.limits().value_bytes_max.saturating_mul(SENT_PER_BYTE_MAX);
                match read(&value, sent_max) {
                    Ok(Some(encoded)) => publisher.publish(name, &encoded),
                    Ok(None) => Err(publisher.too_large(name)),
                    Err(_) => return Ok(Asked::Garbled),
                }
            }
            ([WITHDRAW, name @ ..], None) => publisher.withdraw(name).map(|_| ()),
            _ => return Ok(Asked::Garbled),
        };
        let response = match &done {
            Ok(()) => vec![DONE],
            Err(error) => {
                let kind = if error.is_of_value() { VALUE } else { NO_ROOM };
                let mut response = [&[kind][..], error.to_string().as_bytes()].concat();
                response.truncate(RESPONSE_BYTES_MAX);
                response
            }
        };
        // The sender may be gone, or may not have passed a socket at all.
        let _ = rustix::net::send(&reply, &response, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        Ok(if done.is_ok() { Asked::Done } else { Asked::Refused })
    }
}

/// Copies the content of the file, because the sender may change it in the meantime. Accepts only a
/// memory file, which never makes its reader wait. `None` if it has more than `bytes_max`.
fn read(file: &OwnedFd, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let seals = rustix::fs::fcntl_get_seals(file)?;
    if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let size = rustix::fs::fstat(file)?.st_size.cast_unsigned();
    if size > bytes_max {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?];
    let mut at = 0;
    while at < bytes.len() {
        match retry_on_intr(|| rustix::io::pread(file, &mut bytes[at..], at as u64))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => at += read,
        }
    }
    Ok(Some(bytes))
}
