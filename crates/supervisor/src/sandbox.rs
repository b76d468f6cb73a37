//! File system access of PHP's processes: Landlock rules, which the kernel enforces for them and
//! all processes that they start.
//!
//! The rules are created before the template, because their paths must be opened, and applied
//! between its fork and exec. They include two more Landlock restrictions: a process inside can
//! neither trace processes outside nor send them signals. If no paths are configured, a fence is
//! used instead, which only prevents tracing.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    Scope, path_beneath_rules,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Rights that the rules handle; all are known to Linux 6.2.
const RIGHTS: ABI = ABI::V3;
/// Signals can be restricted since Linux 6.12.
const SCOPES: ABI = ABI::V6;
/// Right that the rules of a fence handle; Linux 5.19. Rules must handle at least one right. This
/// one is allowed everywhere, and is only checked when a file gets a name in another folder.
const OF_FENCE: AccessFs = AccessFs::Refer;
/// Paths that every program needs: programs, libraries, the machine's settings, and the kernel's
/// own files.
const NEEDED_TO_RUN: [&str; 9] =
    ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys"];
const DEVICES: &str = "/dev";

/// Restrictions for PHP's processes. Without paths, access to files is only limited by the user's
/// permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Paths below which they may write; they may write nowhere else, unless both lists are empty.
    pub write: Vec<PathBuf>,
    /// Paths below which they may read, in addition to those in `write`; empty: anywhere.
    pub read: Vec<PathBuf>,
    /// Paths that the server itself makes them write and read: its folder for temporary files.
    pub own: Vec<PathBuf>,
    /// Paths that the server itself makes them read: programs, settings, the document root.
    pub own_read: Vec<PathBuf>,
    /// Tracing of processes outside is prevented even without paths.
    pub isolate_processes: bool,
}

impl Sandbox {
    /// Whether there are rules for files.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.write.is_empty() || !self.read.is_empty()
    }

    /// Checks whether the kernel accepts the rules. The error contains a hint.
    pub fn check(&self) -> Result<(), String> {
        self.rules().map(drop).map_err(|error| error.to_string())
    }

    /// Creates the rules, for [`hold`]; `None` if there are none.
    pub(crate) fn rules(&self) -> io::Result<Option<OwnedFd>> {
        if !self.is_on() {
            return Ok(None);
        }
        for path in self.write.iter().chain(&self.read) {
            path.metadata().map_err(|error| {
                io::Error::new(error.kind(), format!(
                    "`{}` of the sandbox: {error}\nhint: create the paths of `sandbox.write` and \
                     `sandbox.read` before the server starts",
                    path.display()
                ))
            })?;
        }
        self.ruleset().map_err(|error| {
            let hint = "hint: Landlock needs Linux 6.2, with `landlock` in \
                        /sys/kernel/security/lsm; remove `sandbox.write` and `sandbox.read` to \
                        run without it";
            io::Error::other(format!(
                "the kernel does not support the rules of the sandbox: \
                                      {error}\n{hint}"
            ))
        })
    }

    /// Creates the fence that prevents tracing of processes outside, for [`hold`], if no rules
    /// already prevent it.
    ///
    /// # Errors
    /// The kernel does not support it.
    pub fn fence(&self) -> io::Result<Option<OwnedFd>> {
        if self.is_on() || !self.isolate_processes {
            return Ok(None);
        }
        fence().map_err(io::Error::other)
    }

    fn ruleset(&self) -> Result<Option<OwnedFd>, landlock::RulesetError> {
        let (reads, writes) = (AccessFs::from_read(RIGHTS), AccessFs::from_write(RIGHTS));
        let confines_reads = !self.read.is_empty();
        let handled = if confines_reads { reads | writes } else { writes };
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(handled)?
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(SCOPES) & Scope::Signal)?
            .create()?;
        let devices = [Path::new(DEVICES)];
        // Devices are opened for writing, too. Their file modes decide which users may write.
        let to_devices = (reads | AccessFs::WriteFile | AccessFs::Truncate) & handled;
        let everything = self.write.iter().chain(&self.own);
        let rules = rules
            .add_rules(path_beneath_rules(everything, handled))?
            .add_rules(path_beneath_rules(devices, to_devices))?;
        // PHP's processes write to their own files there, as every process may.
        let rules = rules.add_rules(path_beneath_rules([Path::new("/proc")], to_devices))?;
        if !confines_reads {
            return Ok(rules.into());
        }
        let read = self.read.iter().chain(&self.own_read).map(PathBuf::as_path);
        let needed = NEEDED_TO_RUN.iter().map(Path::new);
        Ok(rules.add_rules(path_beneath_rules(read.chain(needed), reads))?.into())
    }
}

fn fence() -> Result<Option<OwnedFd>, landlock::RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(OF_FENCE)?
        .create()?
        .add_rules(path_beneath_rules([Path::new("/")], OF_FENCE))?;
    Ok(rules.into())
}

/// Applies the rules to this process and its descendants, permanently. Async-signal-safe.
pub(crate) fn hold(rules: i32) -> io::Result<()> {
    // SAFETY: a system call with an open descriptor and no pointer.
    if unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_without_paths_has_no_rules() {
        let own = Sandbox { own: vec!["/tmp".into()], ..Sandbox::default() };
        assert!(!own.is_on());
        assert!(own.rules().unwrap().is_none());
    }

    #[test]
    fn missing_path_is_named_in_error() {
        for (write, read) in [(vec!["/no/such".into()], vec![]), (vec![], vec!["/no/such".into()])]
        {
            let said = Sandbox { write, read, ..Sandbox::default() }.check().unwrap_err();
            assert!(
                said.starts_with("`/no/such` of the sandbox: ") && said.contains("hint: "),
                "{said}"
            );
        }
    }
}
