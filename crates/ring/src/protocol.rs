//! The protocol: each step at which processes interact through the control block, in the order of a
//! request's life.
//!
//! | verb | process | step |
//! |---|---|---|
//! | `submit` | front | publishes a request |
//! | `wake_for`, `wake_waiting`, `wake_worker` | front, worker | wakes a sleeping worker |
//! | `join`, `retire` | worker | begins and ends serving a lane |
//! | `take` | worker | takes the oldest request |
//! | `pass_on` | worker | wakes the next worker if more requests wait |
//! | `sleep`, `hold` | worker | waits for work; waits while held back |
//! | `finish` | worker | gives the slot back |
//! | `wait`, `ring_worker` | worker, front | waits for bytes or room; ends that wait |
//! | `grant_permit`, `acquire_permit` | both | gives or takes a run permit (`run_permits.rs`) |
//! | `release_permit`, `yield_permit` | both | returns it; offers it to a worker of another lane |
//! | `repair` | supervisor | cleans up after a dead worker |
//! | `set_desired_state`, `wake_all_workers` | supervisor | controls live workers |
//!
//! This file contains the steps that `interleavings.rs` checks. It has nothing that the model
//! cannot run: no payload, and no clock except the time limit of a sleep. The views
//! ([`FrontEnd`](crate::FrontEnd), [`WorkerEnd`](crate::WorkerEnd),
//! [`Supervision`](crate::Supervision)) add the bytes and each side's private positions.
//!
//! One rule makes the protocol correct. A process that makes work publishes it and then looks for
//! sleepers. A process that is about to sleep announces it and then looks for work
//! ([`publish_before_look`]). Both sides of each such pair are in this file.

use crate::cells::SlotCell;
use crate::layout::{Control, Lane, Parts};
use crate::limits::{LANES, QUEUE_LEN, SlotIndex};
use crate::os;
use crate::queue::QueueEntry;
use crate::report::{Death, DesiredState, WorkerState};
use crate::sync::{Ordering, publish_before_look};
use crate::word::{Incarnation, State};
use std::time::Duration;

/// Maximum sleep before the reason to sleep is checked again: a safeguard, not a clock.
const NAP: Duration = Duration::from_secs(1);

/// Maximum number of entries that a worker passes before it looks elsewhere: more than all queues
/// can hold.
const TAKE_ROUNDS_MAX: usize = 2 * QUEUE_LEN * LANES;

/// How a wait of a held-back worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It has taken a probe.
    Probe(SlotIndex),
    /// It was woken.
    Woken,
    /// It was not woken within [`NAP`].
    Unwoken,
}

impl Control {
    /// Front: writes the word first, then the entry that points at it. So a worker that sees the
    /// entry can take the slot.
    pub(crate) fn submit(
        &self,
        slot: SlotIndex,
        generation: u32,
        lane: Lane,
        tail: u64,
        entry: QueueEntry,
    ) {
        self.slot(slot).word.0.submit(generation);
        self.queue(lane).push(tail, entry);
    }

    /// Front, after it has submitted to `lane`: wakes one worker, unless the awake workers finish
    /// sooner.
    ///
    /// Returns true if the front relies on another process: an awake worker that is about to take
    /// the request, or the chain of wake-ups.
    pub(crate) fn wake_for(&self, lane: Lane) -> bool {
        publish_before_look();
        if !self.may_begin(lane) {
            // A worker that returns its run permit checks the queue.
            return true;
        }
        let queued = self.queue(lane).pending();
        if self.pace.0.is_brisk(queued) && self.workers_of(lane).has_awake(self.words()) {
            return true;
        }
        self.wake_worker(lane);
        queued > 1
    }

    /// Wakes a worker for each lane that has waiting requests.
    ///
    /// Returns true if a worker was not woken only because the maximum number of woken workers is
    /// on its way. No process checks again when they are up: a worker that takes a request wakes no
    /// other if all waiting requests seem short.
    pub(crate) fn wake_waiting(&self) -> bool {
        let mut is_refused = false;
        for &lane in Lane::ALL {
            if self.queue(lane).pending() == 0 {
                continue;
            }
            if self.may_begin(lane) {
                self.wake_worker(lane);
            } else {
                is_refused |= !self.counts_permits();
            }
        }
        is_refused
    }

    /// Whether a worker that is woken for `lane` may begin. A held-back worker runs probes and
    /// needs no run permit.
    fn may_begin(&self, lane: Lane) -> bool {
        !Lane::SERVING.contains(&lane) || self.has_permit()
    }

    /// Wakes one worker that sleeps for `lane`. Returns false if there is none.
    pub(crate) fn wake_worker(&self, lane: Lane) -> bool {
        // PAIRS WITH `sleep_unless`: the request is published before the search for sleepers.
        publish_before_look();
        let Some(index) = self.workers_of(lane).claim(self.words()) else { return false };
        if let Some(cell) = self.workers.get(index) {
            if Lane::SERVING.contains(&lane) {
                self.grant_permit(index);
            }
            cell.0.awake.store(1, Ordering::SeqCst);
            os::futex_wake(&cell.0.awake);
        }
        true
    }

    /// Worker `index` serves only `lanes` from now on and may be woken for them.
    pub(crate) fn join(&self, index: usize, lanes: &[Lane]) {
        for &lane in Lane::SERVING {
            let workers = self.workers_of(lane);
            if lanes.contains(&lane) { workers.join(index) } else { workers.leave(index) }
        }
    }

    /// Worker `index` takes no more requests. A wake-up that it received may have been for a
    /// request; the worker passes it on.
    pub(crate) fn retire(&self, index: usize) {
        for &lane in Lane::SERVING {
            self.workers_of(lane).leave(index);
        }
        self.release_permit(index);
        publish_before_look();
        self.yield_permit(&[]);
    }

    /// Worker `me`: takes the oldest request of `lanes` that can be taken.
    pub(crate) fn take(&self, lanes: &[Lane], slots: usize, me: Incarnation) -> Option<SlotIndex> {
        let cells = self.slots.get(..slots)?;
        // Each round passes one entry: it is stale, or another worker took it.
        for _ in 0..TAKE_ROUNDS_MAX {
            let oldest = lanes
                .iter()
                .filter_map(|lane| self.queue(*lane).oldest().map(|(at, entry)| (*lane, at, entry)))
                .reduce(|a, b| if b.2.is_before(a.2) { b } else { a });
            let (lane, at, entry) = oldest?;
            if let Some(slot) = self.queue(lane).take(at, entry, cells, me) {
                return Some(slot);
            }
        }
        None
    }

    /// Worker, before it runs the request it took: the chain of wake-ups. Wakes one more worker if
    /// requests of `lanes` wait.
    pub(crate) fn pass_on(&self, lanes: &[Lane]) {
        for lane in lanes {
            let waiting = self.queue(*lane).pending();
            if waiting > 0 && !self.pace.0.is_brisk(waiting) && self.has_permit() {
                self.wake_worker(*lane);
            }
        }
    }

    /// Worker `index` returns its run permit and sleeps until it is woken for one of `lanes`,
    /// unless there is work already. `has_run`: it has run a request since its last sleep. Returns
    /// false if it was not woken within [`NAP`].
    pub(crate) fn sleep(&self, index: usize, lanes: &[Lane], has_run: bool) -> bool {
        if has_run {
            for lane in lanes {
                self.workers_of(*lane).note_run(index);
            }
        }
        self.sleep_unless(index, lanes, || {
            // Only now, when the worker can be found as a sleeper. Otherwise the next request would
            // go to a worker whose caches are cold.
            self.release_permit(index);
            publish_before_look();
            self.yield_permit(lanes);
            (self.has_waiting(lanes) && self.has_permit())
                || self.is_stopping()
                || self.desired_state(index) == DesiredState::Retire
        })
    }

    /// Worker `index` waits once while it is held back, unless there is a request in `probes`.
    pub(crate) fn hold(
        &self,
        index: usize,
        probes: &[Lane],
        slots: usize,
        me: Incarnation,
    ) -> Held {
        if let Some(slot) = self.take(probes, slots, me) {
            return Held::Probe(slot);
        }
        let was_woken = self.sleep_unless(index, probes, || {
            self.desired_state(index) != DesiredState::Hold
                || self.is_stopping()
                || self.has_waiting(probes)
        });
        if was_woken { Held::Woken } else { Held::Unwoken }
    }

    /// PAIRS WITH `wake_worker`, `set_desired_state` and `wake_all_workers`.
    fn sleep_unless(&self, index: usize, lanes: &[Lane], has_work: impl Fn() -> bool) -> bool {
        let awake = &self.workers[index].0.awake;
        awake.store(0, Ordering::SeqCst);
        for lane in lanes {
            self.workers_of(*lane).mark_asleep(index);
        }
        publish_before_look();
        let was_woken = has_work() || os::futex_wait(awake, 0, NAP);
        for lane in lanes {
            self.workers_of(*lane).mark_awake(index);
        }
        was_woken
    }

    fn has_waiting(&self, lanes: &[Lane]) -> bool {
        lanes.iter().any(|lane| self.queue(*lane).pending() > 0)
    }

    /// Whether workers must leave when their request is done.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.0.load(Ordering::SeqCst) != 0
    }

    /// Desired state of worker `index`.
    pub(crate) fn desired_state(&self, index: usize) -> DesiredState {
        self.workers[index].0.desired_state()
    }

    /// Worker `index`, incarnation `me`, is done with `slot` of `front`. Returns true if the front
    /// must be woken.
    ///
    /// Returns false if the front is awake, or if the slot no longer belongs to this worker because
    /// the worker was considered dead. In the latter case the repair has notified the front.
    #[must_use]
    pub(crate) fn finish(
        &self,
        index: usize,
        (slot, front): (SlotIndex, usize),
        me: Incarnation,
    ) -> bool {
        let is_mine = self.slot(slot).word.0.finish(me);
        let cell = &self.workers[index].0;
        cell.requests.fetch_add(1, Ordering::Relaxed);
        cell.slot.store(0, Ordering::Relaxed);
        is_mine && self.notifier(front).mark(slot)
    }

    /// Supervisor: gives the slots of `dead` to the front and marks them as news. Returns the
    /// number of requests that lost their worker.
    pub(crate) fn repair(
        &self,
        index: usize,
        dead: Incarnation,
        death: Death,
        parts: Parts,
    ) -> usize {
        for workers in &self.worker_sets {
            workers.0.leave(index);
        }
        self.permits.0.leave(index);
        let cell = &self.workers[index].0;
        cell.incarnation.store(0, Ordering::SeqCst);
        cell.state.store(WorkerState::Starting.code(), Ordering::Relaxed);
        // A successor that dies before its first report has done nothing.
        cell.requests.store(0, Ordering::Relaxed);
        cell.slot.store(0, Ordering::Relaxed);
        let mut orphans = 0;
        for at in 0..parts.slots() {
            let Some(slot) = SlotIndex::new(at, parts.slots()) else { continue };
            let word = &self.slot(slot).word.0;
            if word.load().owner() == dead.get() {
                // PAIRS WITH `FrontEnd::death`, which is read when the word is Orphaned.
                self.slot(slot).response.0.death.store(death.code(), Ordering::Relaxed);
            }
            let orphaned = word.orphan(dead);
            orphans += usize::from(orphaned);
            // Also a slot that the worker finished and did not announce: the front must look at it.
            if orphaned || word.load().owner() == dead.get() {
                let _ = self.notifier(parts.front_of(slot)).mark(slot);
            }
        }
        orphans
    }

    /// Supervisor: sets the desired state of worker `index` and wakes the worker to read it.
    pub(crate) fn set_desired_state(&self, index: usize, desired: DesiredState) {
        let Some(cell) = self.workers.get(index) else { return };
        let cell = &cell.0;
        cell.desired_state.store(desired.code(), Ordering::SeqCst);
        // PAIRS WITH `sleep_unless`: it clears `awake`, then reads the desired state.
        publish_before_look();
        cell.awake.store(1, Ordering::SeqCst);
        os::futex_wake(&cell.awake);
    }

    /// Supervisor: makes all workers check again, those that wait for work and those that wait
    /// within a request.
    pub(crate) fn wake_all_workers(&self) {
        for workers in &self.worker_sets {
            workers.0.mark_all_awake(self.words());
        }
        // PAIRS WITH `sleep_unless`: a run permit that was just freed is published before the
        // workers that look for one are woken.
        publish_before_look();
        for line in self.workers.iter().take(self.cells()) {
            let cell = &line.0;
            if cell.incarnation.load(Ordering::SeqCst) != 0 {
                cell.awake.store(1, Ordering::SeqCst);
                os::futex_wake(&cell.awake);
            }
        }
        for slot in &self.slots {
            if slot.notifier.0.waiting.load(Ordering::Relaxed) == 1 {
                slot.ring_worker();
            }
        }
    }
}

impl SlotCell {
    /// Worker: sleeps until the front wakes it, unless `is_needed` returns false first. May return
    /// early. Returns false if no wake-up came within [`NAP`].
    pub(crate) fn wait(&self, is_needed: impl Fn(&SlotCell) -> bool) -> bool {
        let notifier = &self.notifier.0;
        let rings = notifier.rings.load(Ordering::SeqCst);
        notifier.waiting.store(1, Ordering::SeqCst);
        publish_before_look();
        // PAIRS WITH `ring_worker`: it publishes, then looks at `waiting`.
        let was_woken = !is_needed(self) || os::futex_wait(&notifier.rings, rings, NAP);
        notifier.waiting.store(0, Ordering::SeqCst);
        was_woken
    }

    /// Front: wakes the worker that waits for body bytes, for room or for the cancellation.
    pub(crate) fn ring_worker(&self) {
        let notifier = &self.notifier.0;
        notifier.rings.fetch_add(1, Ordering::SeqCst);
        publish_before_look();
        if notifier.waiting.load(Ordering::SeqCst) == 1 {
            os::futex_wake(&notifier.rings);
        }
    }

    /// Whether the front has cancelled the request.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.word.0.load().state() == Some(State::Cancelled)
    }
}
