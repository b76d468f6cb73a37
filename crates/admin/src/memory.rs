//! What memory the server's processes have, as the kernel counts it: their own, and their part of what they share.
//!
//! The kernel walks all pages of a process for an answer, a millisecond for each hundred megabytes, so it is asked rarely, and
//! only while somebody wants to know.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is seen whether the kernel is to be asked.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// How long an answer is good.
const GOOD_FOR: Duration = Duration::from_secs(15);
/// Processes that are looked at; of more, the rest is left out.
const PROCESSES_MAX: usize = 300;

/// Bytes of one process, or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Pages that nobody else has.
    pub(crate) own: u64,
    /// Of pages that n processes share, an nth.
    pub(crate) shared: u64,
}

/// The server itself, and its workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memories {
    pub(crate) server: Memory,
    pub(crate) workers: Memory,
}

/// The last answers.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    held: Mutex<Option<(Instant, Memories)>>,
    is_wanted: AtomicBool,
}

impl Kernel {
    /// The last answer; `None` until there is one, shortly after this was first asked.
    pub(crate) fn memories(&self) -> Option<Memories> {
        self.is_wanted.store(true, Ordering::Relaxed);
        self.held.lock().unwrap_or_else(PoisonError::into_inner).map(|(_, memories)| memories)
    }

    /// Asks the kernel, if somebody has wanted to know since the last time, and that is some time ago.
    pub(crate) fn look(&self, processes: impl FnOnce() -> (u32, Vec<i64>)) {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = held.is_some_and(|(at, _)| at.elapsed() < GOOD_FOR);
        if is_good || !self.is_wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let (server, workers) = processes();
        let mut memories = Memories { server: of(server.into()), ..Memories::default() };
        for memory in workers.into_iter().take(PROCESSES_MAX).map(of) {
            memories.workers.own += memory.own;
            memories.workers.shared += memory.shared;
        }
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), memories));
    }
}

/// Nothing of a process that has gone, or is another user's.
fn of(pid: i64) -> Memory {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Memory {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kb = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
        kb.map_or(0, |kb: u64| kb.saturating_mul(1024))
    };
    let own = bytes("Private_Clean:").saturating_add(bytes("Private_Dirty:"));
    Memory { own, shared: bytes("Pss:").saturating_sub(own) }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, Memory, parse};

    #[test]
    fn what_the_kernel_says_is_read() {
        let text = "Rss: 900 kB\nPss:    300 kB\nPss_Dirty: 9 kB\nPrivate_Clean: 80 kB\n\
                    Private_Dirty:   20 kB\n";
        assert_eq!(parse(text), Memory { own: 100 << 10, shared: 200 << 10 });
        assert_eq!(parse(""), Memory::default());
        assert_eq!(parse("Pss: x kB\nPrivate_Dirty: 9 kB"), Memory { own: 9 << 10, shared: 0 });
    }

    #[test]
    fn the_kernel_is_asked_when_somebody_wants_to_know() {
        let kernel = Kernel::default();
        let own = std::process::id();
        kernel.look(|| panic!("nobody has asked"));
        assert_eq!(kernel.memories(), None);
        kernel.look(|| (own, vec![own.into()]));
        let found = kernel.memories().expect("an answer");
        assert!(found.server.own > 0 && found.workers.own > 0, "{found:?}");
        kernel.look(|| panic!("the answer is still good"));
    }
}
