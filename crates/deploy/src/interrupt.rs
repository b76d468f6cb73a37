//! The signals that end a deploy, as events: a running command is ended first.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const HANDLED: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// SIGINT, SIGTERM and SIGHUP, which are blocked. Signals that the process ignores are still
/// ignored, for example SIGHUP under `nohup`.
pub(crate) struct Interrupts(SignalFd);

/// Result of a wait.
pub(crate) enum Awaited {
    /// The other end of the pipe is closed.
    End,
    /// A signal of this name.
    Signal(&'static str),
    /// The time limit has passed.
    Nothing,
}

/// The mask of the thread, which is set again at the end.
pub(crate) struct Mask(SigSet);

impl Mask {
    /// The mask before the block.
    pub(crate) fn before(&self) -> SigSet {
        self.0
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        let _ = self.0.thread_set_mask();
    }
}

impl Interrupts {
    /// Blocks the signals in this thread and in threads that it starts. The mask is the previous
    /// one again when the second value is dropped; a signal that is pending then ends the process.
    /// `None`: they cannot be blocked.
    pub(crate) fn block() -> Option<(Interrupts, Mask)> {
        let ignored = ignored();
        let is_handled = |signal: &Signal| ignored >> (*signal as u32 - 1) & 1 == 0;
        let handled: SigSet = HANDLED.into_iter().filter(is_handled).collect();
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let pending = SignalFd::with_flags(&handled, flags).ok()?;
        let before = handled.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok()?;
        Some((Interrupts(pending), Mask(before)))
    }
}

/// Waits until the pipe's writer is closed, a signal arrives or the time has passed.
pub(crate) fn wait(signals: Option<&Interrupts>, end: &io::PipeReader, limit: Duration) -> Awaited {
    let until = Instant::now().checked_add(limit);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut both = vec![PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)];
        both.extend(
            signals.map(|Interrupts(fd)| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)),
        );
        match poll(&mut both, left.as_ref()) {
            Ok(0) => return Awaited::Nothing,
            Ok(_) if !both[0].revents().is_empty() => return Awaited::End,
            Ok(_) | Err(Errno::INTR) => {}
            // Without a watch the command goes on to its own end.
            Err(_) => return Awaited::End,
        }
        if let Some(Ok(Some(received))) = signals.map(|Interrupts(fd)| fd.read_signal()) {
            let name = HANDLED.iter().find(|signal| **signal as u32 == received.ssi_signo);
            return Awaited::Signal(name.map_or("a signal", |signal| signal.as_str()));
        }
    }
}

/// Returns the bits of the signals that the process ignores, signal 1 first; 0 if unknown.
/// Source: `proc_pid_status(5)`, the line `SigIgn`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
