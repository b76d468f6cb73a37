//! Results of a run: how it ended, or why it could not start.

use samovar_channel::Finding;
use std::io;

/// Reason why the server cannot start.
#[derive(Debug)]
pub enum Failed {
    /// A system call failed.
    Io(io::Error),
    /// The template ended before it was ready; its messages are in the log.
    Template {
        /// Status from `wait`.
        status: i32,
    },
    /// The boot left something open that the settings forbid.
    Finding(Finding),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The front was drained first.
    Drained,
    /// A second signal arrived: the workers were killed, and the front may still wait for them.
    StoppedNow,
    /// The front ended unexpectedly.
    Broken,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Io(error) => write!(to, "{error}"),
            Failed::Template { status } => write!(
                to,
                "the PHP process {} before it was ready\nhint: see its messages in the server's \
                 log; {}",
                describe(*status),
                if is_unlinked(*status) {
                    "the installed libraries do not match: build it for this PHP (`make build`)"
                } else {
                    "check php.ini, --php and the extensions"
                }
            ),
            Failed::Finding(f) => write!(
                to,
                "the application has a finding that `image_errors` forbids: {}{} ({})\nhint: {}",
                f.what,
                if f.place.is_empty() { String::new() } else { format!(", opened at {}", f.place) },
                f.kind,
                f.advice
            ),
        }
    }
}

impl std::error::Error for Failed {}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

/// The dynamic linker ends a program with status 127 if a library or one of its functions is
/// missing (ld.so(8), glibc's `elf/dl-error.c`).
fn is_unlinked(status: i32) -> bool {
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 127
}

/// Describes a wait status.
pub(crate) fn describe(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        let name = match signal {
            libc::SIGSEGV => " (segmentation fault)",
            libc::SIGKILL => " (SIGKILL: the supervisor, an operator or the out-of-memory killer)",
            libc::SIGABRT => " (abort)",
            libc::SIGBUS => " (bus error)",
            _ => "",
        };
        format!("was killed by signal {signal}{name}")
    } else {
        format!("exited with status {}", libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlinked_program_hints_at_rebuild() {
        for (code, hint) in [(127, "`make build`"), (1, "check php.ini")] {
            let said = Failed::Template { status: code << 8 }.to_string();
            assert!(said.contains(&format!("status {code}")) && said.contains(hint), "{said}");
        }
        let killed = Failed::Template { status: 127 }.to_string();
        assert!(!killed.contains("make build"), "that is a signal's number: {killed}");
    }
}
