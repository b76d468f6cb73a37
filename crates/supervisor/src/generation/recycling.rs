//! Replaces workers that have reached a recycling limit, one after another; `recycle.rs` selects
//! them.

use super::ground::{Ground, Readiness, is_waiting};
use super::state::Generation;
use crate::recycle::{Seen, own_bytes};
use crate::workers::Event;
use samovar_ring::{DesiredState, WorkerState};
use std::time::{Duration, Instant};
use tracing::info;

/// Minimum time between the starts of two such replacements.
const RECYCLE_INTERVAL: Duration = Duration::from_secs(1);
/// Reason for replacing a worker that still holds replaced values.
const HOLDS_REPLACED: &str = "it holds stale published values, and memory is short";

impl Generation {
    /// Replaces one worker that has reached a limit, after the previous successor has taken over.
    pub(crate) fn recycle(&mut self, ground: &Ground) {
        let up = |cell| ground.supervision.report(cell).is_some_and(|report| is_waiting(&report));
        if let Some(cell) = self.workers.awaited_successor() {
            let is_there = self.processes().any(|(other, ..)| other == cell);
            if is_there && up(cell) {
                self.tell(Event::SuccessorUp);
            }
            return;
        }
        let limits = self.settings.recycle;
        let may_begin = self.desired == DesiredState::Serve && self.ready == Readiness::Ready;
        let is_due = self.recycled_at.elapsed() >= RECYCLE_INTERVAL;
        if !may_begin || !is_due || self.workers.is_recycling() {
            return;
        }
        // Called every time: it also frees values that are no longer read.
        let laggards = ground.published.publisher().laggards();
        if !limits.is_on() && laggards.is_empty() {
            return;
        }
        self.recycled_at = Instant::now();
        self.recycle_looks = self.recycle_looks.wrapping_add(1);
        if let Some((cell, pid, why)) = self.next_due(ground, &laggards) {
            if let Some(suppressed) = ground.lines.recycled.pass() {
                info!(pid, why, suppressed, "recycling a worker");
            }
            self.tell(Event::Recycle { cell });
        }
    }

    /// Selects the worker to replace. Each call measures the memory of one worker, which costs some
    /// 100 µs.
    fn next_due(
        &mut self,
        ground: &Ground,
        laggards: &[i32],
    ) -> Option<(usize, i32, &'static str)> {
        let limits = self.settings.recycle;
        let suspects = &mut self.recycle_suspects;
        let places = self.workers.places().iter().filter(|place| place.process().is_some());
        let count = places.clone().count().max(1);
        let measured = self.recycle_looks % count;
        places.enumerate().find_map(|(at, place)| {
            let (pid, life, since) = place.process()?;
            let report = ground.supervision.report(place.cell())?;
            let has_come = matches!(report.state, WorkerState::Idle | WorkerState::Busy);
            let is_measured = at == measured && limits.memory_max > 0 && has_come;
            let mut seen = Seen {
                life: life.get(),
                requests: report.requests,
                age: since.elapsed(),
                own_bytes: if is_measured { own_bytes(pid) } else { None },
            };
            let is_confirmed =
                is_measured && suspects.confirm(place.cell(), &seen, limits.memory_max);
            if report.state == WorkerState::Busy && !is_confirmed {
                seen.own_bytes = None;
            }
            let holds = laggards.contains(&pid).then_some(HOLDS_REPLACED);
            let why = limits.due(&seen).or(holds)?;
            Some((place.cell(), pid, why))
        })
    }
}
