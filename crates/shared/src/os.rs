//! System calls below the protocol: a memory file and its mappings, record locks that show which
//! processes live, the clock, and ways to wait.
//!
//! They go through rustix or `syscall()`. So they use neither libc's state (a rollback restores a
//! worker's) nor the functions that a worker interposes.

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::time::Duration;

const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Creates a memory file of `bytes` whose size is sealed.
pub(crate) fn sealed_memory_file(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SIZE_SEALS)?;
    Ok(file)
}

/// The size of a file whose size is sealed; `None` if it is not sealed.
pub(crate) fn sealed_size(file: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    // Checked before the size is read.
    if !fcntl_get_seals(file)?.contains(SIZE_SEALS) {
        return Ok(None);
    }
    Ok(Some(rustix::fs::fstat(file)?.st_size.cast_unsigned()))
}

/// Memory that processes share, mapped until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is shared between processes anyway: all of it is accessed as atomics.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of `file`, which must have and keep at least this size.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
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
        // gone.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Takes the lock on a byte of the file. This process keeps the lock until it ends in any way.
/// Returns false if another process has it.
///
/// Record locks belong to one process: a forked child has none of them.
pub(crate) fn lock_byte(file: BorrowedFd<'_>, at: u64) -> io::Result<bool> {
    match record_lock(file, at, libc::F_SETLK) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether another process has the lock on that byte.
pub(crate) fn is_byte_locked(file: BorrowedFd<'_>, at: u64) -> bool {
    // If the query fails, the process counts as alive: a wait that is too long does less harm than
    // two holders.
    record_lock(file, at, libc::F_GETLK).is_ok_and(|found| found != libc::F_UNLCK as libc::c_short)
}

/// Id of another process that has the lock on that byte, if there is one; 0 if the query fails.
pub(crate) fn locker_of(file: BorrowedFd<'_>, at: u64) -> Option<i32> {
    match ask_record_lock(file, at, libc::F_GETLK) {
        Ok(lock) if lock.l_type == libc::F_UNLCK as libc::c_short => None,
        Ok(lock) => Some(lock.l_pid),
        Err(_) => Some(0),
    }
}

/// The type of lock that the kernel returns.
fn record_lock(file: BorrowedFd<'_>, at: u64, command: libc::c_int) -> io::Result<libc::c_short> {
    ask_record_lock(file, at, command).map(|lock| lock.l_type)
}

fn ask_record_lock(file: BorrowedFd<'_>, at: u64, command: libc::c_int) -> io::Result<libc::flock> {
    // SAFETY: a struct of numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at.cast_signed();
    lock.l_len = 1;
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: an open descriptor, and a struct that lives during the call.
    let response = unsafe { libc::syscall(libc::SYS_fcntl, fd, command, &raw mut lock) };
    if response < 0 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

/// The part of a word that serves as futex: its first four bytes.
#[cfg(not(loom))]
fn futex(word: &std::sync::atomic::AtomicU64) -> &std::sync::atomic::AtomicU32 {
    let at = std::ptr::from_ref(word).cast::<std::sync::atomic::AtomicU32>();
    // SAFETY: within the word and aligned like it; only these functions access the word.
    unsafe { &*at }
}

/// Value of a notifier: the number of times it was rung.
#[cfg(not(loom))]
pub(crate) fn heard(bell: &std::sync::atomic::AtomicU64) -> u32 {
    futex(bell).load(std::sync::atomic::Ordering::SeqCst)
}

/// Sleeps while the value of the notifier is `heard`, at most for `limit`. May return earlier.
#[cfg(not(loom))]
pub(crate) fn sleep_until_rung(bell: &std::sync::atomic::AtomicU64, heard: u32, limit: Duration) {
    use rustix::thread::futex::{Flags, Timespec, wait};
    let limit = Timespec::try_from(limit).ok();
    // A signal, the limit and a wake-up are all the same: the caller checks again.
    let _ = wait(futex(bell), Flags::empty(), heard, limit.as_ref());
}

/// Wakes all sleepers.
#[cfg(not(loom))]
pub(crate) fn ring_for_all(bell: &std::sync::atomic::AtomicU64) {
    futex(bell).fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    // Fails only for invalid addresses.
    let flags = rustix::thread::futex::Flags::empty();
    let _ = rustix::thread::futex::wake(futex(bell), flags, i32::MAX.unsigned_abs());
}

/// Wakes one sleeper.
#[cfg(not(loom))]
pub(crate) fn ring(bell: &std::sync::atomic::AtomicU64) {
    futex(bell).fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    // Fails only for invalid addresses.
    let _ = rustix::thread::futex::wake(futex(bell), rustix::thread::futex::Flags::empty(), 1);
}

/// The model's notifier: a sleeper checks again and again.
#[cfg(loom)]
pub(crate) fn heard(bell: &loom::sync::atomic::AtomicU64) -> u32 {
    bell.load(std::sync::atomic::Ordering::SeqCst) as u32
}

#[cfg(loom)]
pub(crate) fn sleep_until_rung(bell: &loom::sync::atomic::AtomicU64, before: u32, _: Duration) {
    while heard(bell) == before {
        loom::thread::yield_now();
    }
}

#[cfg(loom)]
pub(crate) fn ring(bell: &loom::sync::atomic::AtomicU64) {
    bell.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
}

/// `CLOCK_MONOTONIC`: the same in every process of the machine.
pub(crate) fn monotonic() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec.try_into().unwrap_or(0))
}

/// Seconds of the wall clock, which people set.
pub(crate) fn wall_seconds() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

#[cfg(not(loom))]
pub(crate) use real::{ROUNDS_BEFORE_LOOK, give_way, nap, spin};

#[cfg(loom)]
pub(crate) use modelled::{ROUNDS_BEFORE_LOOK, give_way, nap, spin};

#[cfg(not(loom))]
mod real {
    use std::time::Duration;

    /// Number of wait rounds before the kernel is queried whether a holder lives.
    pub(crate) const ROUNDS_BEFORE_LOOK: u32 = 80;

    pub(crate) fn spin() {
        std::hint::spin_loop();
    }

    pub(crate) fn give_way() {
        rustix::thread::sched_yield();
    }

    pub(crate) fn nap(time: Duration) {
        let time = libc::timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: a struct that lives during the call; a shorter sleep is acceptable.
        unsafe {
            libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null_mut::<u8>());
        }
    }
}

/// The model's processes wait by letting the others run.
#[cfg(loom)]
mod modelled {
    use std::time::Duration;

    pub(crate) const ROUNDS_BEFORE_LOOK: u32 = 0;

    pub(crate) fn spin() {
        loom::thread::yield_now();
    }

    pub(crate) fn give_way() {
        loom::thread::yield_now();
    }

    pub(crate) fn nap(_time: Duration) {
        loom::thread::yield_now();
    }
}
