//! The kernel's account of a thread that is asked again and again: its files below `/proc` stay open, so that a look is one
//! call of the system each and not six.

use crate::activity::{Activity, activity_of, cpu_ns_of};
use crate::calls::doing_of;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The longest line of either file: nine numbers.
const LINE_BYTES_MAX: usize = 512;

/// One thread's.
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
    /// `None`: it is opened for each look.
    file: Option<File>,
    stays_open: bool,
}

impl Line {
    fn new(path: String, stays_open: bool) -> Line {
        Line { path, file: None, stays_open }
    }

    /// What it says now; `None`: the thread has gone, or may not be asked.
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
    /// Descriptors that one keeps open.
    pub const FILES: usize = 2;

    /// That of a thread. Where its files do not stay open, it costs as much as asking anew.
    pub fn new(pid: u32, thread: u32, stays_open: bool) -> Account {
        let line = |name: &str| Line::new(format!("/proc/{pid}/task/{thread}/{name}"), stays_open);
        Account { pid, syscall: line("syscall"), schedstat: line("schedstat") }
    }

    /// What the thread does now; what stands behind a descriptor is told by `behind`.
    pub fn activity(&mut self, behind: &mut dyn FnMut(i32) -> String) -> Activity {
        let mut bytes = [0; LINE_BYTES_MAX];
        let line = self.syscall.read(&mut bytes);
        activity_of(line.and_then(|line| doing_of(self.pid, line)), behind)
    }

    /// CPU time that it has used, in nanoseconds.
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
    fn an_account_is_what_is_told_anew() {
        let own = std::process::id();
        for stays_open in [true, false] {
            let mut account = Account::new(own, own, stays_open);
            let mut before = 0;
            for _ in 0..3 {
                let from = cpu_ns(own, own).expect("it is ours");
                let told = account.cpu_ns().expect("likewise");
                assert!(told >= before.max(from), "{told} after {from} and {before}");
                before = told;
                // The test's own thread runs; the process's first one waits for it.
                let doing = account.activity(&mut |_| String::new());
                assert_ne!(doing, Activity::Unknown);
            }
            assert_eq!(account.syscall.file.is_some(), stays_open);
        }
    }

    #[test]
    fn who_has_gone_has_none() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("a program");
        let mut account = Account::new(child.id(), child.id(), true);
        assert!(account.cpu_ns().is_some());
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert_eq!(account.cpu_ns(), None);
        assert_eq!(account.cpu_ns(), None, "nor when it is opened anew");
        assert_eq!(account.activity(&mut |_| String::new()), Activity::Unknown);
    }
}
