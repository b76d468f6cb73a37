//! Order of the clients: which waiting request gets a slot next, and how many requests the ring has
//! at a time.
//!
//! Without client keys, a request gets any free slot, and the ring's queue decides. With them
//! (`limits.client_share`), the ring has only as many requests as the workers need, and
//! `turn_queue` holds back the others.

use super::slot_waiter::Waiter;
use super::table::Exchanges;
use super::turn_queue::{GROUPS, Turn, TurnQueue, group};
use samovar_ring::{Filling, Progress, SlotIndex};
use std::rc::Rc;
use std::time::Duration;

/// Time within which the front certainly submits the next request after a worker has finished one.
/// A queue that is fair by client keeps as many requests ready in the ring as workers finish in
/// this time, at least one for two workers, and holds back all others. The ring's own queue is
/// first come, first served.
const AHEAD: Duration = Duration::from_millis(2);
/// Maximum number of requests that are kept ready.
const AHEAD_MAX: usize = 256;

impl Exchanges {
    /// Takes a slot, unless other requests wait for one.
    pub(crate) fn fill(&mut self, turn: Option<Turn>) -> Option<Filling> {
        let group = group(turn);
        let may_fill = self.waiters[group].is_empty() && self.has_place(group);
        may_fill.then(|| self.front.fill()).flatten()
    }

    /// Whether a request of that group may get a slot now.
    fn has_place(&self, group: usize) -> bool {
        let is_in_window =
            group == 0 || self.pending[group] + self.granted[group] < self.window.size;
        is_in_window && self.front.free() > self.granted.iter().sum()
    }

    /// Adds a request to its queue.
    pub(super) fn wait(&mut self, waiter: &Rc<Waiter>, turn: Option<Turn>) {
        let client = turn.map(|turn| turn.client);
        let cost_us = client.map_or(0, |client| self.costs.of(client));
        self.waiters[waiter.group].push(waiter, client, cost_us);
    }

    /// Removes a request from its queue.
    pub(super) fn leave_queue(&mut self, waiter: &Waiter) {
        self.waiters[waiter.group].remove(waiter.position.get());
    }

    /// Computes how many requests are kept ready in the ring while the queue is fair by client.
    /// Called with each sweep.
    pub(super) fn measure_window(&mut self) {
        if self.pending == [0; GROUPS] {
            self.waiters.iter_mut().for_each(TurnQueue::rest);
            if self.waiters.iter().all(TurnQueue::is_empty) {
                return;
            }
        }
        let workers = self.workers().count();
        if workers == 0 {
            return;
        }
        let least = workers.div_ceil(2).min(AHEAD_MAX);
        let ahead = self.rate.finished_within(AHEAD).unwrap_or(workers).clamp(least, AHEAD_MAX);
        // Workers are added according to the number of requests in the ring's queue.
        let ahead = if self.window.is_elastic { ahead.max(workers) } else { ahead };
        self.window.size = (workers + ahead).div_ceil(self.threads());
    }

    /// The workers have finished a request, or it was withdrawn.
    pub(super) fn finish_turn(&mut self, slot: SlotIndex) {
        let Some(turn) = self.entries[slot.get()].turn.take() else { return };
        self.pending[group(Some(turn))] -= 1;
        let ran_us = match self.front.progress(slot) {
            Ok(Progress::Responded) => self.front.run_ns(slot) / 1_000,
            _ => match self.entries[slot.get()].running_since_ms {
                0 => return,
                since_ms => self.clock.now_ms().saturating_sub(since_ms) * 1_000,
            },
        };
        self.costs.learn(turn.client, ran_us);
    }

    /// Whether a worker has the request, or will have it.
    pub(super) fn has_worker(&self, slot: SlotIndex) -> bool {
        !matches!(self.front.progress(slot), Ok(Progress::Responded | Progress::Orphaned))
    }

    /// Reserves slots for the requests that are next. Returns true if there were any.
    pub(super) fn grant_next(&mut self) -> bool {
        let mut has_granted = false;
        for group in 0..GROUPS {
            while self.has_place(group) {
                let Some(waiter) = self.waiters[group].pop() else { break };
                self.granted[group] += 1;
                waiter.grant();
                has_granted = true;
            }
        }
        has_granted
    }
}
