//! Commands of operators.

use super::queues::{Applied, Engine};
use crate::catalogue;
use crate::command::{Chosen, Command, CommandResult, Cursor};
use crate::job::{JOBS_MAX, milliseconds};
use crate::line_up::LineUp;
use crate::store::{Change, Listed, Stage};
use crate::totals::Totals;
use samovar_wire::QueueStatus;

impl Engine {
    /// Carries out a command. Its changes are stored by the next commit.
    pub(super) fn obey_command(&mut self, command: &Command, now_ms: u64) -> CommandResult {
        let done = match command {
            Command::Figures => return CommandResult::Figures(self.figures(now_ms)),
            Command::Dead(chosen) => {
                if let Err(why) = self.find(&chosen.queue) {
                    return CommandResult::Failed(why);
                }
                return match catalogue::dead(&mut *self.store, chosen) {
                    Ok((jobs, cursor)) => CommandResult::Dead(jobs, cursor),
                    Err(why) => CommandResult::Failed(why),
                };
            }
            Command::Retry(chosen) => self.change_dead(chosen, true),
            Command::DropDead(chosen) => self.change_dead(chosen, false),
            Command::Drop(chosen) => self.drop_waiting(chosen),
            Command::Move { from, to, stage } => self.relocate(from, to, *stage),
            Command::Pause(queue) => self.pause(queue, true),
            Command::Resume(queue) => self.pause(queue, false),
        };
        match done {
            Ok((count, cursor)) => CommandResult::Changed(count, cursor),
            Err(why) => CommandResult::Failed(why),
        }
    }

    fn change_dead(&mut self, chosen: &Chosen, revives: bool) -> Result<(usize, Cursor), String> {
        let queue = self.find(&chosen.queue)?;
        let (jobs, cursor) = catalogue::chosen(&mut *self.store, Stage::Dead, chosen)?;
        for Listed { id, bytes, .. } in &jobs {
            if revives {
                let applied = Applied::Revive { id: *id, bytes: *bytes };
                self.change(queue, Change::Revive(*id), applied);
            } else {
                let applied = Applied::RemoveDead { bytes: *bytes };
                self.change(queue, Change::RemoveDead(*id), applied);
            }
        }
        Ok((jobs.len(), cursor))
    }

    fn drop_waiting(&mut self, chosen: &Chosen) -> Result<(usize, Cursor), String> {
        let queue = self.find(&chosen.queue)?;
        let (jobs, cursor) = catalogue::chosen(&mut *self.store, Stage::Alive, chosen)?;
        let mut dropped = 0;
        for Listed { id, .. } in jobs {
            if self.queues[queue].is_running(id) {
                continue;
            }
            // Removed at once, so that it does not start before the commit.
            self.queues[queue].remove(id);
            self.changes.push(Change::Remove(id));
            dropped += 1;
        }
        Ok((dropped, cursor))
    }

    /// Moves jobs to another queue. They keep their numbers, and so their order.
    fn relocate(
        &mut self,
        chosen: &Chosen,
        to_name: &str,
        stage: Stage,
    ) -> Result<(usize, Cursor), String> {
        let to = self.find(to_name)?;
        let from = self.find(&chosen.queue).ok();
        if from == Some(to) {
            return Err("the jobs are in this queue already\nhint: name another queue".to_owned());
        }
        let (jobs, cursor) = catalogue::chosen(&mut *self.store, stage, chosen)?;
        let here: usize = self.queues.iter().map(LineUp::len).sum();
        if from.is_none() && stage == Stage::Alive && here + jobs.len() > JOBS_MAX {
            return Err(format!("there is no room: the queues have {here} of {JOBS_MAX} jobs"));
        }
        let mut moved = 0;
        for Listed { id, bytes, .. } in jobs {
            let names = (chosen.queue.clone(), to_name.to_owned());
            let (at, change, applied) = match (stage, from) {
                (Stage::Alive, Some(from)) if self.queues[from].is_running(id) => continue,
                (Stage::Alive, Some(from)) => {
                    (from, Change::Move(id, names.0, names.1), Applied::Move { id, to })
                }
                (Stage::Alive, None) => (to, Change::Move(id, names.0, names.1), Applied::Take(id)),
                (Stage::Dead, Some(from)) => {
                    (from, Change::MoveDead(id, names.0, names.1), Applied::MoveDead { bytes, to })
                }
                (Stage::Dead, None) => {
                    (to, Change::MoveDead(id, names.0, names.1), Applied::TakeDead { bytes })
                }
            };
            self.change(at, change, applied);
            moved += 1;
        }
        if moved == 0 && from.is_none() && chosen.after == 0 {
            // Most likely the name is wrong.
            self.find(&chosen.queue)?;
        }
        Ok((moved, cursor))
    }

    fn pause(&mut self, name: &str, is_paused: bool) -> Result<(usize, Cursor), String> {
        let queue = self.find(name)?;
        self.change(queue, Change::Pause(name.to_owned(), is_paused), Applied::Pause(is_paused));
        Ok((1, Cursor::default()))
    }

    fn figures(&self, now_ms: u64) -> Vec<QueueStatus> {
        let of = |(queue, totals): (&LineUp, &Totals)| {
            let depth = queue.depth();
            QueueStatus {
                ready: depth.ready,
                delayed: depth.delayed,
                running: depth.running,
                oldest_ms: depth.oldest_ms.map_or(0, |at| now_ms.saturating_sub(at)),
                oldest_max_ms: milliseconds(queue.settings.oldest_max),
                paused: queue.is_paused,
                ..totals.figures.clone()
            }
        };
        self.queues.iter().zip(&self.totals).map(of).collect()
    }
}
