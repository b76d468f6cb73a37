//! How a run ends, or never begins.

use samovar_channel::Finding;
use std::io;

/// Why the server cannot start.
#[derive(Debug)]
pub enum Failed {
    /// A system call failed.
    Io(io::Error),
    /// The template ended before it was ever ready; its own messages are in the log.
    Template {
        /// The status from `wait`.
        status: i32,
    },
    /// The boot left something open that the settings forbid.
    Finding(Finding),
}

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The front was drained before.
    Drained,
    /// A second signal came: the workers were killed, and the front may still wait for them.
    StoppedNow,
    /// The front ended before its time.
    Broken,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Io(error) => write!(to, "{error}"),
            Failed::Template { status } => write!(
                to,
                "the PHP process {} before it was ready\nhint: its messages are in the server's log; \
                 check php.ini, --php and the extensions",
                describe(*status)
            ),
            Failed::Finding(f) => write!(
                to,
                "the application cannot be rolled back as `image_errors` wants it: {}{} ({})\nhint: {}",
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

/// A wait status in words.
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
