//! The table of requests in flight, the tasks that wait for slots, and the points at which the ring
//! is polled.
//!
//! One thread owns all of this. An event of a slot (bytes, room, the end, the death of its worker)
//! wakes the task that awaits the slot. Events are taken just before the runtime would sleep
//! (`before_park`), and every few polls while it does not sleep. A slot whose client has
//! disconnected stays in the table until its worker releases it.
//!
//! ```text
//! Free ──submit──▶ Awaited ──release──▶ Free
//!                     │ cancel (client gone, deadline)     ──▶ Dying ──worker done or dead──▶ Free
//!                     │ leave (client has all it wanted),
//!                     │ dismiss (rest is not needed)       ──▶ Background ──worker done─────▶ Free
//!                     │ impossible content                 ──▶ Quarantined ──time───────────▶ Free
//! ```

use super::admission::{Places, Rate};
use super::shares::Held;
use super::slot::{SlotEntry, SlotUse};
use super::turn_queue::{Costs, GROUPS, Turn, TurnQueue, Window, group};
use super::wake_batching::{Gathering, Rest};
use crate::route::path_settings::Terms;
use crate::runtime::clock::Clock;
use crate::runtime::link::{FrontEvent, Link};
use crate::runtime::rejection::Rejection;
use crate::runtime::wakeup_fd;
use samovar_config::{Scheduling, Settings};
use samovar_log::Throttle;
use samovar_ring::{
    End, Filling, FrontEnd, Lane, Progress, SlotIndex, Supervision, WorkerReport, WorkerState,
};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// The table, shared by all tasks that have a request in it.
pub(crate) type SharedExchanges = Rc<RefCell<Exchanges>>;

/// Number of connection polls after which the ring is polled although the runtime has not become
/// idle.
const POLLS_PER_TURN: u32 = 32;
/// Number of times that events may keep the front awake before it signals its own notifier instead.
const PARK_ROUNDS: usize = 3;
/// Time for which a slot with invalid content is not reused, so that its worker is certainly killed
/// before.
const QUARANTINE_MS: u64 = 2_000;

/// Parameters with which a request is run.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) lane: Lane,
    pub(crate) terms: Terms,
    /// Maximum run time if the script requests more time.
    pub(crate) extended: Duration,
    /// Time that the request has waited for a slot, in ms.
    pub(crate) waited_ms: u64,
    /// The client's place, if requests are counted per client.
    pub(crate) held: Option<Held>,
    /// Its client, if the queue is fair by client.
    pub(crate) turn: Option<Turn>,
    /// It is a client's request for the canary.
    pub(crate) is_canary: bool,
}

/// The table of slots in flight.
#[derive(Debug)]
pub(crate) struct Exchanges {
    pub(super) front: FrontEnd,
    supervision: Supervision,
    pub(super) entries: Vec<SlotEntry>,
    /// Requests that wait for a slot, by group.
    pub(super) waiters: [TurnQueue; GROUPS],
    /// Number of slots reserved for requests that waited, by group.
    pub(super) granted: [usize; GROUPS],
    /// Number of requests in the ring that workers have not finished, by group. The first group is
    /// not counted.
    pub(super) pending: [usize; GROUPS],
    pub(super) window: Window,
    pub(super) costs: Costs,
    /// Number of this thread's requests that no worker had taken at the last sweep.
    pub(super) queued: usize,
    pub(super) news: Vec<SlotIndex>,
    pub(super) scratch: Vec<u8>,
    gathering: Gathering,
    polls: u32,
    is_asleep: bool,
    /// Wakes the task that keeps the runtime from sleeping, so that the clients' sockets are polled
    /// once more.
    look: Option<Waker>,
    /// Wakes the guard when a wake-up was withheld; `None` while the guard's wake-up is pending.
    guard: Option<Waker>,
    pub(super) clock: Rc<Clock>,
    link: Link,
    /// Throttle of the log line about workers that wrote invalid responses.
    pub(super) broken: Throttle,
    script_lane_said_ms: u64,
    pub(super) rate: Rate,
    /// Number of this thread's requests that workers have finished since the last rate measurement.
    finished: u64,
    measured_ms: u64,
    was_waiting: bool,
    /// Maximum number of waiting requests that can be served in time, as of the last sweep.
    in_time_max: usize,
    /// The pool's workers have a low scheduling priority: the front does not have to yield to them.
    is_modest: bool,
}

impl Exchanges {
    /// Creates a table that uses the clock shared by the thread's pools.
    pub(crate) fn by(clock: &Rc<Clock>, front: FrontEnd, link: Link) -> Exchanges {
        let slots = front.part();
        Exchanges {
            supervision: Supervision::new(front.ring().clone()),
            front,
            // The entries before this front's part of the slots stay unused.
            entries: (0..slots.end).map(|_| SlotEntry::FREE).collect(),
            waiters: Default::default(),
            granted: [0; GROUPS],
            pending: [0; GROUPS],
            window: Window::new(),
            costs: Costs::default(),
            queued: 0,
            news: Vec::with_capacity(slots.len()),
            scratch: Vec::with_capacity(8 * 1024),
            gathering: Gathering::default(),
            polls: 0,
            is_asleep: false,
            look: None,
            guard: None,
            clock: Rc::clone(clock),
            link,
            broken: Throttle::default(),
            script_lane_said_ms: 0,
            rate: Rate::default(),
            finished: 0,
            measured_ms: clock.now_ms(),
            was_waiting: false,
            in_time_max: usize::MAX,
            is_modest: false,
        }
    }

    /// Registers the notifier of this thread with the runtime.
    pub(crate) fn register_notifier(&self) -> io::Result<AsyncFd<OwnedFd>> {
        wakeup_fd::register(&self.front)
    }

    /// The clock used for deadlines.
    pub(crate) fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }

    /// Number of requests that no worker has taken: an upper bound, cheap while few slots are in
    /// use.
    pub(crate) fn queue_depth(&self) -> usize {
        self.waiting() + self.queued_by_all()
    }

    /// Number of this thread's requests that no worker had taken at the last sweep. The sum over
    /// all threads counts each request once, and a thread without requests does not have to poll.
    pub(crate) fn swept_depth(&self) -> usize {
        self.waiting() + self.queued
    }

    /// Number of requests that wait for a slot.
    fn waiting(&self) -> usize {
        self.waiters.iter().map(TurnQueue::len).sum()
    }

    /// Number of requests in the ring's queues, submitted by any thread.
    fn queued_by_all(&self) -> usize {
        let queued = self.supervision.queued(Lane::App) + self.supervision.queued(Lane::Script);
        match (queued as usize, self.front.in_use()) {
            (queued, own) if queued <= own => queued,
            // Entries of withdrawn requests count, too. The number of slots in use is an upper
            // bound.
            (queued, _) => queued.min(self.front.in_use_of_all()),
        }
    }

    /// Decides whether one more request may wait; `own` returns how many requests its client has in
    /// progress.
    pub(crate) fn admit(&self, places: &Places, own: impl Fn() -> usize) -> Result<(), Rejection> {
        let places = Places { in_time_max: self.in_time_max, ..*places };
        // With several threads, each knows only its own slots.
        if self.front.is_alone() && places.is_calm(self.waiting() + self.front.in_use()) {
            return Ok(());
        }
        let own = if places.are_shared_out() { own() } else { 0 };
        places.admit(self.queue_depth(), own)
    }

    /// `Retry-After` of a client that is rejected now, in s.
    pub(crate) fn retry_after_s(&self) -> u64 {
        self.rate.retry_after_s(self.queue_depth())
    }

    /// Whether a worker of any generation has booted and takes requests.
    pub(crate) fn has_workers(&self) -> bool {
        self.workers().next().is_some()
    }

    /// Workers that have booted.
    pub(crate) fn workers(&self) -> impl Iterator<Item = WorkerReport> {
        let is_up =
            |report: &WorkerReport| matches!(report.state, WorkerState::Idle | WorkerState::Busy);
        (0..self.supervision.cells()).filter_map(|cell| self.supervision.report(cell)).filter(is_up)
    }

    /// Measures how fast requests are finished. Called with each sweep.
    pub(super) fn measure_rate(&mut self, queue_timeout: Duration) {
        let now_ms = self.clock.now_ms();
        let span = Duration::from_millis(now_ms - self.measured_ms);
        let waits = self.queue_depth() > 0;
        let is_full = waits && std::mem::replace(&mut self.was_waiting, waits);
        self.was_waiting = waits;
        let finished = self.front.count_finished(std::mem::take(&mut self.finished));
        self.rate.look(finished, span, is_full);
        self.in_time_max = self.rate.in_time_max(queue_timeout);
        self.measured_ms = now_ms;
    }

    /// Whether requests for scripts other than the front controller wait.
    pub(crate) fn scripts_wait(&self) -> bool {
        self.front.in_use() > 0 && self.supervision.queued(Lane::Script) > 0
    }

    /// Whether a worker of that lane is idle.
    pub(crate) fn has_idle(&self, lane: Lane) -> bool {
        self.front.has_idle(lane)
    }

    /// Number of the front's threads.
    pub(crate) fn threads(&self) -> usize {
        self.front.ring().fronts()
    }

    /// Number of slots that are not free.
    pub(crate) fn in_use(&self) -> usize {
        self.front.in_use()
    }

    /// Whether the pool's workers have a low scheduling priority.
    pub(crate) fn is_modest(&self) -> bool {
        self.is_modest
    }

    /// Applies the pool's settings for its share of the processor, and for its workers.
    pub(crate) fn heed(&mut self, settings: &Settings) {
        let limits = &settings.limits;
        self.is_modest = limits.nice > 0 || limits.scheduling == Scheduling::Idle;
        self.window.is_elastic = settings.workers.min != settings.workers.max;
    }

    pub(crate) fn put_request(&mut self, filling: &Filling, encoded: &[u8]) {
        self.front.put_request(filling, encoded);
    }

    /// Releases a slot that was filled but not submitted.
    pub(crate) fn give_up(&mut self, filling: Filling) {
        let slot = filling.slot();
        drop(filling);
        self.front.release(slot);
        self.grant_next();
    }

    /// Writes the whole body, before `submit`. Returns false if it does not fit the slot.
    pub(crate) fn put_body(&mut self, filling: &Filling, body: &[u8]) -> bool {
        let written =
            if body.is_empty() { Ok(0) } else { self.front.write_body(filling.slot(), body) };
        self.front.end_body(filling.slot(), End::Complete);
        written == Ok(body.len())
    }

    /// Queues the request. Returns `Err` if the ring's queue is full.
    pub(crate) fn submit(
        &mut self,
        filling: Filling,
        order: Order,
    ) -> Result<(SlotIndex, u32), ()> {
        let Order { lane, terms, extended, waited_ms, held, turn, is_canary } = order;
        let extended_ms = u32::try_from(extended.as_millis()).unwrap_or(u32::MAX);
        self.front.allow_extension(&filling, extended_ms);
        let slot = match self.front.submit(filling, lane, Duration::from_millis(waited_ms)) {
            Ok(slot) => slot,
            Err(filling) => {
                self.give_up(filling);
                return Err(());
            }
        };
        let entry = &mut self.entries[slot.get()];
        let epoch = entry.epoch.wrapping_add(1);
        *entry = SlotEntry {
            used: SlotUse::Awaited,
            epoch,
            submitted_ms: self.clock.now_ms().saturating_sub(waited_ms),
            path_time: terms.time,
            held,
            turn,
            is_canary,
            ..SlotEntry::FREE
        };
        if turn.is_some() {
            self.pending[group(turn)] += 1;
        }
        if self.gathering.submit(self.front.is_brisk()) {
            self.ring_workers();
        }
        Ok((slot, epoch))
    }

    /// Moves requests that wait for the canary to the workers in service. Called when the canary
    /// has ended, or has taken over.
    pub(crate) fn end_canary(&mut self) {
        for index in self.front.part() {
            if std::mem::take(&mut self.entries[index].is_canary)
                && let Some(slot) = SlotIndex::new(index, self.entries.len())
            {
                self.front.move_to_serving(slot);
            }
        }
        self.ring_workers();
    }

    /// Wakes workers for submitted requests whose wake-up was delayed.
    pub(super) fn wake_workers(&mut self) {
        if !self.gathering.is_empty() {
            self.ring_workers();
        }
    }

    fn ring_workers(&mut self) {
        self.gathering.woken();
        if self.front.ring_workers()
            && let Some(guard) = self.guard.take()
        {
            guard.wake();
        }
    }

    /// Polled by the guard: ready when a wake-up was withheld that must be made up for a moment
    /// later.
    pub(crate) fn poll_withheld(&mut self, cx: &Context<'_>, is_first: bool) -> Poll<()> {
        if !is_first && self.guard.is_none() {
            return Poll::Ready(());
        }
        self.guard = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes workers for requests that no worker has taken yet. Returns true if it must be called
    /// again a moment later.
    #[must_use]
    pub(crate) fn ring_withheld(&self) -> bool {
        self.front.ring_withheld()
    }

    /// Never ready. The polling task is woken when the runtime must poll once more before it
    /// sleeps.
    pub(crate) fn poll_look(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.look = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes tasks for the events that arrived. Returns how many tasks were woken.
    pub(crate) fn take_news(&mut self) -> usize {
        let mut news = std::mem::take(&mut self.news);
        self.front.take_news(|slot| news.push(slot));
        let mut woken = 0;
        for slot in news.drain(..) {
            woken += usize::from(self.hear(slot));
        }
        self.news = news;
        woken
    }

    /// Every [`POLLS_PER_TURN`] calls, does the work of an idle point. Needed for a runtime that
    /// never becomes idle.
    pub(crate) fn turn_if_due(&mut self) {
        self.polls += 1;
        if self.polls >= POLLS_PER_TURN {
            self.polls = 0;
            if self.gathering.turn(|| self.front.is_brisk()) {
                self.ring_workers();
            }
            self.take_news();
        }
    }

    /// Called when the runtime has nothing to do. On return, either a task was woken, or the
    /// workers know that the front sleeps.
    pub(crate) fn before_park(&mut self) {
        let front = &self.front;
        match self.gathering.rest(front.in_use(), || front.is_brisk() && !front.has_awake()) {
            Rest::Look => {
                if let Some(look) = &self.look {
                    look.wake_by_ref();
                    return;
                }
                self.ring_workers();
            }
            Rest::Wake => self.ring_workers(),
            Rest::Nothing => {}
        }
        for _ in 0..PARK_ROUNDS {
            // A woken task is in the runtime's queue, because a task that awaits a slot is alive.
            // So the runtime will not sleep.
            if self.take_news() > 0 {
                return;
            }
            if self.front.fall_asleep() {
                self.is_asleep = true;
                return;
            }
        }
        self.front.ring_self();
    }

    pub(crate) fn after_unpark(&mut self) {
        self.clock.refresh();
        self.stay_awake();
    }

    /// Does the same as [`Self::after_unpark`] without reading the clock, which the caller has
    /// done.
    pub(crate) fn stay_awake(&mut self) {
        if std::mem::take(&mut self.is_asleep) {
            self.front.wake_up();
        }
    }

    /// Handles an event of a slot. Returns true if a task was woken.
    fn hear(&mut self, slot: SlotIndex) -> bool {
        let now_ms = self.clock.now_ms();
        let entry = &mut self.entries[slot.get()];
        match entry.used {
            SlotUse::Awaited => {
                entry.quiet_since_ms = now_ms;
                entry.unseen = true;
                entry.wake();
                let is_awaited = entry.waker.is_some();
                if entry.turn.is_some() && !self.has_worker(slot) {
                    self.finish_turn(slot);
                    return self.grant_next() || is_awaited;
                }
                is_awaited
            }
            SlotUse::Background => {
                self.discard(slot);
                false
            }
            SlotUse::Dying => {
                if !self.front.is_workers(slot) {
                    self.release(slot);
                }
                false
            }
            SlotUse::Free | SlotUse::Quarantined { .. } => false,
        }
    }

    /// Discards response bytes that no client reads any more; frees the slot when its worker has
    /// finished.
    pub(super) fn discard(&mut self, slot: SlotIndex) {
        self.scratch.clear();
        match self.front.read_body(slot, &mut self.scratch) {
            Ok(_) if !self.front.is_workers(slot) => self.release(slot),
            // The script writes more than it declared.
            Ok(End::Open) if !self.scratch.is_empty() => self.serve(slot, None),
            Ok(_) => {}
            Err(_) => self.quarantine(slot),
        }
    }

    pub(super) fn release(&mut self, slot: SlotIndex) {
        self.finished += 1;
        self.finish_turn(slot);
        if let Some(later) = self.entries[slot.get()].later.take()
            && let Ok(Progress::Responded) = self.front.progress(slot)
        {
            later.tell(self.front.account(slot));
        }
        self.front.release(slot);
        self.forget(slot, SlotUse::Free);
        self.grant_next();
    }

    pub(super) fn quarantine(&mut self, slot: SlotIndex) {
        self.forget(slot, SlotUse::Quarantined { until_ms: self.clock.now_ms() + QUARANTINE_MS });
    }

    pub(super) fn forget(&mut self, slot: SlotIndex, used: SlotUse) {
        if matches!(used, SlotUse::Free | SlotUse::Quarantined { .. }) {
            self.finish_turn(slot);
        }
        let entry = &mut self.entries[slot.get()];
        entry.used = used;
        entry.waker = None;
        entry.alone_since_ms = 0;
        if used == SlotUse::Free {
            entry.held = None;
            entry.later = None;
            entry.served = None;
        }
        if let Some(pump) = entry.pump.take() {
            pump.wake();
        }
    }

    /// Sends events to the supervisor: workers to kill, or workers to start.
    pub(crate) fn tell(&self, events: impl IntoIterator<Item = FrontEvent>) {
        events.into_iter().for_each(|event| self.link.tell(event));
    }

    /// Announces script requests to the supervisor, at most once per turn.
    pub(crate) fn announce_lane(&mut self, lane: Lane) {
        let now_ms = self.clock.now_ms();
        if lane == Lane::Script
            && std::mem::replace(&mut self.script_lane_said_ms, now_ms) != now_ms
        {
            self.link.tell(FrontEvent::LaneNeeded(lane));
        }
    }

    /// Once a second: recovers events that were lost between the processes.
    pub(crate) fn tick(&mut self) {
        let mut news = std::mem::take(&mut self.news);
        self.front.tick(|slot| news.push(slot));
        for slot in news.drain(..) {
            match self.entries[slot.get()].used {
                SlotUse::Awaited => self.entries[slot.get()].wake(),
                _ => {
                    self.hear(slot);
                }
            }
        }
        self.news = news;
    }
}
