//! Process → server: a value to publish, in a memory file beside a datagram; and the server's answer.
//!
//! All processes of PHP have one end of one socket. Who asks passes a socket for the answer, too, so nobody hears what is
//! another's, and who is killed meanwhile is a socket that nobody reads.
//!
//! These are system calls by way of rustix: neither libc's state, which a rollback puts back, nor the functions that a
//! worker interposes are on the way.

use crate::NAME_BYTES_MAX;
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

/// Longest wait for the server: it lays values out one after another.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 1024;
/// Pause of a server whose socket fails.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// Most bytes of a value as it is sent: strings lie in the region once, and are sent each time.
const SENT_PER_BYTE_MAX: u64 = 4;

const PUBLISH: u8 = 1;
const WITHDRAW: u8 = 2;

const DONE: u8 = 0;
const VALUE: u8 = 1;
const NO_ROOM: u8 = 2;

/// Both ends of the socket.
#[derive(Debug)]
pub struct Ends {
    /// The server's.
    pub server: OwnedFd,
    /// That of all others.
    pub others: OwnedFd,
}

impl Ends {
    /// New ones; programs inherit neither by themselves.
    pub fn new() -> io::Result<Ends> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let (server, others) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok(Ends { server, others })
    }
}

/// A value on its way.
#[derive(Debug)]
pub struct Outgoing {
    file: OwnedFd,
    at: *mut u8,
    bytes: usize,
}

impl Outgoing {
    /// Room for its encoding.
    pub fn new(bytes: usize) -> io::Result<Outgoing> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("samovar-publish", flags)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        // Where there is no memory left, this says so; a write could only be killed.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes.max(1) as u64)
            .or_else(|error| if bytes == 0 { Ok(()) } else { Err(error) })?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe {
            mmap(std::ptr::null_mut(), bytes.max(1), protection, MapFlags::SHARED, &file, 0)
        }?;
        Ok(Outgoing { file, at: at.cast(), bytes })
    }

    /// Where its encoding is to be written.
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// How many bytes that has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // SAFETY: what mmap returned and was given; nobody borrows from it.
        let _ = unsafe { munmap(self.at.cast(), self.bytes.max(1)) };
    }
}

/// Why something was not published, as who asked is told.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The name has no bytes, or too many.
    #[error("the name of a published value has 1 to {NAME_BYTES_MAX} bytes, not {0}")]
    Name(usize),
    /// The value is at fault.
    #[error("{0}")]
    Value(String),
    /// There is no room for it.
    #[error("{0}")]
    NoRoom(String),
    /// Nothing was heard of the server.
    #[error(
        "the server has not answered within {ANSWER_TIMEOUT:?}: it may still publish the value"
    )]
    Timeout,
    /// The system said no.
    #[error("cannot ask the server to publish a value: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for SendError {
    fn from(error: Errno) -> SendError {
        SendError::Io(error.into())
    }
}

/// Waits until `fd` is ready, or the time is over.
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

/// Asks the server to publish a value, or to withdraw it, and waits for the answer.
pub fn ask(server: BorrowedFd<'_>, name: &[u8], value: Option<Outgoing>) -> Result<(), SendError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(SendError::Name(name.len()));
    }
    let until = Instant::now() + ANSWER_TIMEOUT;
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
            // Others ask, too.
            Err(Errno::AGAIN) => wait_for(server, PollFlags::OUT, until)?,
            Err(error) => return Err(error.into()),
        }
    }
    drop((theirs, value));
    wait_for(ours.as_fd(), PollFlags::IN, until)?;
    let mut answer = [0; ANSWER_BYTES_MAX];
    let (got, _) =
        retry_on_intr(|| rustix::net::recv(&ours, &mut answer[..], RecvFlags::DONTWAIT))?;
    let text = |from: &[u8]| String::from_utf8_lossy(from).into_owned();
    match &answer[..got] {
        [DONE] => Ok(()),
        [VALUE, why @ ..] => Err(SendError::Value(text(why))),
        [NO_ROOM, why @ ..] => Err(SendError::NoRoom(text(why))),
        // It has let go of the socket without a word.
        _ => Err(SendError::NoRoom("the server could not read what was to be published".into())),
    }
}

/// What was asked, as a test or a log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It was done.
    Done,
    /// It was refused.
    Refused,
    /// It was no question.
    Garbled,
}

/// The server's end.
#[derive(Debug)]
pub struct Service {
    socket: OwnedFd,
}

impl Service {
    /// Of the server's end of the socket.
    pub fn new(socket: OwnedFd) -> Service {
        Service { socket }
    }

    /// Answers for ever.
    pub fn run(&self, publisher: &Publisher) -> ! {
        loop {
            if self.answer(publisher).is_err() {
                // Descriptors are short, most likely. Who asks waits for so long.
                std::thread::sleep(FAILURE_PAUSE);
            }
        }
    }

    /// Waits for a question, and answers it.
    pub fn answer(&self, publisher: &Publisher) -> io::Result<Asked> {
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
        let answer = match &done {
            Ok(()) => vec![DONE],
            Err(error) => {
                let kind = if error.is_of_value() { VALUE } else { NO_ROOM };
                let mut answer = [&[kind][..], error.to_string().as_bytes()].concat();
                answer.truncate(ANSWER_BYTES_MAX);
                answer
            }
        };
        // Who has asked may be gone, and what it has passed no socket at all.
        let _ = rustix::net::send(&reply, &answer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        Ok(if done.is_ok() { Asked::Done } else { Asked::Refused })
    }
}

/// A copy of what the file holds: whoever has sent it may change it meanwhile. Only of a memory file, which never makes
/// its reader wait. `None`: it has more than `bytes_max`.
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
