//! A child process whose stderr is recorded, and which dies with its owner.

use crate::tap::Tap;
use crate::wait::{WATCHDOG, eventually};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Number of the last log lines that a failed test shows.
const SHOWN_LINES_MAX: usize = 60;

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stderr: Tap,
    name: String,
}

impl Process {
    /// Starts `command`. Its standard error is collected; standard output goes where the command
    /// specifies.
    pub(crate) fn start(name: &str, command: &mut Command) -> Process {
        Process::start_with_stderr(name, command, Stdio::piped())
    }

    /// The same with another standard error, which is collected only if it is a new pipe.
    pub(crate) fn start_with_stderr(name: &str, command: &mut Command, stderr: Stdio) -> Process {
        command.stdin(Stdio::null()).stderr(stderr);
        let mut child =
            command.spawn().unwrap_or_else(|e| panic!("cannot start {name} ({command:?}): {e}"));
        let stderr = child.stderr.take().map(|pipe| Tap::start(File::from(OwnedFd::from(pipe))));
        Process { child, stderr: stderr.unwrap_or_else(Tap::none), name: name.to_owned() }
    }

    /// The reader of its standard error.
    pub(crate) fn stderr(&self) -> &Tap {
        &self.stderr
    }

    /// The reader of its standard output, if that is a pipe; once.
    pub(crate) fn take_stdout(&mut self) -> Option<Tap> {
        let pipe = OwnedFd::from(self.child.stdout.take()?);
        Some(Tap::start(File::from(pipe)))
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("pids are positive")
    }

    /// All of stderr so far.
    pub(crate) fn log(&self) -> String {
        self.stderr.text()
    }

    /// All of stderr, of a process that has ended and left no process that holds the pipe.
    pub(crate) fn whole_log(&self) -> String {
        let is_read = || self.stderr.is_closed().then_some(());
        eventually(&format!("the end of the log of {}", self.name), is_read);
        self.log()
    }

    /// Shows the end of the log of a failed test.
    fn show_end_of_log(&self) {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES_MAX)..];
        eprintln!("---- the end of the log of {} ----\n{}", self.name, shown.join("\n"));
    }

    /// The exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    pub(crate) fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let what = format!("the end of {}, whose log is:\n{}", self.name, self.log());
        eventually(&what, || self.ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_end_of_log();
        }
        end(&mut self.child);
    }
}

/// Processes whose command line contains `path`; those of a server contain its folder. Forks have
/// the command line of their parent.
pub fn processes_naming(path: &std::path::Path) -> Vec<i32> {
    let path = path.as_os_str().as_encoded_bytes();
    let names = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.windows(path.len()).any(|part| part == path)
    };
    let folders = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    pids.filter(names).collect()
}

/// Sends SIGTERM and waits for the end: a server with children of its own ends them. Sends SIGKILL
/// if it does not obey.
pub fn end(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None)) {
        kill(child.id().cast_signed(), libc::SIGTERM);
        let start = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && start.elapsed() < WATCHDOG / 6 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // A process that has already ended is fine.
    let _ = child.kill();
    let _ = child.wait();
}

/// Sends a signal to a process that a test started. A process that has ended is fine.
#[allow(unsafe_code)]
pub fn kill(pid: i32, signal: i32) {
    assert!(pid > 1, "{pid} is no process of ours");
    // SAFETY: no pointers; a positive pid denotes one process.
    unsafe { libc::kill(pid, signal) };
}

/// Whether a process has ended, regardless of the process that reaps it.
pub fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After its name, which may contain any character.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}
