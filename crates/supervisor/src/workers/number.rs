//! How many workers there are to be, and which places are too many: what follows when that number changes.

use super::{Action, Life, WorkerPlace, Workers};

impl Workers {
    /// How many of that kind there are to be.
    pub(crate) fn wanted(&self, script: bool) -> usize {
        match (script, self.scripts) {
            (false, _) => self.count,
            (true, true) => self.script_count,
            (true, false) => 0,
        }
    }

    /// Those that stay: a worker and its successor are one.
    pub(crate) fn staying(&self, script: bool) -> usize {
        let goes = self.recycling.filter(|r| r.new.is_some()).map(|r| r.old);
        let stays = |p: &&WorkerPlace| p.script == script && !p.is_unneeded && Some(p.cell) != goes;
        self.places.iter().filter(stays).count()
    }

    pub(super) fn missing(&self, script: bool) -> usize {
        self.wanted(script).saturating_sub(self.staying(script))
    }

    /// Forks that the system has refused.
    pub(crate) fn fork_failures(&self) -> u64 {
        self.fork_failures
    }

    pub(super) fn grow(&mut self, script: bool, count: usize) {
        if !self.is_stopping() {
            *(if script { &mut self.script_count } else { &mut self.count }) += count;
        }
    }

    /// Those that are being replaced are left alone, and so is the least number.
    pub(super) fn shrink(&mut self, cells: &[usize], actions: &mut Vec<Action>) {
        for cell in cells {
            let Some(at) = self.places.iter().position(|place| place.cell == *cell) else {
                continue;
            };
            let WorkerPlace { script, is_unneeded, ref life, .. } = self.places[at];
            let is_there = matches!(life, Life::Alive { .. }) && !is_unneeded;
            if is_there && !self.is_replaced(*cell) && self.staying(script) > self.least {
                self.places[at].is_unneeded = true;
                let staying = self.staying(script);
                let count = if script { &mut self.script_count } else { &mut self.count };
                *count = (*count).min(staying).max(self.least);
                actions.push(Action::Retire { index: *cell });
            }
        }
    }

    /// Whether a worker that has done enough, or its successor, has that cell.
    fn is_replaced(&self, cell: usize) -> bool {
        self.recycling.is_some_and(|r| r.old == cell || r.new == Some(cell))
    }

    /// Places without a process beyond what is wanted, and those of workers that were told to leave for good.
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
                    p.script == script && is_empty(p) && !self.is_replaced(p.cell)
                };
                let Some(at) = self.places.iter().position(goes) else { break };
                self.places.remove(at);
                surplus -= 1;
            }
        }
    }

    /// The system has no process for it: what is above the least is not tried again, until somebody asks for it.
    pub(super) fn give_up_place(&mut self, index: usize) {
        let Some(place) = self.places.iter().find(|place| place.cell == index) else { return };
        let count = if place.script { &mut self.script_count } else { &mut self.count };
        if *count > self.least {
            *count -= 1;
            self.drop_surplus();
        }
    }
}
