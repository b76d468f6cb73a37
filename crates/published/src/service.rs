//! Process → server: a value to publish, in a memory file that is passed with a datagram; and the
//! server's reply.
//!
//! All PHP processes have the same end of one socket ([`samovar_channel::RequestEnds`]).

use crate::limits::NAME_BYTES_MAX;
use crate::publisher::Publisher;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::RecvFlags;
use samovar_channel::{incoming, read_sealed, reply, request};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

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

/// Requests the server to publish or withdraw a value, and waits for the reply.
pub fn ask(server: BorrowedFd<'_>, name: &[u8], value: Option<&Outgoing>) -> Result<(), SendError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(SendError::Name(name.len()));
    }
    let message = [&[if value.is_some() { PUBLISH } else { WITHDRAW }][..], name].concat();
    let file = value.map(|value| value.file.as_fd());
    let mut response = [0; RESPONSE_BYTES_MAX];
    let got = request(server, &message, file, RESPONSE_TIMEOUT, &mut response);
    let got = got.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => SendError::Timeout,
        _ => SendError::Io(error),
    })?;
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
        let Some(found) = incoming(self.socket.as_fd(), &mut message, RecvFlags::empty())? else {
            return Ok(Asked::Garbled);
        };
        let done = match (&message[..found.bytes], found.file) {
            ([PUBLISH, name @ ..], Some(value)) => {
                let sent_max = publisher.limits().value_bytes_max.saturating_mul(SENT_PER_BYTE_MAX);
                match read_sealed(&value, SealFlags::SHRINK | SealFlags::GROW, sent_max) {
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
        reply(&found.reply, &response);
        Ok(if done.is_ok() { Asked::Done } else { Asked::Refused })
    }
}
