//! Identifies the peer of a unix socket: whether it is one of PHP's processes, or any process that
//! one of them started or left running.
//!
//! There are two checks; one match is enough.
//!
//! - **Descent**: the server adopts the orphans of its workers, so their parents lead to it as long
//!   as it is alive.
//! - **A mark**: PHP's processes have a lower hard limit of file locks (`RLIMIT_LOCKS`) than the
//!   server. The kernel stores this limit without enforcing it, and passes it on through every fork
//!   and exec. Only a process with `CAP_SYS_RESOURCE` can raise it. So the mark outlives the
//!   server. The next server, which has the server's own limit, recognizes it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Maximum number of ancestors that are checked.
const ANCESTORS_MAX: usize = 64;
/// The mark if the server itself has no limit. If the server has a marked limit, because a page
/// started it, its mark is one below that.
const MARK: u64 = 1 << 62;
/// The kernel's value for no limit.
const NO_LIMIT: u64 = u64::MAX;
/// Line of `/proc/PID/limits` with this limit.
const LINE: &str = "Max file locks";

/// Marks this process and all its descendants as PHP's. Async-signal-safe.
///
/// A server whose own limit is 0 cannot mark processes; only descent identifies them then. A limit
/// of 0 does not occur by accident.
pub(crate) fn mark() -> io::Result<()> {
    let mark = Some(below(getrlimit(Resource::Locks).maximum));
    Ok(setrlimit(Resource::Locks, Rlimit { current: mark, maximum: mark })?)
}

fn below(own: Option<u64>) -> u64 {
    own.map_or(MARK, |own| own.saturating_sub(1).min(MARK))
}

/// The process at the other end of a connection, at the time when it connected.
#[derive(Debug)]
pub struct Peer {
    /// `None` if unknown. 0: the process is in an outer pid namespace, where none of our processes
    /// can be.
    pid: Option<i32>,
    /// pidfd, so that another process with the same id is not mistaken for it. `None`: the kernel
    /// (before 6.5) does not provide it.
    process: Option<OwnedFd>,
}

impl Peer {
    /// Returns the peer of a connection.
    pub fn of(stream: &UnixStream) -> Peer {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let pid = option(stream, libc::SO_PEERCRED, &mut peer).ok().map(|()| peer.pid);
        let mut fd: RawFd = -1;
        match option(stream, libc::SO_PEERPIDFD, &mut fd) {
            // SAFETY: the kernel has just opened the descriptor for this call, so it has no other
            // owner.
            Ok(()) if fd >= 0 => Peer { pid, process: Some(unsafe { OwnedFd::from_raw_fd(fd) }) },
            Ok(()) => Peer { pid, process: None },
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                Peer { pid, process: None }
            }
            // The process has ended, and its id may already belong to another one.
            Err(_) => Peer { pid: pid.filter(|pid| *pid == 0), process: None },
        }
    }

    /// Process id, for the log.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether the peer is one of PHP's processes: those of `servers`, or those left running by an
    /// earlier server. An unknown peer counts as one.
    pub fn is_of_php(&self, servers: &[i32]) -> bool {
        let Some(pid) = self.pid else { return true };
        // No process can enter a pid namespace that contains its own.
        if pid == 0 {
            return false;
        }
        is_marked(pid) || descends(pid, servers) || self.has_ended()
    }

    /// Whether the process has ended. Data read by its id may then belong to another process.
    fn has_ended(&self) -> bool {
        let Some(process) = &self.process else { return false };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error counts as ended.
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)) != Ok(0)
    }
}

fn option<T>(stream: &UnixStream, name: libc::c_int, into: &mut T) -> io::Result<()> {
    let mut len = libc::socklen_t::try_from(mem::size_of::<T>()).unwrap_or(0);
    let into = std::ptr::from_mut(into).cast();
    // SAFETY: the socket is open; `into` points to a value with room for `len` bytes, which
    // consists only of integers.
    let done =
        unsafe { libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, name, into, &raw mut len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the process's hard limit is below this process's own. Also true if the limit cannot be
/// read.
fn is_marked(pid: i32) -> bool {
    let Ok(limits) = std::fs::read_to_string(format!("/proc/{pid}/limits")) else { return true };
    let Some(its) = hard_limit(&limits) else { return true };
    its < getrlimit(Resource::Locks).maximum.unwrap_or(NO_LIMIT)
}

/// Returns the hard limit; `None` if the text does not contain it.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    match line.split_whitespace().nth(1)? {
        "unlimited" => Some(NO_LIMIT),
        number => number.parse().ok(),
    }
}

/// Whether one of `servers` is an ancestor. This includes orphans: a server adopts those of its
/// workers.
fn descends(mut pid: i32, servers: &[i32]) -> bool {
    for _ in 0..ANCESTORS_MAX {
        if servers.contains(&pid) {
            return true;
        }
        match parent(pid) {
            None => return true,
            Some(0 | 1) => return false,
            Some(next) => pid = next,
        }
    }
    true
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The field is after the name, which may contain any character, and the state.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper(is_marked: bool) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000");
        if is_marked {
            // SAFETY: only two system calls.
            unsafe { command.pre_exec(mark) };
        }
        command.spawn().expect("a child")
    }

    fn end(mut child: Child) -> i32 {
        let pid = i32::try_from(child.id()).expect("a process id");
        child.kill().and_then(|()| child.wait()).expect("our own child");
        pid
    }

    #[test]
    fn own_process_and_child_are_recognized() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let (stream, _other) = UnixStream::pair().expect("sockets");
        let peer = Peer::of(&stream);
        assert_eq!(peer.pid(), Some(own));
        assert!(peer.is_of_php(&[own]) && !peer.is_of_php(&[i32::MAX]));
        let child = sleeper(false);
        let pid = i32::try_from(child.id()).expect("a process id");
        assert!(descends(pid, &[own]) && !descends(own, &[pid]) && !is_marked(pid));
        end(child);
        // The process is gone, so its parent is unknown.
        assert!(descends(pid, &[i32::MAX]) && is_marked(pid));
        assert!(Peer { pid: None, process: None }.is_of_php(&[i32::MAX]));
        assert!(!Peer { pid: Some(0), process: None }.is_of_php(&[own]));
    }

    #[test]
    fn marked_process_is_recognized_by_unmarked_server() {
        let child = sleeper(true);
        let pid = i32::try_from(child.id()).expect("a process id");
        assert!(is_marked(pid) && !descends(pid, &[i32::MAX]));
        let peer = Peer { pid: Some(pid), process: None };
        assert!(peer.is_of_php(&[i32::MAX]));
        end(child);
    }

    #[test]
    fn ended_peer_is_not_mistaken_for_reused_id() {
        let child = sleeper(false);
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("a number"));
        let process = rustix::process::pidfd_open(
            pid.expect("a process"),
            rustix::process::PidfdFlags::empty(),
        );
        let own = i32::try_from(std::process::id()).expect("a process id");
        let peer = Peer { pid: Some(own), process: Some(process.expect("a process")) };
        assert!(!peer.is_of_php(&[i32::MAX]));
        end(child);
        assert!(peer.is_of_php(&[i32::MAX]));
    }

    #[test]
    fn mark_is_below_own_limit() {
        assert_eq!(below(None), MARK);
        assert_eq!(below(Some(MARK)), MARK - 1);
        assert_eq!(below(Some(u64::MAX - 1)), MARK);
        assert_eq!((below(Some(1)), below(Some(0))), (0, 0));
        let text =
            |limits: &str| format!("Limit  Soft Limit\n{LINE}            {limits}  locks \n");
        assert_eq!(hard_limit(&text("unlimited            unlimited")), Some(NO_LIMIT));
        assert_eq!(hard_limit(&text("unlimited 7")), Some(7));
        assert_eq!(hard_limit(&text("7")), None);
        assert_eq!(hard_limit(""), None);
    }
}
