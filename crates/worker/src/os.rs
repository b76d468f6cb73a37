//! fork's surroundings: signals, messages, waiting. The system calls of template and image process.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Longest message on a channel.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Waits until one of `fds` is readable, or at its end; says which are.
pub(crate) fn wait_for_any<const N: usize>(fds: [RawFd; N]) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: an array of N pollfds; negative descriptors are passed over.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, -1) };
        if ready >= 0 {
            return Ok(polled.map(|p| p.revents != 0));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// SIGCHLD becomes readable, so that a death and a message are waited for in one place.
pub(crate) fn block_sigchld() -> io::Result<OwnedFd> {
    let mut set = empty_set();
    // SAFETY: fills a local set.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGCHLD) };
    // SAFETY: reads a local set; one thread.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    // SAFETY: reads a local set; -1 makes a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn drain(signals: RawFd) {
    let mut buffer = [0u8; 4 * size_of::<libc::signalfd_siginfo>()];
    // SAFETY: a live buffer with its length; the descriptor does not block.
    while unsafe { libc::read(signals, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

pub(crate) fn unblock_signals() {
    let set = empty_set();
    // SAFETY: reads a local set; one thread.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: sets all of a local.
    unsafe { libc::sigemptyset(&raw mut set) };
    set
}

/// Closes what the process has inherited beside standard streams and `keep`: requests and their programs have no
/// business with it.
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
    // SAFETY: no pointers; nobody in this process owns a descriptor in the range.
    unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
}

/// A worker without a supervisor has no purpose.
pub(crate) fn die_with_parent() {
    hear_of_parents_death(libc::SIGKILL);
}

/// A console worker without a supervisor has none either, but may finish what it has begun.
pub(crate) fn terminate_with_parent() {
    hear_of_parents_death(libc::SIGTERM);
}

fn hear_of_parents_death(signal: libc::c_int) {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
}

/// The working directory; one that is gone leaves it as it was.
pub(crate) fn enter(folder: &CStr) {
    // SAFETY: a string with an end.
    unsafe { libc::chdir(folder.as_ptr()) };
}

/// Standard output and errors go there.
pub(crate) fn print_to(output: RawFd) {
    for standard in [1, 2] {
        // SAFETY: no pointers; both are open.
        unsafe { libc::dup2(output, standard) };
    }
}

/// Programs that PHP starts have no business with the ring.
pub(crate) fn close_on_exec(fd: &OwnedFd) {
    // SAFETY: sets a flag of an open descriptor.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// A script that writes to `php://stdout` must not mix with the data that `samovar` prints.
pub(crate) fn stdout_to_stderr() {
    // SAFETY: both are open, or the call fails and changes nothing.
    unsafe { libc::dup2(2, 1) };
}

/// Rust's runtime reports stack overflows through SIGSEGV and SIGBUS; in PHP they must kill the process.
pub(crate) fn reset_rust_signal_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default action is always valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lets go of the pages of programs and libraries that nobody has written: they come back from the page cache when
/// this process needs them. One that only waits from now on holds none for itself.
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
        // SAFETY: unwritten pages of a file that cannot be written here: the kernel reads the same again.
        unsafe { libc::madvise(from as *mut libc::c_void, len, libc::MADV_DONTNEED) };
    }
    Ok(())
}

/// Address and length, if the line begins such a mapping.
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

/// A child that has ended, if one has: its process and wait status.
pub(crate) fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: writes one local; WNOHANG never blocks.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// A pair of connected `SOCK_SEQPACKET` sockets.
pub(crate) fn message_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: fills an array of two.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made.
    let [ours, theirs] = fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Ok((ours, theirs))
}

/// Sends one message.
pub(crate) fn send(fd: RawFd, text: &str) -> io::Result<()> {
    // SAFETY: a live buffer with its length.
    let sent = unsafe { libc::send(fd, text.as_ptr().cast(), text.len(), libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The next message; waits for it. `None` when the other side has closed its end.
pub(crate) fn receive(fd: RawFd) -> io::Result<Option<String>> {
    let mut buffer = [0u8; MESSAGE_BYTES_MAX];
    // SAFETY: a live buffer with its length.
    let len = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    match usize::try_from(len) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(0) => Ok(None),
        Ok(len) => Ok(Some(String::from_utf8_lossy(&buffer[..len]).into_owned())),
    }
}

/// The next message with the descriptor that was passed with it; waits for it. `None` when the other side has closed
/// its end.
pub(crate) fn receive_with(from: BorrowedFd<'_>) -> io::Result<Option<(String, Option<OwnedFd>)>> {
    let mut buffer = [0u8; MESSAGE_BYTES_MAX];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let part = io::IoSliceMut::new(&mut buffer);
    let got = rustix::net::recvmsg(from, &mut [part], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes == 0 {
        return Ok(None);
    }
    let passed = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(Some((String::from_utf8_lossy(&buffer[..got.bytes]).into_owned(), passed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_cannot_be_written_are_let_go() {
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

    #[test]
    fn a_process_goes_on_without_its_clean_pages() {
        release_clean_pages().expect("/proc is there");
        assert_eq!("still".to_uppercase(), "STILL");
    }
}
