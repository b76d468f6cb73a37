//! How the kernel schedules the front's thread (sched(7)).
//!
//! While more requests are under way than there are cores, an answer or a request does not take a core from a running worker:
//! the thread runs when one is free, or when the worker's time slice ends (some milliseconds), and finds more to do at once.
//! While there are fewer, nothing is gained by that, and whatever else the machine computes would make each answer wait: then it
//! runs as soon as something comes. docs/decisions/wakes.md has the figures.
#![allow(unsafe_code)] // The standard library has no call for it.

use std::io;

/// How much one look counts for in the decaying average: 1/16, so that some thirty looks turn it over.
const WEIGHT: u32 = 16;
/// Of requests that are counted: more of them change nothing.
const UNDER_WAY_MAX: u32 = 1 << 16;

/// Whether the calling thread gives way to workers. Threads that it starts do as it does at that time.
#[derive(Debug)]
pub(crate) struct Precedence {
    /// So many requests under way keep the cores busy that are this thread's share.
    cores: u32,
    /// Of requests under way when the thread had nothing left to do, in parts of [`WEIGHT`].
    average: u32,
    gives_way: bool,
    /// Somebody else has chosen a policy for this process, or the kernel refuses ours.
    is_fixed: bool,
}

impl Precedence {
    /// Of the calling thread, one of so many.
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

    /// The thread is about to wait: so many requests are under way.
    #[inline]
    pub(crate) fn look(&mut self, under_way: usize) {
        let under_way = u32::try_from(under_way).unwrap_or(UNDER_WAY_MAX).min(UNDER_WAY_MAX);
        self.average = self.average - self.average / WEIGHT + under_way;
        // Half of it before it turns back: a load at the edge must not cost a system call each time.
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
            tracing::warn!(%error, "the kernel does not let the front choose when to give way to busy workers; it stays as it is");
        }
    }
}

/// That of the calling thread.
fn policy() -> i32 {
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) }
}

/// For the calling thread; every process may have either of the two.
fn set_policy(policy: i32) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads a local; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const none) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks so often that nothing of what was before counts.
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
    fn it_gives_way_while_more_is_under_way_than_cores_can_do() {
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
    fn one_look_turns_nothing() {
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
    fn what_somebody_else_has_chosen_stays() {
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
    fn a_thread_has_its_share_of_the_cores_and_one_at_least() {
        apart(|| {
            assert!(Precedence::of_this_thread(1).cores >= 1);
            assert_eq!(Precedence::of_this_thread(1 << 20).cores, 1);
        });
    }
}
