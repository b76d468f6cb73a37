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

use crate::link::{FrontEvent, KillReason};
use crate::options::Timeouts;
use crate::shared::Shared;
use bytes::Bytes;
use samovar_ring::{
    End, Filling, FrontEnd, Hostile, Incarnation, Lane, Ledger, Progress, Ring, SlotIndex,
    Supervision, monotonic_ns,
};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Submissions after which the workers are woken although the runtime has not come to rest.
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

/// Somebody who waits for a free slot.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    waker: std::cell::RefCell<Option<Waker>>,
    since_ms: u64,
    state: std::cell::Cell<Wait>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wait {
    #[default]
    Waiting,
    /// A slot is kept for it.
    Granted,
    Expired,
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
        if self.unrung >= SUBMIT_BATCH {
            self.ring_workers();
        }
        Ok((slot, epoch))
    }

    fn ring_workers(&mut self) {
        self.unrung = 0;
        self.front.ring_workers();
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
            waiter.state.set(Wait::Granted);
            self.granted += 1;
            if let Some(waker) = waiter.waker.take() {
                waker.wake();
            }
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
            first.state.set(Wait::Expired);
            if let Some(waker) = first.waker.take() {
                waker.wake();
            }
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

/// Waits for a free slot, first come, first served.
#[derive(Debug)]
pub(crate) struct SlotWait {
    shared: Rc<Shared>,
    waiter: Rc<Waiter>,
}

impl SlotWait {
    pub(crate) fn new(shared: &Rc<Shared>) -> SlotWait {
        let mut exchanges = shared.exchanges.borrow_mut();
        let waiter = Rc::new(Waiter { since_ms: exchanges.now_ms, ..Waiter::default() });
        exchanges.waiters.push_back(Rc::clone(&waiter));
        exchanges.grant_next();
        drop(exchanges);
        SlotWait { shared: Rc::clone(shared), waiter }
    }

    /// Err: no slot in time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Filling, ()>> {
        match self.waiter.state.get() {
            Wait::Waiting => {
                self.waiter.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
            Wait::Expired => Poll::Ready(Err(())),
            Wait::Granted => {
                self.waiter.state.set(Wait::Expired);
                let mut exchanges = self.shared.exchanges.borrow_mut();
                exchanges.granted -= 1;
                Poll::Ready(exchanges.front.fill().ok_or(()))
            }
        }
    }
}

impl Drop for SlotWait {
    fn drop(&mut self) {
        let mut exchanges = self.shared.exchanges.borrow_mut();
        match self.waiter.state.get() {
            Wait::Expired => {}
            Wait::Waiting => exchanges.waiters.retain(|other| !Rc::ptr_eq(other, &self.waiter)),
            Wait::Granted => {
                exchanges.granted -= 1;
                exchanges.grant_next();
            }
        }
    }
}

/// A submitted request. Dropped before its answer is complete, it is cancelled.
#[derive(Debug)]
pub(crate) struct Exchange {
    shared: Rc<Shared>,
    slot: SlotIndex,
    epoch: u32,
    is_settled: bool,
}

/// The start of an answer; all of it, if it is short.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Header lines, then the body bytes that were there.
    pub(crate) bytes: Bytes,
    pub(crate) head_bytes: usize,
    /// More of the body is to be read from the exchange.
    pub(crate) is_open: bool,
    /// What it cost, once that is known.
    pub(crate) ledger: Option<Ledger>,
}

/// A piece of a long answer.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    End(Option<Ledger>),
}

impl Exchange {
    pub(crate) fn new(shared: &Rc<Shared>, (slot, epoch): (SlotIndex, u32)) -> Exchange {
        Exchange { shared: Rc::clone(shared), slot, epoch, is_settled: false }
    }

    pub(crate) fn feed(&self) -> Feed {
        Feed { shared: Rc::clone(&self.shared), slot: self.slot, epoch: self.epoch }
    }

    /// Waits for the answer's head. With `is_head_only` the body is left unread.
    pub(crate) fn poll_answer(
        &mut self,
        is_head_only: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Answer, Lost>> {
        let result = std::task::ready!(self.look_for_answer(is_head_only, cx));
        if let Err(lost) = result {
            self.settle_broken(lost);
        }
        Poll::Ready(result)
    }

    fn look_for_answer(
        &mut self,
        is_head_only: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Answer, Lost>> {
        let mut table = self.shared.exchanges.borrow_mut();
        let table = &mut *table;
        let slot = self.slot;
        let entry = &mut table.entries[slot.get()];
        entry.unseen = false;
        if let Some(lost) = entry.lost {
            return Poll::Ready(Err(lost));
        }
        let progress = table.front.progress(slot)?;
        match progress {
            Progress::Queued | Progress::Running => {
                register(&mut entry.waker, cx);
                return Poll::Pending;
            }
            Progress::Orphaned => return Poll::Ready(Err(Lost::Orphaned)),
            Progress::Answering | Progress::Answered => {}
        }
        let scratch = &mut table.scratch;
        let status = table.front.read_head(slot, scratch)?;
        let head_bytes = scratch.len();
        if status == 0 {
            return Poll::Ready(Err(Lost::Broken("empty answer")));
        }
        let is_bodiless = is_head_only || matches!(status, 204 | 304);
        let end = if is_bodiless { End::Complete } else { table.front.read_body(slot, scratch)? };
        let bytes = Bytes::copy_from_slice(scratch);
        let is_open = end != End::Complete;
        let mut ledger = None;
        if !is_open {
            self.is_settled = true;
            if progress == Progress::Answered {
                ledger = Some(table.front.ledger(slot));
                table.release(slot);
            } else {
                table.forget(slot, Use::Background);
                table.discard(slot);
            }
        }
        Poll::Ready(Ok(Answer { status, bytes, head_bytes, is_open, ledger }))
    }

    /// Waits for the next piece of the body. After an `Err` or the end the exchange is over.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let result = std::task::ready!(self.look_for_piece(cx));
        if let Err(lost) = result {
            self.settle_broken(lost);
        }
        Poll::Ready(result)
    }

    fn look_for_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Lost>> {
        let mut table = self.shared.exchanges.borrow_mut();
        let table = &mut *table;
        let slot = self.slot;
        let entry = &mut table.entries[slot.get()];
        entry.unseen = false;
        if let Some(lost) = entry.lost {
            return Poll::Ready(Err(lost));
        }
        // Progress first, bytes second: "Answered and nothing to read" is then final.
        let progress = table.front.progress(slot)?;
        table.scratch.clear();
        let end = table.front.read_body(slot, &mut table.scratch)?;
        if !table.scratch.is_empty() {
            return Poll::Ready(Ok(Piece::Bytes(Bytes::copy_from_slice(&table.scratch))));
        }
        match (end, progress) {
            (End::Complete, Progress::Answered) => {
                let ledger = table.front.ledger(slot);
                self.is_settled = true;
                table.release(slot);
                Poll::Ready(Ok(Piece::End(Some(ledger))))
            }
            (End::Complete, _) => {
                self.is_settled = true;
                table.forget(slot, Use::Background);
                table.discard(slot);
                Poll::Ready(Ok(Piece::End(None)))
            }
            (_, Progress::Orphaned) => Poll::Ready(Err(Lost::Orphaned)),
            (End::Aborted, _) => Poll::Ready(Err(Lost::Aborted)),
            (End::Open, Progress::Answered) => Poll::Ready(Err(Lost::Broken("open answer"))),
            (End::Open, _) => {
                register(&mut entry.waker, cx);
                Poll::Pending
            }
        }
    }

    /// The client has all it was promised; the script shall run to its end all the same.
    pub(crate) fn let_go(&mut self) {
        if !std::mem::replace(&mut self.is_settled, true) {
            let mut table = self.shared.exchanges.borrow_mut();
            table.forget(self.slot, Use::Background);
            table.discard(self.slot);
        }
    }

    fn settle_broken(&mut self, lost: Lost) {
        if let Lost::Broken(what) = lost {
            self.is_settled = true;
            let mut kills = Vec::new();
            self.shared.exchanges.borrow_mut().accuse(self.slot, &mut kills);
            self.shared.report_broken(what, kills);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_settled {
            self.shared.exchanges.borrow_mut().cancel(self.slot);
        }
    }
}

fn register(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *place = Some(cx.waker().clone()),
    }
}

/// Writes a request's body into its slot, beside the [`Exchange`] that awaits the answer.
#[derive(Debug)]
pub(crate) struct Feed {
    shared: Rc<Shared>,
    slot: SlotIndex,
    epoch: u32,
}

impl Feed {
    /// Writes what fits of `bytes`; pending while nothing fits. Err: the exchange is over.
    pub(crate) fn poll_write(&self, bytes: &[u8], cx: &mut Context<'_>) -> Poll<Result<usize, ()>> {
        let mut table = self.shared.exchanges.borrow_mut();
        let table = &mut *table;
        if !self.is_on(table) {
            return Poll::Ready(Err(()));
        }
        match table.front.write_body(self.slot, bytes) {
            Ok(0) if !bytes.is_empty() => {
                register(&mut table.entries[self.slot.get()].pump, cx);
                Poll::Pending
            }
            Ok(written) => Poll::Ready(Ok(written)),
            // The answer's side meets the same worker and deals with it.
            Err(_) => Poll::Ready(Err(())),
        }
    }

    /// Whether somebody still wants the body; wakes `cx` when that changes.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut table = self.shared.exchanges.borrow_mut();
        if !self.is_on(&table) {
            return Poll::Ready(());
        }
        register(&mut table.entries[self.slot.get()].pump, cx);
        Poll::Pending
    }

    /// While this is set the worker may be waiting for the client, and owes nothing.
    pub(crate) fn set_feeding(&self, is_feeding: bool) {
        let mut table = self.shared.exchanges.borrow_mut();
        if self.is_on(&table) {
            table.entries[self.slot.get()].is_feeding = is_feeding;
        }
    }

    pub(crate) fn end(&self, end: End) {
        let table = self.shared.exchanges.borrow();
        if self.is_on(&table) {
            table.front.end_body(self.slot, end);
        }
    }

    /// The body will not come: the request is answered with an error, or cut.
    pub(crate) fn fail(&self, failure: BodyFailure) {
        self.end(End::Aborted);
        let mut table = self.shared.exchanges.borrow_mut();
        if self.is_on(&table) {
            let entry = &mut table.entries[self.slot.get()];
            entry.lost = Some(Lost::Body(failure));
            entry.wake();
        }
    }

    fn is_on(&self, table: &Exchanges) -> bool {
        let entry = &table.entries[self.slot.get()];
        let is_workers = matches!(entry.used, Use::Awaited | Use::Background);
        entry.epoch == self.epoch && is_workers
    }
}
