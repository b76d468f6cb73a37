//! The worker's view: takes requests, reads their bodies, writes answers, blocks where it must.
//!
//! A worker trusts the front. It may be killed at any instruction: the order of its stores decides what
//! the others see then, and `repair` cleans up the rest.

use crate::layout::{
    ANSWER_BYTES, BODY_BYTES, Control, HEAD_BYTES, INTERIM_BYTES_MAX, INTERIM_FRAME_BYTES, Lane,
    LeaveReason, Ledger, Model, SlotCell, SlotIndex, Standing, WORKERS_MAX, WorkerCell,
    WorkerState,
};
use crate::map::{Part, Ring};
use crate::os;
use crate::stream::End;
use crate::sync::{Ordering, publish_before_look};
use crate::word::{Incarnation, State};
use std::time::Duration;

/// Longest sleep before the reason to sleep is checked again: a guard, not a clock.
const NAP: Duration = Duration::from_secs(1);

/// The request was cancelled: the client is gone or the deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

/// What [`WorkerEnd::take`] came back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// A request to run; submitted at that `CLOCK_MONOTONIC` ns.
    Request(SlotIndex, u64),
    /// The server shuts down, or this worker's generation is over.
    Stop,
    /// The caller must not take another.
    Refused,
}

/// The worker's end of the ring, with the position of the answer it is writing.
#[derive(Debug)]
pub struct WorkerEnd {
    ring: Ring,
    index: usize,
    me: Incarnation,
    begun: bool,
    body_read: u64,
    answer_written: u64,
    /// Lanes whose crew this worker has joined, a bit each.
    joined: u8,
}

impl WorkerEnd {
    /// Worker number `index` (its cell) in the life `me`.
    ///
    /// # Panics
    /// If `index` is not below [`WORKERS_MAX`].
    pub fn new(ring: Ring, index: usize, me: Incarnation) -> WorkerEnd {
        assert!(index < WORKERS_MAX, "worker {index} has no cell");
        let cell = &ring.control().workers[index].0;
        cell.incarnation.store(me.get(), Ordering::SeqCst);
        cell.requests.store(0, Ordering::Relaxed);
        cell.slot.store(0, Ordering::Relaxed);
        cell.model.store(Model::Script as u32, Ordering::Relaxed);
        cell.hot_pages.store(0, Ordering::Relaxed);
        cell.rollbacks.store(0, Ordering::Relaxed);
        cell.leave.store(0, Ordering::Relaxed);
        WorkerEnd { ring, index, me, begun: false, body_read: 0, answer_written: 0, joined: 0 }
    }

    fn cell(&self) -> &WorkerCell {
        &self.ring.control().workers[self.index].0
    }

    fn slot(&self, slot: SlotIndex) -> &SlotCell {
        &self.ring.cells()[slot.get()]
    }

    /// For `samovar status`.
    pub fn report_state(&self, state: WorkerState) {
        self.cell().state.store(state as u32, Ordering::Relaxed);
    }

    /// For `samovar status`, and for the supervisor's choice of lanes.
    pub fn report_model(&self, model: Model) {
        self.cell().model.store(model as u32, Ordering::SeqCst);
    }

    /// For `samovar status`: a return to the image took `ns` and copied `pages` pages.
    pub fn report_rollback(&self, ns: u64, pages: usize) {
        let cell = self.cell();
        cell.rollbacks.fetch_add(1, Ordering::Relaxed);
        cell.hot_pages.store(u32::try_from(pages).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.ring.control().rollback_times.0.record(ns);
    }

    /// For the supervisor: why this process ends now.
    pub fn report_leave(&self, reason: LeaveReason) {
        self.cell().leave.store(reason as u32, Ordering::SeqCst);
    }

    /// Waits for the oldest request of `lanes` and takes it; wakes the next worker if more wait.
    ///
    /// `may_take` is asked before each attempt, at least once a second.
    pub fn take(&mut self, lanes: &[Lane], mut may_take: impl FnMut() -> bool) -> Take {
        if self.is_held() {
            // It has come as far as it may.
            self.report_state(WorkerState::Idle);
            self.ring.control().hold(self.index);
        }
        self.join(lanes);
        let control = self.ring.control();
        loop {
            if !may_take() {
                return Take::Refused;
            }
            if control.stop.0.load(Ordering::Acquire) != 0 {
                return Take::Stop;
            }
            if control.standing(self.index) == Standing::Retire {
                control.retire(self.index);
                return Take::Stop;
            }
            if let Some(slot) = control.take(lanes, self.ring.slots(), self.me) {
                // A busy worker's successor is woken before PHP runs: the chain of wakes.
                for lane in lanes {
                    let waiting = control.queue(*lane).pending();
                    if waiting > 0 && !control.pace.0.is_brisk(waiting) {
                        control.wake_worker(*lane);
                    }
                }
                let cell = self.cell();
                cell.slot.store(slot.get() as u32 + 1, Ordering::Relaxed);
                cell.state.store(WorkerState::Busy as u32, Ordering::Relaxed);
                let submitted = self.slot(slot).asked.0.submitted_ns.load(Ordering::Relaxed);
                (self.begun, self.body_read, self.answer_written) = (false, 0, 0);
                return Take::Request(slot, submitted);
            }
            self.report_state(WorkerState::Idle);
            control.sleep(self.index, lanes);
        }
    }

    fn is_held(&self) -> bool {
        self.ring.control().standing(self.index) == Standing::Hold
    }

    /// Says which lanes this worker serves: from now on it may be woken for them. One that is held back serves none yet.
    pub fn join(&mut self, lanes: &[Lane]) {
        let wanted = lanes.iter().fold(0u8, |bits, lane| bits | 1 << *lane as u8);
        if wanted == self.joined || self.is_held() {
            return;
        }
        for lane in [Lane::App, Lane::Script] {
            let crew = self.ring.control().crew(lane);
            if lanes.contains(&lane) { crew.join(self.index) } else { crew.leave(self.index) }
        }
        self.joined = wanted;
    }

    /// The encoded request head. Valid until [`Self::finish`].
    pub fn request(&self, slot: SlotIndex) -> *const u8 {
        self.ring.area(slot, Part::Request).as_ptr()
    }

    /// Reads up to `room` bytes of the request body into `out`, which it clears; blocks while none are there.
    ///
    /// Empty at the end. `Aborted` if the client went before it had sent all.
    pub fn read_body(
        &mut self,
        slot: SlotIndex,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Aborted> {
        out.clear();
        loop {
            let cell = self.slot(slot);
            let end = cell.body.0.end();
            let ready = cell.body.0.readable(self.body_read, BODY_BYTES).map_err(|_| Aborted)?;
            if ready > 0 && room > 0 {
                let len = ready.min(room);
                self.ring.area(slot, Part::Body).read_at(self.body_read, len, out);
                self.body_read += len as u64;
                self.slot(slot).body.0.publish_read(self.body_read);
                self.tell_front(slot);
                return Ok(());
            }
            match end {
                End::Complete => return Ok(()),
                End::Aborted => return Err(Aborted),
                End::Open if room == 0 => return Ok(()),
                End::Open if self.is_cancelled(slot) => return Err(Aborted),
                End::Open => {}
            }
            let at = self.body_read;
            self.slot(slot).wait(|cell| {
                cell.body.0.end() == End::Open
                    && matches!(cell.body.0.readable(at, BODY_BYTES), Ok(0))
                    && !is_cancelled(cell)
            });
        }
    }

    /// Writes the answer's head: header lines `Name: value\n`. Published by the next flush or by finish.
    ///
    /// False: the lines are longer than the head area.
    #[must_use]
    pub fn put_head(&mut self, slot: SlotIndex, status: u16, lines: &[u8]) -> bool {
        if lines.len() > HEAD_BYTES || self.begun {
            return false;
        }
        self.ring.area(slot, Part::Head).put(0, lines);
        let told = &self.slot(slot).told.0;
        told.head_bytes.store(lines.len() as u32, Ordering::Relaxed);
        told.status.store(u32::from(status), Ordering::Relaxed);
        true
    }

    /// Sends an interim answer, with header lines as above, ahead of the answer.
    ///
    /// False: the answer has begun or has body bytes already, or this request has sent too much of the kind.
    #[must_use]
    pub fn put_interim(&mut self, slot: SlotIndex, status: u16, lines: &[u8]) -> bool {
        let cell = self.slot(slot);
        let interim_bytes = &cell.told.0.interim_bytes;
        let has_body = self.answer_written != u64::from(interim_bytes.load(Ordering::Relaxed));
        let end = self.answer_written as usize + INTERIM_FRAME_BYTES + lines.len();
        if self.begun || has_body || end > INTERIM_BYTES_MAX {
            return false;
        }
        let mut frame = [0; INTERIM_FRAME_BYTES];
        frame[..4].copy_from_slice(&u32::from(status).to_le_bytes());
        frame[4..].copy_from_slice(&(lines.len() as u32).to_le_bytes());
        // They fit: the window is larger than all interim answers together.
        self.ring.area(slot, Part::Answer).write_at(self.answer_written, &frame);
        let after = self.answer_written + frame.len() as u64;
        self.ring.area(slot, Part::Answer).write_at(after, lines);
        cell.answer.0.publish_written(end as u64);
        interim_bytes.store(end as u32, Ordering::Release);
        self.answer_written = end as u64;
        self.tell_front(slot);
        true
    }

    /// Appends to the answer's body; blocks while the front has not made room.
    pub fn write_body(&mut self, slot: SlotIndex, mut bytes: &[u8]) -> Result<(), Aborted> {
        while !bytes.is_empty() {
            let stream = &self.slot(slot).answer.0;
            let room = stream.writable(self.answer_written, ANSWER_BYTES).map_err(|_| Aborted)?;
            if room == 0 {
                self.wait_for_room(slot)?;
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.ring.area(slot, Part::Answer).write_at(self.answer_written, now);
            self.answer_written += now.len() as u64;
            self.slot(slot).answer.0.publish_written(self.answer_written);
            bytes = later;
        }
        Ok(())
    }

    fn wait_for_room(&mut self, slot: SlotIndex) -> Result<(), Aborted> {
        self.flush(slot)?;
        let at = self.answer_written;
        self.slot(slot).wait(|cell| {
            matches!(cell.answer.0.writable(at, ANSWER_BYTES), Ok(0)) && !is_cancelled(cell)
        });
        if self.is_cancelled(slot) { Err(Aborted) } else { Ok(()) }
    }

    /// Publishes head and body so far; the front delivers them at once.
    pub fn flush(&mut self, slot: SlotIndex) -> Result<(), Aborted> {
        if !self.begun {
            if !self.slot(slot).word.0.begin(self.me) {
                return Err(Aborted);
            }
            self.begun = true;
        }
        self.tell_front(slot);
        if self.is_cancelled(slot) { Err(Aborted) } else { Ok(()) }
    }

    /// The answer is complete (the client gets its end), while the worker goes on: `fastcgi_finish_request`.
    pub fn end_answer(&mut self, slot: SlotIndex) -> Result<(), Aborted> {
        self.slot(slot).answer.0.publish_end(End::Complete);
        self.flush(slot)
    }

    /// The answer stays incomplete: the client's connection is cut.
    pub fn abort_answer(&mut self, slot: SlotIndex) {
        self.slot(slot).answer.0.publish_end(End::Aborted);
    }

    /// Whether the client still waits.
    pub fn is_cancelled(&self, slot: SlotIndex) -> bool {
        is_cancelled(self.slot(slot))
    }

    /// Gives the slot back to the front with what the request cost. An open answer becomes complete.
    pub fn finish(&mut self, slot: SlotIndex, ledger: &Ledger) {
        let cell = self.slot(slot);
        if cell.answer.0.end() == End::Open {
            cell.answer.0.publish_end(End::Complete);
        }
        cell.told.0.ledger.store(ledger);
        self.ring.control().pace.0.record(ledger.run_ns);
        let mine = cell.word.0.finish(self.me);
        let worker = self.cell();
        worker.requests.fetch_add(1, Ordering::Relaxed);
        worker.slot.store(0, Ordering::Relaxed);
        // Not ours any more: this process was taken for dead. The front has been told by the repair.
        if mine {
            self.tell_front(slot);
        }
    }

    fn tell_front(&self, slot: SlotIndex) {
        if self.ring.control().bell.0.mark(slot) {
            self.ring.ring_front();
        }
    }
}

fn is_cancelled(cell: &SlotCell) -> bool {
    cell.word.0.load().state() == Some(State::Cancelled)
}

impl SlotCell {
    /// Sleeps until the front rings, unless `is_needed` turns false first; may return early.
    fn wait(&self, is_needed: impl Fn(&SlotCell) -> bool) {
        let bell = &self.bell.0;
        let rings = bell.rings.load(Ordering::SeqCst);
        bell.waiting.store(1, Ordering::SeqCst);
        publish_before_look();
        // PAIRS WITH `ring_worker`: it publishes, then looks at `waiting`.
        if is_needed(self) {
            os::futex_wait(&bell.rings, rings, NAP);
        }
        bell.waiting.store(0, Ordering::SeqCst);
    }
}

impl Control {
    /// The oldest request of `lanes` that can be taken.
    pub(crate) fn take(&self, lanes: &[Lane], slots: usize, me: Incarnation) -> Option<SlotIndex> {
        let cells = self.slots.get(..slots)?;
        loop {
            let oldest = lanes
                .iter()
                .filter_map(|lane| self.queue(*lane).oldest().map(|(at, entry)| (*lane, at, entry)))
                .reduce(|a, b| if b.2.is_before(a.2) { b } else { a });
            let (lane, at, entry) = oldest?;
            // Each round passes one entry, taken by somebody or stale: bounded by the queue's length.
            if let Some(slot) = self.queue(lane).take(at, entry, cells, me) {
                return Some(slot);
            }
        }
    }

    /// Waits while worker `index` is held back.
    pub(crate) fn hold(&self, index: usize) {
        let is_held =
            || self.standing(index) == Standing::Hold && self.stop.0.load(Ordering::SeqCst) == 0;
        while is_held() {
            let awake = &self.workers[index].0.awake;
            awake.store(0, Ordering::SeqCst);
            publish_before_look();
            // PAIRS WITH `place`.
            if is_held() {
                os::futex_wait(awake, 0, NAP);
            }
        }
    }

    /// Worker `index` takes no more. A wake-up that it was given may have been for a request: it passes that on.
    pub(crate) fn retire(&self, index: usize) {
        for lane in [Lane::App, Lane::Script] {
            self.crew(lane).leave(index);
        }
        publish_before_look();
        for lane in [Lane::App, Lane::Script] {
            if self.queue(lane).pending() > 0 {
                self.wake_worker(lane);
            }
        }
    }

    /// Sleeps until woken for one of `lanes`, unless there is work already.
    pub(crate) fn sleep(&self, index: usize, lanes: &[Lane]) {
        let awake = &self.workers[index].0.awake;
        awake.store(0, Ordering::SeqCst);
        for lane in lanes {
            self.crew(*lane).lie_down(index);
        }
        publish_before_look();
        // PAIRS WITH `wake_worker`: it publishes the request, then looks for sleepers.
        if !self.has_work(index, lanes) {
            os::futex_wait(awake, 0, NAP);
        }
        for lane in lanes {
            self.crew(*lane).rise(index);
        }
    }
}
