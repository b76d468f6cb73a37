//! State machine of a generation's template and workers: decides the next actions. Pure: time and
//! events come in, actions go out. Does not execute the actions.

mod events;
mod state;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use events::{Action, Event};
pub(crate) use state::{Lives, WorkerPlace, Workers};

use crate::backoff::Backoff;
use samovar_channel::Role;
use samovar_ring::{Death, Incarnation};
use state::{Life, Recycling, Stopping, Template};
use std::time::{Duration, Instant};

/// A worker that took no request and had a shorter life failed immediately, so its successor waits.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// Wait of that successor.
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(50), max: Duration::from_secs(5) };

impl Workers {
    /// Processes one event and returns the actions.
    #[must_use]
    pub(crate) fn step(&mut self, event: &Event, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        match *event {
            Event::TemplateReady { resident } => {
                self.template = Template::Ready { since: now };
                self.resident |= resident;
                self.told_resident = resident;
            }
            Event::TemplateDied => self.template_died(now, &mut actions),
            Event::Forked { index, incarnation, pid } => self.forked(index, incarnation, pid, now),
            Event::ForkFailed { index, incarnation } => self.fork_failed(index, incarnation, now),
            Event::WorkerDied { pid, death, served } => {
                let is_uncounted = |cell| self.is_leaving(cell) || self.is_spare(cell);
                let is_leaving = self.cell_of(pid).is_some_and(is_uncounted);
                let is_ours = self.worker_ended(pid, death, served, now, &mut actions);
                self.restarts += u64::from(is_ours && !is_leaving && !self.is_stopping());
            }
            Event::WorkerLeft { pid, served } => {
                let is_spare = self.cell_of(pid).is_some_and(|cell| self.is_spare(cell));
                let is_ours = self.worker_ended(pid, Death::UNKNOWN, served, now, &mut actions);
                self.reforks += u64::from(is_ours && !is_spare);
            }
            Event::Resident => self.resident = true,
            Event::ScriptsWait => self.scripts |= self.resident,
            Event::Room { ref cells } => self.take_cells(cells, now),
            Event::Recycle { cell } => self.recycle(cell),
            Event::Grow { script, count } => self.grow(script, count),
            Event::Shrink { ref cells } => self.shrink(cells, &mut actions),
            Event::SuccessorUp => self.let_predecessor_go(&mut actions),
            Event::Spare { script } => self.spare = Some(script),
            Event::EndSpare => self.end_spare(),
            Event::Kill { incarnation } => self.kill(incarnation, &mut actions),
            Event::Tick => {}
            Event::Stop => {
                if self.stopping == Stopping::No {
                    self.stopping = Stopping::Asked;
                }
                actions.push(Action::StopWorkers);
            }
            Event::StopNow => {
                self.stopping = Stopping::Now;
                let pids = self.places.iter().filter_map(WorkerPlace::process);
                actions.extend(pids.map(|(pid, ..)| Action::Kill { pid }));
            }
        }
        self.settle(now, &mut actions);
        actions
    }

    fn template_died(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let lived = match self.template {
            Template::Ready { since } | Template::Starting { since } => now - since,
            _ => Duration::ZERO,
        };
        self.short_templates = count_short(self.short_templates, lived);
        self.template = Template::Ending { until: now + BACKOFF.after(self.short_templates) };
        // Workers added for an earlier load are added again only if requests still wait: not all of
        // them boot at once.
        (self.count, self.script_count) = (self.least, self.least);
        for place in &mut self.places {
            let index = place.cell;
            if let Life::Asked { incarnation } = place.life {
                // The template may have forked without reporting it; that child died with it.
                let death = Death::UNKNOWN;
                actions.push(Action::Repair { index, incarnation, death });
                place.life = Life::Waiting { until: now };
            }
            place.is_unneeded |= place.is_spare;
        }
        self.spare = None;
        self.drop_surplus();
    }

    fn forked(&mut self, index: usize, incarnation: Incarnation, pid: i32, now: Instant) {
        if let Some(place) = self.place(index)
            && place.life == (Life::Asked { incarnation })
        {
            place.life = Life::Alive { incarnation, pid, since: now };
        }
    }

    fn place(&mut self, cell: usize) -> Option<&mut WorkerPlace> {
        self.places.iter_mut().find(|place| place.cell == cell)
    }

    fn fork_failed(&mut self, index: usize, incarnation: Incarnation, now: Instant) {
        if let Some(place) = self.place(index)
            && place.life == (Life::Asked { incarnation })
        {
            place.short_lives = place.short_lives.saturating_add(1);
            place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
            self.fork_failures += 1;
            self.give_up_place(index);
        }
    }

    /// Handles the end of a worker. Its successor starts without a wait, unless the worker ended
    /// before it did any work, as after a failed boot. Returns false if the process is no worker of
    /// this generation.
    fn worker_ended(
        &mut self,
        ended: i32,
        death: Death,
        served: bool,
        now: Instant,
        actions: &mut Vec<Action>,
    ) -> bool {
        for place in &mut self.places {
            let index = place.cell;
            let Life::Alive { incarnation, pid, since } = place.life else { continue };
            if pid != ended {
                continue;
            }
            place.short_lives =
                if served { 0 } else { count_short(place.short_lives, now - since) };
            place.life = Life::Waiting { until: now + BACKOFF.after(place.short_lives) };
            place.is_unneeded |= place.is_spare;
            actions.push(Action::Repair { index, incarnation, death });
            self.succeed(index);
            self.drop_surplus();
            return true;
        }
        false
    }

    fn cell_of(&self, pid: i32) -> Option<usize> {
        let is_its = |place: &&WorkerPlace| place.process().is_some_and(|(p, ..)| p == pid);
        self.places.iter().find(is_its).map(WorkerPlace::cell)
    }

    fn recycle(&mut self, cell: usize) {
        let stays = |p: &WorkerPlace| {
            p.cell == cell && p.process().is_some() && !p.is_unneeded && !p.is_spare
        };
        let is_there = self.places.iter().any(stays);
        if is_there && self.recycling.is_none() && !self.is_stopping() {
            self.recycling = Some(Recycling { old: cell, new: None, is_leaving: false });
        }
    }

    fn let_predecessor_go(&mut self, actions: &mut Vec<Action>) {
        if let Some(recycling) = self.recycling.as_mut().filter(|r| r.new.is_some()) {
            recycling.is_leaving = true;
            actions.push(Action::Retire { index: recycling.old });
        }
    }

    /// Handles the end of a worker that is being recycled: its place is removed, and only its
    /// successor's place stays. If the successor has no place yet, the worker is replaced as after
    /// any death.
    fn succeed(&mut self, cell: usize) {
        let Some(recycling) = self.recycling.filter(|recycling| recycling.old == cell) else {
            return;
        };
        self.recycling = None;
        if recycling.new.is_some() {
            self.places.retain(|place| place.cell != cell);
            self.recycled += 1;
        }
    }

    /// Assigns free cells. A successor gets the role of its predecessor. Other cells first get
    /// workers for any request, then workers for scripts.
    fn take_cells(&mut self, cells: &[usize], now: Instant) {
        for cell in cells.iter().take(self.lacks()) {
            let life = Life::Waiting { until: now };
            let (short_lives, is_unneeded) = (0, false);
            if let Some(script) = self.spare.take() {
                let (cell, is_spare) = (*cell, true);
                let place = WorkerPlace { cell, script, life, short_lives, is_unneeded, is_spare };
                self.places.push(place);
                continue;
            }
            let predecessor = self.recycling.as_mut().filter(|r| r.new.is_none()).and_then(|r| {
                r.new = Some(*cell);
                self.places.iter().find(|place| place.cell == r.old)
            });
            let script = match predecessor.map(WorkerPlace::is_script) {
                Some(script) => script,
                None => self.missing(false) == 0,
            };
            let (cell, is_spare) = (*cell, false);
            let place = WorkerPlace { cell, script, life, short_lives, is_unneeded, is_spare };
            self.places.push(place);
        }
    }

    /// The worker for a replay is not needed any more. It exits when it has no request.
    fn end_spare(&mut self) {
        self.spare = None;
        for place in &mut self.places {
            place.is_unneeded |= place.is_spare;
        }
        self.drop_surplus();
    }

    fn kill(&self, incarnation: u32, actions: &mut Vec<Action>) {
        let pids = self.places.iter().filter_map(WorkerPlace::process);
        let hit = pids.filter(|(_, life, _)| life.get() == incarnation);
        actions.extend(hit.map(|(pid, ..)| Action::Kill { pid }));
    }

    /// Adds the actions that follow from the state alone, independent of the event.
    fn settle(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let alive = self.places.iter().any(|p| matches!(p.life, Life::Alive { .. }));
        if self.is_stopping() {
            return self.settle_stop(alive, actions);
        }
        match self.template {
            Template::Waiting { until } if until <= now => {
                self.template = Template::Starting { since: now };
                actions.push(Action::StartTemplate);
            }
            Template::Ending { until } if !alive => {
                self.template = Template::Waiting { until };
                self.template_restarts += 1;
            }
            Template::Ready { .. } => self.fork_waiting(now, actions),
            _ => {}
        }
    }

    fn settle_stop(&mut self, alive: bool, actions: &mut Vec<Action>) {
        let asked = self.places.iter().any(|p| matches!(p.life, Life::Asked { .. }));
        match self.template {
            Template::Waiting { .. } | Template::Ending { .. } if !alive => {
                actions.push(Action::Exit);
            }
            Template::Ready { .. } | Template::Starting { .. }
                if !alive && (!asked || self.stopping == Stopping::Now) =>
            {
                actions.push(Action::CloseTemplate);
            }
            _ => {}
        }
    }

    fn fork_waiting(&mut self, now: Instant, actions: &mut Vec<Action>) {
        for place in &mut self.places {
            let index = place.cell;
            if !matches!(place.life, Life::Waiting { until } if until <= now) {
                continue;
            }
            let role = match (place.script, self.resident) {
                (true, _) => Role::Script,
                (false, true) => Role::Boot,
                (false, false) => Role::Any,
            };
            let incarnation = self.lives.next();
            place.life = Life::Asked { incarnation };
            actions.push(Action::Fork { index, incarnation, role });
        }
    }
}

fn count_short(before: u32, lived: Duration) -> u32 {
    if lived < SHORT_LIFE { before.saturating_add(1) } else { 0 }
}
