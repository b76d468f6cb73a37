//! Returns memory to the kernel after many clients have disconnected.
//!
//! glibc keeps freed memory below a block that is still in use, without a time limit. After some
//! thousand slow readers that would be more memory than the front uses for everything else.
#![allow(unsafe_code)] // The standard library has no call for it.

use crate::runtime::disk::DiskThreads;
use crate::runtime::disk_jobs::JobTarget;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum growth for which memory is returned. Returning less does not pay: the kernel must
/// provide it again, page by page.
const WORTH_BYTES: usize = 16 << 20;

/// The process's own memory in bytes after the last return, or its minimum since then.
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// The same after the last return without any connection. It does not include memory that the
/// remaining half of a crowd still uses.
static KEPT_AT_REST: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of connections and requests.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    most: Cell<usize>,
}

impl Crowd {
    /// Updates the maximum. To be called often with the number of connections plus the requests on
    /// them: with HTTP/2, a few connections can have thousands of requests.
    pub(crate) fn count(&self, all: usize) {
        self.most.set(self.most.get().max(all));
    }

    /// Returns memory on a thread if fewer than half of the maximum remain and the process has
    /// grown. To be called now and then, because the check takes time.
    pub(crate) fn look(&self, all: usize, disk: &DiskThreads) {
        let kept = if all == 0 { &KEPT_AT_REST } else { &KEPT };
        if self.has_left(all) && own_bytes().is_some_and(|own| has_grown(kept, own)) {
            // The result is not awaited.
            drop(disk.run(JobTarget::Nowhere, move || {
                give_back();
                let own = own_bytes().unwrap_or(0);
                KEPT.store(own, Ordering::Relaxed);
                if all == 0 {
                    KEPT_AT_REST.store(own, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
    }

    fn has_left(&self, all: usize) -> bool {
        let most = self.most.get().max(all);
        // Exactly half does not count: HTTP/1 connections that were all busy and are all idle now
        // have not disconnected.
        let has_left = 2 * all < most;
        self.most.set(if has_left { all } else { most });
        has_left
    }
}

/// Whether the memory has grown enough since the last return to make another one worthwhile.
fn has_grown(kept: &AtomicUsize, own: usize) -> bool {
    let kept = kept.fetch_min(own, Ordering::Relaxed).min(own);
    own - kept >= WORTH_BYTES
}

/// Memory of this process in bytes that belongs to no file and is not shared.
fn own_bytes() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').skip(1).map_while(|field| field.trim().parse::<usize>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared).saturating_mul(rustix::param::page_size()))
}

fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; glibc locks its arenas one by one.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departure_of_most_clients_is_detected_once() {
        let crowd = Crowd::default();
        for (all, has_left) in [
            (0, false),
            (1, false),
            (0, true),
            (0, false),
            (64, false),
            (32, false),
            (31, true),
            (0, true),
            (1000, false),
            (500, false),
            (499, true),
            (249, true),
            (0, true),
            (0, false),
        ] {
            assert_eq!(crowd.has_left(all), has_left, "{all}");
        }
        // Connections that came and went between two checks count, too.
        crowd.count(100);
        crowd.count(3);
        assert_eq!((crowd.has_left(3), crowd.has_left(3)), (true, false));
    }

    #[test]
    fn growth_is_measured_from_lowest_memory_since_last_return() {
        let kept = AtomicUsize::new(10 * WORTH_BYTES);
        assert!(!has_grown(&kept, 10 * WORTH_BYTES), "it is as it was");
        assert!(!has_grown(&kept, 11 * WORTH_BYTES - 1));
        assert!(has_grown(&kept, 11 * WORTH_BYTES));
        assert!(!has_grown(&kept, 2 * WORTH_BYTES), "memory use decreased without a release");
        assert!(has_grown(&kept, 3 * WORTH_BYTES));
    }

    #[test]
    fn own_memory_includes_allocated_block() {
        let block = vec![1u8; 8 * WORTH_BYTES];
        let own = own_bytes().expect("the kernel reports it");
        assert!(own >= block.len() && own < 100 * block.len(), "{own}");
    }
}
