//! System calls below the protocol: a memory file and its mapping, futexes to wait and wake, an
//! eventfd for the front, the clock.
//!
//! They go through rustix, which calls the kernel directly. So they use neither libc's state (a
//! rollback restores a worker's) nor the functions that the worker interposes. Under loom, futexes
//! become model operations, so that lost wake-ups show as deadlocks.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

#[cfg(loom)]
pub(crate) use modelled::{futex_wait, futex_wake, parent};
#[cfg(not(loom))]
pub(crate) use real::{futex_wait, futex_wake, parent};

/// Seals that fix the size of the file. Every process of this user can open the file through /proc.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Creates a memory file of `bytes` whose size is sealed.
pub(crate) fn sealed_memory_file(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let file = memory_file(name, bytes)?;
    fcntl_add_seals(&file, SIZE_SEALS)?;
    Ok(file)
}

/// Creates a memory file whose size is not sealed yet.
pub(crate) fn memory_file(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    Ok(file)
}

/// Size of a file whose size is sealed. The inner error is the set of seals that the file has
/// instead.
pub(crate) fn sealed_size(file: BorrowedFd<'_>) -> io::Result<Result<u64, u32>> {
    // Read before the size.
    let seals = fcntl_get_seals(file)?;
    if !seals.contains(SIZE_SEALS) {
        return Ok(Err(seals.bits()));
    }
    Ok(Ok(rustix::fs::fstat(file)?.st_size.cast_unsigned()))
}

/// Memory that processes share, mapped until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is shared between processes anyway. A caller that makes a reference from
// `base` must ensure that all bytes which other processes may write there are valid for it.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of `file`, which must have and keep at least this size.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file.as_fd(), 0)
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, bytes })
    }

    /// Start of the mapping, page-aligned.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the address that mmap returned and the length that it got; all borrowers are
        // gone. munmap cannot fail for such a range.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Creates a non-blocking eventfd at 0.
pub(crate) fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
}

/// Adds `count` to an eventfd. Returns false if it is full.
pub(crate) fn add_to_event(event: BorrowedFd<'_>, count: u64) -> bool {
    rustix::io::write(event, &count.to_ne_bytes()) == Ok(8)
}

/// Reads and resets the count of an eventfd.
pub(crate) fn empty_event(event: BorrowedFd<'_>) -> u64 {
    let mut count = [0; 8];
    match rustix::io::read(event, &mut count) {
        Ok(_) => u64::from_ne_bytes(count),
        Err(_) => 0,
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds: the same clock in every process of the machine.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // libc's clock, because rustix looks up the vDSO at its first use and keeps it in a static,
    // which a rollback resets. SAFETY: fills a local; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(not(loom))]
mod real {
    use crate::sync::AtomicU32;
    use rustix::io::Errno;
    use rustix::process::{Pid, getppid};
    use rustix::thread::futex::{Flags, Timespec, wait, wake};
    use std::time::Duration;

    /// Sleeps while `word` holds `expected`, at most for `limit`. Wake-ups may be spurious. Returns
    /// false if `limit` has passed.
    ///
    /// The futex is not private to the process: sleeper and waker are different processes.
    pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, limit: Duration) -> bool {
        // A limit that is too large for the kernel means no limit.
        let limit = Timespec::try_from(limit).ok();
        wait(plain(word), Flags::empty(), expected, limit.as_ref()) != Err(Errno::TIMEDOUT)
    }

    /// Wakes one sleeper of `word`.
    pub(crate) fn futex_wake(word: &AtomicU32) {
        // Fails only for invalid addresses.
        let _ = wake(plain(word), Flags::empty(), 1);
    }

    #[cfg(not(counted))]
    fn plain(word: &AtomicU32) -> &AtomicU32 {
        word
    }

    #[cfg(counted)]
    fn plain(word: &AtomicU32) -> &std::sync::atomic::AtomicU32 {
        word.plain()
    }

    /// Process id of the parent.
    pub(crate) fn parent() -> i32 {
        Pid::as_raw(getppid())
    }
}

/// The model's kernel: one lock and one condition variable for all futexes, and processes that
/// never die.
///
/// Waiting has no limit here, so that a lost wake-up shows as a deadlock instead of a delay of one
/// second.
#[cfg(loom)]
mod modelled {
    use crate::sync::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use std::time::Duration;

    loom::lazy_static! {
        static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, _limit: Duration) -> bool {
        let (lock, condition) = &*SLEEPERS;
        let guard = lock.lock().expect("the model does not panic under the lock");
        if word.load(Ordering::SeqCst) == expected {
            drop(condition.wait(guard));
        }
        true
    }

    pub(crate) fn futex_wake(_word: &AtomicU32) {
        let (lock, condition) = &*SLEEPERS;
        drop(lock.lock().expect("the model does not panic under the lock"));
        condition.notify_all();
    }

    pub(crate) fn parent() -> i32 {
        1
    }
}
