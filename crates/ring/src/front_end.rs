//! The front's view of the protocol: fills and submits slots, reads responses. A front is a thread.
//! State shared by several fronts of one ring is in `front_group`.
//!
//! Everything a worker can write is hostile here: it is copied once, checked, then used. The front
//! keeps in its own memory the state that it must be able to rely on: free slots, positions,
//! generations, the queue's tail. It only publishes copies of this state.

use crate::cells::SlotCell;
use crate::front_group::{FrontGroup, Tails};
use crate::interim::{FRAME_BYTES, Frame, INTERIM_BYTES_MAX};
use crate::layout::Lane;
use crate::limits::{
    BODY_BYTES, HEAD_BYTES, LANES, REPORT_BYTES, REQUEST_BYTES, RESPONSE_BYTES, SlotIndex,
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

/// A worker wrote a value that no honest worker writes. The request is lost; the front continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker wrote an invalid {} into the ring", .what)]
pub struct Hostile {
    /// Name of the wrong field.
    pub what: &'static str,
}

/// State of a submitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No worker has taken it.
    Queued,
    /// A worker runs it; nothing is published.
    Running,
    /// The response head is published; body bytes may be.
    Responding,
    /// The worker is done; head and body may still have to be read.
    Responded,
    /// The worker that had the request died.
    Orphaned,
}

/// A worker's account of a request that it has finished.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Times and sizes.
    pub usage: Usage,
    /// The worker's report, in a format that its reader knows: hostile bytes, at most
    /// [`REPORT_BYTES`]. Empty if there is none, or if its length is impossible.
    pub report: Vec<u8>,
}

/// One worker's run of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Slot of the request.
    pub slot: SlotIndex,
    /// Generation of the slot: the number of its use.
    pub generation: u32,
    /// The worker that runs the request.
    pub worker: Incarnation,
}

/// The front's private copy of a slot's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shadow {
    generation: u32,
    pub(crate) in_use: bool,
    pub(crate) lane: usize,
    body_written: u64,
    response_read: u64,
    pub(crate) queued_ns: u64,
}

/// The front's end of the ring.
#[derive(Debug)]
pub struct FrontEnd {
    pub(crate) ring: Ring,
    /// Slots of this front.
    pub(crate) part: Range<usize>,
    free: Vec<SlotIndex>,
    /// Indexed by slot. Entries before `part` belong to other fronts and stay empty.
    pub(crate) shadows: Vec<Shadow>,
    front_group: FrontGroup,
    pub(crate) unrung: [bool; LANES],
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
    /// Creates the only front of `ring`.
    ///
    /// # Panics
    /// If the ring has several fronts.
    pub fn new(ring: Ring) -> FrontEnd {
        assert_eq!(ring.fronts(), 1, "each of several is made by `all`");
        FrontEnd::of(ring, FrontGroup::Alone(Tails::default()))
    }

    /// Creates the fronts of `ring`, one per thread. Must be called only once.
    pub fn all(ring: &Ring) -> Vec<FrontEnd> {
        FrontGroup::of(ring.fronts())
            .into_iter()
            .map(|front_group| FrontEnd::of(ring.clone(), front_group))
            .collect()
    }

    fn of(ring: Ring, front_group: FrontGroup) -> FrontEnd {
        let part = ring.parts().part(front_group.front());
        // The slot freed last is used first: a quiet server touches the pages of one slot, not of
        // all.
        let free = part.clone().rev().filter_map(|i| SlotIndex::new(i, part.end)).collect();
        let shadows = vec![Shadow::default(); part.end];
        FrontEnd { ring, part, free, shadows, front_group, unrung: [false; LANES] }
    }

    /// The ring below this view.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Number of this front within the ring.
    pub fn number(&self) -> usize {
        self.front_group.front()
    }

    /// Range of this front's slot numbers.
    pub fn part(&self) -> Range<usize> {
        self.part.clone()
    }

    /// Slots in use: requests queued or in flight.
    pub fn in_use(&self) -> usize {
        self.part.len() - self.free.len()
    }

    /// Number of free slots.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Whether the ring has no other front.
    pub fn is_alone(&self) -> bool {
        self.ring.fronts() == 1
    }

    /// Adds `own` to this front's finished requests. Returns the number of requests that all fronts
    /// finished since the last call.
    pub fn count_finished(&mut self, own: u64) -> u64 {
        self.front_group.count_finished(own)
    }

    /// Slots in use of all fronts of the ring, each as of its last change.
    pub fn in_use_of_all(&self) -> usize {
        self.front_group.in_use(self.in_use())
    }

    /// The eventfd that wakes this front.
    ///
    /// # Panics
    /// Never: a ring has one for each of its fronts.
    pub fn notifier(&self) -> BorrowedFd<'_> {
        self.ring.notifiers().nth(self.number()).expect("a ring has one for each of its fronts")
    }

    /// Wakes this front whether it sleeps or not.
    pub fn ring_self(&self) {
        self.ring.ring_front(self.number());
    }

    /// Takes a free slot; `None` if all are in use.
    pub fn fill(&mut self) -> Option<Filling> {
        let slot = self.free.pop()?;
        self.front_group.note_in_use(self.in_use());
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
        cell.response_stream.0.reset();
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
    /// If it is longer than [`REQUEST_BYTES`]. `request::encode` never makes such a head.
    pub fn put_request(&mut self, filling: &Filling, encoded: &[u8]) {
        assert!(encoded.len() <= REQUEST_BYTES, "the encoder has this limit");
        self.ring.area(filling.0, Part::Request).put(0, encoded);
    }

    /// Sets the maximum run time of the script if it requests more time, ms; 0: it cannot. Must be
    /// called before [`Self::submit`].
    pub fn allow_extension(&self, filling: &Filling, ms_max: u32) {
        self.cell(filling.0).request.0.extended_ms_max.store(ms_max, Ordering::Relaxed);
    }

    /// Queues a slot. `waited` is the time that the request waited before it had a slot; the worker
    /// receives the start of this wait. The next [`Self::ring_workers`] wakes workers.
    ///
    /// Returns the slot as an error if the queue is full.
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
        if !self.front_group.submit(ring, (slot, generation), lane) {
            return Err(filling);
        }
        self.unrung[lane as usize] = true;
        Ok(slot)
    }

    /// Moves a queued request to the lane of the workers in service. The workers that it waited for
    /// hold back no longer, or they have gone. A worker may take it meanwhile from its old lane:
    /// the slot's word decides.
    pub fn move_to_serving(&mut self, slot: SlotIndex) {
        if !matches!(self.progress(slot), Ok(Progress::Queued)) {
            return;
        }
        let shadow = &mut self.shadows[slot.get()];
        let lane = Lane::ALL[shadow.lane].serving();
        // Without room in the queue, the tick queues it.
        shadow.lane = lane as usize;
        let generation = shadow.generation;
        let ring = (self.ring.control(), self.ring.cells());
        self.unrung[lane as usize] |= self.front_group.submit(ring, (slot, generation), lane);
    }

    /// Method and target of the request in `slot`, and its id, for the log. Truncated. The worker
    /// may have changed them.
    pub fn request_line(&self, slot: SlotIndex) -> [String; 2] {
        let area = self.ring.area(slot, Part::Request);
        let [method, target, id] = request::line_of(|at, len, out| area.append_to(at, len, out));
        let line = format!("{} {}", method.escape_debug(), target.escape_debug());
        [line, id.escape_debug().to_string()]
    }

    /// Run time that the script in `slot` requested, ms from its take; 0: none requested. Only a
    /// wish: the limit is in the settings.
    pub fn wanted_ms(&self, slot: SlotIndex) -> u32 {
        self.cell(slot).request.0.wanted_ms.load(Ordering::Relaxed)
    }

    /// Whether the script in `slot` continues without its client. Reported by the worker; the time
    /// limit for this case is in the settings.
    pub fn outlives_client(&self, slot: SlotIndex) -> bool {
        self.cell(slot).request.0.outlives.load(Ordering::Relaxed) != 0
    }

    /// Marks the request in `slot` as out of time. Its worker sees the mark when it checks; a
    /// signal makes it check.
    pub fn ask_to_end(&self, slot: SlotIndex, overrun: Overrun) {
        self.cell(slot).request.0.overrun.store(overrun.code(), Ordering::SeqCst);
    }

    /// The current run of `slot`: generation and worker. `None` if no worker has it.
    pub fn run_of(&self, slot: SlotIndex) -> Option<Run> {
        let worker = Incarnation::new(self.owner(slot)).filter(|_| self.is_workers(slot))?;
        Some(Run { slot, generation: self.shadows[slot.get()].generation, worker })
    }

    /// Calls `each` for every slot in use that has news.
    pub fn take_news(&self, mut each: impl FnMut(SlotIndex)) {
        self.ring.control().notifier(self.number()).take(&self.part, |slot| {
            if self.shadows[slot.get()].in_use {
                each(slot);
            }
        });
    }

    /// Announces that the front sleeps. Returns false if there is news already.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        self.ring.control().notifier(self.number()).fall_asleep(&self.part)
    }

    /// Announces that the front is awake. No worker needs to ring its eventfd.
    pub fn wake_up(&self) {
        self.ring.control().notifier(self.number()).wake_up();
    }

    /// State of the request in `slot`.
    pub fn progress(&self, slot: SlotIndex) -> Result<Progress, Hostile> {
        let now = self.cell(slot).word.0.load();
        if now.generation() != self.shadows[slot.get()].generation {
            return Err(Hostile { what: "generation" });
        }
        match now.state() {
            Some(State::Queued) => Ok(Progress::Queued),
            Some(State::Taken | State::Cancelled) => Ok(Progress::Running),
            Some(State::Responding) => Ok(Progress::Responding),
            Some(State::Responded) => Ok(Progress::Responded),
            Some(State::Orphaned) => Ok(Progress::Orphaned),
            Some(State::Free | State::Filling) | None => Err(Hostile { what: "state" }),
        }
    }

    /// Incarnation of the worker that has the slot; 0: none.
    pub fn owner(&self, slot: SlotIndex) -> u32 {
        self.cell(slot).word.0.load().owner()
    }

    /// Status and header lines of the response (`Name: value\n` each). Valid once the progress is
    /// Answering or Answered.
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

    /// Status and header lines of the next interim response, if there is one. Call it until it
    /// returns `None`, before [`Self::read_body`].
    pub fn read_interim(
        &mut self,
        slot: SlotIndex,
        lines: &mut Vec<u8>,
    ) -> Result<Option<u16>, Hostile> {
        let cell = &self.ring.cells()[slot.get()];
        let shadow = &mut self.shadows[slot.get()];
        let end = u64::from(cell.response.0.interim_bytes.load(Ordering::Acquire));
        if end == shadow.response_read {
            return Ok(None);
        }
        let hostile = Hostile { what: "interim response" };
        let readable = cell.response_stream.0.readable(shadow.response_read, RESPONSE_BYTES);
        let left = end.checked_sub(shadow.response_read).ok_or(hostile)? as usize;
        if end > INTERIM_BYTES_MAX as u64 || readable.map_err(|_| hostile)? < left {
            return Err(hostile);
        }
        let room = left.checked_sub(FRAME_BYTES).ok_or(hostile)?;
        let area = self.ring.area(slot, Part::Response);
        lines.clear();
        area.read_at(shadow.response_read, FRAME_BYTES, lines);
        let frame = Frame::read_from_bytes(lines).map_err(|_| hostile)?;
        let (status, len) = frame.checked(room).ok_or(hostile)?;
        lines.clear();
        area.read_at(shadow.response_read + FRAME_BYTES as u64, len, lines);
        shadow.response_read += (FRAME_BYTES + len) as u64;
        cell.response_stream.0.publish_read(shadow.response_read);
        Ok(Some(status))
    }

    /// Appends the available bytes of the response body to `out` and makes room in the window.
    /// Returns how the body ends.
    ///
    /// `End::Complete` is final: all bytes are in `out`.
    pub fn read_body(&mut self, slot: SlotIndex, out: &mut Vec<u8>) -> Result<End, Hostile> {
        let cell = &self.ring.cells()[slot.get()];
        let shadow = &mut self.shadows[slot.get()];
        let end = cell.response_stream.0.end();
        let len = cell
            .response_stream
            .0
            .readable(shadow.response_read, RESPONSE_BYTES)
            .map_err(|_| Hostile { what: "response position" })?;
        if len > 0 {
            self.ring.area(slot, Part::Response).read_at(shadow.response_read, len, out);
            shadow.response_read += len as u64;
            cell.response_stream.0.publish_read(shadow.response_read);
            if end == End::Open {
                cell.ring_worker();
            }
        }
        Ok(end)
    }

    /// Copies as many of `bytes` into the request body as fit. Returns their number.
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

    /// Ends the request body.
    pub fn end_body(&self, slot: SlotIndex, end: End) {
        let cell = self.cell(slot);
        cell.body.0.publish_end(end);
        cell.ring_worker();
    }

    /// Usage and report of the request. Meaningful when Answered, and only as reliable as the
    /// worker.
    pub fn account(&self, slot: SlotIndex) -> Account {
        let cell = self.cell(slot);
        let len = cell.response.0.report_bytes.load(Ordering::Relaxed) as usize;
        let mut report = Vec::new();
        if len > 0 && len <= REPORT_BYTES {
            self.ring.area(slot, Part::Report).append_to(0, len, &mut report);
        }
        Account { usage: cell.load_usage(), report }
    }

    /// Run time of the request, ns, as far as the worker is reliable. Meaningful when Answered.
    pub fn run_ns(&self, slot: SlotIndex) -> u64 {
        self.cell(slot).load_usage().run_ns
    }

    /// How the worker of an Orphaned request ended. A hint: other workers could have overwritten
    /// it.
    pub fn death(&self, slot: SlotIndex) -> Death {
        Death::from_code(self.cell(slot).response.0.death.load(Ordering::Relaxed))
    }

    /// Cancels the request. Returns true if the slot is free again. Returns false if a worker still
    /// has it; then wait for news.
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
        // Answered or orphaned in the meantime, garbage, or cancelled before and still owned by the
        // worker.
        if self.is_workers(slot) {
            return false;
        }
        self.release(slot);
        true
    }

    /// Requests the end of a script whose response is not needed any more. The script notices at
    /// its next output. The slot stays with its worker.
    pub fn end_run(&self, slot: SlotIndex) {
        let cell = self.cell(slot);
        if cell.word.0.cancel(self.shadows[slot.get()].generation) {
            cell.ring_worker();
        }
    }

    /// Whether a worker may still touch the slot.
    pub fn is_workers(&self, slot: SlotIndex) -> bool {
        matches!(self.progress(slot), Ok(Progress::Running | Progress::Responding))
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
            self.front_group.note_in_use(self.in_use());
        }
    }

    /// Periodic check, about once a second: repairs the queues, wakes workers, and calls `each` for
    /// the slots in use.
    ///
    /// Queues a slot again if its word is Queued but the queue's head has passed it. Only a worker
    /// that writes garbage makes the repairs necessary.
    pub fn tick(&mut self, mut each: impl FnMut(SlotIndex)) {
        self.front_group.mend(self.ring.control());
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
                self.unrung[shadow.lane] |=
                    self.front_group.submit(ring, (slot, shadow.generation), lane);
            }
            each(slot);
        }
        // The result is not needed: the next check is in about a second.
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

    /// The account that the front reads after `finish` has finished a request.
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
    fn request_for_held_workers_moves_to_workers_in_service() {
        let ring = Ring::create(1).expect("memory");
        let mut front = FrontEnd::new(ring.clone());
        let mut worker = WorkerEnd::new(ring, 0, Incarnation::new(1).expect("a life"));
        let filling = front.fill().expect("a free slot");
        let slot = front.submit(filling, Lane::AppProbe, Duration::ZERO).expect("room");
        assert!(matches!(worker.take(&[Lane::App], || false), Take::Refused));
        front.move_to_serving(slot);
        front.move_to_serving(slot);
        let Take::Request(taken, _) = worker.take(&[Lane::App], || true) else { panic!("none") };
        assert_eq!(taken, slot);
        let mut looks = 0;
        let again = worker.take(&[Lane::App, Lane::AppProbe], || {
            looks += 1;
            looks < 2
        });
        assert!(matches!(again, Take::Refused), "it is taken once");
    }

    #[test]
    fn usage_and_report_of_worker_reach_front() {
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
    fn oversized_report_is_truncated_to_its_area() {
        let account = told(|worker, slot, _| {
            worker.put_report(slot, &[1; REPORT_BYTES + 1]);
            worker.finish(slot, &Usage::default());
        });
        assert_eq!(account.report.len(), REPORT_BYTES);
    }

    proptest! {
        #[test]
        fn garbage_report_length_and_ending_are_harmless(length: u32, ending: u32) {
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
