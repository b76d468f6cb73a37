//! Memory of the server's processes, as the kernel counts it: private memory, and the share of
//! shared memory.
//!
//! The kernel walks all pages of a process for this, a millisecond per hundred megabytes. So it is
//! read rarely, and only while a page needs it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which the thread checks whether a reading is due.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// Time for which a reading is cached.
const GOOD_FOR: Duration = Duration::from_secs(15);
/// Maximum number of processes that are read; further ones are left out.
const PROCESSES_MAX: usize = 300;

/// Memory of one or several processes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Private pages.
    pub(crate) own: u64,
    /// Proportional share of shared pages: of pages that n processes share, an nth.
    pub(crate) shared: u64,
}

/// Memory of the server itself, and of all its workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memories {
    pub(crate) server: Memory,
    pub(crate) workers: Memory,
}

/// The last reading.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    held: Mutex<Option<(Instant, Memories)>>,
    is_wanted: AtomicBool,
}

impl Kernel {
    /// Returns the last reading. Returns `None` until there is one, shortly after the first call.
    pub(crate) fn memories(&self) -> Option<Memories> {
        self.is_wanted.store(true, Ordering::Relaxed);
        self.held.lock().unwrap_or_else(PoisonError::into_inner).map(|(_, memories)| memories)
    }

    /// Reads the memory again, if it was requested since the last reading and that is old enough.
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

/// Returns the memory of a process; zero if it has ended or belongs to another user.
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
    fn smaps_rollup_is_parsed() {
        let text = "Rss: 900 kB\nPss:    300 kB\nPss_Dirty: 9 kB\nPrivate_Clean: 80 kB\n\
                    Private_Dirty:   20 kB\n";
        assert_eq!(parse(text), Memory { own: 100 << 10, shared: 200 << 10 });
        assert_eq!(parse(""), Memory::default());
        assert_eq!(parse("Pss: x kB\nPrivate_Dirty: 9 kB"), Memory { own: 9 << 10, shared: 0 });
    }

    #[test]
    fn memory_is_read_only_when_requested() {
        let kernel = Kernel::default();
        let own = std::process::id();
        kernel.look(|| panic!("memory was not requested"));
        assert_eq!(kernel.memories(), None);
        kernel.look(|| (own, vec![own.into()]));
        let found = kernel.memories().expect("an answer");
        assert!(found.server.own > 0 && found.workers.own > 0, "{found:?}");
        kernel.look(|| panic!("the answer is still good"));
    }
}
