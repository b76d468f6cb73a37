//! Who runs: requests are begun only while fewer workers run than there are cores, however many workers there are.
//!
//! A worker has a *turn*, a bit of its own, while it runs: from the wake-up or the take of a request, over the requests that
//! follow and what comes between them, until it finds none to take. Before it waits within a request it ends its turn, and
//! the next worker may begin one; after the wait it goes on at once, even if more run then than should: what has begun comes
//! first. So many workers can wait, and few share the caches.
//!
//! Whoever wakes a worker gives it its turn: until it is up, which takes as long as the cores are busy, nobody is woken in
//! its place. Without that each request wakes one more meanwhile, and the crowd takes turns with cold caches.
//!
//! Where any number may run, and there are more workers than cores, the same bits say who was woken and is not up yet: as
//! many as there are cores. More would only wait for a core, and each takes one request before it sleeps again.
//!
//! How many run is the number of bits: nothing is counted that a death between two steps could leave wrong. All steps are
//! SeqCst, and each side of a pair publishes and then looks:
//!
//! | who | publishes | looks |
//! |---|---|---|
//! | whoever submits | the request | is a turn free? then a sleeper is woken |
//! | whoever wakes a worker | its bit, set | nowhere: then it says that the worker is awake |
//! | whoever falls asleep | that it does not stay awake; that it sleeps; its bit, cleared | do requests wait, and is a turn free? |
//! | whoever ends a turn elsewhere | its bit, cleared | do requests wait? then a sleeper is woken |
//!
//! A worker sleeps before its turn is free: so it is the one that is found for the next request. And it was said to stay
//! awake no more before it clears its bit: a turn that it is given afterwards comes with a wake-up that it does not miss.
//!
//! A turn that goes on and on (a long computation, a wait that nobody has announced, a process that was stopped, a dead
//! one, a bit that garbage has set) is ended by the supervisor at its second look: [`TurnWatch`]; one that was given to a
//! worker that does not come, by the front as soon as a request is overdue.

use crate::bell::WORKER_WORDS;
use crate::layout::{Control, Lane, WORKERS_MAX, WorkerCell};
use crate::map::Ring;
use crate::report::WorkerState;
use crate::sync::{AtomicU32, AtomicU64, Ordering, publish_before_look};
use std::collections::HashMap;

/// How often a turn is tried for while others begin and end theirs.
const BEGIN_ROUNDS_MAX: usize = 64;

/// Who runs, and how many may.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Turns {
    /// How many may run; 0: any number. The supervisor's word.
    limit: AtomicU32,
    /// Where any number may run: how many may have been woken and not be up yet; 0: any number. The supervisor's word.
    woken_max: AtomicU32,
    /// How many cells are in use, from the first; 0: perhaps all. The supervisor's word.
    cells: AtomicU32,
    _pad: u32,
    running: [AtomicU64; WORKER_WORDS],
}

impl Turns {
    #[cfg(loom)]
    pub(crate) fn new() -> Turns {
        Turns {
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

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    /// How many bits there may be before another worker is woken; 0: any number.
    fn bits_max(&self) -> usize {
        match self.limit() {
            0 => self.woken_max.load(Ordering::Relaxed) as usize,
            limit => limit,
        }
    }

    fn has(&self, index: usize) -> bool {
        self.running[index / 64].load(Ordering::SeqCst) >> (index % 64) & 1 == 1
    }

    fn enter(&self, index: usize) {
        self.running[index / 64].fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// A turn for `index`, which has none, if fewer than `limit` run. Among the workers of one word never one too many.
    fn try_enter(&self, index: usize, limit: usize, words: usize) -> bool {
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

    /// True: it had a turn. Without one nothing is written.
    pub(crate) fn leave(&self, index: usize) -> bool {
        let (word, bit) = (&self.running[index / 64], 1 << (index % 64));
        self.has(index) && word.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    fn count(&self, words: usize) -> usize {
        self.count_beside(WORKER_WORDS, words)
    }

    /// How many run, without those of the word `at`.
    fn count_beside(&self, at: usize, words: usize) -> usize {
        let bits = |word: &AtomicU64| word.load(Ordering::SeqCst).count_ones() as usize;
        let others = self.running.iter().take(words).enumerate().filter(|(other, _)| *other != at);
        others.map(|(_, word)| bits(word)).sum()
    }
}

impl Control {
    /// Cells that may be in use, from the first.
    pub(crate) fn cells(&self) -> usize {
        match self.turns.0.cells.load(Ordering::Relaxed) as usize {
            0 => WORKERS_MAX,
            cells => cells.min(WORKERS_MAX),
        }
    }

    /// Words of the sets of workers that may be in use.
    pub(crate) fn words(&self) -> usize {
        self.cells().div_ceil(64)
    }

    /// Whether only so many may run. Else those that were woken have a turn until they are up, and whoever ends it then
    /// does not look for requests that were refused one.
    pub(crate) fn counts_turns(&self) -> bool {
        self.turns.0.limit() != 0
    }

    /// Whether another request may be begun. The caller has published what this is about.
    pub(crate) fn has_turn(&self) -> bool {
        let most = self.turns.0.bits_max();
        most == 0 || self.turns.0.count(self.words()) < most
    }

    /// Worker `index` is going to be woken for a request: that is its turn, if one is free. Before it is said to be awake.
    pub(crate) fn give_turn(&self, index: usize) {
        let turns = &self.turns.0;
        let most = turns.bits_max();
        if most != 0 {
            turns.try_enter(index, most, self.words());
            // PAIRS WITH `sleep`: it says that it does not stay awake, and then clears its bit.
            publish_before_look();
        }
    }

    /// Worker `index` wants to run a request. What it had or was given is its turn yet. False: as many run as may; its next
    /// sleep looks again.
    pub(crate) fn begin_turn(&self, index: usize) -> bool {
        let turns = &self.turns.0;
        let limit = turns.limit();
        if limit == 0 {
            if turns.bits_max() != 0 {
                // It is up: the next may be woken, by itself if more requests wait.
                turns.leave(index);
            }
            return true;
        }
        let words = self.words();
        if !turns.has(index) && !turns.try_enter(index, limit, words) {
            return false;
        }
        publish_before_look();
        // Those that were waiting within a request go on without asking; and of two in different words both may be in.
        if turns.count(words) > limit {
            turns.leave(index);
            return false;
        }
        self.stretch(index);
        true
    }

    /// Worker `index` runs nothing any more. It looks for requests itself, before it sleeps.
    pub(crate) fn end_turn(&self, index: usize) {
        self.turns.0.leave(index);
    }

    /// Ends the turns of workers that were woken and have not come: they are held up more than requests that wait may be.
    pub(crate) fn end_unused_turns(&self) {
        for (at, word) in self.turns.0.running.iter().take(self.words()).enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let index = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let is_idle = |cell: &WorkerCell| {
                    cell.state.load(Ordering::Relaxed) == WorkerState::Idle.code()
                };
                if self.workers.get(index).is_some_and(|line| is_idle(&line.0)) {
                    self.turns.0.leave(index);
                }
            }
        }
    }

    /// Worker `index` is about to wait within its request. True: requests wait for what it leaves, and `pass_turn` is due.
    #[must_use]
    pub(crate) fn pause_turn(&self, index: usize) -> bool {
        if !self.turns.0.leave(index) {
            return false;
        }
        // PAIRS WITH `wake_for`, which publishes a request and then looks for a turn.
        publish_before_look();
        Lane::SERVING.iter().any(|lane| self.queue(*lane).pending() > 0)
    }

    /// Worker `index` goes on.
    pub(crate) fn resume_turn(&self, index: usize) {
        let turns = &self.turns.0;
        if turns.limit() == 0 {
            return;
        }
        turns.enter(index);
        self.stretch(index);
    }

    /// For [`TurnWatch`]: worker `index` begins to run.
    fn stretch(&self, index: usize) {
        let stretch = &self.workers[index].0.stretch;
        stretch.store(stretch.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Wakes a worker for each lane but those in `except`, if a request waits there and a turn is free.
    pub(crate) fn pass_turn(&self, except: &[Lane]) {
        for lane in Lane::SERVING.iter().filter(|lane| !except.contains(lane)) {
            if self.queue(*lane).pending() > 0 && self.has_turn() {
                self.wake_worker(*lane);
            }
        }
    }
}

/// A worker's turn, for who knows when the worker waits.
#[derive(Clone, Debug)]
pub struct Turn {
    ring: Ring,
    index: usize,
}

impl Turn {
    pub(crate) fn new(ring: Ring, index: usize) -> Turn {
        Turn { ring, index }
    }

    /// Whether turns are counted at present.
    pub fn is_counted(&self) -> bool {
        self.ring.control().turns.0.limit() != 0
    }

    /// Before the worker waits. True: requests wait, and if the wait is one, [`Self::pass_on`] is due.
    #[must_use]
    pub fn pause(&self) -> bool {
        self.ring.control().pause_turn(self.index)
    }

    /// Lets another worker run.
    pub fn pass_on(&self) {
        self.ring.control().pass_turn(&[]);
    }

    /// After the wait.
    pub fn resume(&self) {
        self.ring.control().resume_turn(self.index);
    }
}

/// The supervisor's memory of who was running at its last look.
#[derive(Debug, Default)]
pub struct TurnWatch {
    stretches: HashMap<usize, u32>,
}

impl TurnWatch {
    /// Ends the turns of workers that run as they did at the last look, and those of nobody: `is_live` knows which cells
    /// are somebody's. Returns how many it has ended.
    pub(crate) fn look(&mut self, control: &Control, is_live: impl Fn(usize) -> bool) -> usize {
        let before = std::mem::take(&mut self.stretches);
        let mut ended = 0;
        for (at, word) in control.turns.0.running.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let index = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let Some(cell) = control.workers.get(index) else { continue };
                let stretch = cell.0.stretch.load(Ordering::Relaxed);
                if !is_live(index) || before.get(&index) == Some(&stretch) {
                    ended += usize::from(control.turns.0.leave(index));
                } else {
                    self.stretches.insert(index, stretch);
                }
            }
        }
        if ended > 0 {
            let _ = control.wake_waiting();
        }
        ended
    }
}

impl Control {
    /// Supervisor: so many workers may run at once (0: any number; then so many may be on their way), and so many cells are
    /// in use. Says it again where somebody else has written.
    pub(crate) fn set_turns(&self, limit: usize, woken_max: usize, cells: usize) {
        let turns = &self.turns.0;
        let words = [(&turns.limit, limit), (&turns.woken_max, woken_max), (&turns.cells, cells)];
        for (word, value) in words {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            if word.load(Ordering::Relaxed) != value {
                word.store(value, Ordering::SeqCst);
                if limit == 0 {
                    // Whose turn it was is not on its way.
                    for bits in &turns.running {
                        bits.store(0, Ordering::SeqCst);
                    }
                }
                // More may run now, or more can be found.
                publish_before_look();
                let _ = self.wake_waiting();
            }
        }
    }

    /// Supervisor: the cell `index` is going to be used.
    pub(crate) fn use_cell(&self, index: usize) {
        let cells = &self.turns.0.cells;
        let used = cells.load(Ordering::Relaxed);
        if used != 0 && (used as usize) <= index {
            cells.store(index as u32 + 1, Ordering::SeqCst);
        }
    }

    /// How many workers run, of those whose turns are counted.
    pub(crate) fn running(&self) -> usize {
        if self.turns.0.limit() == 0 { 0 } else { self.turns.0.count(self.words()) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
