//! The successor: a new server process that the current server starts, and the channel and process
//! handle between both.
//!
//! Does not know the messages. The successor inherits its end of the channel as a descriptor, whose
//! number is in the environment. Until the successor itself watches the channel, it dies with the
//! thread that started it.

use crate::secrets;
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

/// Variable that passes the channel to the successor: the id of the process that started it, and
/// the descriptor, as in `4711:7`.
pub const CHANNEL_VARIABLE: &str = "SAMOVAR_HANDOVER";

/// Maximum number of consecutive reads of a successor's output: an endless output must not block
/// the reader.
const WORDS_READS_MAX: usize = 64;

/// Command that starts a successor.
#[derive(Debug)]
pub struct SuccessorCommand {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of this server, including its own name.
    pub arguments: Vec<OsString>,
    /// Variables that differ from this process's environment.
    pub environment: Vec<(String, Option<String>)>,
    /// Limit of open files, as found at the start of this process.
    pub open_files: Rlimit,
}

/// A successor that was started.
#[derive(Debug)]
pub struct Successor {
    /// Process id.
    pub pid: i32,
    process: Option<OwnedFd>,
    /// Output printed before it has opened its log.
    words: OwnedFd,
}

impl Successor {
    /// Starts a successor, on the thread that reaps children, and returns it with our end of the
    /// channel. It is reaped with all other children, and the hooks report its end.
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
        process.envs(secrets::variables().iter().map(|(name, value)| (name, value)));
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
        // SAFETY: `prepare` makes only async-signal-safe calls, and allocates nothing unless it
        // fails.
        unsafe { process.pre_exec(prepare) };
        let child = process.spawn()?;
        let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidData)?;
        let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok((Successor { pid, process, words }, channel))
    }

    /// Sends SIGKILL. An error is ignored: the process has ended. Its workers die with it.
    pub fn kill(&self) {
        if let Some(process) = &self.process {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Waits for its end. Returns false if it is still running after `limit`.
    pub fn wait(&self, limit: Duration) -> bool {
        // The process ended before the pidfd could be opened.
        let Some(process) = &self.process else { return true };
        let limit = Timespec::try_from(limit).ok();
        poll(&mut [PollFd::new(process, PollFlags::IN)], limit.as_ref()).is_ok_and(|n| n > 0)
    }

    /// Appends available output without waiting, and keeps the last `bytes_max` bytes. Returns
    /// false at the end of the output.
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
    /// Readable when there is output.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.words.as_fd()
    }
}

/// Prepares the process between fork and exec.
fn prepare(channel: RawFd, open_files: Rlimit, parent: Pid) -> io::Result<()> {
    // SAFETY: clears a flag of an open descriptor.
    if unsafe { libc::fcntl(channel, libc::F_SETFD, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before that call.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // A limit that was lowered from outside meanwhile is kept.
    let _ = setrlimit(Resource::Nofile, open_files);
    // The server ignores this signal (crates/log); its successor does so again.
    // SAFETY: the default action is always valid.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// Returns the successor's end of the channel; `None` if this process was not started as a
/// successor. Must be called once, on the main thread, before the process opens any descriptor.
pub fn channel_of_predecessor(variable: Option<&str>) -> io::Result<Option<OwnedFd>> {
    let Some((pid, fd)) = variable.and_then(|text| text.split_once(':')) else { return Ok(None) };
    let (Ok(pid), Ok(fd)) = (pid.parse::<i32>(), fd.parse::<RawFd>()) else { return Ok(None) };
    // The variable is meant for a child of that process.
    if getppid().map(Pid::as_raw_pid) != Some(pid) || fd <= libc::STDERR_FILENO {
        return Ok(None);
    }
    // SAFETY: the descriptor is only queried for its kind; a descriptor that is not open only
    // causes an error.
    let kind = rustix::net::sockopt::socket_type(unsafe { BorrowedFd::borrow_raw(fd) })?;
    if kind != SocketType::SEQPACKET {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a channel"));
    }
    // SAFETY: the descriptor is open (just checked). According to the variable it was opened for
    // this process, and it has no other owner here.
    let channel = unsafe { OwnedFd::from_raw_fd(fd) };
    rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::CLOEXEC)?;
    Ok(Some(channel))
}

/// From now on, only the channel shows this process whether its parent is alive. Must be called on
/// the main thread.
pub fn outlive_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(None)?)
}

/// Finds the program that a server was started as, again: by its path, or in the folders of `path`.
pub fn resolve(name: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(name.to_owned());
    }
    let is_program = |file: &PathBuf| {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    std::env::split_paths(path?).map(|folder| folder.join(name)).find(is_program)
}

/// Describes how a process ended.
pub fn ending(status: i32) -> String {
    crate::end::describe(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_for_another_process_is_ignored() {
        let parent = getppid().map_or(0, Pid::as_raw_pid);
        for text in [None, Some(""), Some("1"), Some("x:3"), Some("1:x"), Some("2147483647:9")] {
            assert!(channel_of_predecessor(text).expect("nothing").is_none(), "{text:?}");
        }
        // Standard streams are never a channel.
        let own = format!("{parent}:2");
        assert!(channel_of_predecessor(Some(&own)).expect("nothing").is_none());
        let closed = format!("{parent}:987654");
        assert!(channel_of_predecessor(Some(&closed)).is_err());
    }

    #[test]
    fn resolve_finds_executable_on_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = std::env::join_paths([Path::new("/no/such"), folder.path()]).expect("paths");
        assert_eq!(resolve(Path::new("tea"), Some(&path)), None);
        let file = folder.path().join("tea");
        std::fs::write(&file, "#!/bin/sh\n").expect("our own");
        assert_eq!(resolve(Path::new("tea"), Some(&path)), None, "not executable");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("our own");
        assert_eq!(resolve(Path::new("tea"), Some(&path)), Some(file));
        assert_eq!(resolve(Path::new("./tea"), None), Some("./tea".into()));
    }

    #[test]
    fn successor_output_and_end_are_observed() {
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
