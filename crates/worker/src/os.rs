//! System calls of the template and the image process around fork: signals, descriptors, waiting.
//!
//! rustix calls the kernel directly. So csrc/interpose does not record these calls as calls of PHP.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::process::{
    Pid, Signal as Sent, WaitOptions, getppid, kill_process, set_parent_process_death_signal, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Waits until at least one of `fds` is readable or at its end. Returns which are.
pub(crate) fn wait_for_any<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
) -> io::Result<[bool; N]> {
    let watched = fds.into_iter().flatten();
    let mut polled: Vec<_> =
        watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    retry_on_intr(|| poll(&mut polled, None))?;
    let mut found = polled.iter().map(|fd| !fd.revents().is_empty());
    Ok(fds.map(|fd| fd.is_some() && found.next().unwrap_or(false)))
}

/// Set before the first fork.
static IS_IDLE: AtomicBool = AtomicBool::new(false);

/// Makes workers run only on CPUs that are otherwise idle.
pub(crate) fn use_idle_cpus() {
    IS_IDLE.store(true, Ordering::Relaxed);
}

/// Gives a worker the scheduling policy of its template's settings. The template and the image
/// process keep theirs, so that a boot ends on a busy machine too.
pub(crate) fn set_scheduling() {
    if !IS_IDLE.load(Ordering::Relaxed) {
        return;
    }
    // The kernel counts the time of processes with this value apart from that of others. Neither
    // call fails: both only lower the priority.
    let _ = rustix::process::nice(19);
    // SAFETY: plain numbers, all of which may be zero.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is valid during the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Waits until `fd` is writable, for at most `limit`. Returns false if it is not.
pub(crate) fn wait_for_room(fd: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::OUT)], limit.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Blocks SIGCHLD and returns a descriptor that becomes readable with it. So deaths and messages
/// are awaited in one place.
pub(crate) fn block_sigchld() -> io::Result<SignalFd> {
    let set = SigSet::from(Signal::SIGCHLD);
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

pub(crate) fn drain(signals: &SignalFd) {
    while let Ok(Some(_)) = signals.read_signal() {}
}

/// The signals that a process has blocked.
pub(crate) struct BlockedSignals(SigSet);

pub(crate) fn blocked_signals() -> BlockedSignals {
    // Fails only for an unknown first argument.
    BlockedSignals(SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty()))
}

/// Blocks these signals and no others.
pub(crate) fn block_signals(signals: &BlockedSignals) {
    // Fails only for an unknown first argument.
    let _ = signals.0.thread_set_mask();
}

pub(crate) fn unblock_signals() {
    block_signals(&BlockedSignals(SigSet::empty()));
}

/// Closes all inherited descriptors except the standard streams and `keep`. Requests and the
/// programs they start must not have them.
pub(crate) fn close_others(keep: &[RawFd]) {
    let mut kept: Vec<u32> = keep.iter().chain(&[0, 1, 2]).map(|fd| fd.unsigned_abs()).collect();
    kept.sort_unstable();
    let mut from = 0;
    for fd in kept {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = fd + 1;
    }
    close_range(from, u32::MAX);
}

fn close_range(from: u32, to: u32) {
    // SAFETY: no pointers; no code in this process owns a descriptor in the range.
    unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
}

/// Has the kernel kill this process when its parent dies: a worker without a supervisor has no
/// purpose. `parent` is the process that has forked this one, as known before the fork. The kernel
/// clears the setting when the process changes its user, group or capabilities. The code that makes
/// such a change must call this again. For changes by PHP code, csrc/interpose does that.
pub(crate) fn die_with_parent(parent: i32) {
    hear_of_parents_death(parent, Sent::KILL);
}

/// Has the kernel send SIGTERM to this process when its parent dies. A console worker without a
/// supervisor has no purpose either, but may finish its current work.
pub(crate) fn terminate_with_parent(parent: i32) {
    hear_of_parents_death(parent, Sent::TERM);
}

fn hear_of_parents_death(parent: i32, signal: Sent) {
    // Fails only for an invalid signal number.
    let _ = set_parent_process_death_signal(Some(signal));
    // The parent may have died before. Then the parent is now init or a supervisor that is a
    // subreaper, and no signal will come.
    if Pid::as_raw(getppid()) != parent {
        // SAFETY: ends the process, which has started no work.
        unsafe { libc::_exit(0) }
    }
}

/// Returns the number of this process. Its children compare it with the number of their parent.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Makes this process the leader of a process group of its own.
pub(crate) fn lead_group() {
    // Fails only for the leader of a session, which a fork is not.
    let _ = rustix::process::setpgid(None, None);
}

/// Changes the working directory. If the folder does not exist, the working directory stays the
/// same.
pub(crate) fn enter(folder: &CStr) {
    let _ = rustix::process::chdir(folder);
}

/// Redirects standard output and standard error to `output`.
pub(crate) fn print_to(output: impl AsFd) {
    // Replacing them cannot fail.
    let _ = dup2_stdout(&output);
    let _ = dup2_stderr(&output);
}

/// Redirects the output of a worker to its own pipe, if it has one.
pub(crate) fn print_there(output: Option<OwnedFd>) {
    if let Some(output) = output {
        print_to(output);
    }
}

/// Closes the descriptor on exec: programs that PHP starts must not have the ring.
pub(crate) fn close_on_exec(fd: impl AsFd) {
    // Fails only for a closed descriptor.
    let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
}

/// Redirects standard output to standard error. Output of a script to `php://stdout` must not mix
/// with the data that `samovar` prints.
pub(crate) fn stdout_to_stderr() {
    // If standard error is not open, nothing changes.
    let _ = dup2_stdout(io::stderr());
}

/// Restores the default actions of SIGSEGV and SIGBUS. Rust's runtime uses these signals to report
/// stack overflows. In PHP they must kill the process.
pub(crate) fn reset_rust_signal_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default action is always valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Releases the unwritten pages of programs and libraries. They come back from the page cache when
/// this process needs them. A process that only waits from now on then holds none of them.
pub(crate) fn release_clean_pages() -> io::Result<()> {
    let smaps = std::fs::read_to_string("/proc/self/smaps")?;
    let (mut mapping, mut clean) = (None, Vec::new());
    for line in smaps.lines() {
        if let Some(range) = read_only_file_mapping(line) {
            mapping = Some(range);
        } else if line.strip_prefix("Anonymous:").is_some_and(|size| size.trim() == "0 kB") {
            clean.extend(mapping.take());
        } else if !line.contains(": ") {
            mapping = None;
        }
    }
    for (from, len) in clean {
        // SAFETY: unwritten pages of a file mapping that is not writable: the kernel reads the same
        // content again.
        unsafe { libc::madvise(from as *mut libc::c_void, len, libc::MADV_DONTNEED) };
    }
    Ok(())
}

/// Returns address and length, if the line is the first of such a mapping.
fn read_only_file_mapping(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let from = usize::from_str_radix(from, 16).ok()?;
    let to = usize::from_str_radix(to, 16).ok()?;
    let private = matches!(fields.next()?, "r-xp" | "r--p");
    (private && fields.nth(3)?.starts_with('/')).then_some((from, to - from))
}

/// Closes a descriptor whose owner will not be dropped.
pub(crate) fn close(fd: RawFd) {
    // SAFETY: no pointers; the caller never uses it again.
    unsafe { libc::close(fd) };
}

/// Returns the process number and wait status of a child that has ended, if there is one.
pub(crate) fn reap() -> Option<(i32, i32)> {
    let (pid, status) = wait(WaitOptions::NOHANG).ok()??;
    Some((pid.as_raw_pid(), status.as_raw()))
}

/// Sends SIGKILL to a child that was not waited for yet. Until then no other process can get its
/// number.
pub(crate) fn kill(child: i32) {
    if let Some(child) = Pid::from_raw(child) {
        let _ = kill_process(child, Sent::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_read_only_file_mappings_are_released() {
        let line = "7f00-9f00 r-xp 00026000 fe:00 1234                       /usr/lib/libc.so.6";
        assert_eq!(read_only_file_mapping(line), Some((0x7f00, 0x2000)));
        let written = line.replace("r-xp", "rw-p");
        let shared = line.replace("r-xp", "r--s");
        for other in [
            written.as_str(),
            &shared,
            "7f00-9f00 r--p 00000000 00:00 0",
            "7f00-9f00 r-xp 0 00:00 0 [vdso]",
        ] {
            assert_eq!(read_only_file_mapping(other), None, "{other}");
        }
        assert_eq!(read_only_file_mapping("Rss:                 164 kB"), None);
    }

    /// Returns the exit status of a child that runs `life`.
    fn child(life: impl FnOnce()) -> i32 {
        // SAFETY: the child makes only system calls.
        match unsafe { libc::fork() } {
            0 => {
                life();
                // SAFETY: ends the child.
                unsafe { libc::_exit(7) }
            }
            pid => {
                let mut status = 0;
                // SAFETY: waits for our child; fills a local.
                assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
                libc::WEXITSTATUS(status)
            }
        }
    }

    #[test]
    fn child_of_dead_parent_exits() {
        let parent = own_pid();
        assert_eq!(child(|| die_with_parent(parent)), 7);
        // The child's parent is not the process with this number.
        assert_eq!(child(|| die_with_parent(i32::MAX)), 0);
        assert_eq!(child(|| terminate_with_parent(i32::MAX)), 0);
    }

    #[test]
    fn process_continues_after_releasing_clean_pages() {
        release_clean_pages().expect("/proc is there");
        assert_eq!("still".to_uppercase(), "STILL");
    }
}
