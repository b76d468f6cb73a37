//! Counting atomics for `examples/fronts.rs`: record which agent uses which cache line, and whether
//! another agent held it.
//!
//! Compiled only with `--cfg counted`. The counts show the cache lines that would move on a machine
//! with one core per process. A line moves to an agent if another agent has written it since the
//! last access. A line that other agents hold is taken from them when an agent writes it.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{LockResult, MutexGuard, PoisonError};

const LINE_BYTES: usize = 64;
/// Maximum number of agents (fronts and workers) of a run.
pub const AGENTS_MAX: usize = 128;
/// Number of locks that the table of lines is spread over.
const SHARDS: usize = 256;

/// Number of accesses after which a thread yields. With few cores, threads would otherwise run
/// whole requests undisturbed, and few lines would move.
const YIELD_AFTER: u32 = 5;

/// Number of accesses to the words of one place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Loads and stores.
    pub plain: u64,
    /// Instructions that lock the line.
    pub locked: u64,
    /// Times that a line came from another agent's cache or had to leave other caches.
    pub moved: u64,
}

/// The agents that hold a line, and the counts of each agent.
#[derive(Debug, Default)]
struct Line {
    sharers: u128,
    counts: HashMap<usize, Counts>,
}

static LINES: [std::sync::Mutex<BTreeMap<usize, Line>>; SHARDS] =
    [const { std::sync::Mutex::new(BTreeMap::new()) }; SHARDS];

thread_local! {
    static AGENT: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
    static ACCESSES: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Attributes the following accesses of this thread to that front or worker.
pub fn act_as(agent: usize) {
    AGENT.set(Some(agent % AGENTS_MAX));
}

/// Takes the counts so far: address of the line, agent, counts.
pub fn take() -> Vec<(usize, usize, Counts)> {
    let mut all = Vec::new();
    for shard in &LINES {
        let mut lines = shard.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, line) in lines.iter_mut() {
            all.extend(line.counts.drain().map(|(agent, counts)| (*at, agent, counts)));
        }
    }
    all
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Look,
    Write,
    Lock,
}

fn note<T>(word: &T, how: Use) {
    let Some(agent) = AGENT.get() else { return };
    let at = std::ptr::from_ref(word) as usize / LINE_BYTES * LINE_BYTES;
    let shard = &LINES[at / LINE_BYTES % SHARDS];
    let mut lines = shard.lock().unwrap_or_else(PoisonError::into_inner);
    let line = lines.entry(at).or_default();
    let own = 1u128 << agent;
    let is_own = match how {
        Use::Look => line.sharers & own != 0,
        Use::Write | Use::Lock => line.sharers == own,
    };
    let is_moved = !is_own && line.sharers != 0;
    line.sharers = if how == Use::Look { line.sharers | own } else { own };
    let counts = line.counts.entry(agent).or_default();
    counts.moved += u64::from(is_moved);
    match how {
        Use::Lock => counts.locked += 1,
        Use::Look | Use::Write => counts.plain += 1,
    }
    drop(lines);
    ACCESSES.set(ACCESSES.get().wrapping_add(1));
    if ACCESSES.get().is_multiple_of(YIELD_AFTER) {
        std::thread::yield_now();
    }
}

macro_rules! counted {
    ($name:ident, $type:ty) => {
        #[repr(transparent)]
        #[derive(Debug, Default)]
        pub(crate) struct $name(std::sync::atomic::$name);

        #[allow(dead_code)] // Not every function is used in both widths.
        impl $name {
            pub(crate) const fn new(value: $type) -> $name {
                $name(std::sync::atomic::$name::new(value))
            }
            pub(crate) fn load(&self, order: Ordering) -> $type {
                note(self, Use::Look);
                self.0.load(order)
            }
            pub(crate) fn store(&self, value: $type, order: Ordering) {
                note(self, Use::Write);
                // A sequentially consistent store is an exchange.
                if order == Ordering::SeqCst {
                    note(self, Use::Lock);
                }
                self.0.store(value, order);
            }
            pub(crate) fn swap(&self, value: $type, order: Ordering) -> $type {
                note(self, Use::Lock);
                self.0.swap(value, order)
            }
            pub(crate) fn fetch_or(&self, bits: $type, order: Ordering) -> $type {
                note(self, Use::Lock);
                self.0.fetch_or(bits, order)
            }
            pub(crate) fn fetch_and(&self, bits: $type, order: Ordering) -> $type {
                note(self, Use::Lock);
                self.0.fetch_and(bits, order)
            }
            pub(crate) fn fetch_add(&self, more: $type, order: Ordering) -> $type {
                note(self, Use::Lock);
                self.0.fetch_add(more, order)
            }
            pub(crate) fn fetch_max(&self, value: $type, order: Ordering) -> $type {
                note(self, Use::Lock);
                self.0.fetch_max(value, order)
            }
            pub(crate) fn compare_exchange(
                &self,
                from: $type,
                to: $type,
                good: Ordering,
                bad: Ordering,
            ) -> Result<$type, $type> {
                note(self, Use::Lock);
                self.0.compare_exchange(from, to, good, bad)
            }
            /// The underlying atomic, for the kernel.
            pub(crate) fn plain(&self) -> &std::sync::atomic::$name {
                &self.0
            }
        }
    };
}

counted!(AtomicU32, u32);
counted!(AtomicU64, u64);

/// A mutex that counts two accesses to its word: one to lock, one to unlock.
#[derive(Debug)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        note(self, Use::Lock);
        note(self, Use::Lock);
        self.0.lock()
    }
}
