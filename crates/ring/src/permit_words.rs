//! Words of the run permits in the control block: the workers that run, and the limits.
//! `run_permits` decides when a worker gets and returns a permit.

use crate::notifier::WORKER_WORDS;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Maximum number of attempts to get a permit while other workers get and return theirs.
const BEGIN_ROUNDS_MAX: usize = 64;

/// The workers that run, and the limits.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RunPermits {
    /// Maximum number of running workers; 0: any number. Written by the supervisor.
    pub(crate) limit: AtomicU32,
    /// With `limit` 0: maximum number of workers that were woken and are not up yet; 0: any number.
    /// Written by the supervisor.
    pub(crate) woken_max: AtomicU32,
    /// Number of cells in use, from the first; 0: possibly all. Written by the supervisor.
    pub(crate) cells: AtomicU32,
    _pad: u32,
    pub(crate) running: [AtomicU64; WORKER_WORDS],
}

impl RunPermits {
    #[cfg(loom)]
    pub(crate) fn new() -> RunPermits {
        RunPermits {
            limit: AtomicU32::new(0),
            woken_max: AtomicU32::new(0),
            cells: AtomicU32::new(0),
            _pad: 0,
            running: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[cfg(all(test, loom))]
    pub(crate) fn set_limits(&self, limit: u32, woken_max: u32) {
        self.limit.store(limit, Ordering::SeqCst);
        self.woken_max.store(woken_max, Ordering::SeqCst);
    }

    #[cfg(all(test, loom))]
    pub(crate) fn is_running(&self, index: usize) -> bool {
        self.has(index)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    /// Number of set bits at which no further worker is woken; 0: any number.
    pub(crate) fn bits_max(&self) -> usize {
        match self.limit() {
            0 => self.woken_max.load(Ordering::Relaxed) as usize,
            limit => limit,
        }
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.running[index / 64].load(Ordering::SeqCst) >> (index % 64) & 1 == 1
    }

    pub(crate) fn enter(&self, index: usize) {
        self.running[index / 64].fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// Takes a permit for `index`, which has none, if fewer than `limit` workers run. Among the
    /// workers of one word, the limit is never exceeded.
    pub(crate) fn try_enter(&self, index: usize, limit: usize, words: usize) -> bool {
        let (word, bit) = (&self.running[index / 64], 1 << (index % 64));
        let mut now = word.load(Ordering::SeqCst);
        for _ in 0..BEGIN_ROUNDS_MAX {
            let runners = now.count_ones() as usize + self.count_beside(index / 64, words);
            if now & bit != 0 || runners >= limit {
                return false;
            }
            match word.compare_exchange(now, now | bit, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }

    /// Returns the permit of `index`; true if it had one. Without one, nothing is written.
    pub(crate) fn leave(&self, index: usize) -> bool {
        let (word, bit) = (&self.running[index / 64], 1 << (index % 64));
        self.has(index) && word.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    pub(crate) fn count(&self, words: usize) -> usize {
        self.count_beside(WORKER_WORDS, words)
    }

    /// Number of running workers, without those of the word `at`.
    fn count_beside(&self, at: usize, words: usize) -> usize {
        let bits = |word: &AtomicU64| word.load(Ordering::SeqCst).count_ones() as usize;
        let others = self.running.iter().take(words).enumerate().filter(|(other, _)| *other != at);
        others.map(|(_, word)| bits(word)).sum()
    }
}
