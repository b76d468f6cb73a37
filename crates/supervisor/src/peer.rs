//! Who asks at a unix socket: whether it is one of PHP's processes, or anything that one of them has started or left behind.
//!
//! Two looks, of which one is enough. **Descent**: the server adopts what its workers leave, so their parents lead to it, for as long as it
//! lives. **A mark**: PHP's processes have a hard limit of file locks that is lower than the server's. The kernel keeps the limit
//! (`RLIMIT_LOCKS`) without holding anybody to it, hands it on through each fork and exec, and lets nobody raise it who has not
//! `CAP_SYS_RESOURCE`: so it outlives the server, and the next one, which has the server's own limit, sees it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Generations of parents that are looked at.
const ANCESTORS_MAX: usize = 64;
/// The mark where the server's own limit is none. One below another's mark is a mark, too: a server may be started by a page.
const MARK: u64 = 1 << 62;
/// What the kernel has where there is no limit.
const NO_LIMIT: u64 = u64::MAX;
/// The line of `/proc/PID/limits` that has it.
const LINE: &str = "Max file locks";

/// Marks this process, and all that come of it, as PHP's. Async-signal-safe.
///
/// A server whose limit is 0, which nobody has by chance, cannot mark anybody: then descent alone tells.
pub(crate) fn mark() -> io::Result<()> {
    let mark = Some(below(getrlimit(Resource::Locks).maximum));
    Ok(setrlimit(Resource::Locks, Rlimit { current: mark, maximum: mark })?)
}

fn below(own: Option<u64>) -> u64 {
    own.map_or(MARK, |own| own.saturating_sub(1).min(MARK))
}

/// The process at the other end of a connection, as it was when it connected.
#[derive(Debug)]
pub struct Peer {
    /// `None`: nobody knows. 0: of a namespace that contains ours, where none of ours can be.
    pid: Option<i32>,
    /// So that another process with its number is not taken for it; `None`: the kernel (before 6.5) does not tell.
    process: Option<OwnedFd>,
}

impl Peer {
    /// Who has connected.
    pub fn of(stream: &UnixStream) -> Peer {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let pid = option(stream, libc::SO_PEERCRED, &mut peer).ok().map(|()| peer.pid);
        let mut fd: RawFd = -1;
        match option(stream, libc::SO_PEERPIDFD, &mut fd) {
            // SAFETY: the kernel has just opened it for this call; nobody else knows of it.
            Ok(()) if fd >= 0 => Peer { pid, process: Some(unsafe { OwnedFd::from_raw_fd(fd) }) },
            Ok(()) => Peer { pid, process: None },
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                Peer { pid, process: None }
            }
            // It has ended: its number may be another's.
            Err(_) => Peer { pid: pid.filter(|pid| *pid == 0), process: None },
        }
    }

    /// For the log.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether it is of PHP: that of one of `servers` or, if it was left behind, of one before them. Who is not known is.
    pub fn is_of_php(&self, servers: &[i32]) -> bool {
        let Some(pid) = self.pid else { return true };
        // No process can enter a namespace of processes that contains its own.
        if pid == 0 {
            return false;
        }
        is_marked(pid) || descends(pid, servers) || self.has_ended()
    }

    /// What was read of its number since may be another's.
    fn has_ended(&self) -> bool {
        let Some(process) = &self.process else { return false };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // In doubt it has.
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)) != Ok(0)
    }
}

fn option<T>(stream: &UnixStream, name: libc::c_int, into: &mut T) -> io::Result<()> {
    let mut len = libc::socklen_t::try_from(mem::size_of::<T>()).unwrap_or(0);
    let into = std::ptr::from_mut(into).cast();
    // SAFETY: an open socket, and room for as many bytes as are said, in a value of integers alone.
    let done =
        unsafe { libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, name, into, &raw mut len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether its hard limit is below this process's own; also if nobody can tell.
fn is_marked(pid: i32) -> bool {
    let Ok(limits) = std::fs::read_to_string(format!("/proc/{pid}/limits")) else { return true };
    let Some(its) = hard_limit(&limits) else { return true };
    its < getrlimit(Resource::Locks).maximum.unwrap_or(NO_LIMIT)
}

/// `None`: it is not said.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    match line.split_whitespace().nth(1)? {
        "unlimited" => Some(NO_LIMIT),
        number => number.parse().ok(),
    }
}

/// Whether one of `servers` is among its parents. Orphans are, too: a server adopts those of its workers.
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
    // Behind its name, which may have anything in it, and its state.
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
            // SAFETY: two system calls.
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
    fn own_processes_are_known() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let (stream, _other) = UnixStream::pair().expect("sockets");
        let peer = Peer::of(&stream);
        assert_eq!(peer.pid(), Some(own));
        assert!(peer.is_of_php(&[own]) && !peer.is_of_php(&[i32::MAX]));
        let child = sleeper(false);
        let pid = i32::try_from(child.id()).expect("a process id");
        assert!(descends(pid, &[own]) && !descends(own, &[pid]) && !is_marked(pid));
        end(child);
        // Nobody knows any more whose it was.
        assert!(descends(pid, &[i32::MAX]) && is_marked(pid));
        assert!(Peer { pid: None, process: None }.is_of_php(&[i32::MAX]));
        assert!(!Peer { pid: Some(0), process: None }.is_of_php(&[own]));
    }

    #[test]
    fn a_mark_is_seen_by_who_has_none() {
        let child = sleeper(true);
        let pid = i32::try_from(child.id()).expect("a process id");
        assert!(is_marked(pid) && !descends(pid, &[i32::MAX]));
        let peer = Peer { pid: Some(pid), process: None };
        assert!(peer.is_of_php(&[i32::MAX]));
        end(child);
    }

    #[test]
    fn who_has_ended_is_not_taken_for_the_next_with_its_number() {
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
    fn marks_go_down_from_server_to_server() {
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
