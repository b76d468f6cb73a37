//! poll, signals and child processes: the system calls of the supervisor.

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A signal the supervisor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM, SIGINT, or SIGHUP of a closing terminal: drain and leave.
    Stop,
    /// SIGUSR1: log files were moved away, open them again.
    Reopen,
    /// SIGUSR2, as php-fpm knows it: boot the application anew.
    Reload,
    /// SIGCHLD: a child may be reaped.
    Child,
}

/// The blocked signals as a descriptor.
pub(crate) struct Signals(OwnedFd);

const HANDLED: [libc::c_int; 6] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCHLD];

/// Blocks the signals that [`Signals`] reads. Call it before any other thread starts: threads inherit the mask.
pub(crate) fn block_signals() -> io::Result<Signals> {
    let mut set = empty_set();
    for signal in HANDLED {
        // SAFETY: changes a local set.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    // SAFETY: reads a local set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    // SAFETY: reads a local set; -1 makes a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    owned(fd).map(Signals)
}

impl Signals {
    /// What has come since the last call.
    pub(crate) fn take(&self) -> Vec<Signal> {
        let mut seen = Vec::new();
        loop {
            // SAFETY: plain data; read fills it or leaves it alone.
            let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
            let size = size_of_val(&info);
            // SAFETY: a local of that size; the descriptor does not block.
            let n = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
            if n != isize::try_from(size).unwrap_or(0) {
                return seen;
            }
            let signal = match i32::try_from(info.ssi_signo) {
                Ok(libc::SIGCHLD) => Signal::Child,
                Ok(libc::SIGUSR1) => Signal::Reopen,
                Ok(libc::SIGUSR2) => Signal::Reload,
                _ => Signal::Stop,
            };
            if !seen.contains(&signal) {
                seen.push(signal);
            }
        }
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits until one of `fds` is readable (or hung up) or the time is over; negative descriptors are passed over.
pub(crate) fn poll<const N: usize>(fds: [RawFd; N], limit: Duration) -> [bool; N] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let limit_ms = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: an array of N pollfds. An interruption reads as "nothing": the caller loops.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, limit_ms) };
    polled.map(|p| ready > 0 && p.revents != 0)
}

/// A child that has ended, if one has: its process and wait status.
pub(crate) fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: writes one local; WNOHANG never blocks.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// SIGKILL to a process we started (or that a template of ours did).
pub(crate) fn kill(pid: i32) {
    signal(pid, libc::SIGKILL);
}

/// SIGTERM, likewise.
pub(crate) fn terminate(pid: i32) {
    signal(pid, libc::SIGTERM);
}

/// SIGKILL to a process we started and to all that it started, but for those that left its group.
pub(crate) fn kill_group(pid: i32) {
    if pid > 1 {
        // SAFETY: no pointers; the negative pid names the group that `pid` leads.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

fn signal(pid: i32, signal: libc::c_int) {
    if pid > 1 {
        // SAFETY: no pointers; a positive pid names one process.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Resident memory of a process, bytes; 0 when it is gone.
pub(crate) fn resident_bytes(pid: i32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // SAFETY: no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * u64::try_from(page).unwrap_or(0)
}

/// A pipe: the reading end does not block, both close on exec.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: fills an array of two.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((owned(fds[0])?, owned(fds[1])?))
}

/// Orphaned grandchildren become our children, so that a dead template's workers can be waited for.
pub(crate) fn adopt_orphans() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// A pair of connected `SOCK_SEQPACKET` sockets: one message per read, the end shows as an empty one.
pub(crate) fn message_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: fills an array of two.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((owned(fds[0])?, owned(fds[1])?))
}

/// An eventfd to wake the supervisor from other threads.
pub(crate) fn wake_fd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
}

/// Makes `fd` readable.
pub(crate) fn wake(fd: RawFd) {
    let one = 1u64;
    // SAFETY: eight bytes of a local; a full counter is awake already.
    unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}

/// Makes it unreadable again.
pub(crate) fn silence(fd: RawFd) {
    let mut count = 0u64;
    // SAFETY: eight bytes of a local; the descriptor does not block.
    unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
}

/// Sends one message.
pub(crate) fn send(fd: RawFd, text: &str) -> io::Result<()> {
    // SAFETY: a live buffer with its length.
    let sent = unsafe { libc::send(fd, text.as_ptr().cast(), text.len(), libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends one message and a copy of a descriptor (unix(7), `SCM_RIGHTS`).
pub(crate) fn send_with(to: BorrowedFd<'_>, text: &str, passed: BorrowedFd<'_>) -> io::Result<()> {
    let passed = [passed];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&passed));
    let part = io::IoSlice::new(text.as_bytes());
    rustix::net::sendmsg(to, &[part], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message if one is there; an empty one is the end.
pub(crate) fn receive(fd: RawFd) -> io::Result<Option<String>> {
    let mut buffer = [0u8; 4096];
    // SAFETY: a live buffer with its length; does not block.
    let len =
        unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    match usize::try_from(len) {
        Ok(len) => Ok(Some(String::from_utf8_lossy(&buffer[..len]).into_owned())),
        Err(_) => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            e if e.kind() == io::ErrorKind::ConnectionReset => Ok(Some(String::new())),
            e => Err(e),
        },
    }
}

/// Between fork and exec: `keep` survive the exec, and no signal stays blocked. Async-signal-safe.
pub(crate) fn prepare_exec(keep: &[RawFd]) -> io::Result<()> {
    for fd in keep {
        // SAFETY: clears a flag of an open descriptor.
        if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let set = empty_set();
    // SAFETY: reads a local set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
    Ok(())
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: sets all of a local.
    unsafe { libc::sigemptyset(&raw mut set) };
    set
}

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system call has just made it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
