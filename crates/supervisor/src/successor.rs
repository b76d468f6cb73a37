//! The server that is to come: how it is started by the one that serves, and what both hold of each other.
//!
//! What they say is not known here: an end of the channel travels as a descriptor, its number in the environment. Until the
//! successor has come so far that it watches the channel by itself, it dies with the thread that has started it.

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal, setrlimit,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names the channel to the successor: the process that has started it, and the descriptor, `4711:7`.
pub const CHANNEL_VARIABLE: &str = "SAMOVAR_HANDOVER";

/// Reads of what a successor prints at a time: one that prints for ever is not listened to for ever.
const WORDS_READS_MAX: usize = 64;

/// What the successor is started with.
#[derive(Debug)]
pub struct SuccessorCommand {
    /// The program, and what it is called.
    pub program: PathBuf,
    /// As this server was started, its own name included.
    pub arguments: Vec<OsString>,
    /// Variables that it has otherwise than this process.
    pub environment: Vec<(String, Option<String>)>,
    /// The limit of open files, as this process has found it.
    pub open_files: Rlimit,
}

/// A server on its way.
#[derive(Debug)]
pub struct Successor {
    /// Its process.
    pub pid: i32,
    process: Option<OwnedFd>,
    /// What it prints before it knows where to.
    words: OwnedFd,
}

impl Successor {
    /// Starts it, on the thread that reaps children; with our end of the channel. It is reaped with all other children, and whoever has hooks is told of its end.
    pub fn start(command: &SuccessorCommand) -> io::Result<(Successor, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (channel, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let (words, printed) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&words, OFlags::NONBLOCK)?;
        let parent = getpid();
        let mut process = Command::new(&command.program);
        if let Some((name, rest)) = command.arguments.split_first() {
            process.arg0(name).args(rest);
        }
        for (name, value) in &command.environment {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        process.env(CHANNEL_VARIABLE, format!("{}:{}", parent.as_raw_pid(), theirs.as_raw_fd()));
        process.stderr(Stdio::from(printed));
        let (inherited, open_files) = (theirs.as_raw_fd(), command.open_files);
        let prepare = move || prepare(inherited, open_files, parent);
        // SAFETY: `prepare` makes only async-signal-safe calls and allocates nothing unless it fails.
        unsafe { process.pre_exec(prepare) };
        let child = process.spawn()?;
        let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidData)?;
        let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok((Successor { pid, process, words }, channel))
    }

    /// SIGKILL. It may have ended, which is as good; its workers die with it.
    pub fn kill(&self) {
        if let Some(process) = &self.process {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Waits for its end; false: it goes on.
    pub fn wait(&self, limit: Duration) -> bool {
        // Ended before it could be opened.
        let Some(process) = &self.process else { return true };
        let limit = Timespec::try_from(limit).ok();
        poll(&mut [PollFd::new(process, PollFlags::IN)], limit.as_ref()).is_ok_and(|n| n > 0)
    }

    /// Appends some of what it has printed, without waiting, and keeps the last so many bytes; false: nothing more will come.
    pub fn read_words(&self, into: &mut Vec<u8>, bytes_max: usize) -> bool {
        let mut buffer = [0; 1024];
        for _ in 0..WORDS_READS_MAX {
            match rustix::io::read(&self.words, &mut buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    into.extend_from_slice(&buffer[..n]);
                    let surplus = into.len().saturating_sub(bytes_max);
                    into.drain(..surplus);
                }
                Err(_) => return true,
            }
        }
        true
    }
}

impl AsFd for Successor {
    /// Readable when it has printed something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.words.as_fd()
    }
}

/// Between fork and exec.
fn prepare(channel: RawFd, open_files: Rlimit, parent: Pid) -> io::Result<()> {
    // SAFETY: clears a flag of an open descriptor.
    if unsafe { libc::fcntl(channel, libc::F_SETFD, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that was said.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // One that has been lowered from outside meanwhile stays as it is.
    let _ = setrlimit(Resource::Nofile, open_files);
    // Ignored by the server (crates/log); its successor says so itself.
    // SAFETY: the default action is always valid.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// The other end, in the successor; `None`: nobody has started this process as one. Call it once, on the main thread, before
/// the process opens anything.
pub fn channel_of_predecessor(variable: Option<&str>) -> io::Result<Option<OwnedFd>> {
    let Some((pid, fd)) = variable.and_then(|text| text.split_once(':')) else { return Ok(None) };
    let (Ok(pid), Ok(fd)) = (pid.parse::<i32>(), fd.parse::<RawFd>()) else { return Ok(None) };
    // Meant for a process that has started this one.
    if getppid().map(Pid::as_raw_pid) != Some(pid) || fd <= libc::STDERR_FILENO {
        return Ok(None);
    }
    // SAFETY: only asked for its kind; a descriptor that is not open is an error, nothing else.
    let kind = rustix::net::sockopt::socket_type(unsafe { BorrowedFd::borrow_raw(fd) })?;
    if kind != SocketType::SEQPACKET {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no channel"));
    }
    // SAFETY: open (just asked); the variable says that it was opened for this process, which nobody else here knows of.
    let channel = unsafe { OwnedFd::from_raw_fd(fd) };
    rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::CLOEXEC)?;
    Ok(Some(channel))
}

/// From now on this process sees by the channel alone whether the one that has started it lives. On the main thread.
pub fn outlive_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(None)?)
}

/// The program that a server was started as, looked for anew: by its path, or where programs lie.
pub fn resolve(name: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(name.to_owned());
    }
    let is_program = |file: &PathBuf| {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    std::env::split_paths(path?).map(|folder| folder.join(name)).find(is_program)
}

/// How a process has ended, in words.
pub fn ending(status: i32) -> String {
    crate::end::describe(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_is_not_for_this_process_is_left_alone() {
        let parent = getppid().map_or(0, Pid::as_raw_pid);
        for text in [None, Some(""), Some("1"), Some("x:3"), Some("1:x"), Some("2147483647:9")] {
            assert!(channel_of_predecessor(text).expect("nothing").is_none(), "{text:?}");
        }
        // Standard streams are nobody's channel.
        let own = format!("{parent}:2");
        assert!(channel_of_predecessor(Some(&own)).expect("nothing").is_none());
        let closed = format!("{parent}:987654");
        assert!(channel_of_predecessor(Some(&closed)).is_err());
    }

    #[test]
    fn a_program_is_looked_for_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = std::env::join_paths([Path::new("/no/such"), folder.path()]).expect("paths");
        assert_eq!(resolve(Path::new("tea"), Some(&path)), None);
        let file = folder.path().join("tea");
        std::fs::write(&file, "#!/bin/sh\n").expect("our own");
        assert_eq!(resolve(Path::new("tea"), Some(&path)), None, "nobody may run it");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("our own");
        assert_eq!(resolve(Path::new("tea"), Some(&path)), Some(file));
        assert_eq!(resolve(Path::new("./tea"), None), Some("./tea".into()));
    }

    #[test]
    fn a_successor_that_is_none_says_why_and_ends() {
        let command = SuccessorCommand {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", "echo \"$1 $TEA\" >&2; exit 3", "sh", "why"]
                .map(Into::into)
                .into(),
            environment: vec![("TEA".to_owned(), Some("green".to_owned()))],
            open_files: rustix::process::getrlimit(Resource::Nofile),
        };
        let (successor, _channel) = Successor::start(&command).expect("a shell");
        assert!(successor.wait(Duration::from_secs(20)), "its end");
        let mut words = Vec::new();
        assert!(!successor.read_words(&mut words, 64));
        assert_eq!(String::from_utf8_lossy(&words), "why green\n");
        let hung = SuccessorCommand {
            arguments: ["sh", "-c", "sleep 1000"].map(Into::into).into(),
            ..command
        };
        let (successor, _channel) = Successor::start(&hung).expect("a shell");
        assert!(!successor.wait(Duration::ZERO));
        successor.kill();
        assert!(successor.wait(Duration::from_secs(20)), "its end");
    }
}
