//! How the kernel schedules the front's thread (sched(7)).
#![allow(unsafe_code)] // The standard library has no call for it.

use std::io;

/// The calling thread no longer takes the processor from a running worker whenever an answer or a request comes: it
/// runs when one is free, or when the worker's time slice ends (some milliseconds), and finds more to do at once.
///
/// Threads that it starts do the same.
pub(crate) fn give_way_to_workers() -> io::Result<()> {
    let nice = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads a local; 0 is the calling thread. Every process may ask for this policy.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const nice) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_the_threads_own() {
        let policy = || {
            // SAFETY: no pointers; 0 is the calling thread.
            unsafe { libc::sched_getscheduler(0) }
        };
        std::thread::spawn(move || {
            give_way_to_workers().expect("anybody may");
            assert_eq!(policy(), libc::SCHED_BATCH);
        })
        .join()
        .expect("no panic");
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
