//! The protocol: each step by which processes meet in the control block, in the order of a request's life.
//!
//! | verb | who | |
//! |---|---|---|
//! | `submit` | front | publishes a request |
//! | `wake_for`, `wake_waiting`, `wake_worker` | front, worker | looks for a worker that sleeps |
//! | `join`, `retire` | worker | serves a lane; no longer does |
//! | `take` | worker | the oldest request becomes its own |
//! | `pass_on` | worker | wakes the next, if more wait |
//! | `sleep`, `hold` | worker | waits for work; for its turn |
//! | `finish` | worker | gives the slot back |
//! | `wait`, `ring_worker` | worker, front | inside a request: waits for bytes or room; brings them |
//! | `give_turn`, `begin_turn`, `end_turn`, `pass_turn` (`turns.rs`) | who wakes, worker | runs, among no more than there are cores |
//! | `repair`, `set_desired_state`, `wake_all_workers` | supervisor | cleans up after the dead, steers the living |
//!
//! Here is what `interleavings.rs` checks, and nothing that it cannot run: no payload, no clock but a sleep's limit. The
//! views ([`FrontEnd`](crate::FrontEnd), [`WorkerEnd`](crate::WorkerEnd), [`Supervision`](crate::Supervision)) add
//! the bytes and each side's private positions.
//!
//! One rule holds all of it together: whoever makes work publishes it and then looks for sleepers; whoever is about to
//! sleep says so and then looks for work ([`publish_before_look`]). Both sides of each such pair stand in this file.

use crate::layout::{Control, LANES, Lane, Parts, QUEUE_LEN, SlotCell, SlotIndex};
use crate::os;
use crate::queue::QueueEntry;
use crate::report::{Death, DesiredState, WorkerState};
use crate::sync::{Ordering, publish_before_look};
use crate::word::{Incarnation, State};
use std::time::Duration;

/// Longest sleep before the reason to sleep is checked again: a guard, not a clock.
const NAP: Duration = Duration::from_secs(1);

/// Entries that a worker passes at most before it looks elsewhere: more than all queues can have.
const TAKE_ROUNDS_MAX: usize = 2 * QUEUE_LEN * LANES;

/// What has ended a wait of a worker that is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It has taken a probe.
    Probe(SlotIndex),
    /// Somebody has woken it.
    Woken,
    /// Nobody has, for [`NAP`].
    Unwoken,
}

impl Control {
    /// Front: the word first, then the entry that points at it: whoever sees the entry can take the slot.
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

    /// Front, after it has submitted to `lane`: wakes one worker, unless those that are awake are through sooner.
    ///
    /// True: somebody else is relied on, an awake worker that is about to take the request, or the chain of wakes.
    pub(crate) fn wake_for(&self, lane: Lane) -> bool {
        publish_before_look();
        if !self.may_begin(lane) {
            // Whoever ends a turn looks at the queue.
            return true;
        }
        let queued = self.queue(lane).pending();
        if self.pace.0.is_brisk(queued) && self.workers_of(lane).has_awake(self.words()) {
            return true;
        }
        self.wake_worker(lane);
        queued > 1
    }

    /// Wakes a worker for each lane that has requests waiting.
    ///
    /// True: one is not woken only because as many as may be are on their way. Nobody looks again when they are up: whoever
    /// takes a request wakes no other if all that wait seem short.
    pub(crate) fn wake_waiting(&self) -> bool {
        let mut is_refused = false;
        for &lane in Lane::ALL {
            if self.queue(lane).pending() == 0 {
                continue;
            }
            if self.may_begin(lane) {
                self.wake_worker(lane);
            } else {
                is_refused |= !self.counts_turns();
            }
        }
        is_refused
    }

    /// Whether a worker that is woken for `lane` may begin. One that is held back has probes, and no turn.
    fn may_begin(&self, lane: Lane) -> bool {
        !Lane::SERVING.contains(&lane) || self.has_turn()
    }

    /// Wakes one worker that sleeps for `lane`; false: none does.
    pub(crate) fn wake_worker(&self, lane: Lane) -> bool {
        // PAIRS WITH `sleep_unless`: the request is published before sleepers are looked for.
        publish_before_look();
        let Some(index) = self.workers_of(lane).claim(self.words()) else { return false };
        if let Some(cell) = self.workers.get(index) {
            if Lane::SERVING.contains(&lane) {
                self.give_turn(index);
            }
            cell.0.awake.store(1, Ordering::SeqCst);
            os::futex_wake(&cell.0.awake);
        }
        true
    }

    /// Worker `index` serves `lanes` from now on, and no others: it may be woken for them.
    pub(crate) fn join(&self, index: usize, lanes: &[Lane]) {
        for &lane in Lane::SERVING {
            let workers = self.workers_of(lane);
            if lanes.contains(&lane) { workers.join(index) } else { workers.leave(index) }
        }
    }

    /// Worker `index` takes no more. A wake-up that it was given may have been for a request: it passes that on.
    pub(crate) fn retire(&self, index: usize) {
        for &lane in Lane::SERVING {
            self.workers_of(lane).leave(index);
        }
        self.end_turn(index);
        publish_before_look();
        self.pass_turn(&[]);
    }

    /// Worker `me`: the oldest request of `lanes` that can be taken.
    pub(crate) fn take(&self, lanes: &[Lane], slots: usize, me: Incarnation) -> Option<SlotIndex> {
        let cells = self.slots.get(..slots)?;
        // Each round passes one entry, taken by somebody or stale.
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

    /// Worker, before it runs what it has taken: the chain of wakes. It wakes one more where requests of `lanes` wait.
    pub(crate) fn pass_on(&self, lanes: &[Lane]) {
        for lane in lanes {
            let waiting = self.queue(*lane).pending();
            if waiting > 0 && !self.pace.0.is_brisk(waiting) && self.has_turn() {
                self.wake_worker(*lane);
            }
        }
    }

    /// Worker `index` sleeps until woken for one of `lanes`, unless there is work already: its turn is for others. False:
    /// nobody has woken it for [`NAP`]. `has_run`: it did since it slept last.
    pub(crate) fn sleep(&self, index: usize, lanes: &[Lane], has_run: bool) -> bool {
        if has_run {
            for lane in lanes {
                self.workers_of(*lane).note_run(index);
            }
        }
        self.sleep_unless(index, lanes, || {
            // Only now, when it can be found: else the next request is for a worker whose caches are cold.
            self.end_turn(index);
            publish_before_look();
            self.pass_turn(lanes);
            (self.has_waiting(lanes) && self.has_turn())
                || self.is_stopping()
                || self.desired_state(index) == DesiredState::Retire
        })
    }

    /// Worker `index` waits once while it is held back, unless something has come in `probes`.
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

    /// Whether workers are to leave when their request is done.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.0.load(Ordering::SeqCst) != 0
    }

    /// What is wanted of worker `index`.
    pub(crate) fn desired_state(&self, index: usize) -> DesiredState {
        self.workers[index].0.desired_state()
    }

    /// Worker `index`, in the life `me`, is done with `slot` of `front`. True: that one must be rung. False: it is awake, or the slot
    /// is not this worker's any more, which was taken for dead; then the repair has told the front.
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
        is_mine && self.bell(front).mark(slot)
    }

    /// Supervisor: what `dead` owned becomes the front's, which is to look at it. Returns how many requests lost their
    /// worker.
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
        self.turns.0.leave(index);
        let cell = &self.workers[index].0;
        cell.incarnation.store(0, Ordering::SeqCst);
        cell.state.store(WorkerState::Starting.code(), Ordering::Relaxed);
        // A successor that dies before it says a word has done nothing.
        cell.requests.store(0, Ordering::Relaxed);
        cell.slot.store(0, Ordering::Relaxed);
        let mut orphans = 0;
        for at in 0..parts.slots() {
            let Some(slot) = SlotIndex::new(at, parts.slots()) else { continue };
            let word = &self.slot(slot).word.0;
            if word.load().owner() == dead.get() {
                // PAIRS WITH `FrontEnd::death`: it is asked when the word says Orphaned.
                self.slot(slot).response.0.death.store(death.code(), Ordering::Relaxed);
            }
            let orphaned = word.orphan(dead);
            orphans += usize::from(orphaned);
            // Also a slot that it had finished and not announced: the front must look at it.
            if orphaned || word.load().owner() == dead.get() {
                let _ = self.bell(parts.front_of(slot)).mark(slot);
            }
        }
        orphans
    }

    /// Supervisor: says what worker `index` is to do, and wakes it to see that.
    pub(crate) fn set_desired_state(&self, index: usize, desired: DesiredState) {
        let Some(cell) = self.workers.get(index) else { return };
        let cell = &cell.0;
        cell.desired_state.store(desired.code(), Ordering::SeqCst);
        // PAIRS WITH `sleep_unless`: it clears `awake`, then looks at the desired state.
        publish_before_look();
        cell.awake.store(1, Ordering::SeqCst);
        os::futex_wake(&cell.awake);
    }

    /// Supervisor: all workers look again, those that wait for work and those that wait within a request.
    pub(crate) fn wake_all_workers(&self) {
        for workers in &self.worker_sets {
            workers.0.mark_all_awake(self.words());
        }
        // PAIRS WITH `sleep_unless`: a turn that has just come free is published before those who look for one are woken.
        publish_before_look();
        for line in self.workers.iter().take(self.cells()) {
            let cell = &line.0;
            if cell.incarnation.load(Ordering::SeqCst) != 0 {
                cell.awake.store(1, Ordering::SeqCst);
                os::futex_wake(&cell.awake);
            }
        }
        for slot in &self.slots {
            if slot.bell.0.waiting.load(Ordering::Relaxed) == 1 {
                slot.ring_worker();
            }
        }
    }
}

impl SlotCell {
    /// Worker: sleeps until the front rings, unless `is_needed` turns false first; may return early. False: it did not
    /// ring for [`NAP`].
    pub(crate) fn wait(&self, is_needed: impl Fn(&SlotCell) -> bool) -> bool {
        let bell = &self.bell.0;
        let rings = bell.rings.load(Ordering::SeqCst);
        bell.waiting.store(1, Ordering::SeqCst);
        publish_before_look();
        // PAIRS WITH `ring_worker`: it publishes, then looks at `waiting`.
        let was_woken = !is_needed(self) || os::futex_wait(&bell.rings, rings, NAP);
        bell.waiting.store(0, Ordering::SeqCst);
        was_woken
    }

    /// Front: wakes the worker that waits for body bytes, for room, or for the cancellation.
    pub(crate) fn ring_worker(&self) {
        let bell = &self.bell.0;
        bell.rings.fetch_add(1, Ordering::SeqCst);
        publish_before_look();
        if bell.waiting.load(Ordering::SeqCst) == 1 {
            os::futex_wake(&bell.rings);
        }
    }

    /// Whether the front has given up on the request.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.word.0.load().state() == Some(State::Cancelled)
    }
}
