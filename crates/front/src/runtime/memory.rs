//! Memory that a crowd of clients needed goes back to the kernel when they have left.
//!
//! glibc keeps what was freed below a piece that is still in use, for ever: after some thousand slow readers that would
//! be more than all else that the front has.
#![allow(unsafe_code)] // The standard library has no call for it.

use crate::runtime::disk::DiskThreads;
use std::cell::Cell;

/// Fewer connections and requests than this leave nothing behind that is worth the work.
const CROWD_MIN: usize = 64;

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

    /// To be asked now and then, as looking for what can be given back takes time: when half of a crowd has left, a thread does so.
    pub(crate) fn look(&self, all: usize, disk: &DiskThreads) {
        if self.has_left(all) {
            // Nobody waits for it.
            drop(disk.run(|| {
                give_back();
                Ok(())
            }));
        }
    }

    fn has_left(&self, all: usize) -> bool {
        let most = self.most.get().max(all);
        let has_left = most >= CROWD_MIN && all <= most / 2;
        self.most.set(if has_left { all } else { most });
        has_left
    }
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
            (63, false),
            (0, false),
            (64, false),
            (33, false),
            (32, true),
            (0, false),
            (1000, false),
            (500, true),
            (250, true),
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
}
