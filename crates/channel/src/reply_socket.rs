//! Process → server: a request, with an optional memory file and a socket for the reply.
//!
//! Many processes have the same end of one socket. So no process receives a reply meant for
//! another, and a sender that is killed leaves only a socket that is not read. The server has the
//! whole request before it looks at it.
//!
//! The system calls go through rustix. So they use neither libc's state, which a rollback restores,
//! nor the functions that a worker interposes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::SealFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Both ends of the socket for requests.
#[derive(Debug)]
pub struct RequestEnds {
    /// The server's end.
    pub server: OwnedFd,
    /// The end of all other processes.
    pub others: OwnedFd,
}

impl RequestEnds {
    /// Creates the two ends. Both are closed on exec.
    pub fn new() -> io::Result<RequestEnds> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let (server, others) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok(RequestEnds { server, others })
    }
}

/// Waits until `fd` is ready, at most until `until`. The error for the end of the time is
/// [`io::ErrorKind::TimedOut`].
fn wait_for(fd: BorrowedFd<'_>, what: PollFlags, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::from_borrowed_fd(fd, what)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends a request, and waits for the reply, which is written to `reply`. Returns its length; 0:
/// the server has closed the socket without a reply. The error for the end of the time is
/// [`io::ErrorKind::TimedOut`]; the server may still process the request.
pub fn request(
    server: BorrowedFd<'_>,
    message: &[u8],
    file: Option<BorrowedFd<'_>>,
    limit: Duration,
    reply: &mut [u8],
) -> io::Result<usize> {
    let until = Instant::now() + limit;
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    let fds: Vec<BorrowedFd<'_>> = std::iter::once(theirs.as_fd()).chain(file).collect();
    loop {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let part = [io::IoSlice::new(message)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(server, &part, &mut control, flags) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            // Other processes send requests, too.
            Err(Errno::AGAIN) => wait_for(server, PollFlags::OUT, until)?,
            Err(error) => return Err(error.into()),
        }
    }
    // So that the end of the server's copy ends the wait.
    drop(theirs);
    wait_for(ours.as_fd(), PollFlags::IN, until)?;
    let (got, _) = retry_on_intr(|| rustix::net::recv(&ours, &mut *reply, RecvFlags::DONTWAIT))?;
    Ok(got)
}

/// A received request.
#[derive(Debug)]
pub struct Incoming {
    /// Length of the message.
    pub bytes: usize,
    /// Socket for the reply.
    pub reply: OwnedFd,
    /// The file, if one was passed.
    pub file: Option<OwnedFd>,
}

/// Receives a request into `message`. `None`: it has no socket for a reply, or does not fit.
/// `flags`: whether to wait for it.
pub fn incoming(
    server: BorrowedFd<'_>,
    message: &mut [u8],
    flags: RecvFlags,
) -> io::Result<Option<Incoming>> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let got = retry_on_intr(|| {
        let part = io::IoSliceMut::new(message);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        rustix::net::recvmsg(server, &mut [part], &mut control, flags)
    })?;
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
    let (Some(reply), file, false) = (fds.next(), fds.next(), is_cut) else { return Ok(None) };
    Ok(Some(Incoming { bytes: got.bytes, reply, file }))
}

/// Sends the reply. The sender may be gone, or may have passed a descriptor of another kind.
pub fn reply(to: &OwnedFd, reply: &[u8]) {
    let _ = rustix::net::send(to, reply, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Copies the content of the file, because the sender may change it in the meantime. Accepts only a
/// memory file with these seals, which never makes its reader wait. `None` if it has more than
/// `bytes_max`.
pub fn read_sealed(
    file: &OwnedFd,
    seals: SealFlags,
    bytes_max: u64,
) -> io::Result<Option<Vec<u8>>> {
    if !rustix::fs::fcntl_get_seals(file)?.contains(seals) {
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
