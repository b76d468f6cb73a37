//! Tracks which processes sleep, and wakes them without a system call per request.
//!
//! A process that is about to sleep first announces it and then checks again for work. A process
//! that makes work first publishes it and then looks for sleepers. All four steps are SeqCst, so at
//! least one side sees the other (Dekker). A process that dies between clearing a flag and making
//! the system call loses a wake-up. Therefore a repair wakes all fronts and workers.

use crate::limits::{SLOTS_MAX, SlotIndex, WORKERS_MAX};
use crate::sync::{AtomicU32, AtomicU64, Ordering, publish_before_look};
use std::ops::Range;

/// Number of workers remembered that fell asleep most recently. With more cores, the workers of the
/// first cells have also run recently.
const RECENT_MAX: u32 = 4;
const RECENT_BITS: u32 = u64::BITS / RECENT_MAX;
const RECENT_MASK: u64 = (1 << RECENT_BITS) - 1;
const _: () = assert!(WORKERS_MAX < RECENT_MASK as usize);

const SLOT_WORDS: usize = SLOTS_MAX.div_ceil(64);
pub(crate) const WORKER_WORDS: usize = WORKERS_MAX.div_ceil(64);

/// worker → front: the slots that have news, and whether the front must be woken for them. One per
/// front.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FrontNotifier {
    asleep: AtomicU32,
    _pad: u32,
    news: [AtomicU64; SLOT_WORDS],
}

impl FrontNotifier {
    #[cfg(loom)]
    pub(crate) fn new() -> FrontNotifier {
        FrontNotifier {
            asleep: AtomicU32::new(0),
            _pad: 0,
            news: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Marks news of `slot`. Returns true if the caller must ring the front's eventfd.
    #[must_use]
    pub(crate) fn mark(&self, slot: SlotIndex) -> bool {
        self.news[slot.get() / 64].fetch_or(1 << (slot.get() % 64), Ordering::SeqCst);
        publish_before_look();
        self.asleep.load(Ordering::SeqCst) == 1 && self.asleep.swap(0, Ordering::SeqCst) == 1
    }

    /// Front: takes and clears the news marks of its slots.
    pub(crate) fn take(&self, part: &Range<usize>, mut each: impl FnMut(SlotIndex)) {
        for (at, word) in words(&self.news, part) {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut marks = word.swap(0, Ordering::SeqCst);
            while marks != 0 {
                let index = at * 64 + marks.trailing_zeros() as usize;
                marks &= marks - 1;
                if let Some(slot) = SlotIndex::new(index, part.end).filter(|_| part.start <= index)
                {
                    each(slot);
                }
            }
        }
    }

    /// Front: announces that it sleeps. Returns false if there are marks: the front must stay
    /// awake.
    #[must_use]
    pub(crate) fn fall_asleep(&self, part: &Range<usize>) -> bool {
        self.asleep.store(1, Ordering::SeqCst);
        publish_before_look();
        let quiet = words(&self.news, part).all(|(_, word)| word.load(Ordering::SeqCst) == 0);
        if !quiet {
            self.wake_up();
        }
        quiet
    }

    /// Front: announces that it is awake. No worker needs to ring its eventfd.
    pub(crate) fn wake_up(&self) {
        self.asleep.store(0, Ordering::SeqCst);
    }
}

/// Words that contain bits of `part`, each with its index.
fn words<'a>(
    all: &'a [AtomicU64],
    part: &Range<usize>,
) -> impl Iterator<Item = (usize, &'a AtomicU64)> {
    let from = part.start / 64;
    let own = all.get(from..part.end.div_ceil(64)).unwrap_or_default();
    own.iter().enumerate().map(move |(at, word)| (from + at, word))
}

/// front → workers: the workers of a lane and which of them sleep, one bit each.
///
/// Functions that scan the words take the number of words in use: a few for many workers, one for
/// most servers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WorkerSet {
    /// Workers that fell asleep most recently after a request: [`RECENT_MAX`] fields, each the
    /// worker's index plus 1, the most recent in the lowest field. 0 means no worker. A hint.
    recent: AtomicU64,
    serving: [AtomicU64; WORKER_WORDS],
    asleep: [AtomicU64; WORKER_WORDS],
}

impl WorkerSet {
    #[cfg(loom)]
    pub(crate) fn new() -> WorkerSet {
        WorkerSet {
            recent: AtomicU64::new(0),
            serving: std::array::from_fn(|_| AtomicU64::new(0)),
            asleep: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Worker `index` takes requests from this lane from now on.
    pub(crate) fn join(&self, index: usize) {
        self.serving[index / 64].fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// Worker `index` does not (or no longer) take requests from this lane.
    pub(crate) fn leave(&self, index: usize) {
        self.serving[index / 64].fetch_and(!(1 << (index % 64)), Ordering::SeqCst);
        self.mark_awake(index);
    }

    /// Notes that worker `index` has run and is about to sleep. The next request goes to it rather
    /// than to a worker that has not run.
    pub(crate) fn note_run(&self, index: usize) {
        let recent = self.recent.load(Ordering::Relaxed);
        let now = with_first(recent, index as u64 + 1);
        // A worker that is the only one to sleep and wake causes no write.
        if now != recent {
            self.recent.store(now, Ordering::Relaxed);
        }
    }

    /// Marks worker `index` as about to sleep.
    pub(crate) fn mark_asleep(&self, index: usize) {
        self.asleep[index / 64].fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// Marks worker `index` as awake (or dead).
    pub(crate) fn mark_awake(&self, index: usize) {
        self.asleep[index / 64].fetch_and(!(1 << (index % 64)), Ordering::SeqCst);
    }

    /// Marks all sleeping workers as awake.
    pub(crate) fn mark_all_awake(&self, words: usize) {
        for word in self.asleep.iter().take(words) {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::SeqCst);
            }
        }
    }

    /// Claims one sleeping worker and returns its index. The caller must wake it.
    ///
    /// Prefers the workers that ran most recently, the latest first, because their memory is still
    /// in the caches. Otherwise takes the sleeping worker with the lowest index, so that the
    /// workers with the highest indexes are the spare ones.
    #[must_use]
    pub(crate) fn claim(&self, words: usize) -> Option<usize> {
        self.claim_recent().or_else(|| self.claim_first(words))
    }

    fn claim_recent(&self) -> Option<usize> {
        let recent = self.recent.load(Ordering::Relaxed);
        let numbers = (0..RECENT_MAX).map(|at| recent >> (at * RECENT_BITS) & RECENT_MASK);
        numbers
            .filter_map(|number| (number as usize).checked_sub(1))
            .find(|index| self.claim_one(*index))
    }

    fn claim_one(&self, index: usize) -> bool {
        let Some(word) = self.asleep.get(index / 64) else { return false };
        let bit = 1 << (index % 64);
        // Read first: a worker that is already awake costs no write.
        word.load(Ordering::SeqCst) & bit != 0 && word.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    fn claim_first(&self, words: usize) -> Option<usize> {
        for (at, word) in self.asleep.iter().take(words).enumerate() {
            let mut sleepers = word.load(Ordering::SeqCst);
            while sleepers != 0 {
                let bit = sleepers & sleepers.wrapping_neg();
                let rest = sleepers & !bit;
                match word.compare_exchange(sleepers, rest, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(_) => return Some(at * 64 + bit.trailing_zeros() as usize),
                    Err(now) => sleepers = now,
                }
            }
        }
        None
    }

    /// Whether a worker of the lane is awake. It checks the queue before it sleeps.
    pub(crate) fn has_awake(&self, words: usize) -> bool {
        let both = self.serving.iter().zip(&self.asleep).take(words);
        both.into_iter().any(|(serving, asleep)| {
            serving.load(Ordering::SeqCst) & !asleep.load(Ordering::SeqCst) != 0
        })
    }

    /// Whether a worker of the lane waits for a request. A hint.
    pub(crate) fn has_sleeper(&self, words: usize) -> bool {
        let both = self.serving.iter().zip(&self.asleep).take(words);
        both.into_iter().any(|(serving, asleep)| {
            serving.load(Ordering::Relaxed) & asleep.load(Ordering::Relaxed) != 0
        })
    }

    /// Whether no worker sleeps.
    #[cfg(loom)]
    pub(crate) fn is_up(&self) -> bool {
        self.asleep.iter().all(|w| w.load(Ordering::Relaxed) == 0)
    }
}

/// Moves `number` to the front of the list `recent`. If it is not in the list, the last entry drops
/// out.
fn with_first(recent: u64, number: u64) -> u64 {
    let at = |place: u32| recent >> (place * RECENT_BITS) & RECENT_MASK;
    let place = (0..RECENT_MAX - 1).find(|place| at(*place) == number).unwrap_or(RECENT_MAX - 1);
    let up_to = u64::MAX >> (u64::BITS - (place + 1) * RECENT_BITS);
    recent & !up_to | recent << RECENT_BITS & up_to | number
}

/// Duration of requests as the workers measure it. Decides whether waking a second worker is worth
/// its cost.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Pace(AtomicU32);

/// Work shorter than this is done before a sleeping worker is up: about two futex wake-ups.
const WORTH_A_WAKE_NS: u64 = 20_000;

impl Pace {
    #[cfg(loom)]
    pub(crate) fn new() -> Pace {
        // Slow: the model checks the path on which all workers are woken.
        Pace(AtomicU32::new(u32::MAX))
    }

    /// Records that a request took `run_ns`. The estimate rises at once and falls with a weight of
    /// a sixteenth.
    pub(crate) fn record(&self, run_ns: u64) {
        let now = u64::from(self.0.load(Ordering::Relaxed));
        let next = if run_ns > now { run_ns } else { now - now / 16 + run_ns / 16 };
        self.0.store(u32::try_from(next).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Whether the awake workers finish `requests` requests before a sleeping worker would be up.
    /// Before the first request the duration is unknown; then a sleeping worker is woken.
    pub(crate) fn is_brisk(&self, requests: u64) -> bool {
        let each = u64::from(self.0.load(Ordering::Relaxed));
        each != 0 && each.saturating_mul(requests) < WORTH_A_WAKE_NS
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn list(numbers: [u64; 4]) -> u64 {
        numbers.iter().rev().fold(0, |list, number| list << RECENT_BITS | number)
    }

    #[test]
    fn latest_sleeper_becomes_first_in_list() {
        let cases = [
            ([0, 0, 0, 0], 7, [7, 0, 0, 0]),
            ([7, 0, 0, 0], 7, [7, 0, 0, 0]),
            ([7, 5, 0, 0], 5, [5, 7, 0, 0]),
            ([7, 5, 3, 1], 3, [3, 7, 5, 1]),
            ([7, 5, 3, 1], 1, [1, 7, 5, 3]),
            ([7, 5, 3, 1], 4096, [4096, 7, 5, 3]),
        ];
        for (before, number, after) in cases {
            assert_eq!(with_first(list(before), number), list(after), "{number} into {before:?}");
        }
    }

    #[test]
    fn latest_sleeper_is_woken_first() {
        let ring = crate::Ring::create(1).expect("memory");
        let set = ring.control().workers_of(crate::Lane::App);
        for index in [0, 1, 2, 70, 3, 4, 64] {
            set.note_run(index);
            set.mark_asleep(index);
        }
        set.mark_awake(3);
        // Worker 1 has checked for work and has not run.
        set.mark_awake(1);
        set.mark_asleep(1);
        let woken: Vec<usize> = std::iter::from_fn(|| set.claim(2)).collect();
        assert_eq!(woken, [64, 4, 70, 0, 1, 2], "the last four, then from the first cell on");
    }

    #[test]
    fn garbage_recent_list_never_names_awake_worker() {
        let ring = crate::Ring::create(1).expect("memory");
        let set = ring.control().workers_of(crate::Lane::App);
        set.mark_asleep(9);
        set.recent.store(u64::MAX, Ordering::Relaxed);
        assert_eq!([set.claim(1), set.claim(1)], [Some(9), None]);
    }
}
