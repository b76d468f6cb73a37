//! Number of workers: places to add or remove when the wanted number changes.

use super::events::Action;
use super::state::{Life, WorkerPlace, Workers};

impl Workers {
    /// Returns the wanted number of workers of that kind.
    pub(crate) fn wanted(&self, script: bool) -> usize {
        match (script, self.scripts) {
            (false, _) => self.count,
            (true, true) => self.script_count,
            (true, false) => 0,
        }
    }

    /// Returns the number of workers that stay. A worker and its successor count as one.
    pub(crate) fn staying(&self, script: bool) -> usize {
        let goes = self.recycling.filter(|r| r.new.is_some()).map(|r| r.old);
        let stays = |p: &&WorkerPlace| {
            p.script == script && !p.is_unneeded && !p.is_spare && Some(p.cell) != goes
        };
        self.places.iter().filter(stays).count()
    }

    pub(super) fn missing(&self, script: bool) -> usize {
        self.wanted(script).saturating_sub(self.staying(script))
    }

    /// Returns the number of forks that the system has refused.
    pub(crate) fn fork_failures(&self) -> u64 {
        self.fork_failures
    }

    pub(super) fn grow(&mut self, script: bool, count: usize) {
        if !self.is_stopping() {
            *(if script { &mut self.script_count } else { &mut self.count }) += count;
        }
    }

    /// Retires workers. Workers that are being replaced, and the minimum number of workers, stay.
    pub(super) fn shrink(&mut self, cells: &[usize], actions: &mut Vec<Action>) {
        for cell in cells {
            let Some(at) = self.places.iter().position(|place| place.cell == *cell) else {
                continue;
            };
            let WorkerPlace { script, is_unneeded, is_spare, ref life, .. } = self.places[at];
            let is_there = matches!(life, Life::Alive { .. }) && !is_unneeded && !is_spare;
            if is_there && !self.is_replaced(*cell) && self.staying(script) > self.least {
                self.places[at].is_unneeded = true;
                let staying = self.staying(script);
                let count = if script { &mut self.script_count } else { &mut self.count };
                *count = (*count).min(staying).max(self.least);
                actions.push(Action::Retire { index: *cell });
            }
        }
    }

    /// Whether that cell belongs to a worker that is being recycled, or to its successor.
    fn is_replaced(&self, cell: usize) -> bool {
        self.recycling.is_some_and(|r| r.old == cell || r.new == Some(cell))
    }

    /// Removes places without a process above the wanted number, and those of retired workers
    /// without a successor.
    pub(super) fn drop_surplus(&mut self) {
        if self.is_stopping() {
            return;
        }
        let is_empty = |place: &WorkerPlace| matches!(place.life, Life::Waiting { .. });
        self.places.retain(|place| !(place.is_unneeded && is_empty(place)));
        for script in [false, true] {
            let mut surplus = self.staying(script).saturating_sub(self.wanted(script));
            while surplus > 0 {
                let goes = |p: &WorkerPlace| {
                    let is_served = !self.is_replaced(p.cell) && !p.is_spare;
                    p.script == script && is_empty(p) && is_served
                };
                let Some(at) = self.places.iter().position(goes) else { break };
                self.places.remove(at);
                surplus -= 1;
            }
        }
    }

    /// Handles a refused fork: above the minimum, it is not repeated until the worker is wanted
    /// again.
    pub(super) fn give_up_place(&mut self, index: usize) {
        let place = self.places.iter_mut().find(|place| place.cell == index);
        let Some(place) = place else { return };
        if place.is_spare {
            place.is_unneeded = true;
            return self.drop_surplus();
        }
        let count = if place.script { &mut self.script_count } else { &mut self.count };
        if *count > self.least {
            *count -= 1;
            self.drop_surplus();
        }
    }
}
