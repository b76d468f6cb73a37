//! The front's view: fills and submits slots, reads answers. One front, one thread.
//!
//! Everything a worker can write is hostile here: it is copied once, checked, then used. What the front
//! must be able to rely on (which slots are free, positions, generations, the queue's tail) it keeps in
//! its own memory and only publishes.

use crate::layout::{
    ANSWER_BYTES, BODY_BYTES, Control, HEAD_BYTES, INTERIM_BYTES_MAX, INTERIM_FRAME_BYTES, Lane,
    Ledger, REQUEST_BYTES, SlotCell, SlotIndex,
};
use crate::map::{Part, Ring, monotonic_ns};
use crate::os;
use crate::queue::Entry;
use crate::stream::End;
use crate::sync::{Ordering, publish_before_look};
use crate::word::State;

/// A worker wrote what no worker writes. The request is lost, the front is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker wrote an impossible {what} into the ring")]
pub struct Hostile {
    /// Which field.
    pub what: &'static str,
}

/// Where a submitted request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No worker has it.
    Queued,
    /// A worker runs it, nothing is published.
    Running,
    /// The head is there, body bytes may be.
    Answering,
    /// The worker is done; head and body may still have to be read.
    Answered,
    /// The worker died.
    Orphaned,
}

/// What the front remembers of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Shadow {
    generation: u32,
    in_use: bool,
    lane: usize,
    body_written: u64,
    answer_read: u64,
    queued_ns: u64,
}

/// The front's end of the ring.
#[derive(Debug)]
pub struct FrontEnd {
    ring: Ring,
    free: Vec<SlotIndex>,
    shadows: Vec<Shadow>,
    tails: [u64; crate::LANES],
    order: u32,
    unrung: [bool; crate::LANES],
}

/// A slot taken from the free list, to be filled and submitted.
#[derive(Debug)]
#[must_use = "submit it or give it back with `FrontEnd::release`"]
pub struct Filling(SlotIndex);

impl Filling {
    /// The slot's number.
    pub fn slot(&self) -> SlotIndex {
        self.0
    }
}

impl FrontEnd {
    /// The one front of `ring`.
    pub fn new(ring: Ring) -> FrontEnd {
        let slots = ring.slots();
        // Last freed, first used: a quiet server touches one slot's pages, not all.
        let free = (0..slots).rev().filter_map(|i| SlotIndex::new(i, slots)).collect();
        FrontEnd {
            ring,
            free,
            shadows: vec![Shadow::default(); slots],
            tails: [0; crate::LANES],
            order: 0,
            unrung: [false; crate::LANES],
        }
    }

    /// The ring below.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Slots in use: requests queued or in flight.
    pub fn in_use(&self) -> usize {
        self.shadows.len() - self.free.len()
    }

    /// A free slot, unless all are in use.
    pub fn fill(&mut self) -> Option<Filling> {
        let slot = self.free.pop()?;
        let shadow = &mut self.shadows[slot.get()];
        *shadow = Shadow {
            generation: shadow.generation.wrapping_add(1),
            in_use: true,
            ..Shadow::default()
        };
        let generation = shadow.generation;
        let cell = self.cell(slot);
        cell.word.0.fill(generation);
        cell.body.0.reset();
        cell.answer.0.reset();
        cell.told.0.status.store(0, Ordering::Relaxed);
        cell.told.0.head_bytes.store(0, Ordering::Relaxed);
        cell.told.0.interim_bytes.store(0, Ordering::Relaxed);
        Some(Filling(slot))
    }

    /// Copies the encoded request head into the slot.
    ///
    /// # Panics
    /// If it is longer than [`REQUEST_BYTES`], which `request::encode` refuses to make.
    pub fn put_request(&mut self, filling: &Filling, encoded: &[u8]) {
        assert!(encoded.len() <= REQUEST_BYTES, "the encoder has this limit");
        self.ring.area(filling.0, Part::Request).put(0, encoded);
        self.cell(filling.0).asked.0.request_bytes.store(encoded.len() as u32, Ordering::Relaxed);
    }

    /// Queues the slot; workers are woken by the next [`Self::ring_workers`]. Err: the queue is full.
    pub fn submit(&mut self, filling: Filling, lane: Lane) -> Result<SlotIndex, Filling> {
        let slot = filling.0;
        let tail = self.tails[lane as usize];
        if !self.ring.control().queue(lane).has_room(tail, self.ring.cells()) {
            return Err(filling);
        }
        let now = monotonic_ns();
        let shadow = &mut self.shadows[slot.get()];
        (shadow.lane, shadow.queued_ns) = (lane as usize, now);
        self.cell(slot).asked.0.submitted_ns.store(now, Ordering::Relaxed);
        self.push(slot, lane);
        Ok(slot)
    }

    fn push(&mut self, slot: SlotIndex, lane: Lane) {
        let generation = self.shadows[slot.get()].generation;
        self.order = self.order.wrapping_add(1);
        let entry = Entry::new(slot, generation, self.order);
        let tail = self.tails[lane as usize];
        self.ring.control().submit(slot, generation, lane, tail, entry);
        self.tails[lane as usize] = tail + 1;
        self.unrung[lane as usize] = true;
    }

    /// Wakes one sleeping worker per lane that got requests since the last call; it wakes the next.
    ///
    /// True: somebody else is relied on, an awake worker that is about to take the request, or the chain of
    /// wakes. Should one request be held up, the next would be too: call [`Self::ring_withheld`] a moment later.
    pub fn ring_workers(&mut self) -> bool {
        let control = self.ring.control();
        let mut withheld = false;
        for lane in [Lane::App, Lane::Script] {
            if !std::mem::take(&mut self.unrung[lane as usize]) {
                continue;
            }
            publish_before_look();
            let queued = control.queue(lane).pending();
            if control.pace.0.is_brisk(queued) && control.crew(lane).has_awake() {
                withheld = true;
            } else {
                withheld |= queued > 1;
                control.wake_worker(lane);
            }
        }
        withheld
    }

    /// Whether requests are so short that waking a worker for a few of them is not worth its cost.
    pub fn is_brisk(&self) -> bool {
        self.ring.control().pace.0.is_brisk(1)
    }

    /// Wakes a worker for each lane that still has requests waiting.
    pub fn ring_withheld(&self) {
        let control = self.ring.control();
        for lane in [Lane::App, Lane::Script] {
            if control.queue(lane).pending() > 0 {
                control.wake_worker(lane);
            }
        }
    }

    /// Calls `each` for every slot in use that has news.
    pub fn take_news(&self, mut each: impl FnMut(SlotIndex)) {
        self.ring.control().bell.0.take(self.shadows.len(), |slot| {
            if self.shadows[slot.get()].in_use {
                each(slot);
            }
        });
    }

    /// Announces that the front sleeps. False: there is news already.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        self.ring.control().bell.0.fall_asleep(self.shadows.len())
    }

    /// Nobody needs to ring any more.
    pub fn wake_up(&self) {
        self.ring.control().bell.0.wake_up();
    }

    /// Where the request in `slot` stands.
    pub fn progress(&self, slot: SlotIndex) -> Result<Progress, Hostile> {
        let now = self.cell(slot).word.0.load();
        if now.generation() != self.shadows[slot.get()].generation {
            return Err(Hostile { what: "generation" });
        }
        match now.state() {
            Some(State::Queued) => Ok(Progress::Queued),
            Some(State::Taken | State::Cancelled) => Ok(Progress::Running),
            Some(State::Answering) => Ok(Progress::Answering),
            Some(State::Answered) => Ok(Progress::Answered),
            Some(State::Orphaned) => Ok(Progress::Orphaned),
            Some(State::Free | State::Filling) | None => Err(Hostile { what: "state" }),
        }
    }

    /// Incarnation of the worker that has the slot, 0 for none.
    pub fn owner(&self, slot: SlotIndex) -> u32 {
        self.cell(slot).word.0.load().owner()
    }

    /// Status and header lines of the answer (`Name: value\n` each), once progress is Answering or Answered.
    ///
    /// Status 0 means that the worker published no head.
    pub fn read_head(&self, slot: SlotIndex, lines: &mut Vec<u8>) -> Result<u16, Hostile> {
        let told = &self.cell(slot).told.0;
        let len = told.head_bytes.load(Ordering::Relaxed) as usize;
        if len > HEAD_BYTES {
            return Err(Hostile { what: "head length" });
        }
        let status = told.status.load(Ordering::Relaxed);
        if status != 0 && !(100..1000).contains(&status) {
            return Err(Hostile { what: "status" });
        }
        lines.clear();
        self.ring.area(slot, Part::Head).append_to(0, len, lines);
        Ok(status as u16)
    }

    /// The next interim answer's status, if there is one, and its header lines. To be asked until there is none, before
    /// [`Self::read_body`].
    pub fn read_interim(
        &mut self,
        slot: SlotIndex,
        lines: &mut Vec<u8>,
    ) -> Result<Option<u16>, Hostile> {
        let cell = &self.ring.cells()[slot.get()];
        let shadow = &mut self.shadows[slot.get()];
        let end = u64::from(cell.told.0.interim_bytes.load(Ordering::Acquire));
        if end == shadow.answer_read {
            return Ok(None);
        }
        let hostile = Hostile { what: "interim answer" };
        let readable = cell.answer.0.readable(shadow.answer_read, ANSWER_BYTES);
        let left = end.checked_sub(shadow.answer_read).ok_or(hostile)? as usize;
        if end > INTERIM_BYTES_MAX as u64 || readable.map_err(|_| hostile)? < left {
            return Err(hostile);
        }
        let body = left.checked_sub(INTERIM_FRAME_BYTES).ok_or(hostile)?;
        let area = || self.ring.area(slot, Part::Answer);
        lines.clear();
        area().read_at(shadow.answer_read, INTERIM_FRAME_BYTES, lines);
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| lines[at + i]));
        let (status, len) = (number(0), number(4) as usize);
        if !(100..200).contains(&status) || len > body {
            return Err(hostile);
        }
        lines.clear();
        area().read_at(shadow.answer_read + INTERIM_FRAME_BYTES as u64, len, lines);
        shadow.answer_read += (INTERIM_FRAME_BYTES + len) as u64;
        cell.answer.0.publish_read(shadow.answer_read);
        Ok(Some(status as u16))
    }

    /// Appends what has come of the answer's body to `out` and makes room; says how the body ends.
    ///
    /// `End::Complete` is final: all bytes are in `out`.
    pub fn read_body(&mut self, slot: SlotIndex, out: &mut Vec<u8>) -> Result<End, Hostile> {
        let cell = &self.ring.cells()[slot.get()];
        let shadow = &mut self.shadows[slot.get()];
        let end = cell.answer.0.end();
        let len = cell
            .answer
            .0
            .readable(shadow.answer_read, ANSWER_BYTES)
            .map_err(|_| Hostile { what: "answer position" })?;
        if len > 0 {
            self.ring.area(slot, Part::Answer).read_at(shadow.answer_read, len, out);
            shadow.answer_read += len as u64;
            cell.answer.0.publish_read(shadow.answer_read);
            if end == End::Open {
                cell.ring_worker();
            }
        }
        Ok(end)
    }

    /// Copies as much of `bytes` into the request body as there is room for; says how much that was.
    pub fn write_body(&mut self, slot: SlotIndex, bytes: &[u8]) -> Result<usize, Hostile> {
        let cell = &self.ring.cells()[slot.get()];
        let shadow = &mut self.shadows[slot.get()];
        let room = cell
            .body
            .0
            .writable(shadow.body_written, BODY_BYTES)
            .map_err(|_| Hostile { what: "body position" })?;
        let len = room.min(bytes.len());
        if len > 0 {
            self.ring.area(slot, Part::Body).write_at(shadow.body_written, &bytes[..len]);
            shadow.body_written += len as u64;
            cell.body.0.publish_written(shadow.body_written);
            cell.ring_worker();
        }
        Ok(len)
    }

    /// The request body ends here.
    pub fn end_body(&self, slot: SlotIndex, end: End) {
        let cell = self.cell(slot);
        cell.body.0.publish_end(end);
        cell.ring_worker();
    }

    /// What the request cost; meaningful when Answered, and only as good as the worker's word.
    pub fn ledger(&self, slot: SlotIndex) -> Ledger {
        self.cell(slot).told.0.ledger.load()
    }

    /// Gives up on the request. True: the slot is free again. False: a worker still has it; wait for news.
    #[must_use]
    pub fn cancel(&mut self, slot: SlotIndex) -> bool {
        let generation = self.shadows[slot.get()].generation;
        let cell = self.cell(slot);
        if cell.word.0.withdraw(generation) {
            self.give_back(slot);
            return true;
        }
        if cell.word.0.cancel(generation) {
            cell.ring_worker();
            return false;
        }
        // Answered or orphaned meanwhile, garbage, or cancelled before and still the worker's.
        if self.is_workers(slot) {
            return false;
        }
        self.release(slot);
        true
    }

    /// Whether a worker may still touch the slot.
    pub fn is_workers(&self, slot: SlotIndex) -> bool {
        matches!(self.progress(slot), Ok(Progress::Running | Progress::Answering))
    }

    /// Frees a slot that is Filling, Answered, Orphaned or broken.
    pub fn release(&mut self, slot: SlotIndex) {
        let generation = self.shadows[slot.get()].generation;
        self.cell(slot).word.0.release(generation);
        self.give_back(slot);
    }

    fn give_back(&mut self, slot: SlotIndex) {
        let shadow = &mut self.shadows[slot.get()];
        if std::mem::take(&mut shadow.in_use) {
            self.free.push(slot);
        }
    }

    /// Once a second or so: queues again what is queued by its word but passed by the queue's head (only a
    /// worker that writes garbage does that), wakes workers, and calls `each` for the slots in use.
    pub fn tick(&mut self, mut each: impl FnMut(SlotIndex)) {
        for index in 0..self.shadows.len() {
            let shadow = self.shadows[index];
            let Some(slot) = SlotIndex::new(index, self.shadows.len()).filter(|_| shadow.in_use)
            else {
                continue;
            };
            let lane = if shadow.lane == 0 { Lane::App } else { Lane::Script };
            let queue = self.ring.control().queue(lane);
            let waits = matches!(self.progress(slot), Ok(Progress::Queued));
            if waits && queue.pending() == 0 && queue.has_room(self.tails[shadow.lane], &[]) {
                self.push(slot, lane);
            }
            each(slot);
        }
        self.ring_withheld();
    }

    fn cell(&self, slot: SlotIndex) -> &SlotCell {
        &self.ring.cells()[slot.get()]
    }
}

impl Control {
    /// The word first, then the entry that points at it: whoever sees the entry can take the slot.
    pub(crate) fn submit(
        &self,
        slot: SlotIndex,
        generation: u32,
        lane: Lane,
        tail: u64,
        entry: Entry,
    ) {
        self.slot(slot).word.0.submit(generation);
        self.queue(lane).push(tail, entry);
    }

    /// Wakes one worker that sleeps for `lane`, if one does.
    pub(crate) fn wake_worker(&self, lane: Lane) {
        // PAIRS WITH `Control::sleep`: the request is published before sleepers are looked for.
        publish_before_look();
        if let Some(index) = self.crew(lane).claim()
            && let Some(cell) = self.workers.get(index)
        {
            cell.0.awake.store(1, Ordering::SeqCst);
            os::futex_wake(&cell.0.awake);
        }
    }
}

impl SlotCell {
    /// Wakes the worker that waits for body bytes, for room, or for the cancellation.
    pub(crate) fn ring_worker(&self) {
        let bell = &self.bell.0;
        bell.rings.fetch_add(1, Ordering::SeqCst);
        publish_before_look();
        if bell.waiting.load(Ordering::SeqCst) == 1 {
            os::futex_wake(&bell.rings);
        }
    }
}
