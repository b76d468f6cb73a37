//! Memory that a crowd of clients needed goes back to the kernel when they have left.
//!
//! glibc keeps what was freed below a piece that is still in use, for ever: after some thousand slow readers that would
//! be more than all else that the front has.
#![allow(unsafe_code)] // The standard library has no call for it.

use crate::runtime::disk::DiskThreads;
use crate::runtime::hands::Place;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Less than this left behind is not worth the work: the kernel is asked for it again, page by page.
const WORTH_BYTES: usize = 16 << 20;

/// The process's own memory when it was last given back, in bytes; what it has had least since, if that is less.
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// The same when it was last given back while nobody was there: what half of a crowd still has need of is not in it.
static KEPT_AT_REST: AtomicUsize = AtomicUsize::new(0);

/// Remembers how many there were.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    most: Cell<usize>,
}

impl Crowd {
    /// To be told often how many connections there are, and requests on them: by HTTP/2 a few connections can have thousands.
    pub(crate) fn count(&self, all: usize) {
        self.most.set(self.most.get().max(all));
    }

    /// To be asked now and then, as looking for what can be given back takes time: when more than half of a crowd has left, and
    /// the process has grown, a thread does so.
    pub(crate) fn look(&self, all: usize, disk: &DiskThreads) {
        let kept = if all == 0 { &KEPT_AT_REST } else { &KEPT };
        if self.has_left(all) && own_bytes().is_some_and(|own| has_grown(kept, own)) {
            // Nobody waits for it.
            drop(disk.run(Place::Nowhere, move || {
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
        // Not at half: connections of HTTP/1 that are all busy, and then all idle, have not left.
        let has_left = 2 * all < most;
        self.most.set(if has_left { all } else { most });
        has_left
    }
}

/// Whether that is so much more than was kept last that it is worth the work.
fn has_grown(kept: &AtomicUsize, own: usize) -> bool {
    let kept = kept.fetch_min(own, Ordering::Relaxed).min(own);
    own - kept >= WORTH_BYTES
}

/// Memory of this process that is no file's and nobody else's, in bytes.
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
    fn a_crowd_that_has_left_is_noticed_once() {
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
        // What came and went between two looks counts, too.
        crowd.count(100);
        crowd.count(3);
        assert_eq!((crowd.has_left(3), crowd.has_left(3)), (true, false));
    }

    #[test]
    fn what_was_kept_last_and_least_is_what_growth_is_measured_by() {
        let kept = AtomicUsize::new(10 * WORTH_BYTES);
        assert!(!has_grown(&kept, 10 * WORTH_BYTES), "it is as it was");
        assert!(!has_grown(&kept, 11 * WORTH_BYTES - 1));
        assert!(has_grown(&kept, 11 * WORTH_BYTES));
        assert!(!has_grown(&kept, 2 * WORTH_BYTES), "it has shrunk by itself");
        assert!(has_grown(&kept, 3 * WORTH_BYTES));
    }

    #[test]
    fn own_memory_is_what_the_kernel_says() {
        let block = vec![1u8; 8 * WORTH_BYTES];
        let own = own_bytes().expect("the kernel tells");
        assert!(own >= block.len() && own < 100 * block.len(), "{own}");
    }
}
