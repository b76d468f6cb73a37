//! Worker → server: jobs to push, in a memory file that is passed with a datagram; and the server's
//! reply.
//!
//! All PHP processes of a pool have the same end of one socket. A sender also passes a socket for
//! the reply. So no process receives a reply meant for another, and a sender that is killed leaves
//! only a socket that is not read. The server has the whole request before it looks at it, so a
//! request of a dying process is stored completely or not at all.
//!
//! The system calls go through rustix. So they use neither libc's state, which a rollback restores,
//! nor the functions that a worker interposes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum number of jobs in one push.
pub const PUSHED_JOBS_MAX: usize = 1_000;
/// Maximum length of a payload: it must fit into a batch of its own.
pub const PAYLOAD_BYTES_MAX: usize = 48 << 10;
/// Maximum length of a job's key.
pub const KEY_BYTES_MAX: usize = 200;
/// Maximum length of a queue's name.
pub const QUEUE_BYTES_MAX: usize = 32;
/// Maximum length of an encoded push.
const PUSH_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of an encoded reply: the ids of all jobs, or a message.
const REPLY_BYTES_MAX: usize = 32 << 10;
/// Maximum wait for the server.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The datagram that carries the descriptors. Its content has no meaning.
const DATAGRAM: [u8; 1] = [1];

/// A job as pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJob {
    /// Payload: JSON.
    pub payload: String,
    /// Key for order and for unique jobs.
    pub key: Option<String>,
    /// Larger numbers run first.
    pub priority: i32,
    /// Time before the first run, in milliseconds.
    pub delay_ms: u64,
    /// Number of runs after which it is dead; 0: that of the queue.
    pub attempts: u32,
    /// Time for which no other job with this key is accepted, in milliseconds; 0: not unique.
    pub unique_ms: u64,
}

/// Jobs for one queue, stored together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Name of the queue.
    pub queue: String,
    /// The jobs.
    pub jobs: Vec<NewJob>,
}

/// Reply to a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushReply {
    /// The jobs are durable. An id is 0 if another job has the key of a unique one.
    Stored(Vec<i64>),
    /// An argument is wrong.
    Wrong(String),
    /// There is no room, or the store failed.
    Refused(String),
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The server did not reply.
    #[error("the server did not store the jobs within {REPLY_TIMEOUT:?}; it may still store them")]
    Timeout,
    /// The server could not read the push, or ended.
    #[error("the server did not accept the jobs: it ends, or the push is too large")]
    NoReply,
    /// A system call failed.
    #[error("cannot push jobs: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for PushError {
    fn from(error: Errno) -> PushError {
        PushError::Io(error.into())
    }
}

/// Both ends of the socket for pushes.
#[derive(Debug)]
pub struct PushEnds {
    /// The server's end.
    pub server: OwnedFd,
    /// The end of the workers.
    pub workers: OwnedFd,
}

impl PushEnds {
    /// Creates the two ends. Both are closed on exec.
    pub fn new() -> io::Result<PushEnds> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let (server, workers) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok(PushEnds { server, workers })
    }
}

/// Waits until `fd` is ready, at most until `until`.
fn wait_for(fd: BorrowedFd<'_>, what: PollFlags, until: Instant) -> Result<(), PushError> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::from_borrowed_fd(fd, what)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(PushError::Timeout),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes the request into a sealed memory file.
fn seal(request: &[u8]) -> Result<OwnedFd, PushError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("samovar-jobs", flags)?;
    let mut rest = request;
    while !rest.is_empty() {
        match retry_on_intr(|| rustix::io::write(&file, rest))? {
            0 => return Err(Errno::NOSPC.into()),
            len => rest = &rest[len..],
        }
    }
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}

/// Pushes jobs, and waits until the server has stored them.
pub fn push(server: BorrowedFd<'_>, push: &Push) -> Result<PushReply, PushError> {
    let until = Instant::now() + REPLY_TIMEOUT;
    let file = seal(&serde_json::to_vec(push).map_err(io::Error::other)?)?;
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    let fds = [theirs.as_fd(), file.as_fd()];
    loop {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let part = [io::IoSlice::new(&DATAGRAM)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(server, &part, &mut control, flags) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            // Other processes push, too.
            Err(Errno::AGAIN) => wait_for(server, PollFlags::OUT, until)?,
            Err(error) => return Err(error.into()),
        }
    }
    drop((theirs, file));
    wait_for(ours.as_fd(), PollFlags::IN, until)?;
    let mut reply = vec![0; REPLY_BYTES_MAX];
    let (got, _) = retry_on_intr(|| rustix::net::recv(&ours, &mut reply[..], RecvFlags::DONTWAIT))?;
    serde_json::from_slice(&reply[..got]).map_err(|_| PushError::NoReply)
}

/// A received push, and the socket for its reply.
#[derive(Debug)]
pub struct Received {
    /// The push; `None`: it is not valid.
    pub push: Option<Push>,
    reply: OwnedFd,
}

impl Received {
    /// Sends the reply. The sender may be gone, or may not have passed a socket at all.
    pub fn reply(&self, reply: &PushReply) {
        let bytes = serde_json::to_vec(reply).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(REPLY_BYTES_MAX)];
        let _ = rustix::net::send(&self.reply, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// Receives the next push, if there is one. Never waits.
pub fn receive(server: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    let mut datagram = DATAGRAM;
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let got = retry_on_intr(|| {
        let part = io::IoSliceMut::new(&mut datagram);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        rustix::net::recvmsg(server, &mut [part], &mut control, flags)
    });
    let got = match got {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        got => got?,
    };
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let is_cut = got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    let mut fds = fds.into_iter();
    Ok(match (fds.next(), fds.next()) {
        (Some(reply), Some(file)) if !is_cut => Some(Received { push: read(&file), reply }),
        // There is no socket for a reply.
        (_, file) => {
            drop(file);
            let (reply, _) = rustix::net::socketpair(
                AddressFamily::UNIX,
                SocketType::SEQPACKET,
                SocketFlags::CLOEXEC,
                None,
            )?;
            Some(Received { push: None, reply })
        }
    })
}

/// Copies and decodes the file. Accepts only a sealed memory file, which never makes its reader
/// wait.
fn read(file: &OwnedFd) -> Option<Push> {
    let seals = rustix::fs::fcntl_get_seals(file).ok()?;
    if !seals.contains(SealFlags::SHRINK | SealFlags::WRITE) {
        return None;
    }
    let size = rustix::fs::fstat(file).ok()?.st_size.cast_unsigned();
    if size > PUSH_BYTES_MAX {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    let mut at = 0;
    while at < bytes.len() {
        match retry_on_intr(|| rustix::io::pread(file, &mut bytes[at..], at as u64)).ok()? {
            0 => return None,
            read => at += read,
        }
    }
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(payload: &str) -> Push {
        let job = NewJob { payload: payload.to_owned(), ..NewJob::default() };
        Push { queue: "emails".to_owned(), jobs: vec![job] }
    }

    #[test]
    fn push_gets_its_own_reply() {
        let PushEnds { server, workers } = PushEnds::new().expect("sockets");
        std::thread::scope(|scope| {
            let senders: Vec<_> = (0..4_i64)
                .map(|n| {
                    let workers = workers.as_fd();
                    scope.spawn(move || (n, super::push(workers, &one(&n.to_string()))))
                })
                .collect();
            let mut left = 4;
            while left > 0 {
                let Some(received) = receive(server.as_fd()).expect("readable") else {
                    std::thread::yield_now();
                    continue;
                };
                let push = received.push.as_ref().expect("valid");
                let id = push.jobs[0].payload.parse().expect("a number");
                received.reply(&PushReply::Stored(vec![id]));
                left -= 1;
            }
            for sender in senders {
                let (n, reply) = sender.join().expect("no panic");
                assert_eq!(reply.expect("a reply"), PushReply::Stored(vec![n]));
            }
        });
    }

    #[test]
    fn invalid_pushes_are_received_as_such() {
        let PushEnds { server, workers } = PushEnds::new().expect("sockets");
        let send = |fds: &[BorrowedFd<'_>]| {
            let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut control = SendAncillaryBuffer::new(&mut room);
            if !fds.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(fds));
            }
            let part = [io::IoSlice::new(b"several bytes")];
            rustix::net::sendmsg(&workers, &part, &mut control, SendFlags::empty()).expect("sent");
        };
        let null = std::fs::File::open("/dev/zero").expect("exists");
        let garbled = seal(b"{\"queue\": 1}").expect("a file");
        for fds in [
            &[][..],
            &[null.as_fd()],
            &[null.as_fd(), null.as_fd()],
            &[null.as_fd(), garbled.as_fd()],
            &[null.as_fd(), garbled.as_fd(), null.as_fd()],
        ] {
            send(fds);
            let received = receive(server.as_fd()).expect("readable").expect("a message");
            assert_eq!(received.push, None);
            received.reply(&PushReply::Stored(Vec::new()));
        }
        assert!(receive(server.as_fd()).expect("readable").is_none());
    }
}
