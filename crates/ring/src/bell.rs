//! Who is asleep, and how it is woken without a system call per request.
//!
//! Sleeping is announced first and the reason to sleep is checked again afterwards; whoever makes work
//! publishes it first and looks for sleepers afterwards. All four steps are SeqCst, so one of the
//! two sides sees the other (Dekker). A process that dies between clearing a flag and making the
//! system call loses a wake-up: that is why a repair wakes everybody.

use crate::layout::{SLOTS_MAX, SlotIndex, WORKERS_MAX};
use crate::sync::{AtomicU32, AtomicU64, Ordering, publish_before_look};
use std::ops::Range;

/// How many of those that have gone to sleep last are remembered: with more cores, the first cells have run lately, too.
const RECENT_MAX: u32 = 4;
const RECENT_BITS: u32 = u64::BITS / RECENT_MAX;
const RECENT_MASK: u64 = (1 << RECENT_BITS) - 1;
const _: () = assert!(WORKERS_MAX < RECENT_MASK as usize);

const SLOT_WORDS: usize = SLOTS_MAX.div_ceil(64);
pub(crate) const WORKER_WORDS: usize = WORKERS_MAX.div_ceil(64);

/// worker → front: which slots have news, and whether the front must be woken for them. Each front has one.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FrontBell {
    asleep: AtomicU32,
    _pad: u32,
    news: [AtomicU64; SLOT_WORDS],
}

impl FrontBell {
    #[cfg(loom)]
    pub(crate) fn new() -> FrontBell {
        FrontBell {
            asleep: AtomicU32::new(0),
            _pad: 0,
            news: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Marks news of `slot`. True: the caller must ring the front's eventfd.
    #[must_use]
    pub(crate) fn mark(&self, slot: SlotIndex) -> bool {
        self.news[slot.get() / 64].fetch_or(1 << (slot.get() % 64), Ordering::SeqCst);
        publish_before_look();
        self.asleep.load(Ordering::SeqCst) == 1 && self.asleep.swap(0, Ordering::SeqCst) == 1
    }

    /// Front: takes all marks of its slots.
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

    /// Front: announces that it sleeps. False: there are marks, it must not.
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

    /// Front: it is awake, nobody needs to ring.
    pub(crate) fn wake_up(&self) {
        self.asleep.store(0, Ordering::SeqCst);
    }
}

/// The words that have bits of `part`, each with its place.
fn words<'a>(
    all: &'a [AtomicU64],
    part: &Range<usize>,
) -> impl Iterator<Item = (usize, &'a AtomicU64)> {
    let from = part.start / 64;
    let own = all.get(from..part.end.div_ceil(64)).unwrap_or_default();
    own.iter().enumerate().map(move |(at, word)| (from + at, word))
}

/// front → workers: the workers of a lane, a bit each, and which of them sleep.
///
/// Who looks through them is told how many words are in use: a few for many workers, one for most servers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WorkerSet {
    /// Who has gone to sleep last after a request, and who before: [`RECENT_MAX`] numbers and 1 each, the last lowest; 0: nobody. A hint.
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

    /// Worker `index` takes from this lane from now on.
    pub(crate) fn join(&self, index: usize) {
        self.serving[index / 64].fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// Worker `index` does not (any more).
    pub(crate) fn leave(&self, index: usize) {
        self.serving[index / 64].fetch_and(!(1 << (index % 64)), Ordering::SeqCst);
        self.mark_awake(index);
    }

    /// Worker `index` has run, and is about to sleep: the next request is for it, rather than for one that has not.
    pub(crate) fn note_run(&self, index: usize) {
        let recent = self.recent.load(Ordering::Relaxed);
        let now = with_first(recent, index as u64 + 1);
        // The only one that sleeps and wakes writes nothing.
        if now != recent {
            self.recent.store(now, Ordering::Relaxed);
        }
    }

    /// Worker `index` is about to sleep.
    pub(crate) fn mark_asleep(&self, index: usize) {
        self.asleep[index / 64].fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// Worker `index` is awake (or dead).
    pub(crate) fn mark_awake(&self, index: usize) {
        self.asleep[index / 64].fetch_and(!(1 << (index % 64)), Ordering::SeqCst);
    }

    /// All that sleep are awake.
    pub(crate) fn mark_all_awake(&self, words: usize) {
        for word in self.asleep.iter().take(words) {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::SeqCst);
            }
        }
    }

    /// Claims one sleeper: who gets its index has to wake it. One of those that have run last, whose memory is in the caches
    /// yet, the last one first; else the first, so that the last are those that nobody needs.
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
        // Looked at first: the bit of whoever is awake again costs no write.
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

    /// Whether a worker of the lane is awake: it looks at the queue before it sleeps.
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

    /// Whether nobody sleeps.
    #[cfg(loom)]
    pub(crate) fn is_up(&self) -> bool {
        self.asleep.iter().all(|w| w.load(Ordering::Relaxed) == 0)
    }
}

/// The list `recent` with `number` in front, wherever it stood; if nowhere, the last one drops out.
fn with_first(recent: u64, number: u64) -> u64 {
    let at = |place: u32| recent >> (place * RECENT_BITS) & RECENT_MASK;
    let place = (0..RECENT_MAX - 1).find(|place| at(*place) == number).unwrap_or(RECENT_MAX - 1);
    let up_to = u64::MAX >> (u64::BITS - (place + 1) * RECENT_BITS);
    recent & !up_to | recent << RECENT_BITS & up_to | number
}

/// How long requests take, as the workers see it: decides whether waking a second worker is worth its cost.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Pace(AtomicU32);

/// Work that is done sooner than a sleeper is up: about two futex wake-ups.
const WORTH_A_WAKE_NS: u64 = 20_000;

impl Pace {
    #[cfg(loom)]
    pub(crate) fn new() -> Pace {
        // Slow: the model checks the path on which everybody is woken.
        Pace(AtomicU32::new(u32::MAX))
    }

    /// A request took `run_ns`: rises at once, falls by a sixteenth.
    pub(crate) fn record(&self, run_ns: u64) {
        let now = u64::from(self.0.load(Ordering::Relaxed));
        let next = if run_ns > now { run_ns } else { now - now / 16 + run_ns / 16 };
        self.0.store(u32::try_from(next).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Whether workers that are awake are through with `requests` before a sleeper would be up.
    /// Before the first request nothing is known: then a sleeper is woken.
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
    fn who_sleeps_last_is_first_in_the_list() {
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
    fn the_last_sleeper_is_woken_first() {
        let ring = crate::Ring::create(1).expect("memory");
        let set = ring.control().workers_of(crate::Lane::App);
        for index in [0, 1, 2, 70, 3, 4, 64] {
            set.note_run(index);
            set.mark_asleep(index);
        }
        set.mark_awake(3);
        // It has looked around, and has not run.
        set.mark_awake(1);
        set.mark_asleep(1);
        let woken: Vec<usize> = std::iter::from_fn(|| set.claim(2)).collect();
        assert_eq!(woken, [64, 4, 70, 0, 1, 2], "the last four, then from the first cell on");
    }

    #[test]
    fn no_list_that_garbage_has_written_names_who_does_not_sleep() {
        let ring = crate::Ring::create(1).expect("memory");
        let set = ring.control().workers_of(crate::Lane::App);
        set.mark_asleep(9);
        set.recent.store(u64::MAX, Ordering::Relaxed);
        assert_eq!([set.claim(1), set.claim(1)], [Some(9), None]);
    }
}
