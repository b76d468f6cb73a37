//! The template process: starts PHP once, forks a worker when told to, says when one has died.
//!
//! Messages are one text datagram each over a `SOCK_SEQPACKET` pair:
//! `fork INDEX INCARNATION any|boot|script` comes in; `ready VERSION MODEL`, `forked INDEX INCARNATION PID`,
//! `died INDEX INCARNATION PID STATUS` and `failed INDEX INCARNATION ERROR` go out. The channel's end is the
//! end of the template: it stops its workers and leaves.

use crate::boundary::{self, PhpOptions};
use crate::life::{self, Role};
use crate::log;
use crate::options::Options;
use samovar_ring::{Incarnation, Ring, WORKERS_MAX};
use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Longest message on the channel.
const MESSAGE_BYTES_MAX: usize = 256;

/// Starts PHP and serves the supervisor until it closes the channel.
pub(crate) fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    log::use_json(options.json_log);
    die_with_parent();
    for fd in [&options.channel, &options.ring, &options.bell] {
        close_on_exec(fd);
    }
    stdout_to_stderr();
    let ring = Ring::attach(options.ring, options.bell)?;
    let resident = calls_serve(&options.app);
    boundary::php_startup(PhpOptions {
        ini_file: options.php_ini.map(CString::new).transpose()?,
        ini_entries: CString::new(options.ini_entries)?,
        app: CString::new(options.app)?,
    })?;
    let (loaded, built) = (boundary::php_version(), boundary::php_built_for());
    if loaded != built {
        // The engine's structs changed inside 8.2.x: running on would corrupt memory.
        return Err(format!(
            "built for PHP {built}, but libphp is {loaded}\nhint: rebuild samovar-php for this PHP"
        )
        .into());
    }
    reset_rust_signal_handlers();
    let children = block_sigchld()?;
    let model = if resident { "resident" } else { "script" };
    let mut template =
        Template { channel: options.channel, children, ring, workers: HashMap::new() };
    template.send(&format!("ready {loaded} {model}"))?;
    template.serve()?;
    boundary::php_shutdown();
    Ok(())
}

struct Template {
    channel: OwnedFd,
    children: OwnedFd,
    ring: Ring,
    workers: HashMap<i32, (usize, Incarnation)>,
}

impl Template {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let (message, child) = wait_for(self.channel.as_raw_fd(), self.children.as_raw_fd())?;
            if child {
                drain(self.children.as_raw_fd());
                self.reap()?;
            }
            if message {
                let Some(text) = self.receive()? else { return Ok(()) };
                if let Some((index, me, role)) = parse_fork(&text) {
                    self.fork(index, me, role)?;
                } else {
                    log::write(&format!("samovar-php: unknown message `{text}`"), "");
                }
            }
        }
    }

    fn fork(&mut self, index: usize, me: Incarnation, role: Role) -> io::Result<()> {
        // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => {
                let error = io::Error::last_os_error();
                self.send(&format!("failed {index} {} {error}", me.get()))
            }
            0 => self.become_worker(index, me, role),
            pid => {
                self.workers.insert(pid, (index, me));
                self.send(&format!("forked {index} {} {pid}", me.get()))
            }
        }
    }

    fn become_worker(&self, index: usize, me: Incarnation, role: Role) -> ! {
        die_with_parent();
        for fd in [self.channel.as_raw_fd(), self.children.as_raw_fd()] {
            // SAFETY: this process leaves through `_exit` and never drops the owners.
            unsafe { libc::close(fd) };
        }
        unblock_signals();
        life::run(self.ring.clone(), index, me, role);
        boundary::php_shutdown();
        // SAFETY: ends the process; destructors of the template's copies must not run here.
        unsafe { libc::_exit(0) }
    }

    fn reap(&mut self) -> io::Result<()> {
        loop {
            let mut status = 0;
            // SAFETY: writes one local; WNOHANG never blocks.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return Ok(());
            }
            if let Some((index, me)) = self.workers.remove(&pid) {
                self.send(&format!("died {index} {} {pid} {status}", me.get()))?;
            }
        }
    }

    fn send(&self, text: &str) -> io::Result<()> {
        let fd = self.channel.as_raw_fd();
        // SAFETY: a live buffer with its length.
        let sent = unsafe { libc::send(fd, text.as_ptr().cast(), text.len(), libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// `None` when the supervisor has closed its end.
    fn receive(&self) -> io::Result<Option<String>> {
        let mut buffer = [0u8; MESSAGE_BYTES_MAX];
        let fd = self.channel.as_raw_fd();
        // SAFETY: a live buffer with its length.
        let len = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(len) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(0) => Ok(None),
            Ok(len) => Ok(Some(String::from_utf8_lossy(&buffer[..len]).into_owned())),
        }
    }
}

fn parse_fork(text: &str) -> Option<(usize, Incarnation, Role)> {
    let mut words = text.split_ascii_whitespace();
    if words.next()? != "fork" {
        return None;
    }
    let index = words.next()?.parse().ok().filter(|i| *i < WORKERS_MAX)?;
    let me = Incarnation::new(words.next()?.parse().ok()?)?;
    let role = match words.next()? {
        "any" => Role::Any,
        "boot" => Role::Boot,
        "script" => Role::Script,
        _ => return None,
    };
    Some((index, me, role))
}

/// Whether the front controller's own text calls or imports `Samovar\serve`: then workers boot it before their first
/// request. One that calls it from an included file is found out by its first request.
fn calls_serve(app: &str) -> bool {
    const SCRIPT_BYTES_MAX: u64 = 1 << 20;
    let small = std::fs::metadata(app).is_ok_and(|m| m.len() <= SCRIPT_BYTES_MAX);
    small && std::fs::read(app).is_ok_and(|text| names_serve(&text))
}

fn names_serve(text: &[u8]) -> bool {
    const NAME: &[u8] = b"samovar\\serve";
    (0..text.len().saturating_sub(NAME.len())).any(|at| {
        let (name, rest) = text[at..].split_at(NAME.len());
        let rest = rest.trim_ascii_start();
        name.eq_ignore_ascii_case(NAME)
            && [&b"("[..], b";", b"as "].iter().any(|next| rest.starts_with(next))
    })
}

fn wait_for(channel: RawFd, children: RawFd) -> io::Result<(bool, bool)> {
    let mut fds =
        [channel, children].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: an array of two pollfds.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        if ready >= 0 {
            return Ok((fds[0].revents != 0, fds[1].revents != 0));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// SIGCHLD becomes readable, so that a death and a message are waited for in one place.
fn block_sigchld() -> io::Result<OwnedFd> {
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

fn drain(signals: RawFd) {
    let mut buffer = [0u8; 4 * size_of::<libc::signalfd_siginfo>()];
    // SAFETY: a live buffer with its length; the descriptor does not block.
    while unsafe { libc::read(signals, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

fn unblock_signals() {
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

/// A worker without a supervisor has no purpose.
fn die_with_parent() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Programs that PHP starts have no business with the ring.
fn close_on_exec(fd: &OwnedFd) {
    // SAFETY: sets a flag of an open descriptor.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// A script that writes to `php://stdout` must not mix with the data that `samovar` prints.
fn stdout_to_stderr() {
    // SAFETY: both are open, or the call fails and changes nothing.
    unsafe { libc::dup2(2, 1) };
}

/// Rust's runtime reports stack overflows through SIGSEGV and SIGBUS; in PHP they must kill the process.
fn reset_rust_signal_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default action is always valid.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_or_an_import_of_serve_is_seen() {
        for text in [
            "<?php Samovar\\serve(fn () => 1);",
            "<?php \\samovar\\Serve (fn () => 1);",
            "<?php use function Samovar\\serve; serve(fn () => 1);",
            "<?php use function Samovar\\serve as run;",
        ] {
            assert!(names_serve(text.as_bytes()), "{text}");
        }
        for text in
            ["", "<?php echo 'Samovar\\serve';", "samovar\\serve", "<?php Samovar\\server(1);"]
        {
            assert!(!names_serve(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn orders_are_understood_or_refused() {
        let life = Incarnation::new(7);
        assert_eq!(parse_fork("fork 3 7 boot"), life.map(|life| (3, life, Role::Boot)));
        for text in
            ["", "fork", "fork 3 0 any", "fork 256 1 any", "fork 1 1 dance", "spoon 1 1 any"]
        {
            assert_eq!(parse_fork(text), None, "{text}");
        }
    }
}
