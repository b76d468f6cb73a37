//! poll, signals and child processes: the supervisor's system calls.

use crate::limits::ProcessLimits;
use crate::{peer, sandbox};
use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::sockopt::socket_type;
use rustix::net::{SocketAddrAny, SocketAddrUnix, SocketType, getpeername};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal as Sent, WaitOptions, getpid, kill_process,
    kill_process_group, pidfd_getfd, pidfd_open, pidfd_send_signal, set_child_subreaper, wait,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// A signal that the supervisor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM, SIGINT, or SIGHUP of a closing terminal: drain and exit.
    Stop,
    /// SIGUSR1: log files were moved away, reopen them.
    Reopen,
    /// SIGUSR2, as in php-fpm: boot the application again.
    Reload,
    /// The first real-time signal: another binary takes over.
    Upgrade,
    /// SIGCHLD: a child may be reaped.
    Child,
}

/// The blocked signals as a descriptor.
pub(crate) struct Signals(SignalFd);

const HANDLED: [Number; 6] = [
    Number::SIGTERM,
    Number::SIGINT,
    Number::SIGHUP,
    Number::SIGUSR1,
    Number::SIGUSR2,
    Number::SIGCHLD,
];

/// Blocks the signals that [`Signals`] reads. Must be called before any other thread starts:
/// threads inherit the mask.
pub(crate) fn block_signals() -> io::Result<Signals> {
    let handled: SigSet = HANDLED.into_iter().collect();
    let mut handled = *handled.as_ref();
    // nix has no names for real-time signals.
    // SAFETY: the set is a local variable, and the number comes from libc.
    unsafe { libc::sigaddset(&raw mut handled, libc::SIGRTMIN()) };
    // SAFETY: the set was valid before, and the added signal is too.
    let handled = unsafe { SigSet::from_sigset_t_unchecked(handled) };
    handled.thread_block()?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok(Signals(SignalFd::with_flags(&handled, flags)?))
}

impl Signals {
    /// Returns the signals received since the last call.
    pub(crate) fn take(&self) -> Vec<Signal> {
        let mut seen = Vec::new();
        while let Ok(Some(info)) = self.0.read_signal() {
            let number = i32::try_from(info.ssi_signo).ok();
            let signal = match number.and_then(|number| Number::try_from(number).ok()) {
                _ if number == Some(libc::SIGRTMIN()) => Signal::Upgrade,
                Some(Number::SIGCHLD) => Signal::Child,
                Some(Number::SIGUSR1) => Signal::Reopen,
                Some(Number::SIGUSR2) => Signal::Reload,
                _ => Signal::Stop,
            };
            if !seen.contains(&signal) {
                seen.push(signal);
            }
        }
        seen
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns `CLOCK_MONOTONIC` in µs.
pub fn monotonic_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000 + now.tv_nsec / 1_000).unwrap_or(0)
}

/// Waits until one of `fds` is readable (or hung up), or `limit` expires.
pub(crate) fn poll(fds: &[Option<BorrowedFd<'_>>], limit: Duration) -> Vec<bool> {
    let watched = fds.iter().copied().flatten();
    let mut polled: Vec<_> =
        watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let limit = Timespec::try_from(limit).ok();
    // An interrupted poll counts as "nothing is readable": the caller loops.
    let ready = rustix::event::poll(&mut polled, limit.as_ref()).unwrap_or(0);
    let mut found = polled.iter().map(|fd| ready > 0 && !fd.revents().is_empty());
    fds.iter().map(|fd| fd.is_some() && found.next().unwrap_or(false)).collect()
}

/// Reaps a child that has ended, if there is one; returns its process id and wait status.
pub(crate) fn reap() -> Option<(i32, i32)> {
    let (pid, status) = wait(WaitOptions::NOHANG).ok()??;
    Some((pid.as_raw_pid(), status.as_raw()))
}

/// Sends SIGKILL to a process started by this server or by one of its templates. An error is
/// ignored: the process has ended.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = somebody(pid) {
        let _ = kill_process(pid, Sent::KILL);
    }
}

/// Opens a pidfd for a living process. Unlike its id, it never refers to another process.
pub(crate) fn open_process(pid: i32) -> io::Result<OwnedFd> {
    let pid = somebody(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Signals a worker to check its slot: `LOOK_SIGNAL` of the worker's csrc/model/overrun.c.
pub(crate) fn have_look(process: impl AsFd) {
    // An error is ignored: the process has ended.
    let _ = pidfd_send_signal(process, Sent::VTALARM);
}

/// Returns the peer address of a socket of that process.
pub(crate) fn peer_of(process: impl AsFd, fd: RawFd) -> Option<String> {
    let socket = pidfd_getfd(process, fd, PidfdGetfdFlags::empty()).ok()?;
    words_of(&getpeername(&socket).ok()??).map(|(_, words)| words)
}

/// Returns the peer address with its kind: `tcp 10.0.0.5:5432`, `unix /run/db.sock`.
pub(crate) fn socket_of(process: impl AsFd, fd: RawFd) -> Option<String> {
    let socket = pidfd_getfd(process, fd, PidfdGetfdFlags::empty()).ok()?;
    let is_stream = socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM);
    let (is_internet, words) = words_of(&getpeername(&socket).ok()??)?;
    let kind = match (is_internet, is_stream) {
        (true, true) => "tcp",
        (true, false) => "udp",
        (false, _) => "unix",
    };
    Some(format!("{kind} {words}"))
}

/// Returns whether it is an Internet address, and the address as text.
fn words_of(peer: &SocketAddrAny) -> Option<(bool, String)> {
    let words = |address: SocketAddrUnix| match (address.path(), address.abstract_name()) {
        (Some(path), _) => path.to_string_lossy().into_owned(),
        (None, Some(name)) => format!("@{}", String::from_utf8_lossy(name)),
        (None, None) => "an unnamed socket".to_owned(),
    };
    let internet = SocketAddr::try_from(peer.clone()).map(|address| (true, address.to_string()));
    let unix = || SocketAddrUnix::try_from(peer.clone()).ok().map(|peer| (false, words(peer)));
    internet.ok().or_else(unix)
}

/// Sends SIGTERM to a process started by this server or by one of its templates.
pub(crate) fn terminate(pid: i32) {
    if let Some(pid) = somebody(pid) {
        let _ = kill_process(pid, Sent::TERM);
    }
}

/// Sends SIGTERM to the process group that a process leads, or, as long as it does not lead one, to
/// the process.
pub(crate) fn terminate_run(pid: i32) {
    signal_run(pid, Sent::TERM);
}

/// Like [`terminate_run`], with SIGKILL.
pub(crate) fn kill_run(pid: i32) {
    signal_run(pid, Sent::KILL);
}

fn signal_run(pid: i32, signal: Sent) {
    if let Some(pid) = somebody(pid)
        && kill_process_group(pid, signal).is_err()
    {
        let _ = kill_process(pid, signal);
    }
}

/// Sends SIGKILL to the process group of a process: all processes that it started, except those
/// that left the group.
pub(crate) fn kill_group(pid: i32) {
    if let Some(pid) = somebody(pid) {
        let _ = kill_process_group(pid, Sent::KILL);
    }
}

/// Accepts only the id of a single process: no group, not all processes, not init.
fn somebody(pid: i32) -> Option<Pid> {
    if pid > 1 { Pid::from_raw(pid) } else { None }
}

/// Returns the resident memory of a process in bytes; 0 if it has ended.
pub(crate) fn resident_bytes(pid: i32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Makes this process the parent of orphaned descendants, so that the workers of a dead template
/// can be reaped.
pub(crate) fn adopt_orphans() {
    // All supported kernels have this call.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Creates an eventfd with which other threads wake the supervisor.
pub(crate) fn wake_fd() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
}

/// Makes `fd` readable.
pub(crate) fn wake(fd: impl AsFd) {
    // The write fails only if the counter is full, and then the supervisor is already woken.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

/// Resets the eventfd, so that it is not readable.
pub(crate) fn silence(fd: impl AsFd) {
    let _ = rustix::io::read(fd, &mut [0; 8]);
}

/// Restrictions for PHP's processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confines {
    pub(crate) limits: ProcessLimits,
    pub(crate) no_new_privileges: bool,
    /// Descriptor of the file system rules.
    pub(crate) rules: Option<RawFd>,
    /// Used if there are no such rules: descriptor of the rules that prevent tracing other
    /// processes.
    pub(crate) fence: Option<RawFd>,
}

/// Keeps the capabilities that the server got for its listeners from surviving the exec: pages must
/// not bind ports below 1024. Does not affect root's rights if PHP runs as root.
fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { inheritable, ..capabilities(None)? })?;
    Ok(())
}

/// Makes the kernel prefer a PHP process over the server when memory runs out: a worker is
/// replaced, a server is not. Forks inherit the setting. See proc(5), `/proc/PID/oom_score_adj`.
/// Async-signal-safe.
fn prefer_as_oom_victim() -> io::Result<()> {
    /// Score of half of the memory of the machine or the control group.
    const MORE: i32 = 500;
    const MOST: i32 = 1000;
    let file = open(c"/proc/self/oom_score_adj", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; 8];
    let length = rustix::io::read(&file, &mut bytes)?;
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
    // A value that a service manager set for all processes (`OOMScoreAdjust=`) is the base.
    let base: i32 = text.trim().parse().unwrap_or(0);
    let mut text = [0; 8];
    let mut rest = &mut text[..];
    // Writes into existing memory: nothing is allocated.
    io::Write::write_fmt(&mut rest, format_args!("{}", (base + MORE).min(MOST)))?;
    let unused = rest.len();
    rustix::io::write(&file, &text[..text.len() - unused])?;
    Ok(())
}

/// Prepares the process between fork and exec: the descriptors in `keep` survive the exec,
/// `confines` are applied, and no signal stays blocked. Async-signal-safe.
pub(crate) fn prepare_exec(keep: &[RawFd], confines: Confines) -> io::Result<()> {
    for fd in keep {
        // SAFETY: clears a flag of an open descriptor.
        if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    confines.limits.hold()?;
    // Without this setting, the kernel chooses any process.
    let _ = prefer_as_oom_victim();
    // If this fails, descent identifies PHP's processes while this server is alive. Some
    // Linux-compatible kernels do not have this limit.
    let _ = peer::mark();
    if confines.no_new_privileges {
        set_no_new_privs(true)?;
    }
    if let Some(rules) = confines.rules {
        sandbox::hold(rules)?;
    }
    if let Some(fence) = confines.fence {
        // The kernel may refuse a fence: the server is already in the maximum number of sandboxes,
        // or runs without `no_new_privileges`.
        let _ = sandbox::hold(fence);
    }
    drop_capabilities()?;
    if !confines.limits.ends_writes() {
        // The server ignores this signal (crates/log); a program may need the default action.
        // SAFETY: the default action is always valid.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    }
    SigSet::empty().thread_set_mask()?;
    Ok(())
}
