//! Run permits: a request begins only while fewer workers run than there are
//! cores, no matter how many workers exist.
//!
//! A worker holds a permit, a bit of its own, while it runs. It gets the permit with the wake-up or
//! when it takes a request. It keeps the permit during the following requests and the code between
//! them, until it finds no request.
//!
//! Before a worker waits within a request, it returns its permit, and the next worker may begin.
//! After the wait it continues at once, even if more workers run then than the limit: requests that
//! have begun come first. Thus many workers can wait, and few share the caches.
//!
//! A process that wakes a worker gives it a permit. Until that worker is up, which takes as long as
//! the cores are busy, no other worker is woken in its place. Otherwise each request would wake one
//! more worker in the meantime, and all of them would alternate with cold caches.
//!
//! Without a limit, and with more workers than cores, the same bits mark the workers that were
//! woken and are not up yet: at most as many as there are cores. More would only wait for a core,
//! and each takes one request before it sleeps again.
//!
//! The number of running workers is the number of set bits. There is no counter that a death
//! between two steps could leave wrong. All steps are SeqCst, and each side of a pair publishes and
//! then looks:
//!
//! | process | publishes | then looks |
//! |---|---|---|
//! | submitter | the request | is a permit free? then wakes a sleeper |
//! | waker | the worker's bit, set | nowhere; then sets the worker's `awake` |
//! | sleeping worker | `awake` cleared, asleep, bit cleared | do requests wait, is a permit free? |
//! | other returns of a permit | the bit, cleared | do requests wait? then wakes a sleeper |
//!
//! A worker marks itself asleep before its permit is free. So the next request finds this worker.
//! It also clears `awake` before it clears its bit. So a permit that it is given afterwards comes
//! with a wake-up that it does not miss.
//!
//! Some permits are held too long: by a long computation, an unannounced wait, a stopped process, a
//! dead process, or as a bit that garbage has set. The supervisor takes such a permit back at its
//! second look ([`PermitWatch`]). If a worker with a permit does not come up, the front takes the
//! permit back as soon as a request is overdue.

use crate::cells::WorkerCell;
use crate::layout::{Control, Lane};
use crate::limits::WORKERS_MAX;
use crate::map::Ring;
use crate::report::WorkerState;
use crate::sync::{Ordering, publish_before_look};
use std::collections::HashMap;

impl Control {
    /// Number of cells that may be in use, from the first.
    pub(crate) fn cells(&self) -> usize {
        match self.permits.0.cells.load(Ordering::Relaxed) as usize {
            0 => WORKERS_MAX,
            cells => cells.min(WORKERS_MAX),
        }
    }

    /// Number of words of the worker sets that may be in use.
    pub(crate) fn words(&self) -> usize {
        self.cells().div_ceil(64)
    }

    /// Whether the number of running workers is limited. Without a limit, a woken worker holds a
    /// permit until it is up. When it then returns the permit, it does not look for requests that
    /// were refused one.
    pub(crate) fn counts_permits(&self) -> bool {
        self.permits.0.limit() != 0
    }

    /// Whether another request may begin. The caller must have published the change that it checks
    /// for.
    pub(crate) fn has_permit(&self) -> bool {
        let most = self.permits.0.bits_max();
        most == 0 || self.permits.0.count(self.words()) < most
    }

    /// Gives worker `index`, which is about to be woken for a request, a permit if one is free.
    /// Called before the worker is marked as awake.
    pub(crate) fn grant_permit(&self, index: usize) {
        let permits = &self.permits.0;
        let most = permits.bits_max();
        if most != 0 {
            permits.try_enter(index, most, self.words());
            // PAIRS WITH `sleep`: it clears `awake`, and then its bit.
            publish_before_look();
        }
    }

    /// Worker `index` wants to run a request. A permit that it already holds or was given stays
    /// valid. Returns false if the maximum number of workers runs; the worker's next sleep checks
    /// again.
    pub(crate) fn acquire_permit(&self, index: usize) -> bool {
        let permits = &self.permits.0;
        let limit = permits.limit();
        if limit == 0 {
            if permits.bits_max() != 0 {
                // It is up: the next worker may be woken, by this one if more requests wait.
                permits.leave(index);
            }
            return true;
        }
        let words = self.words();
        if !permits.has(index) && !permits.try_enter(index, limit, words) {
            return false;
        }
        publish_before_look();
        // Workers that waited within a request continue without a check. And two workers in
        // different words may both have entered.
        if permits.count(words) > limit {
            permits.leave(index);
            return false;
        }
        self.stretch(index);
        true
    }

    /// Worker `index` no longer runs anything. It looks for requests itself before it sleeps.
    pub(crate) fn release_permit(&self, index: usize) {
        self.permits.0.leave(index);
    }

    /// Takes back the permits of workers that were woken and have not come up: their delay is
    /// longer than a request may wait.
    pub(crate) fn release_unused_permits(&self) {
        for (at, word) in self.permits.0.running.iter().take(self.words()).enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let index = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let is_idle = |cell: &WorkerCell| {
                    cell.state.load(Ordering::Relaxed) == WorkerState::Idle.code()
                };
                if self.workers.get(index).is_some_and(|line| is_idle(&line.0)) {
                    self.permits.0.leave(index);
                }
            }
        }
    }

    /// Worker `index` is about to wait within its request. Returns true if requests wait for its
    /// permit; then `yield_permit` must be called.
    #[must_use]
    pub(crate) fn pause_permit(&self, index: usize) -> bool {
        if !self.permits.0.leave(index) {
            return false;
        }
        // PAIRS WITH `wake_for`, which publishes a request and then looks for a turn.
        publish_before_look();
        Lane::SERVING.iter().any(|lane| self.queue(*lane).pending() > 0)
    }

    /// Worker `index` continues after a wait.
    pub(crate) fn resume_permit(&self, index: usize) {
        let permits = &self.permits.0;
        if permits.limit() == 0 {
            return;
        }
        permits.enter(index);
        self.stretch(index);
    }

    /// For [`PermitWatch`]: notes that worker `index` begins to run.
    fn stretch(&self, index: usize) {
        let stretch = &self.workers[index].0.stretch;
        stretch.store(stretch.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Wakes a worker for each lane not in `except`, if a request waits there and a permit is free.
    pub(crate) fn yield_permit(&self, except: &[Lane]) {
        for lane in Lane::SERVING.iter().filter(|lane| !except.contains(lane)) {
            if self.queue(*lane).pending() > 0 && self.has_permit() {
                self.wake_worker(*lane);
            }
        }
    }
}

/// A worker's run permit, for code that knows when the worker waits.
#[derive(Clone, Debug)]
pub struct RunPermit {
    ring: Ring,
    index: usize,
}

impl RunPermit {
    pub(crate) fn new(ring: Ring, index: usize) -> RunPermit {
        RunPermit { ring, index }
    }

    /// Whether the number of running workers is limited at present.
    pub fn is_counted(&self) -> bool {
        self.ring.control().permits.0.limit() != 0
    }

    /// Returns the permit before the worker waits. True if requests wait: if the worker really
    /// waits, [`Self::pass_on`] must be called.
    #[must_use]
    pub fn pause(&self) -> bool {
        self.ring.control().pause_permit(self.index)
    }

    /// Lets another worker run.
    pub fn pass_on(&self) {
        self.ring.control().yield_permit(&[]);
    }

    /// Takes the permit again after the wait.
    pub fn resume(&self) {
        self.ring.control().resume_permit(self.index);
    }
}

/// The workers that were running at the supervisor's last look.
#[derive(Debug, Default)]
pub struct PermitWatch {
    stretches: HashMap<usize, u32>,
}

impl PermitWatch {
    /// Takes back the permits of workers that have not begun another run since the last look, and
    /// those of unused cells: `is_live` returns whether a cell is used. Returns the number of
    /// permits taken back.
    pub(crate) fn look(&mut self, control: &Control, is_live: impl Fn(usize) -> bool) -> usize {
        let before = std::mem::take(&mut self.stretches);
        let mut ended = 0;
        for (at, word) in control.permits.0.running.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let index = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let Some(cell) = control.workers.get(index) else { continue };
                let stretch = cell.0.stretch.load(Ordering::Relaxed);
                if !is_live(index) || before.get(&index) == Some(&stretch) {
                    ended += usize::from(control.permits.0.leave(index));
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
    /// Supervisor: sets the number of workers that may run at once (0: any number; then `woken_max`
    /// workers may be on their way) and the number of cells in use. Writes a value again if another
    /// process has overwritten it.
    pub(crate) fn set_permits(&self, limit: usize, woken_max: usize, cells: usize) {
        let permits = &self.permits.0;
        let words =
            [(&permits.limit, limit), (&permits.woken_max, woken_max), (&permits.cells, cells)];
        for (word, value) in words {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            if word.load(Ordering::Relaxed) != value {
                word.store(value, Ordering::SeqCst);
                if limit == 0 {
                    // A worker with a permit of the old limit is not on its way.
                    for bits in &permits.running {
                        bits.store(0, Ordering::SeqCst);
                    }
                }
                // More workers may run now, or more can be found.
                publish_before_look();
                let _ = self.wake_waiting();
            }
        }
    }

    /// Supervisor: extends the cells in use to `index`, before that cell is used.
    pub(crate) fn use_cell(&self, index: usize) {
        let cells = &self.permits.0.cells;
        let used = cells.load(Ordering::Relaxed);
        if used != 0 && (used as usize) <= index {
            cells.store(index as u32 + 1, Ordering::SeqCst);
        }
    }

    /// Number of running workers, if it is limited; else 0.
    pub(crate) fn running(&self) -> usize {
        if self.permits.0.limit() == 0 { 0 } else { self.permits.0.count(self.words()) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
