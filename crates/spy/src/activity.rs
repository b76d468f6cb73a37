//! A thread's present activity: it runs, or it waits in the kernel. For a wait: the system call and
//! its subject.
//!
//! `calls.rs` determines the system call, `sockets.rs` the other end.

use crate::calls::{Doing, Subject, doing};
use crate::sockets;
use std::fmt;

/// Maximum number of descriptors of one `poll` or `select` that are named.
const NAMED_MAX: usize = 3;

/// Activity of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// It runs, or is ready to run and waits for a processor.
    Running,
    /// It waits in the kernel.
    Waiting {
        /// The system call, such as `poll`.
        call: String,
        /// The subject of the wait, if it is known: `tcp 10.0.0.5:5432`.
        peer: String,
    },
    /// The kernel does not report it.
    Unknown,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("on CPU"),
            Self::Waiting { call, peer } if peer.is_empty() => f.write_str(call),
            Self::Waiting { call, peer } => write!(f, "{call} {peer}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// Present activity of a thread.
pub fn activity(pid: u32, thread: u32) -> Activity {
    activity_of(doing(pid, thread), &mut |descriptor| sockets::name(pid, descriptor))
}

pub(crate) fn activity_of(doing: Option<Doing>, behind: &mut dyn FnMut(i32) -> String) -> Activity {
    match doing {
        None => Activity::Unknown,
        Some(Doing::Running) => Activity::Running,
        Some(Doing::Elsewhere) => {
            Activity::Waiting { call: "page fault".to_owned(), peer: String::new() }
        }
        Some(Doing::Call { number, name, subject }) => Activity::Waiting {
            call: name.map_or_else(|| format!("system call {number}"), str::to_owned),
            peer: peer(&subject, behind),
        },
    }
}

fn peer(subject: &Subject, behind: &mut dyn FnMut(i32) -> String) -> String {
    let descriptors = match subject {
        Subject::Descriptors(descriptors) => descriptors,
        Subject::Path(path) => return samovar_log::printable(path).into_owned(),
        Subject::Nothing | Subject::Process(_) => return String::new(),
    };
    let named = descriptors.iter().take(NAMED_MAX).map(|fd| behind(*fd));
    let mut text = named.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
    if descriptors.len() > NAMED_MAX {
        text.push_str(", …");
    }
    text
}

/// CPU time that a thread has used, in nanoseconds.
pub fn cpu_ns(pid: u32, thread: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    cpu_ns_of(&line)
}

pub(crate) fn cpu_ns_of(line: &str) -> Option<u64> {
    line.split_whitespace().next()?.parse().ok()
}
