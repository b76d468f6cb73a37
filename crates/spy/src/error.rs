//! Reasons why a process cannot be read, with advice.

use nix::errno::Errno;
use std::path::PathBuf;

/// Why a stack cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process has ended, or never existed.
    #[error(
        "there is no process {pid}\nhint: samovar spy --all shows the PHP processes of this machine"
    )]
    Gone {
        /// The process.
        pid: u32,
    },
    /// The kernel denies access.
    #[error("no permission to read process {pid}: {reason}\nhint: {hint}")]
    Denied {
        /// The process.
        pid: u32,
        /// The kernel's rule.
        reason: String,
        /// How to get access.
        hint: String,
    },
    /// No file of the process contains PHP.
    #[error(
        "process {pid} ({program}) is not PHP, or has no symbols\nhint: use a binary that exports \
         executor_globals, as those of distributions do; `strip --strip-all` removes it if the \
         binary was linked without -rdynamic"
    )]
    NotPhp {
        /// The process.
        pid: u32,
        /// The program that it runs.
        program: String,
    },
    /// PHP of an unknown version, or from an unknown kind of build.
    #[error("cannot read the PHP of process {pid}: {}\nhint: {hint}", .what)]
    Unknown {
        /// The process.
        pid: u32,
        /// Version or build.
        what: String,
        /// Known versions or builds.
        hint: String,
    },
    /// The stack changed at each attempt. Samplers count this case.
    #[error(
        "the stack of process {pid} changed during each of {attempts} samples\nhint: try again"
    )]
    Torn {
        /// The process.
        pid: u32,
        /// Number of attempts.
        attempts: u32,
    },
    /// A file of the system or of the process cannot be read.
    #[error("cannot read {}: {error}\nhint: if process {pid} runs in another container, run \
             samovar spy there, or as root", path.display())]
    File {
        /// The process.
        pid: u32,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

impl Error {
    /// Converts an error of the kernel for a process.
    pub(crate) fn of_errno(pid: u32, errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => denied(pid),
            Errno::ENOSYS => Self::Denied {
                pid,
                reason: "this kernel or its seccomp filter does not allow process_vm_readv"
                    .to_owned(),
                hint:
                    "run samovar spy on the host, or start the container with --cap-add SYS_PTRACE"
                        .to_owned(),
            },
            _ => Self::Gone { pid },
        }
    }

    /// Converts an error of a file below `/proc`; it has the same meaning as that of the system
    /// call.
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

    /// Whether another attempt is useless.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Torn { .. })
    }
}

/// Determines which of the kernel's rules denied the access, as far as it can be seen.
fn denied(pid: u32) -> Error {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    let own = nix::unistd::geteuid().as_raw();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let (reason, hint) = match (owner, scope.trim()) {
        (_, "3") => (
            "kernel.yama.ptrace_scope is 3: no process may read other processes".to_owned(),
            "set a lower value and restart the machine".to_owned(),
        ),
        (Ok(uid), _) if own != 0 && uid != own && uid != 0 => (
            format!("it belongs to user {uid}, you are user {own}"),
            format!("sudo samovar spy {pid}, or run it as that user"),
        ),
        (_, "1" | "2") if own != 0 => (
            format!("kernel.yama.ptrace_scope is {}", scope.trim()),
            format!(
                "sudo samovar spy {pid}; or sysctl kernel.yama.ptrace_scope=0, which lets a \
                 process read all processes of its user"
            ),
        ),
        _ if own == 0 => (
            "you are root, but without CAP_SYS_PTRACE, or in another container".to_owned(),
            "start the container with --cap-add SYS_PTRACE, or run samovar spy on the host"
                .to_owned(),
        ),
        _ => (
            "it belongs to root, has changed its user, or has more capabilities than you"
                .to_owned(),
            format!("sudo samovar spy {pid}"),
        ),
    };
    Error::Denied { pid, reason, hint }
}
