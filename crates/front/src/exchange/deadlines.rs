//! Time limits: of a request that waits for a worker, of a worker's response, and of a script that
//! runs without a client.

use super::missing_response::Lost;
use super::slot::SlotUse;
use super::table::Exchanges;
use super::time_limits::overrun;
use crate::runtime::clock::is_over;
use crate::runtime::link::{FrontEvent, KillReason};
use samovar_config::Timeouts;
use samovar_ring::{Overrun, Progress, SlotIndex};
use std::time::Duration;

/// A request that waits longer than this while workers sleep was assigned to a worker that does not
/// respond.
const OVERDUE: Duration = Duration::from_millis(50);

impl Exchanges {
    /// Checks every deadline. Appends the actions for the supervisor to `events`.
    pub(crate) fn sweep(&mut self, timeouts: &Timeouts, events: &mut Vec<FrontEvent>) {
        self.wake_workers();
        self.take_news();
        self.queued = 0;
        for index in self.front.part() {
            let Some(slot) = SlotIndex::new(index, self.entries.len()) else { continue };
            match self.entries[index].used {
                SlotUse::Free => {}
                SlotUse::Quarantined { until_ms } if until_ms > self.clock.now_ms() => {}
                SlotUse::Quarantined { .. } => self.release(slot),
                SlotUse::Awaited | SlotUse::Dying | SlotUse::Background => {
                    self.end_unneeded(slot);
                    self.check_deadlines(slot, timeouts, events);
                }
            }
        }
        self.front.ring_overdue(OVERDUE);
        self.measure_rate(timeouts.queue);
        self.measure_window();
        self.grant_next();
        self.expire_waiters(timeouts.queue);
    }

    fn check_deadlines(
        &mut self,
        slot: SlotIndex,
        timeouts: &Timeouts,
        events: &mut Vec<FrontEvent>,
    ) {
        let now_ms = self.clock.now_ms();
        let progress = self.front.progress(slot);
        self.queued += usize::from(progress == Ok(Progress::Queued));
        let entry = &mut self.entries[slot.get()];
        match progress {
            Ok(Progress::Queued) if is_over(timeouts.queue, entry.submitted_ms, now_ms) => {
                entry.lost = Some(Lost::QueueTimeout);
                entry.wake();
            }
            Ok(Progress::Running | Progress::Responding) if entry.asked_since_ms == 0 => {
                let said = (self.front.wanted_ms(slot), self.front.outlives_client(slot));
                let course = entry.course(now_ms, said);
                if let Some(overrun) = overrun(timeouts, entry.path_time, &course) {
                    self.ask_to_end(slot, overrun, timeouts.grace, events);
                }
            }
            _ => {}
        }
        self.check_grace(slot, timeouts.grace, events);
    }

    /// Number of scripts that run although no client waits for them any more.
    pub(crate) fn at_work(&self) -> usize {
        self.alone().count()
    }

    /// Requests the end of all scripts without a client, because the server does not wait for them
    /// any longer. Returns how many were newly requested to end.
    pub(crate) fn end_alone(&mut self, grace: Duration, events: &mut Vec<FrontEvent>) -> usize {
        let is_untold = |slot: &SlotIndex| self.entries[slot.get()].asked_since_ms == 0;
        let untold: Vec<SlotIndex> = self.alone().filter(is_untold).collect();
        for slot in &untold {
            self.ask_to_end(*slot, Overrun::Drain, grace, events);
        }
        untold.len()
    }

    fn alone(&self) -> impl Iterator<Item = SlotIndex> {
        let slots = self.front.part().filter_map(|at| SlotIndex::new(at, self.entries.len()));
        slots.filter(|slot| {
            let used = self.entries[slot.get()].used;
            matches!(used, SlotUse::Background | SlotUse::Dying) && self.front.is_workers(*slot)
        })
    }

    /// Requests the script to end. The client gets its error response immediately; the script may
    /// end on its own.
    fn ask_to_end(
        &mut self,
        slot: SlotIndex,
        overrun: Overrun,
        grace: Duration,
        events: &mut Vec<FrontEvent>,
    ) {
        let now_ms = self.clock.now_ms().max(1);
        let entry = &mut self.entries[slot.get()];
        entry.asked_since_ms = now_ms;
        entry.overrun = Some(overrun);
        let ran_ms = now_ms.saturating_sub(entry.running_since_ms.max(entry.submitted_ms));
        // Before the client's connection is closed: a worker that notices the closed connection
        // finds the reason.
        self.front.ask_to_end(slot, overrun);
        if entry.used == SlotUse::Awaited {
            entry.lost = Some(Lost::Overrun(overrun));
            entry.wake();
        }
        let Some(run) = self.front.run_of(slot) else { return };
        let [request, id] = self.front.request_line(slot);
        let ran = Duration::from_millis(ran_ms);
        events.push(FrontEvent::Overrun { run, overrun, request, id, ran, grace });
    }

    /// Kills the worker if it was requested to end and the grace period is over.
    fn check_grace(&mut self, slot: SlotIndex, grace: Duration, events: &mut Vec<FrontEvent>) {
        let entry = &mut self.entries[slot.get()];
        let Some(overrun) = entry.overrun.filter(|_| !entry.killed) else { return };
        let has_passed =
            grace.is_zero() || is_over(grace, entry.asked_since_ms, self.clock.now_ms());
        if let Some(run) = self.front.run_of(slot).filter(|_| has_passed) {
            entry.killed = true;
            events.push(FrontEvent::KillWorker {
                incarnation: run.worker,
                reason: KillReason::Overrun(run, overrun),
            });
        }
    }

    fn expire_waiters(&mut self, timeout: Duration) {
        let now_ms = self.clock.now_ms();
        for queue in &mut self.waiters {
            // A waiter's task runs later, and finds the waiter expired.
            let over = queue.take_over(|waiter| is_over(timeout, waiter.since_ms, now_ms));
            over.for_each(|waiter| waiter.expire());
        }
    }
}
