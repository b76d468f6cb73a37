//! A server that has taken over from another one. It is not a child of the test, but must be
//! stopped, too.

use crate::process::{has_ended, kill};
use crate::wait::{WATCHDOG, eventually};
use std::sync::atomic::{AtomicI32, Ordering};

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
