//! Worker → server: jobs to push, in a memory file that is passed with a datagram; and the server's
//! reply.
//!
//! A request of a dying process is stored completely or not at all: see `reply_socket`.

use crate::reply_socket::{incoming, read_sealed, reply, request};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::RecvFlags;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

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

/// Position of a push in a trace (W3C Trace Context). Both are empty outside a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// Trace and span that pushed the job.
    pub traceparent: String,
    /// Data of the trace's vendors.
    pub tracestate: String,
}

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
    /// Trace of the request or job that pushed it.
    #[serde(default)]
    pub trace: TraceContext,
}

/// Jobs for one queue, stored together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Name of the queue.
    pub queue: String,
    /// The jobs. None: the reply is the depth of the queue.
    pub jobs: Vec<NewJob>,
}

/// Reply to a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushReply {
    /// The jobs are durable. An id is 0 if another job has the key of a unique one.
    Stored(Vec<i64>),
    /// Numbers of ready, delayed and running jobs, in reply to a push without jobs.
    Depth([u64; 3]),
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
    Io(io::Error),
}

impl PushError {
    fn of(error: io::Error) -> PushError {
        match error.kind() {
            io::ErrorKind::TimedOut => PushError::Timeout,
            _ => PushError::Io(error),
        }
    }
}

/// Writes the request into a sealed memory file.
fn seal(request: &[u8]) -> io::Result<OwnedFd> {
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
    let encoded =
        serde_json::to_vec(push).map_err(|error| PushError::Io(io::Error::other(error)))?;
    let file = seal(&encoded).map_err(PushError::of)?;
    let mut reply = vec![0; REPLY_BYTES_MAX];
    let got = request(server, &DATAGRAM, Some(file.as_fd()), REPLY_TIMEOUT, &mut reply);
    let got = got.map_err(PushError::of)?;
    serde_json::from_slice(&reply[..got]).map_err(|_| PushError::NoReply)
}

/// A received push, and the socket for its reply.
#[derive(Debug)]
pub struct Received {
    /// The push; `None`: it is not valid.
    pub push: Option<Push>,
    /// `None`: the sender has passed none.
    reply: Option<OwnedFd>,
}

impl Received {
    /// Sends the reply, if the sender waits for one.
    pub fn reply(&self, to_send: &PushReply) {
        let bytes = serde_json::to_vec(to_send).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(REPLY_BYTES_MAX)];
        if let Some(socket) = &self.reply {
            reply(socket, bytes);
        }
    }
}

/// Receives the next push, if there is one. Never waits.
pub fn receive(server: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    let mut datagram = DATAGRAM;
    let found = match incoming(server, &mut datagram, RecvFlags::DONTWAIT) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        found => found?,
    };
    let (push, reply) = match found {
        Some(found) => (found.file.as_ref().and_then(read), Some(found.reply)),
        None => (None, None),
    };
    Ok(Some(Received { push, reply }))
}

/// Copies and decodes the file.
fn read(file: &OwnedFd) -> Option<Push> {
    let bytes = read_sealed(file, SealFlags::SHRINK | SealFlags::WRITE, PUSH_BYTES_MAX);
    serde_json::from_slice(&bytes.ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestEnds;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    use std::mem::MaybeUninit;

    fn one(payload: &str) -> Push {
        let job = NewJob { payload: payload.to_owned(), ..NewJob::default() };
        Push { queue: "emails".to_owned(), jobs: vec![job] }
    }

    #[test]
    fn push_gets_its_own_reply() {
        let RequestEnds { server, others } = RequestEnds::new().expect("sockets");
        std::thread::scope(|scope| {
            let senders: Vec<_> = (0..4_i64)
                .map(|n| {
                    let others = others.as_fd();
                    scope.spawn(move || (n, super::push(others, &one(&n.to_string()))))
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
        let RequestEnds { server, others } = RequestEnds::new().expect("sockets");
        let send = |fds: &[BorrowedFd<'_>]| {
            let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut control = SendAncillaryBuffer::new(&mut room);
            if !fds.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(fds));
            }
            let part = [io::IoSlice::new(b"several bytes")];
            rustix::net::sendmsg(&others, &part, &mut control, SendFlags::empty()).expect("sent");
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
