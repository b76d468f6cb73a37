//! Why a process cannot be read, and what to do about it.

use nix::errno::Errno;
use std::path::PathBuf;

/// What stands between us and a stack.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has ended, or there never was one.
    #[error(
        "there is no process {pid}\nhint: samovar spy --all shows the PHP processes of this machine"
    )]
    Gone {
        /// The process.
        pid: u32,
    },
    /// The kernel says no.
    #[error("may not read process {pid}: {reason}\nhint: {hint}")]
    Denied {
        /// The process.
        pid: u32,
        /// What the kernel's rule is.
        reason: String,
        /// How to be allowed.
        hint: String,
    },
    /// Nothing in it looks like PHP.
    #[error(
        "process {pid} ({program}) is not PHP, or its symbols are gone\n\
         hint: samovar spy reads binaries that export executor_globals, as those of distributions do; a binary that was \
         stripped with `strip --strip-all` and linked without -rdynamic cannot be read"
    )]
    NotPhp {
        /// The process.
        pid: u32,
        /// What it runs.
        program: String,
    },
    /// PHP, but of a version, or built in a way, that is not known.
    #[error("cannot read the PHP of process {pid}: {what}\nhint: {hint}")]
    Unknown {
        /// The process.
        pid: u32,
        /// What it is.
        what: String,
        /// What is known instead.
        hint: String,
    },
    /// It changed at each look. Counted by those who sample.
    #[error("the stack of process {pid} changed at each of {attempts} looks\nhint: try again")]
    Torn {
        /// The process.
        pid: u32,
        /// How often we looked.
        attempts: u32,
    },
    /// A file of the system, or of the process, cannot be read.
    #[error("cannot read {}: {error}\nhint: process {pid} may live in another container; run samovar spy there, or as root", path.display())]
    File {
        /// The process.
        pid: u32,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl Error {
    /// What a refusal of the kernel's means here.
    pub(crate) fn of_errno(pid: u32, errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => denied(pid),
            Errno::ENOSYS => Self::Denied {
                pid,
                reason: "this kernel, or its seccomp filter, has no process_vm_readv".to_owned(),
                hint:
                    "run samovar spy on the host, or start the container with --cap-add SYS_PTRACE"
                        .to_owned(),
            },
            _ => Self::Gone { pid },
        }
    }

    /// A file below `/proc` that says no says the same as the system call would.
    pub(crate) fn of_file(pid: u32, path: impl Into<PathBuf>, error: std::io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ESRCH) => Self::Gone { pid },
            Some(Errno::EPERM | Errno::EACCES) => denied(pid),
            Some(Errno::ENOENT) if !std::path::Path::new(&format!("/proc/{pid}")).exists() => {
                Self::Gone { pid }
            }
            _ => Self::File { pid, path: path.into(), error },
        }
    }

    /// Nothing that another look could mend.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Torn { .. })
    }
}

/// Says which of the kernel's rules it was, as far as one can see.
fn denied(pid: u32) -> Error {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    let own = nix::unistd::geteuid().as_raw();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let (reason, hint) = match (owner, scope.trim()) {
        (_, "3") => (
            "kernel.yama.ptrace_scope is 3: nobody may read other processes".to_owned(),
            "the setting holds until the machine starts anew; boot with a smaller one".to_owned(),
        ),
        (Ok(uid), _) if own != 0 && uid != own && uid != 0 => (
            format!("it belongs to user {uid}, you are user {own}"),
            format!("sudo samovar spy {pid}, or run it as that user"),
        ),
        (_, "1" | "2") if own != 0 => (
            format!("kernel.yama.ptrace_scope is {}", scope.trim()),
            format!(
                "sudo samovar spy {pid}; or sysctl kernel.yama.ptrace_scope=0, which lets every process read its \
                 user's others"
            ),
        ),
        _ if own == 0 => (
            "you are root, but without CAP_SYS_PTRACE, or in another container".to_owned(),
            "start the container with --cap-add SYS_PTRACE, or run samovar spy on the host"
                .to_owned(),
        ),
        _ => (
            "it is root's, has changed its user since it began, or may do more than you".to_owned(),
            format!("sudo samovar spy {pid}"),
        ),
    };
    Error::Denied { pid, reason, hint }
}
