//! A server that has taken over from another one. It is not a child of the test, but must be
//! stopped, too.

use super::Server;
use crate::binary;
use crate::process::{has_ended, kill};
use crate::wait::{WATCHDOG, eventually};
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

impl Server {
    /// Runs `samovar upgrade` with these arguments. Returns its output, from the stream that
    /// matches its exit code.
    pub fn upgrade<const N: usize>(&self, args: [&str; N]) -> Result<String, String> {
        let output = Command::new(binary())
            .args(["upgrade", "--control"])
            .arg(self.control())
            .args(args)
            .output()
            .expect("the binary runs");
        let [said, wrong] =
            [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
        if output.status.code() == Some(0) {
            assert_eq!(wrong, "", "nothing on standard error");
            self.find_heir();
            return Ok(said);
        }
        assert_eq!((output.status.code(), said.as_str()), (Some(1), ""), "{wrong}");
        Err(wrong)
    }

    /// Notes the server that now responds at the control socket; it is stopped in the end. Returns
    /// its process id.
    pub fn find_heir(&self) -> i32 {
        let pid = self.status()["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.expect("a process id");
        if pid != self.process.pid() {
            self.heir.is(pid);
        }
        pid
    }

    /// Waits until the predecessor of the serving server has ended.
    pub fn wait_for_predecessor(&self) {
        eventually("the end of the server before", || {
            (self.status()["predecessor_pid"] == 0).then_some(())
        });
    }
}

/// The process that has taken over from the one started first; stopped when dropped.
#[derive(Debug, Default)]
pub(super) struct Heir(AtomicI32);

impl Heir {
    pub(super) fn pid(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Acquire)).filter(|pid| *pid > 1)
    }

    pub(super) fn is(&self, pid: i32) {
        self.0.store(pid, Ordering::Release);
    }

    /// Sends SIGTERM and waits for the end. It is not a child of the test.
    pub(super) fn stop(&self) {
        let Some(pid) = self.pid() else { return };
        kill(pid, libc::SIGTERM);
        eventually("the end of the last server", || has_ended(pid).then_some(()));
        self.is(0);
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        let Some(pid) = self.pid() else { return };
        kill(pid, libc::SIGTERM);
        let begun = std::time::Instant::now();
        while !has_ended(pid) && begun.elapsed() < WATCHDOG / 6 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if !has_ended(pid) {
            kill(pid, libc::SIGKILL);
        }
    }
}
