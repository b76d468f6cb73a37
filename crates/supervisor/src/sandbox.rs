//! What of the file system PHP's processes see: rules of Landlock, which the kernel holds them to, and all that they start.
//!
//! The rules are made before the template is, since they need its paths opened, and put on between its fork and its exec.
//! With them come two more things of Landlock: who is inside can neither trace processes outside nor send them signals.
//! Where no file is named there is a fence instead, which has the first of the two alone.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    Scope, path_beneath_rules,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What the rules speak of: Linux 6.2 knows all of it.
const RIGHTS: ABI = ABI::V3;
/// Signals are kept inside from Linux 6.12 on.
const SCOPES: ABI = ABI::V6;
/// What the rules of a fence speak of, Linux 5.19. Every rule must speak of something; this one is allowed everywhere, and asked
/// about only where a file gets a name in another folder.
const OF_FENCE: AccessFs = AccessFs::Refer;
/// Without them nothing runs: programs, their libraries, the machine's settings, devices, what the kernel tells.
const NEEDED_TO_RUN: [&str; 9] =
    ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys"];
const DEVICES: &str = "/dev";

/// What PHP's processes may do to the file system, and to others. Without paths: to files whatever their user may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Below these they may write; nowhere else, unless both lists are empty.
    pub write: Vec<PathBuf>,
    /// Below these, and those, they may read; anywhere, if it is empty.
    pub read: Vec<PathBuf>,
    /// What the server itself has them write and read: its folder for temporary files.
    pub own: Vec<PathBuf>,
    /// What the server itself has them read: programs, settings, the document root.
    pub own_read: Vec<PathBuf>,
    /// Without paths, too, they can trace no process outside.
    pub apart: bool,
}

impl Sandbox {
    /// Whether there are rules about files.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.write.is_empty() || !self.read.is_empty()
    }

    /// Whether the kernel would take the rules; the error says what to do.
    pub fn check(&self) -> Result<(), String> {
        self.rules().map(drop).map_err(|error| error.to_string())
    }

    /// The rules, for [`hold`]; `None`: there are none.
    pub(crate) fn rules(&self) -> io::Result<Option<OwnedFd>> {
        if !self.is_on() {
            return Ok(None);
        }
        for path in self.write.iter().chain(&self.read) {
            path.metadata().map_err(|error| {
                io::Error::new(error.kind(), format!(
                    "`{}` of the sandbox: {error}\nhint: a path in `sandbox.write` or `sandbox.read` must be there before the server is",
                    path.display()
                ))
            })?;
        }
        self.ruleset().map_err(|error| {
            let hint = "hint: Landlock needs Linux 6.2, with `landlock` in /sys/kernel/security/lsm; without `sandbox.write` and \
                 `sandbox.read` the server does without it";
            io::Error::other(format!("the kernel takes no rules for the sandbox: {error}\n{hint}"))
        })
    }

    /// What keeps them from tracing processes outside, for [`hold`], where nothing else does.
    ///
    /// # Errors
    /// This kernel cannot.
    pub fn fence(&self) -> io::Result<Option<OwnedFd>> {
        if self.is_on() || !self.apart {
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
        // Devices are opened for writing as well; who may write to which is the matter of their modes.
        let to_devices = (reads | AccessFs::WriteFile | AccessFs::Truncate) & handled;
        let everything = self.write.iter().chain(&self.own);
        let rules = rules
            .add_rules(path_beneath_rules(everything, handled))?
            .add_rules(path_beneath_rules(devices, to_devices))?;
        // PHP's processes note things about themselves there, as any may.
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

/// Puts the rules on: this process, and what comes of it, are held by them from now on. Async-signal-safe.
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
    fn without_paths_there_are_no_rules() {
        let own = Sandbox { own: vec!["/tmp".into()], ..Sandbox::default() };
        assert!(!own.is_on());
        assert!(own.rules().unwrap().is_none());
    }

    #[test]
    fn a_path_that_is_not_there_is_an_error_that_names_it() {
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
