//! Scheduling policy of the front's thread (sched(7)).
//!
//! While more requests are under way than there are cores, a response or a new request must not
//! take a core from a running worker. The thread then runs when a core is free or the worker's time
//! slice ends (some milliseconds), and finds more work at once. While there are fewer requests,
//! this has no benefit, and any other computation on the machine would delay each response. The
//! thread then runs as soon as an event arrives. docs/internals/decisions/wakes.md has the figures.
#![allow(unsafe_code)] // The standard library has no call for it.

use std::io;

/// Each sample has a weight of 1/16 in the decaying average, so about thirty samples change it
/// completely.
const WEIGHT: u32 = 16;
/// Maximum number of requests in a sample. More requests make no difference.
const UNDER_WAY_MAX: u32 = 1 << 16;

/// Whether the calling thread yields to workers. Threads that it starts inherit its current policy.
#[derive(Debug)]
pub(crate) struct Precedence {
    /// Number of requests under way that keep this thread's share of the cores busy.
    cores: u32,
    /// Average number of requests under way when the thread had nothing left to do, in units of
    /// 1/[`WEIGHT`].
    average: u32,
    gives_way: bool,
    /// The process has another policy already, or the kernel does not permit a change.
    is_fixed: bool,
}

impl Precedence {
    /// Creates the state for the calling thread, one of `threads` threads.
    pub(crate) fn of_this_thread(threads: usize) -> Precedence {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let is_fixed = !matches!(policy(), libc::SCHED_OTHER | libc::SCHED_BATCH);
        let mut own = Precedence {
            cores: u32::try_from(cores / threads.max(1)).unwrap_or(UNDER_WAY_MAX).max(1),
            average: 0,
            gives_way: true,
            is_fixed,
        };
        own.turn(false);
        own
    }

    /// Adds a sample before the thread waits: `under_way` requests are under way.
    #[inline]
    pub(crate) fn look(&mut self, under_way: usize) {
        let under_way = u32::try_from(under_way).unwrap_or(UNDER_WAY_MAX).min(UNDER_WAY_MAX);
        self.average = self.average - self.average / WEIGHT + under_way;
        // The threshold for switching back is half as high: a load near the threshold must not cost
        // a system call each time.
        let edge = if self.gives_way { self.cores * WEIGHT / 2 } else { self.cores * WEIGHT };
        let gives_way = self.average >= edge;
        if gives_way != self.gives_way {
            self.turn(gives_way);
        }
    }

    #[cold]
    fn turn(&mut self, gives_way: bool) {
        self.gives_way = gives_way;
        if self.is_fixed {
            return;
        }
        let policy = if gives_way { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
        if let Err(error) = set_policy(policy) {
            self.is_fixed = true;
            tracing::warn!(%error, "cannot change the scheduling policy of the front (SCHED_BATCH \
                                    or SCHED_OTHER); the current one stays");
        }
    }
}

/// Returns the policy of the calling thread.
fn policy() -> i32 {
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) }
}

/// Sets the policy of the calling thread. Every process may use both policies.
fn set_policy(policy: i32) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads a local; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const none) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds enough equal samples that earlier ones have no effect.
    fn long(precedence: &mut Precedence, under_way: usize) -> i32 {
        (0..20 * WEIGHT).for_each(|_| precedence.look(under_way));
        policy()
    }

    fn apart(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().expect("no panic");
        assert_eq!(policy(), libc::SCHED_OTHER, "that thread's alone");
    }

    fn of_cores(cores: u32) -> Precedence {
        Precedence { cores, ..Precedence::of_this_thread(1) }
    }

    #[test]
    fn front_yields_while_requests_exceed_cores() {
        apart(|| {
            let mut own = of_cores(4);
            assert_eq!(policy(), libc::SCHED_OTHER);
            assert_eq!(long(&mut own, 2), libc::SCHED_OTHER);
            assert_eq!(long(&mut own, 64), libc::SCHED_BATCH);
            assert_eq!(long(&mut own, 3), libc::SCHED_BATCH, "at the edge it stays as it is");
            assert_eq!(long(&mut own, 1), libc::SCHED_OTHER);
            assert_eq!(long(&mut own, 3), libc::SCHED_OTHER, "at the edge it stays as it is");
            assert_eq!(long(&mut own, usize::MAX), libc::SCHED_BATCH);
            assert_eq!(long(&mut own, 0), libc::SCHED_OTHER);
        });
    }

    #[test]
    fn single_sample_does_not_change_policy() {
        apart(|| {
            let mut own = of_cores(2);
            own.look(8);
            assert_eq!(policy(), libc::SCHED_OTHER);
            (0..WEIGHT).for_each(|_| own.look(8));
            assert_eq!(policy(), libc::SCHED_BATCH);
            own.look(0);
            assert_eq!(policy(), libc::SCHED_BATCH);
        });
    }

    #[test]
    fn foreign_scheduling_policy_is_kept() {
        std::thread::spawn(|| {
            set_policy(libc::SCHED_IDLE).expect("anybody may");
            let mut own = of_cores(2);
            assert_eq!(long(&mut own, 64), libc::SCHED_IDLE);
            assert_eq!(long(&mut own, 0), libc::SCHED_IDLE);
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn thread_share_is_at_least_one_core() {
        apart(|| {
            assert!(Precedence::of_this_thread(1).cores >= 1);
            assert_eq!(Precedence::of_this_thread(1 << 20).cores, 1);
        });
    }
}
