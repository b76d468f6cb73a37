//! The worker's view of the protocol: takes requests, reads their bodies, writes responses, blocks
//! where it must.
//!
//! A worker trusts the front. It may be killed at any instruction. The order of its stores
//! determines the state that other processes see then, and a repair cleans up the rest.

use crate::cells::{SlotCell, WorkerCell};
use crate::interim::{FRAME_BYTES, Frame, INTERIM_BYTES_MAX};
use crate::layout::Lane;
use crate::limits::{
    BODY_BYTES, HEAD_BYTES, LANES, REPORT_BYTES, RESPONSE_BYTES, SlotIndex, WORKERS_MAX,
};
use crate::map::{Part, Ring};
use crate::os;
use crate::protocol::Held;
use crate::report::{
    DesiredState, LeaveReason, MessageLevel, Model, Overrun, RETURNS, WorkerState,
};
use crate::run_permits::RunPermit;
use crate::stream::End;
use crate::sync::Ordering;
use crate::usage::{Usage, WorkerName};
use crate::word::Incarnation;
use zerocopy::IntoBytes;

/// php-fpm buffers as many bytes before it writes, and notices only then that the client is gone.
const CHECK_BYTES: u64 = 8 * 1024;

/// The request was cancelled: the client is gone or the deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

/// Result of [`WorkerEnd::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// A request to run, and its submission time, `CLOCK_MONOTONIC` ns.
    Request(SlotIndex, u64),
    /// The server shuts down, or this worker's generation is over.
    Stop,
    /// The caller must not take another request.
    Refused,
}

/// The worker's end of the ring, with the position of the response it is writing.
#[derive(Debug)]
pub struct WorkerEnd {
    ring: Ring,
    index: usize,
    me: Incarnation,
    name: WorkerName,
    begun: bool,
    body_read: u64,
    response_written: u64,
    /// Lanes that this worker has joined, one bit each.
    joined: u8,
    /// Process id of the parent that forked it. A different parent has adopted it.
    parent: i32,
    /// Number of sleeps for lack of a request.
    idle_sleeps: u32,
    /// Number and total time, ns, of waits for the client.
    client_waits: (u32, u64),
}

impl WorkerEnd {
    /// Creates the end of worker number `index` (its cell), incarnation `me`.
    ///
    /// # Panics
    /// If `index` is not below [`WORKERS_MAX`].
    pub fn new(ring: Ring, index: usize, me: Incarnation) -> WorkerEnd {
        assert!(index < WORKERS_MAX, "worker {index} has no cell");
        let cell = &ring.control().workers[index].0;
        cell.incarnation.store(me.get(), Ordering::SeqCst);
        cell.state.store(WorkerState::Starting.code(), Ordering::Relaxed);
        cell.requests.store(0, Ordering::Relaxed);
        cell.slot.store(0, Ordering::Relaxed);
        cell.model.store(Model::Script.code(), Ordering::Relaxed);
        cell.hot_pages.store(0, Ordering::Relaxed);
        cell.rollbacks.store(0, Ordering::Relaxed);
        cell.leave.store(0, Ordering::Relaxed);
        ring.control().release_permit(index);
        let name = WorkerName {
            pid: std::process::id(),
            cell: index as u16,
            generation: cell.generation.load(Ordering::Relaxed) as u16,
        };
        WorkerEnd {
            ring,
            index,
            me,
            name,
            begun: false,
            body_read: 0,
            response_written: 0,
            joined: 0,
            parent: os::parent(),
            idle_sleeps: 0,
            client_waits: (0, 0),
        }
    }

    /// Its number among the live workers of all generations.
    #[must_use]
    pub fn place(&self) -> usize {
        self.index
    }

    /// Generation of the application it was forked for, as the supervisor counts.
    pub fn generation(&self) -> u32 {
        self.cell().generation.load(Ordering::Relaxed)
    }

    fn cell(&self) -> &WorkerCell {
        &self.ring.control().workers[self.index].0
    }

    fn slot(&self, slot: SlotIndex) -> &SlotCell {
        &self.ring.cells()[slot.get()]
    }

    /// Reports this worker's activity, for `samovar status`.
    pub fn report_state(&self, state: WorkerState) {
        self.cell().state.store(state.code(), Ordering::Relaxed);
    }

    /// Reports that the worker returns to the image, until it reports another state. It is busy
    /// then, with work that must not take long.
    pub fn report_return(&self) {
        self.cell().state.store(RETURNS, Ordering::Relaxed);
    }

    /// Reports the model that its application chose, for `samovar status` and the supervisor's
    /// choice of lanes.
    pub fn report_model(&self, model: Model) {
        self.cell().model.store(model.code(), Ordering::SeqCst);
    }

    /// Counts a return to the image for `samovar status`. It took `ns` and copied `pages` pages;
    /// `searched` if it searched memory for more.
    pub fn report_rollback(&self, ns: u64, pages: usize, searched: bool) {
        let cell = self.cell();
        cell.rollbacks.fetch_add(1, Ordering::Relaxed);
        cell.hot_pages.store(u32::try_from(pages).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.ring.control().rollback_times.0.record(ns, searched);
    }

    /// Counts a reset of the session of a database connection for `samovar status`.
    pub fn report_connection_reset(&self) {
        self.ring.control().rollback_times.0.connection_resets.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message of PHP.
    pub fn report_message(&self, level: MessageLevel) {
        self.ring.control().messages.0.record(level);
    }

    /// Reports to the supervisor why this process ends now.
    pub fn report_leave(&self, reason: LeaveReason) {
        self.cell().leave.store(reason.code(), Ordering::SeqCst);
    }

    /// Waits for the oldest request of `lanes` and takes it; wakes the next worker if more wait.
    ///
    /// Calls `may_take` before each attempt, at least once a second.
    pub fn take(&mut self, lanes: &[Lane], mut may_take: impl FnMut() -> bool) -> Take {
        if self.is_held()
            && let Some(taken) = self.wait_for_permit(lanes, &mut may_take)
        {
            return taken;
        }
        self.join(lanes);
        let control = self.ring.control();
        let mut has_run = true;
        loop {
            if !may_take() {
                control.release_permit(self.index);
                control.yield_permit(&[]);
                return Take::Refused;
            }
            if control.is_stopping() {
                control.release_permit(self.index);
                return Take::Stop;
            }
            if control.desired_state(self.index) == DesiredState::Retire {
                control.retire(self.index);
                return Take::Stop;
            }
            if control.acquire_permit(self.index)
                && let Some(slot) = control.take(lanes, self.ring.slots(), self.me)
            {
                control.pass_on(lanes);
                return self.begin(slot);
            }
            self.report_state(WorkerState::Idle);
            let was_woken = control.sleep(self.index, lanes, has_run);
            has_run = false;
            self.idle_sleeps += 1;
            self.beat();
            if !was_woken && self.is_orphan() {
                return Take::Stop;
            }
        }
    }

    /// Waits while the worker is held back; in this state it takes only probes. `None` if it is not
    /// held back, or no longer.
    fn wait_for_permit(
        &mut self,
        lanes: &[Lane],
        may_take: &mut impl FnMut() -> bool,
    ) -> Option<Take> {
        self.report_state(WorkerState::Idle);
        self.ring.control().release_permit(self.index);
        while self.is_held() && !self.ring.control().is_stopping() {
            if !may_take() {
                return Some(Take::Refused);
            }
            let held = self.hold(lanes);
            self.beat();
            match held {
                Held::Probe(slot) => return Some(self.begin(slot)),
                Held::Unwoken if self.is_orphan() => return Some(Take::Stop),
                Held::Woken | Held::Unwoken => {}
            }
        }
        None
    }

    /// Bytes of the response body so far, interim responses included.
    pub fn response_bytes(&self) -> u64 {
        self.response_written
    }

    /// Requests finished by this incarnation.
    pub fn requests(&self) -> u64 {
        self.cell().requests.load(Ordering::Relaxed)
    }

    /// Number of sleeps for lack of a request since the last call.
    pub fn take_idle_sleeps(&mut self) -> u32 {
        std::mem::take(&mut self.idle_sleeps)
    }

    /// Its run permit, for code that knows when the worker waits within a request.
    pub fn turn(&self) -> RunPermit {
        RunPermit::new(self.ring.clone(), self.index)
    }

    /// Number and total time, ns, of waits for the client since the last call.
    pub fn take_client_waits(&mut self) -> (u32, u64) {
        std::mem::take(&mut self.client_waits)
    }

    /// Shows the supervisor that this process runs.
    fn beat(&self) {
        let beat = &self.cell().beat;
        beat.store(beat.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Whether its parent has died. The kernel kills the worker then (`PR_SET_PDEATHSIG`), unless a
    /// request has changed its user. So a waiting worker also checks here, at least once a second.
    fn is_orphan(&self) -> bool {
        os::parent() != self.parent
    }

    fn begin(&mut self, slot: SlotIndex) -> Take {
        let cell = self.cell();
        cell.slot.store(slot.get() as u32 + 1, Ordering::Relaxed);
        cell.state.store(WorkerState::Busy.code(), Ordering::Relaxed);
        let submitted = self.slot(slot).request.0.submitted_ns.load(Ordering::Relaxed);
        (self.begun, self.body_read, self.response_written) = (false, 0, 0);
        Take::Request(slot, submitted)
    }

    /// Waits to be released, or takes a probe.
    fn hold(&self, lanes: &[Lane]) -> Held {
        let mut probes = [Lane::AppProbe; LANES];
        for (probe, lane) in probes.iter_mut().zip(lanes) {
            *probe = lane.probe();
        }
        let probes = &probes[..lanes.len().min(LANES)];
        self.ring.control().hold(self.index, probes, self.ring.slots(), self.me)
    }

    fn is_held(&self) -> bool {
        self.ring.control().desired_state(self.index) == DesiredState::Hold
    }

    /// Sets the lanes that this worker serves: from now on it may be woken for them. A held-back
    /// worker serves none yet.
    pub fn join(&mut self, lanes: &[Lane]) {
        let wanted = lanes.iter().fold(0u8, |bits, lane| bits | 1 << *lane as u8);
        if wanted == self.joined || self.is_held() {
            return;
        }
        self.ring.control().join(self.index, lanes);
        self.joined = wanted;
    }

    /// The encoded request head. Valid until [`Self::finish`].
    pub fn request(&self, slot: SlotIndex) -> *const u8 {
        self.ring.area(slot, Part::Request).as_ptr()
    }

    /// Reads up to `room` bytes of the request body into `out`, which it clears first. Blocks while
    /// no bytes are available.
    ///
    /// `out` is empty at the end of the body. Returns `Aborted` if the client left before it had
    /// sent all bytes.
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
            let was_woken = self.wait_for_client(slot, |cell| {
                cell.body.0.end() == End::Open
                    && matches!(cell.body.0.readable(at, BODY_BYTES), Ok(0))
                    && !cell.is_cancelled()
            });
            if !was_woken && self.is_orphan() {
                return Err(Aborted);
            }
        }
    }

    /// Writes the response head: header lines `Name: value\n`. The next flush or the finish
    /// publishes it.
    ///
    /// Returns false if the lines are longer than the head area, or if the response has begun.
    #[must_use]
    pub fn put_head(&mut self, slot: SlotIndex, status: u16, lines: &[u8]) -> bool {
        if lines.len() > HEAD_BYTES || self.begun {
            return false;
        }
        self.ring.area(slot, Part::Head).put(0, lines);
        let response = &self.slot(slot).response.0;
        response.head_bytes.store(lines.len() as u32, Ordering::Relaxed);
        response.status.store(u32::from(status), Ordering::Relaxed);
        true
    }

    /// Sends an interim response before the response, with header lines as in [`Self::put_head`].
    ///
    /// Returns false if the response has begun or already has body bytes, or if the interim
    /// responses of this request would exceed their limit.
    #[must_use]
    pub fn put_interim(&mut self, slot: SlotIndex, status: u16, lines: &[u8]) -> bool {
        let cell = self.slot(slot);
        let interim_bytes = &cell.response.0.interim_bytes;
        let has_body = self.response_written != u64::from(interim_bytes.load(Ordering::Relaxed));
        let end = self.response_written as usize + FRAME_BYTES + lines.len();
        if self.begun || has_body || end > INTERIM_BYTES_MAX {
            return false;
        }
        // They fit: the window is larger than all interim responses together.
        let area = self.ring.area(slot, Part::Response);
        area.write_at(self.response_written, Frame::new(status, lines).as_bytes());
        area.write_at(self.response_written + FRAME_BYTES as u64, lines);
        cell.response_stream.0.publish_written(end as u64);
        interim_bytes.store(end as u32, Ordering::Release);
        self.response_written = end as u64;
        self.tell_front(slot);
        true
    }

    /// Appends to the response body. Blocks until the front has made room.
    ///
    /// Checks after every [`CHECK_BYTES`] whether the client waits, because a script may never
    /// flush.
    pub fn write_body(&mut self, slot: SlotIndex, mut bytes: &[u8]) -> Result<(), Aborted> {
        let end = self.response_written + bytes.len() as u64;
        if self.response_written / CHECK_BYTES != end / CHECK_BYTES && self.is_cancelled(slot) {
            return Err(Aborted);
        }
        while !bytes.is_empty() {
            let stream = &self.slot(slot).response_stream.0;
            let room =
                stream.writable(self.response_written, RESPONSE_BYTES).map_err(|_| Aborted)?;
            if room == 0 {
                self.wait_for_room(slot)?;
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.ring.area(slot, Part::Response).write_at(self.response_written, now);
            self.response_written += now.len() as u64;
            self.slot(slot).response_stream.0.publish_written(self.response_written);
            bytes = later;
        }
        Ok(())
    }

    fn wait_for_room(&mut self, slot: SlotIndex) -> Result<(), Aborted> {
        self.flush(slot)?;
        let at = self.response_written;
        let was_woken = self.wait_for_client(slot, |cell| {
            matches!(cell.response_stream.0.writable(at, RESPONSE_BYTES), Ok(0))
                && !cell.is_cancelled()
        });
        let is_over = self.is_cancelled(slot) || !was_woken && self.is_orphan();
        if is_over { Err(Aborted) } else { Ok(()) }
    }

    fn wait_for_client(&mut self, slot: SlotIndex, must_wait: impl Fn(&SlotCell) -> bool) -> bool {
        let from = os::monotonic_ns();
        let control = self.ring.control();
        if control.pause_permit(self.index) {
            control.yield_permit(&[]);
        }
        let was_woken = self.slot(slot).wait(must_wait);
        control.resume_permit(self.index);
        self.client_waits.0 += 1;
        self.client_waits.1 += os::monotonic_ns().saturating_sub(from);
        was_woken
    }

    /// Publishes the head and the body so far; the front delivers them at once.
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

    /// Completes the response (the client gets its end) while the worker continues:
    /// `fastcgi_finish_request`.
    pub fn end_response(&mut self, slot: SlotIndex) -> Result<(), Aborted> {
        self.slot(slot).response_stream.0.publish_end(End::Complete);
        self.flush(slot)
    }

    /// Marks the response as incomplete: the client's connection is cut.
    pub fn abort_response(&mut self, slot: SlotIndex) {
        self.slot(slot).response_stream.0.publish_end(End::Aborted);
    }

    /// Whether the front has cancelled the request: the client no longer waits.
    pub fn is_cancelled(&self, slot: SlotIndex) -> bool {
        self.slot(slot).is_cancelled()
    }

    /// Writes the worker's report on the request, in addition to the usage. Truncated to the size
    /// of its area.
    pub fn put_report(&mut self, slot: SlotIndex, report: &[u8]) {
        let report = &report[..report.len().min(REPORT_BYTES)];
        self.ring.area(slot, Part::Report).put(0, report);
        self.slot(slot).response.0.report_bytes.store(report.len() as u32, Ordering::Relaxed);
    }

    /// The time limit that the request in `slot` exceeded; its script must end.
    pub fn overrun(&self, slot: SlotIndex) -> Option<Overrun> {
        Overrun::from_code(self.slot(slot).request.0.overrun.load(Ordering::SeqCst))
    }

    /// Requests that the script, which has run for `run_ms`, may run for `more_ms` from now on.
    /// Returns the granted part of that, ms.
    pub fn extend(&self, slot: SlotIndex, run_ms: u64, more_ms: u64) -> u64 {
        let slot = self.slot(slot);
        let most_ms = u64::from(slot.request.0.extended_ms_max.load(Ordering::Relaxed));
        let wanted_ms = run_ms.saturating_add(more_ms).min(most_ms);
        let granted_ms = wanted_ms.saturating_sub(run_ms);
        if granted_ms > 0 {
            let wanted_ms = u32::try_from(wanted_ms).unwrap_or(u32::MAX);
            // An earlier, longer grant stays valid.
            slot.request.0.wanted_ms.fetch_max(wanted_ms, Ordering::Relaxed);
        }
        granted_ms
    }

    /// Reports whether the script continues when its client is gone.
    pub fn outlive_client(&self, slot: SlotIndex, outlives: bool) {
        self.slot(slot).request.0.outlives.store(u32::from(outlives), Ordering::Relaxed);
    }

    /// Gives the slot back to the front, with the usage of the request. An open response becomes
    /// complete.
    pub fn finish(&mut self, slot: SlotIndex, usage: &Usage) {
        let cell = self.slot(slot);
        if cell.response_stream.0.end() == End::Open {
            cell.response_stream.0.publish_end(End::Complete);
        }
        let model = Model::from_code(self.cell().model.load(Ordering::Relaxed));
        let model = model.unwrap_or(Model::Script);
        cell.store_usage(&Usage { model, worker: self.name, ..*usage });
        self.ring.control().pace.0.record(usage.busy_ns());
        let front = self.ring.parts().front_of(slot);
        if self.ring.control().finish(self.index, (slot, front), self.me) {
            self.ring.ring_front(front);
        }
    }

    fn tell_front(&self, slot: SlotIndex) {
        let front = self.ring.parts().front_of(slot);
        if self.ring.control().notifier(front).mark(slot) {
            self.ring.ring_front(front);
        }
    }
}
