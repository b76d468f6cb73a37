//! Kernel limits for PHP's processes and all processes that they start: resource limits, which
//! child processes inherit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Limits of one PHP process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Open file descriptors; the server's own limit is higher.
    pub open_files: Rlimit,
    /// Private memory, in bytes; 0: no limit.
    pub memory_ceiling: u64,
    /// Total processes and threads of its user, above which it can start none; 0: the server's
    /// limit.
    pub processes: u64,
    /// Size of a file that it writes, in bytes; 0: the server's limit.
    pub file_bytes: u64,
    /// Size of its core dump, in bytes; `None`: the server's limit.
    pub core_bytes: Option<u64>,
    /// Value added to the server's own niceness.
    pub nice: u8,
    /// It uses only otherwise idle CPU time (`SCHED_IDLE`).
    pub is_idle: bool,
}

impl ProcessLimits {
    /// Returns the first limit that this process must not set: its name, the wanted value, and the
    /// hard limit below it. `open_files` is the hard limit for open files.
    pub fn beyond(&self, open_files: Option<u64>) -> Option<(&'static str, u64, u64)> {
        self.all().into_iter().find_map(|(name, kind, most)| {
            let hard = match kind {
                Resource::Nofile => open_files,
                kind => getrlimit(kind).maximum,
            };
            let (most, hard) = (most?, hard?);
            (most > hard).then_some((name, most, hard))
        })
    }

    fn all(&self) -> [(&'static str, Resource, Option<u64>); 5] {
        let given = |most: u64| Some(most).filter(|most| *most > 0);
        [
            ("open_files", Resource::Nofile, self.open_files.current),
            ("memory_ceiling", Resource::Data, given(self.memory_ceiling)),
            ("processes", Resource::Nproc, given(self.processes)),
            ("file_bytes", Resource::Fsize, given(self.file_bytes)),
            ("core_bytes", Resource::Core, self.core_bytes),
        ]
    }

    /// Applies the limits to this process. Async-signal-safe.
    pub(crate) fn hold(&self) -> io::Result<()> {
        for (_, kind, most) in self.all() {
            if kind == Resource::Nofile {
                // A limit that was lowered from outside meanwhile is kept.
                let _ = setrlimit(kind, self.open_files);
            } else if most.is_some() {
                setrlimit(kind, Rlimit { current: most, maximum: most })?;
            }
        }
        if self.nice > 0 {
            // SAFETY: takes a number. A return value of -1 can be a valid niceness, and raising the
            // niceness cannot be refused.
            let _ = unsafe { libc::nice(i32::from(self.nice)) };
        }
        if self.is_idle {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: reads a local variable; 0 is this process, which has one thread. Every
            // process may set this policy.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Whether a write beyond the file size limit must be an error, not a signal that ends the
    /// process.
    pub(crate) fn ends_writes(&self) -> bool {
        self.file_bytes > 0
    }
}

/// No limits: all values stay as they are in this process.
#[cfg(test)]
pub(crate) const AS_IT_IS: ProcessLimits = ProcessLimits {
    open_files: Rlimit { current: None, maximum: None },
    memory_ceiling: 0,
    processes: 0,
    file_bytes: 0,
    core_bytes: None,
    nice: 0,
    is_idle: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn shell(limits: ProcessLimits, text: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        // SAFETY: only system calls.
        unsafe { command.pre_exec(move || limits.hold()) };
        let output = command.output().expect("a shell");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn hold_applies_only_given_limits() {
        // Field 41 of proc_pid_stat(5) is the policy.
        let ask = "ulimit -Hn; ulimit -Hf; ulimit -Hc; cut -d' ' -f41 /proc/self/stat; nice";
        let open_files = getrlimit(Resource::Nofile);
        let plain = ProcessLimits { open_files, ..AS_IT_IS };
        let before = shell(plain, ask);
        let own: i32 = before.lines().last().expect("five lines").parse().expect("a number");
        let few = Rlimit { current: Some(100), maximum: Some(100) };
        let limits = ProcessLimits {
            open_files: few,
            file_bytes: 1 << 20,
            core_bytes: Some(0),
            nice: 3,
            is_idle: true,
            ..AS_IT_IS
        };
        // A shell counts in blocks of 512 bytes.
        assert_eq!(
            shell(limits, ask),
            format!("100\n2048\n0\n{}\n{}\n", libc::SCHED_IDLE, (own + 3).min(19))
        );
        assert_eq!(shell(plain, ask), before);
    }

    #[test]
    fn beyond_names_limit_above_hard_limit() {
        assert_eq!(AS_IT_IS.beyond(None), None);
        let open_files = Rlimit { current: Some(101), maximum: Some(101) };
        let limits = ProcessLimits { open_files, ..AS_IT_IS };
        assert_eq!(limits.beyond(Some(100)), Some(("open_files", 101, 100)));
        assert_eq!(limits.beyond(Some(101)), None);
        if let Some(hard) = getrlimit(Resource::Core).maximum {
            let limits = ProcessLimits { core_bytes: Some(hard + 1), ..AS_IT_IS };
            assert_eq!(limits.beyond(None), Some(("core_bytes", hard + 1, hard)));
        }
    }
}
