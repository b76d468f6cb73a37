//! Memory that a crowd of clients needed goes back to the kernel when they have left.
//!
//! glibc keeps what was freed below a piece that is still in use, for ever: after some thousand slow readers that would
//! be more than all else that the front has.
#![allow(unsafe_code)] // The standard library has no call for it.

use crate::runtime::disk::DiskThreads;
use std::cell::Cell;

/// Fewer connections than this leave nothing behind that is worth the work.
const CROWD_MIN: usize = 64;

/// Remembers how many there were.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    most: Cell<usize>,
}

impl Crowd {
    /// To be told now and then how many connections there are: when half of a crowd has left, a thread gives back what
    /// they needed.
    pub(crate) fn count(&self, connections: usize, disk: &DiskThreads) {
        if self.has_left(connections) {
            // Nobody waits for it.
            drop(disk.run(|| {
                give_back();
                Ok(())
            }));
        }
    }

    fn has_left(&self, connections: usize) -> bool {
        let most = self.most.get().max(connections);
        let has_left = most >= CROWD_MIN && connections <= most / 2;
        self.most.set(if has_left { connections } else { most });
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
        for (connections, has_left) in [
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
            assert_eq!(crowd.has_left(connections), has_left, "{connections}");
        }
    }
}
