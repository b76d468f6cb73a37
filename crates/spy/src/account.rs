//! The kernel's account of a thread that is queried repeatedly. Its files below `/proc` stay open,
//! so that a query is one system call per file and not six in all.

use crate::activity::{Activity, activity_of, cpu_ns_of};
use crate::calls::doing_of;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Maximum length of the line of either file: nine numbers.
const LINE_BYTES_MAX: usize = 512;

/// Account of one thread.
#[derive(Debug)]
pub struct Account {
    pid: u32,
    syscall: Line,
    schedstat: Line,
}

/// A file of one line.
#[derive(Debug)]
struct Line {
    path: String,
    /// `None`: it is opened for each read.
    file: Option<File>,
    stays_open: bool,
}

impl Line {
    fn new(path: String, stays_open: bool) -> Line {
        Line { path, file: None, stays_open }
    }

    /// The present line; `None` if the thread is gone or may not be queried.
    fn read<'a>(&mut self, into: &'a mut [u8; LINE_BYTES_MAX]) -> Option<&'a str> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path).ok()?,
        };
        let len = file.read_at(into, 0).ok()?;
        self.file = self.stays_open.then_some(file);
        std::str::from_utf8(&into[..len]).ok()
    }
}

impl Account {
    /// Number of descriptors that an open account uses.
    pub const FILES: usize = 2;

    /// Creates the account of a thread. If its files do not stay open, a query costs as much as
    /// without an account.
    pub fn new(pid: u32, thread: u32, stays_open: bool) -> Account {
        let line = |name: &str| Line::new(format!("/proc/{pid}/task/{thread}/{name}"), stays_open);
        Account { pid, syscall: line("syscall"), schedstat: line("schedstat") }
    }

    /// The thread's present activity. `behind` returns the name of a descriptor's other end.
    pub fn activity(&mut self, behind: &mut dyn FnMut(i32) -> String) -> Activity {
        let mut bytes = [0; LINE_BYTES_MAX];
        let line = self.syscall.read(&mut bytes);
        activity_of(line.and_then(|line| doing_of(self.pid, line)), behind)
    }

    /// CPU time used so far, in nanoseconds.
    pub fn cpu_ns(&mut self) -> Option<u64> {
        let mut bytes = [0; LINE_BYTES_MAX];
        cpu_ns_of(self.schedstat.read(&mut bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::cpu_ns;

    #[test]
    fn account_matches_fresh_reads() {
        let own = std::process::id();
        for stays_open in [true, false] {
            let mut account = Account::new(own, own, stays_open);
            let mut before = 0;
            for _ in 0..3 {
                let from = cpu_ns(own, own).expect("it is ours");
                let cpu_ns_read = account.cpu_ns().expect("it is ours");
                assert!(cpu_ns_read >= before.max(from), "{cpu_ns_read} after {from} and {before}");
                before = cpu_ns_read;
                // The test's own thread runs; the first thread of the process waits for it.
                let doing = account.activity(&mut |_| String::new());
                assert_ne!(doing, Activity::Unknown);
            }
            assert_eq!(account.syscall.file.is_some(), stays_open);
        }
    }

    #[test]
    fn ended_thread_has_no_account() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a program");
        let mut account = Account::new(child.id(), child.id(), true);
        assert!(account.cpu_ns().is_some());
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert_eq!(account.cpu_ns(), None);
        assert_eq!(account.cpu_ns(), None, "nor when it is opened again");
        assert_eq!(account.activity(&mut |_| String::new()), Activity::Unknown);
    }
}
