//! The system calls below the protocol: futex to wait and wake, eventfd to wake the front.
//!
//! Under loom both become model operations, so that lost wake-ups show as deadlocks.

use crate::sync::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps while `word` holds `expected`, at most for `limit`; wakes may be spurious.
#[cfg(not(loom))]
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, limit: Duration) {
    let _ = Ordering::SeqCst;
    let limit = libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(limit.subsec_nanos()),
    };
    // SAFETY: `word` lives in a mapping that outlives the call; the kernel only reads it. FUTEX_WAIT
    // without the private flag, because the sleeper and the waker are different processes.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word).cast::<u32>(),
            libc::FUTEX_WAIT,
            expected,
            &raw const limit,
            0,
            0,
        );
    }
}

/// Wakes one sleeper of `word`.
#[cfg(not(loom))]
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: `word` lives in a mapping that outlives the call; the kernel uses the address as a key.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word).cast::<u32>(),
            libc::FUTEX_WAKE,
            1,
            0,
            0,
            0,
        );
    }
}

/// The model's kernel: one lock and one condition for all futexes.
///
/// Waiting has no limit here, so that a lost wake-up shows as a deadlock instead of a second's delay.
#[cfg(loom)]
mod kernel {
    use loom::sync::{Condvar, Mutex};

    loom::lazy_static! {
        pub(super) static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }
}

#[cfg(loom)]
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, _limit: Duration) {
    let (lock, condition) = &*kernel::SLEEPERS;
    let guard = lock.lock().expect("the model does not panic under the lock");
    if word.load(Ordering::SeqCst) == expected {
        drop(condition.wait(guard));
    }
}

#[cfg(loom)]
pub(crate) fn futex_wake(_word: &AtomicU32) {
    let (lock, condition) = &*kernel::SLEEPERS;
    drop(lock.lock().expect("the model does not panic under the lock"));
    condition.notify_all();
}
