//! The front's view of the protocol: fills and submits slots, reads answers. A front is a thread; what several of one ring
//! have in common is in `crew`.
//!
//! Everything a worker can write is hostile here: it is copied once, checked, then used. What the front
//! must be able to rely on (which slots are free, positions, generations, the queue's tail) it keeps in
//! its own memory and only publishes.

mod waking;

use crate::crew::{Crew, Tails};
use crate::interim::{FRAME_BYTES, Frame, INTERIM_BYTES_MAX};
use crate::layout::{
    ANSWER_BYTES, BODY_BYTES, HEAD_BYTES, Lane, REPORT_BYTES, REQUEST_BYTES, SlotCell, SlotIndex,
};
use crate::map::{Part, Ring};
use crate::os::monotonic_ns;
use crate::report::{Death, Overrun};
use crate::request;
use crate::stream::End;
use crate::sync::Ordering;
use crate::usage::Usage;
use crate::word::{Incarnation, State};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use zerocopy::FromBytes;

/// A worker wrote what no worker writes. The request is lost, the front is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker wrote an impossible {what} into the ring")]
pub struct Hostile {
    /// The field that is wrong.
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
    /// The worker that had the request died.
    Orphaned,
}

/// What a worker says of a request that it has finished.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Times and sizes.
    pub usage: Usage,
    /// The rest, in the grammar of who reads it: hostile bytes, at most [`REPORT_BYTES`]. Empty where there is none, or where
    /// its length is none that a report can have.
    pub report: Vec<u8>,
}

/// One worker's run of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where the request is.
    pub slot: SlotIndex,
    /// Which use of the slot.
    pub generation: u32,
    /// Who has it.
    pub worker: Incarnation,
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
    /// Its slots.
    part: Range<usize>,
    free: Vec<SlotIndex>,
    /// By slot; those before `part` are others' and stay blank.
    shadows: Vec<Shadow>,
    crew: Crew,
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
    ///
    /// # Panics
    /// If it has several.
    pub fn new(ring: Ring) -> FrontEnd {
        assert_eq!(ring.fronts(), 1, "each of several is made by `all`");
        FrontEnd::of(ring, Crew::Alone(Tails::default()))
    }

    /// The fronts of `ring`, for a thread each. To be called once.
    pub fn all(ring: &Ring) -> Vec<FrontEnd> {
        Crew::of(ring.fronts()).into_iter().map(|crew| FrontEnd::of(ring.clone(), crew)).collect()
    }

    fn of(ring: Ring, crew: Crew) -> FrontEnd {
        let part = ring.parts().part(crew.front());
        // Last freed, first used: a quiet server touches one slot's pages, not all.
        let free = part.clone().rev().filter_map(|i| SlotIndex::new(i, part.end)).collect();
        let shadows = vec![Shadow::default(); part.end];
        FrontEnd { ring, part, free, shadows, crew, unrung: [false; crate::LANES] }
    }

    /// The protocol, on the ring below.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Which of the ring's fronts it is.
    pub fn number(&self) -> usize {
        self.crew.front()
    }

    /// Its slots, by their numbers.
    pub fn part(&self) -> Range<usize> {
        self.part.clone()
    }

    /// Slots in use: requests queued or in flight.
    pub fn in_use(&self) -> usize {
        self.part.len() - self.free.len()
    }

    /// Slots that are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Whether the ring has no other front.
    pub fn is_alone(&self) -> bool {
        self.ring.fronts() == 1
    }

    /// Adds to how many requests of this front are over, and returns how many of all fronts are since it was last called.
    pub fn count_finished(&mut self, own: u64) -> u64 {
        self.crew.count_finished(own)
    }

    /// The same of all fronts of the ring, each as of its last change.
    pub fn in_use_of_all(&self) -> usize {
        self.crew.in_use(self.in_use())
    }

    /// The eventfd that wakes it.
    ///
    /// # Panics
    /// Never: a ring has one for each of its fronts.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.ring.bells().nth(self.number()).expect("a ring has one for each of its fronts")
    }

    /// Wakes this front whether it sleeps or not.
    pub fn ring_self(&self) {
        self.ring.ring_front(self.number());
    }

    /// A free slot, unless all are in use.
    pub fn fill(&mut self) -> Option<Filling> {
        let slot = self.free.pop()?;
        self.crew.note_in_use(self.in_use());
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
        cell.response.0.status.store(0, Ordering::Relaxed);
        cell.response.0.head_bytes.store(0, Ordering::Relaxed);
        cell.response.0.interim_bytes.store(0, Ordering::Relaxed);
        cell.response.0.report_bytes.store(0, Ordering::Relaxed);
        cell.response.0.death.store(Death::UNKNOWN.code(), Ordering::Relaxed);
        cell.request.0.wanted_ms.store(0, Ordering::Relaxed);
        cell.request.0.outlives.store(0, Ordering::Relaxed);
        cell.request.0.overrun.store(0, Ordering::Relaxed);
        Some(Filling(slot))
    }

    /// Copies the encoded request head into the slot.
    ///
    /// # Panics
    /// If it is longer than [`REQUEST_BYTES`], which `request::encode` refuses to make.
    pub fn put_request(&mut self, filling: &Filling, encoded: &[u8]) {
        assert!(encoded.len() <= REQUEST_BYTES, "the encoder has this limit");
        self.ring.area(filling.0, Part::Request).put(0, encoded);
    }

    /// For how long its script may run if it asks for more time, ms; 0: it cannot. Before [`Self::submit`].
    pub fn allow_extension(&self, filling: &Filling, ms_max: u32) {
        self.cell(filling.0).request.0.extended_ms_max.store(ms_max, Ordering::Relaxed);
    }

    /// Queues the slot of a request that has `waited` before it had one: its worker is told since when it waits. Workers are
    /// woken by the next [`Self::ring_workers`]. Err: the queue is full.
    pub fn submit(
        &mut self,
        filling: Filling,
        lane: Lane,
        waited: Duration,
    ) -> Result<SlotIndex, Filling> {
        let slot = filling.0;
        let now = monotonic_ns();
        let shadow = &mut self.shadows[slot.get()];
        (shadow.lane, shadow.queued_ns) = (lane as usize, now);
        let generation = shadow.generation;
        let since = now.saturating_sub(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
        self.cell(slot).request.0.submitted_ns.store(since, Ordering::Relaxed);
        let ring = (self.ring.control(), self.ring.cells());
        if !self.crew.submit(ring, (slot, generation), lane) {
            return Err(filling);
        }
        self.unrung[lane as usize] = true;
        Ok(slot)
    }

    /// Method and target of the request in `slot`, and its id, for the log. Only as good as its worker's word, and cut.
    pub fn request_line(&self, slot: SlotIndex) -> [String; 2] {
        let area = self.ring.area(slot, Part::Request);
        let [method, target, id] = request::line_of(|at, len, out| area.append_to(at, len, out));
        let line = format!("{} {}", method.escape_debug(), target.escape_debug());
        [line, id.escape_debug().to_string()]
    }

    /// For how long the script in `slot` says that it wants to run, ms from its take on; 0: it has not said. A wish: what it
    /// may stands in the settings.
    pub fn wanted_ms(&self, slot: SlotIndex) -> u32 {
        self.cell(slot).request.0.wanted_ms.load(Ordering::Relaxed)
    }

    /// Whether the script in `slot` says that it goes on without its client. Its word: the time that it has then stands in the
    /// settings.
    pub fn outlives_client(&self, slot: SlotIndex) -> bool {
        self.cell(slot).request.0.outlives.load(Ordering::Relaxed) != 0
    }

    /// Says that the time of the request in `slot` is over. Its worker sees that when it looks: a signal has it look.
    pub fn ask_to_end(&self, slot: SlotIndex, overrun: Overrun) {
        self.cell(slot).request.0.overrun.store(overrun.code(), Ordering::SeqCst);
    }

    /// Which use of `slot`, by which worker, is going on; `None`: no worker has it.
    pub fn run_of(&self, slot: SlotIndex) -> Option<Run> {
        let worker = Incarnation::new(self.owner(slot)).filter(|_| self.is_workers(slot))?;
        Some(Run { slot, generation: self.shadows[slot.get()].generation, worker })
    }

    /// Calls `each` for every slot in use that has news.
    pub fn take_news(&self, mut each: impl FnMut(SlotIndex)) {
        self.ring.control().bell(self.number()).take(&self.part, |slot| {
            if self.shadows[slot.get()].in_use {
                each(slot);
            }
        });
    }

    /// Announces that the front sleeps. False: there is news already.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        self.ring.control().bell(self.number()).fall_asleep(&self.part)
    }

    /// Nobody needs to ring any more.
    pub fn wake_up(&self) {
        self.ring.control().bell(self.number()).wake_up();
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
        let response = &self.cell(slot).response.0;
        let len = response.head_bytes.load(Ordering::Relaxed) as usize;
        if len > HEAD_BYTES {
            return Err(Hostile { what: "head length" });
        }
        let status = response.status.load(Ordering::Relaxed);
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
        let end = u64::from(cell.response.0.interim_bytes.load(Ordering::Acquire));
        if end == shadow.answer_read {
            return Ok(None);
        }
        let hostile = Hostile { what: "interim answer" };
        let readable = cell.answer.0.readable(shadow.answer_read, ANSWER_BYTES);
        let left = end.checked_sub(shadow.answer_read).ok_or(hostile)? as usize;
        if end > INTERIM_BYTES_MAX as u64 || readable.map_err(|_| hostile)? < left {
            return Err(hostile);
        }
        let room = left.checked_sub(FRAME_BYTES).ok_or(hostile)?;
        let area = self.ring.area(slot, Part::Answer);
        lines.clear();
        area.read_at(shadow.answer_read, FRAME_BYTES, lines);
        let frame = Frame::read_from_bytes(lines).map_err(|_| hostile)?;
        let (status, len) = frame.checked(room).ok_or(hostile)?;
        lines.clear();
        area.read_at(shadow.answer_read + FRAME_BYTES as u64, len, lines);
        shadow.answer_read += (FRAME_BYTES + len) as u64;
        cell.answer.0.publish_read(shadow.answer_read);
        Ok(Some(status))
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
    pub fn account(&self, slot: SlotIndex) -> Account {
        let cell = self.cell(slot);
        let len = cell.response.0.report_bytes.load(Ordering::Relaxed) as usize;
        let mut report = Vec::new();
        if len > 0 && len <= REPORT_BYTES {
            self.ring.area(slot, Part::Report).append_to(0, len, &mut report);
        }
        Account { usage: cell.load_usage(), report }
    }

    /// How the worker of an Orphaned request ended. Only as good as the other workers' restraint: a hint.
    pub fn death(&self, slot: SlotIndex) -> Death {
        Death::from_code(self.cell(slot).response.0.death.load(Ordering::Relaxed))
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
            self.crew.note_in_use(self.in_use());
        }
    }

    /// Once a second or so: mends the queues, queues again what is queued by its word but passed by the queue's head
    /// (only a worker that writes garbage makes either needed), wakes workers, and calls `each` for the slots in use.
    pub fn tick(&mut self, mut each: impl FnMut(SlotIndex)) {
        self.crew.mend(self.ring.control());
        for index in self.part.clone() {
            let shadow = self.shadows[index];
            let Some(slot) = SlotIndex::new(index, self.shadows.len()).filter(|_| shadow.in_use)
            else {
                continue;
            };
            let lane = Lane::ALL[shadow.lane];
            let waits = matches!(self.progress(slot), Ok(Progress::Queued));
            if waits && self.ring.control().queue(lane).pending() == 0 {
                let ring = (self.ring.control(), self.ring.cells());
                self.unrung[shadow.lane] |= self.crew.submit(ring, (slot, shadow.generation), lane);
            }
            each(slot);
        }
        // In a second again.
        let _ = self.ring_withheld();
    }

    fn cell(&self, slot: SlotIndex) -> &SlotCell {
        &self.ring.cells()[slot.get()]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::report::Ending;
    use crate::usage::UsageDetails;
    use crate::{Incarnation, Take, WorkerEnd};
    use proptest::prelude::*;

    /// What the front is told of a request that `finish` has finished.
    fn told(finish: impl FnOnce(&mut WorkerEnd, SlotIndex, &Ring)) -> Account {
        let ring = Ring::create(1).expect("memory");
        let mut front = FrontEnd::new(ring.clone());
        let mut worker = WorkerEnd::new(ring.clone(), 0, Incarnation::new(1).expect("a life"));
        let filling = front.fill().expect("a free slot");
        let slot = front.submit(filling, Lane::App, Duration::ZERO).expect("room in the queue");
        let Take::Request(taken, _) = worker.take(&[Lane::App], || true) else { panic!("none") };
        assert_eq!(taken, slot);
        finish(&mut worker, slot, &ring);
        front.account(slot)
    }

    #[test]
    fn what_a_worker_tells_arrives() {
        let details = UsageDetails { rollback_ns: 5, faults_minor: 6, ..UsageDetails::default() };
        let usage = Usage { cpu_ns: 7, ending: Ending::Fatal, details, ..Usage::default() };
        let account = told(|worker, slot, _| {
            worker.put_report(slot, b"report");
            worker.finish(slot, &usage);
        });
        assert_eq!((account.usage.details, account.usage.ending), (details, Ending::Fatal));
        assert_eq!((account.usage.cpu_ns, account.report), (7, b"report".to_vec()));
    }

    #[test]
    fn a_report_is_no_longer_than_its_room() {
        let account = told(|worker, slot, _| {
            worker.put_report(slot, &[1; REPORT_BYTES + 1]);
            worker.finish(slot, &Usage::default());
        });
        assert_eq!(account.report.len(), REPORT_BYTES);
    }

    proptest! {
        #[test]
        fn no_length_and_no_code_does_harm(length: u32, ending: u32) {
            let account = told(|worker, slot, ring| {
                worker.finish(slot, &Usage::default());
                let response = &ring.cells()[slot.get()].response.0;
                response.report_bytes.store(length, Ordering::Relaxed);
                response.ending.store(ending, Ordering::Relaxed);
            });
            prop_assert!(account.report.len() <= REPORT_BYTES);
            prop_assert!(ending & 0xff < 4 || account.usage.ending == Ending::Returned);
        }
    }
}
