//! Processes that share a memory and are killed.

use samovar_shared::{Client, Shared};
use std::sync::atomic::AtomicU64;

/// Words that all processes of a test share, in addition to the memory under test.
pub(crate) struct Scratch(&'static [AtomicU64]);

impl Scratch {
    pub(crate) fn new(words: usize) -> Scratch {
        let (flags, protection) =
            (libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: fresh zeroed memory that is never unmapped.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), words * 8, protection, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: page-aligned, of this length, and accessed only as atomics.
        Scratch(unsafe { std::slice::from_raw_parts(at.cast(), words) })
    }
}

impl std::ops::Deref for Scratch {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        self.0
    }
}

/// Forks a process that runs `life` and exits with 0, or with 1 if `life` panics.
pub(crate) fn child(shared: &Shared, life: impl FnOnce(&Client)) -> i32 {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            let client = Client::new(shared.clone(), 1);
            let life = std::panic::AssertUnwindSafe(|| {
                client.begin().expect("a seat");
                life(&client);
            });
            let status = i32::from(std::panic::catch_unwind(life).is_err());
            // SAFETY: ends the child.
            unsafe { libc::_exit(status) }
        }
        -1 => panic!("cannot fork: {}", std::io::Error::last_os_error()),
        pid => pid,
    }
}

/// Waits until the process has ended. Returns whether it exited with 0.
pub(crate) fn ended_well(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: our own child; fills a local.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {}
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// Kills the process at whichever instruction it is.
pub(crate) fn kill(pid: i32) {
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    assert!(!ended_well(pid), "it has ended before it was killed");
}

/// Whether a process no longer runs any instruction of its own, and never will.
///
/// The kernel releases the locks of an ending process before the process shows as a zombie: on a
/// busy machine, long before.
pub(crate) fn is_over(pid: u64) -> bool {
    /// Bit of its flags in `stat`: the process is ending.
    const PF_EXITING: u64 = 4;
    // The process may disappear between this check and any other.
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let state = fields.next().expect("its state");
    let flags: u64 = fields.nth(5).and_then(|flags| flags.parse().ok()).expect("its flags");
    matches!(state, "Z" | "X") || flags & PF_EXITING != 0
}

/// A client of this process, which takes the seat of a process that has ended.
pub(crate) fn client(shared: &Shared) -> Client {
    let client = Client::new(shared.clone(), 1);
    client.begin().expect("a seat");
    client
}

pub(crate) fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub(crate) fn seed() -> u64 {
    let seed = number("SAMOVAR_SHARED_SEED", fastrand::u64(..));
    println!("SAMOVAR_SHARED_SEED={seed}");
    seed
}
