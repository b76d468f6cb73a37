//! A child process whose stderr is kept, and which dies with its owner.

use crate::wait::{WATCHDOG, eventually};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    lines: Arc<Mutex<String>>,
    name: String,
}

impl Process {
    /// Starts `command`; its standard error is collected line by line, standard output goes where the command says.
    pub(crate) fn start(name: &str, command: &mut Command) -> Process {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|e| panic!("cannot start {name} ({command:?}): {e}"));
        let lines = Arc::new(Mutex::new(String::new()));
        let collected = Arc::clone(&lines);
        let stderr = child.stderr.take().expect("it is piped");
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let mut all = collected.lock().unwrap_or_else(PoisonError::into_inner);
                all.push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Process { child, lines, name: name.to_owned() }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("pids are positive")
    }

    /// All of stderr so far.
    pub(crate) fn log(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        if self.ended().is_none() {
            self.signal(libc::SIGTERM);
            let start = std::time::Instant::now();
            while self.ended().is_none() && start.elapsed() < WATCHDOG / 6 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process that a test started.
#[allow(unsafe_code)]
pub(crate) fn kill(pid: i32, signal: i32) {
    assert!(pid > 1, "{pid} is no process of ours");
    // SAFETY: no pointers; a positive pid names one process.
    unsafe { libc::kill(pid, signal) };
}

/// Whether the tests run as root.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}
