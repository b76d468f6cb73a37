//! front ↔ ring: the table of requests in flight, who waits for which slot, and when the ring is looked at.
//!
//! One thread owns all of this. A slot's news (bytes, room, the end, its worker's death) wake the task that
//! awaits the slot; they are taken just before the runtime would sleep (`before_park`), and every few
//! polls while it does not. A slot whose client has gone stays in the table until its worker lets go of it.
//!
//! ```text
//!  Free ──submit──▶ Awaited ──release──▶ Free
//!                      │ cancel (client gone, deadline)     ──▶ Dying ──worker done or dead──▶ Free
//!                      │ let_go (client has all it wanted)  ──▶ Background ──worker done─────▶ Free
//!                      │ impossible content                 ──▶ Quarantined ──time───────────▶ Free
//! ```

mod answer;
mod feed;
mod wait;

pub(crate) use answer::{Answer, Exchange, Piece, Told};
pub(crate) use feed::Feed;
pub(crate) use wait::SlotWait;

use crate::link::{FrontEvent, KillReason};
use crate::options::Timeouts;
use samovar_ring::{
    End, Filling, FrontEnd, Hostile, Incarnation, Lane, Progress, Ring, SlotIndex, Supervision,
    monotonic_ns,
};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wait::Waiter;

/// Submissions after which the workers are woken although the runtime has not come to rest; while requests are
/// short, the runtime comes to rest soon enough.
const SUBMIT_BATCH: u32 = 16;
/// Polls of connections after which the ring is looked at although the runtime has not come to rest.
const POLLS_PER_TURN: u32 = 32;
/// How often news may keep the front from sleeping before it rings its own bell instead.
const PARK_ROUNDS: usize = 3;
/// A slot with impossible content is not used again before its worker is certainly killed.
const QUARANTINE_MS: u64 = 2_000;

/// Why a submitted request gets no (further) answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No worker took it in time.
    QueueTimeout,
    /// The worker gave no byte in time.
    AnswerTimeout,
    /// The worker died.
    Orphaned,
    /// The worker wrote nonsense, or ended without an answer.
    Broken(&'static str),
    /// The worker said that the answer is incomplete.
    Aborted,
    /// The answer is shorter than the length it declared.
    Short,
    /// The request's body did not come as promised.
    Body(BodyFailure),
}

/// What was wrong with a request body that was passed on as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFailure {
    /// Longer than the limit.
    TooLarge,
    /// The client stopped sending.
    Timeout,
    /// The client went away, or broke the protocol.
    Incomplete,
}

impl From<Hostile> for Lost {
    fn from(hostile: Hostile) -> Lost {
        Lost::Broken(hostile.what)
    }
}

/// What a slot is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    Awaited,
    Dying,
    Background,
    Quarantined { until_ms: u64 },
}

#[derive(Debug)]
struct Entry {
    used: Use,
    /// Counts the uses, so that a pump notices that its exchange is over.
    epoch: u32,
    waker: Option<Waker>,
    pump: Option<Waker>,
    lost: Option<Lost>,
    /// There is news that the awaiting task has not looked at: the client is slow, not the worker.
    unseen: bool,
    /// The client owes body bytes: the worker may be waiting for them.
    is_feeding: bool,
    submitted_ms: u64,
    /// Since when the worker owes a sign of life; 0 while the request is queued.
    quiet_since_ms: u64,
    killed: bool,
}

impl Entry {
    const FREE: Entry = Entry {
        used: Use::Free,
        epoch: 0,
        waker: None,
        pump: None,
        lost: None,
        unseen: false,
        is_feeding: false,
        submitted_ms: 0,
        quiet_since_ms: 0,
        killed: false,
    };

    fn wake(&self) {
        for waker in [&self.waker, &self.pump].into_iter().flatten() {
            waker.wake_by_ref();
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Exchanges {
    front: FrontEnd,
    supervision: Supervision,
    entries: Vec<Entry>,
    waiters: VecDeque<Rc<Waiter>>,
    granted: usize,
    news: Vec<SlotIndex>,
    scratch: Vec<u8>,
    unrung: u32,
    polls: u32,
    is_asleep: bool,
    /// Tells the guard that a wake-up was withheld; `None` while it is on its way.
    guard: Option<Waker>,
    /// `CLOCK_MONOTONIC` in ms at the last sweep: good enough for every deadline.
    now_ms: u64,
}

impl Exchanges {
    pub(crate) fn new(ring: Ring) -> Exchanges {
        let slots = ring.slots();
        Exchanges {
            supervision: Supervision::new(ring.clone()),
            front: FrontEnd::new(ring),
            entries: (0..slots).map(|_| Entry::FREE).collect(),
            waiters: VecDeque::new(),
            granted: 0,
            news: Vec::with_capacity(slots),
            scratch: Vec::with_capacity(8 * 1024),
            unrung: 0,
            polls: 0,
            is_asleep: false,
            guard: None,
            now_ms: monotonic_ns() / 1_000_000,
        }
    }

    /// Requests that no worker has taken: an upper bound, cheap while few slots are in use.
    pub(crate) fn queue_depth(&self) -> usize {
        let queued = self.supervision.queued(Lane::App) + self.supervision.queued(Lane::Script);
        self.waiters.len() + (queued as usize).min(self.front.in_use())
    }

    /// Whether one more request may wait.
    pub(crate) fn has_queue_room(&self, queue_max: usize) -> bool {
        let most = self.waiters.len() + self.front.in_use();
        most < queue_max || self.queue_depth() < queue_max
    }

    /// Whether requests for scripts other than the front controller wait.
    pub(crate) fn scripts_wait(&self) -> bool {
        self.front.in_use() > 0 && self.supervision.queued(Lane::Script) > 0
    }

    /// Slots that are not free.
    pub(crate) fn in_use(&self) -> usize {
        self.front.in_use()
    }

    /// Takes a slot, unless others wait for one.
    pub(crate) fn fill(&mut self) -> Option<Filling> {
        let free = self.entries.len() - self.front.in_use();
        if !self.waiters.is_empty() || free <= self.granted { None } else { self.front.fill() }
    }

    pub(crate) fn put_request(&mut self, filling: &Filling, encoded: &[u8]) {
        self.front.put_request(filling, encoded);
    }

    /// Gives back a slot that was filled in vain.
    pub(crate) fn give_up(&mut self, filling: Filling) {
        let slot = filling.slot();
        drop(filling);
        self.front.release(slot);
        self.grant_next();
    }

    /// The whole body, before `submit`. False: it does not fit the slot.
    pub(crate) fn put_body(&mut self, filling: &Filling, body: &[u8]) -> bool {
        let written =
            if body.is_empty() { Ok(0) } else { self.front.write_body(filling.slot(), body) };
        self.front.end_body(filling.slot(), End::Complete);
        written == Ok(body.len())
    }

    /// Queues the request. Err: the ring's queue is full.
    pub(crate) fn submit(&mut self, filling: Filling, lane: Lane) -> Result<(SlotIndex, u32), ()> {
        let slot = match self.front.submit(filling, lane) {
            Ok(slot) => slot,
            Err(filling) => {
                self.give_up(filling);
                return Err(());
            }
        };
        let entry = &mut self.entries[slot.get()];
        let epoch = entry.epoch.wrapping_add(1);
        *entry = Entry { used: Use::Awaited, epoch, submitted_ms: self.now_ms, ..Entry::FREE };
        self.unrung += 1;
        if self.unrung >= SUBMIT_BATCH && !self.front.is_brisk() {
            self.ring_workers();
        }
        Ok((slot, epoch))
    }

    fn ring_workers(&mut self) {
        self.unrung = 0;
        if self.front.ring_workers()
            && let Some(guard) = self.guard.take()
        {
            guard.wake();
        }
    }

    /// The guard: ready when a wake-up was withheld, which is to be made up for a moment later.
    pub(crate) fn poll_withheld(&mut self, cx: &Context<'_>, is_first: bool) -> Poll<()> {
        if !is_first && self.guard.is_none() {
            return Poll::Ready(());
        }
        self.guard = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes workers for requests that nobody has taken yet.
    pub(crate) fn ring_withheld(&self) {
        self.front.ring_withheld();
    }

    /// Wakes workers for what was submitted and tasks for what has come. Returns how many were woken.
    pub(crate) fn turn(&mut self) -> usize {
        if self.unrung > 0 {
            self.ring_workers();
        }
        let mut news = std::mem::take(&mut self.news);
        self.front.take_news(|slot| news.push(slot));
        let mut woken = 0;
        for slot in news.drain(..) {
            woken += usize::from(self.hear(slot));
        }
        self.news = news;
        woken
    }

    /// As [`Self::turn`], every [`POLLS_PER_TURN`] calls: for a runtime that never comes to rest.
    pub(crate) fn turn_if_due(&mut self) {
        self.polls += 1;
        if self.polls >= POLLS_PER_TURN {
            self.polls = 0;
            self.turn();
        }
    }

    /// The runtime has nothing to do. Afterwards either somebody was woken, or workers know that the front sleeps.
    pub(crate) fn before_park(&mut self) {
        for _ in 0..PARK_ROUNDS {
            // A woken task is in the runtime's queue (whoever awaits a slot lives), so it will not sleep.
            if self.turn() > 0 {
                return;
            }
            if self.front.fall_asleep() {
                self.is_asleep = true;
                return;
            }
        }
        self.front.ring().ring_front();
    }

    pub(crate) fn after_unpark(&mut self) {
        if std::mem::take(&mut self.is_asleep) {
            self.front.wake_up();
        }
    }

    /// News of a slot. True: a task was woken.
    fn hear(&mut self, slot: SlotIndex) -> bool {
        let entry = &mut self.entries[slot.get()];
        match entry.used {
            Use::Awaited => {
                entry.quiet_since_ms = self.now_ms;
                entry.unseen = true;
                entry.wake();
                entry.waker.is_some()
            }
            Use::Background => {
                entry.quiet_since_ms = self.now_ms;
                self.discard(slot);
                false
            }
            Use::Dying => {
                if !self.front.is_workers(slot) {
                    self.release(slot);
                }
                false
            }
            Use::Free | Use::Quarantined { .. } => false,
        }
    }

    /// Makes room in an answer that nobody reads any more; frees the slot when its worker is done.
    fn discard(&mut self, slot: SlotIndex) {
        self.scratch.clear();
        match self.front.read_body(slot, &mut self.scratch) {
            Ok(_) if !self.front.is_workers(slot) => self.release(slot),
            Ok(_) => {}
            Err(_) => self.quarantine(slot),
        }
    }

    fn release(&mut self, slot: SlotIndex) {
        self.front.release(slot);
        self.forget(slot, Use::Free);
        self.grant_next();
    }

    fn quarantine(&mut self, slot: SlotIndex) {
        self.forget(slot, Use::Quarantined { until_ms: self.now_ms + QUARANTINE_MS });
    }

    fn forget(&mut self, slot: SlotIndex, used: Use) {
        let entry = &mut self.entries[slot.get()];
        entry.used = used;
        entry.waker = None;
        if let Some(pump) = entry.pump.take() {
            pump.wake();
        }
    }

    /// A slot has become free: keeps it for who has waited longest.
    fn grant_next(&mut self) {
        while self.entries.len() - self.front.in_use() > self.granted {
            let Some(waiter) = self.waiters.pop_front() else { return };
            self.granted += 1;
            waiter.grant();
        }
    }

    /// Gives up on a request: its slot is free now, or when its worker is done with it.
    fn cancel(&mut self, slot: SlotIndex) {
        if self.front.cancel(slot) {
            self.forget(slot, Use::Free);
            self.grant_next();
        } else {
            // The deadline that ran for the client runs on for the slot.
            self.forget(slot, Use::Dying);
        }
    }

    /// Impossible content: the worker is to be killed, the slot rests.
    fn accuse(&mut self, slot: SlotIndex, kills: &mut Vec<FrontEvent>) {
        push_kill(self.front.owner(slot), KillReason::BrokenRing, kills);
        self.quarantine(slot);
    }

    /// Checks every deadline; appends the workers that must die to `kills`.
    pub(crate) fn sweep(&mut self, timeouts: &Timeouts, kills: &mut Vec<FrontEvent>) {
        self.now_ms = monotonic_ns() / 1_000_000;
        self.turn();
        for index in 0..self.entries.len() {
            let Some(slot) = SlotIndex::new(index, self.entries.len()) else { continue };
            match self.entries[index].used {
                Use::Free | Use::Background => {}
                Use::Quarantined { until_ms } if until_ms > self.now_ms => {}
                Use::Quarantined { .. } => self.release(slot),
                Use::Awaited | Use::Dying => self.check_deadlines(slot, timeouts, kills),
            }
        }
        self.expire_waiters(timeouts.queue);
    }

    fn check_deadlines(
        &mut self,
        slot: SlotIndex,
        timeouts: &Timeouts,
        kills: &mut Vec<FrontEvent>,
    ) {
        let now_ms = self.now_ms;
        let progress = self.front.progress(slot);
        let owner = self.front.owner(slot);
        let entry = &mut self.entries[slot.get()];
        let lost = match progress {
            Ok(Progress::Queued) if is_over(timeouts.queue, entry.submitted_ms, now_ms) => {
                Lost::QueueTimeout
            }
            Ok(Progress::Running | Progress::Answering) => {
                let is_ours = entry.unseen || entry.is_feeding;
                if entry.quiet_since_ms == 0 || is_ours {
                    entry.quiet_since_ms = now_ms;
                }
                if entry.killed || !is_over(timeouts.answer, entry.quiet_since_ms, now_ms) {
                    return;
                }
                entry.killed = true;
                push_kill(owner, KillReason::AnswerTimeout, kills);
                Lost::AnswerTimeout
            }
            _ => return,
        };
        entry.lost = Some(lost);
        entry.wake();
    }

    fn expire_waiters(&mut self, timeout: Duration) {
        while let Some(first) = self.waiters.front() {
            if !is_over(timeout, first.since_ms, self.now_ms) {
                return;
            }
            first.expire();
            self.waiters.pop_front();
        }
    }

    /// Once a second: what was lost between the processes is found again.
    pub(crate) fn tick(&mut self) {
        let mut news = std::mem::take(&mut self.news);
        self.front.tick(|slot| news.push(slot));
        for slot in news.drain(..) {
            match self.entries[slot.get()].used {
                Use::Awaited => self.entries[slot.get()].wake(),
                _ => {
                    self.hear(slot);
                }
            }
        }
        self.news = news;
    }
}

fn is_over(timeout: Duration, since_ms: u64, now_ms: u64) -> bool {
    !timeout.is_zero() && now_ms.saturating_sub(since_ms) >= timeout.as_millis() as u64
}

fn push_kill(owner: u32, reason: KillReason, kills: &mut Vec<FrontEvent>) {
    if let Some(incarnation) = Incarnation::new(owner) {
        kills.push(FrontEvent::KillWorker { incarnation, reason });
    }
}

fn register(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *place = Some(cx.waker().clone()),
    }
}
