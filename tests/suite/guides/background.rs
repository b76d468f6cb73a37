//! Processes that run until the page's end: servers, with all their output.

use crate::guides::place::GuideMachine;
use samovar_testkit::eventually;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process that continues after its command has started; ended on drop.
pub(crate) struct Background {
    child: Child,
    log: std::path::PathBuf,
    command: String,
}

impl Background {
    /// Starts a shell command. It always ends together with the test.
    pub(crate) fn start(
        place: &GuideMachine,
        folder: &Path,
        command: &str,
        number: usize,
    ) -> Background {
        let log = place.path(&format!("/tmp/background-{number}.log"));
        let out = std::fs::File::create(&log).expect("our own file");
        let error = out.try_clone().expect("our own file");
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "bash", "-c", command])
            .current_dir(folder)
            .env_clear()
            .envs(place.environment())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(error)
            .spawn()
            .expect("setpriv runs");
        Background { child, log, command: command.to_owned() }
    }

    /// All output so far.
    pub(crate) fn log(&self) -> String {
        let mut text = Vec::new();
        let file = std::fs::File::open(&self.log);
        // After a read error, the next call reads the rest.
        let _ = file.map(|mut file| file.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits until `is_ready` accepts the log. An exit before that is an error.
    pub(crate) fn wait_for(&mut self, is_ready: impl Fn(&str) -> bool) -> Result<(), String> {
        eventually(&format!("`{}` is ready", self.command), || {
            if is_ready(&self.log()) {
                return Some(Ok(()));
            }
            let status = self.ended()?;
            Some(Err(format!("it ended ({status}):\n{}", self.log())))
        })
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    /// Sends SIGTERM, and waits for the exit.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        if self.ended().is_none() {
            self.terminate();
        }
        let status = eventually(&format!("the end of `{}`", self.command), || self.ended());
        if status.success() {
            Ok(())
        } else {
            Err(format!("`{}` ended with {status}:\n{}", self.command, self.log()))
        }
    }

    fn terminate(&self) {
        let pid = self.child.id().to_string();
        // The process may already have ended.
        let _ = Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.terminate();
            eventually(&format!("the end of `{}`", self.command), || self.ended());
        }
    }
}
