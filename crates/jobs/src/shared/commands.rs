//! Commands of operators.

use super::queues::SharedQueues;
use super::remote::{Arguments, padded};
use crate::catalogue;
use crate::command::{Chosen, Command, CommandResult, Cursor};
use crate::job::milliseconds;
use crate::store::{Stage, StoreError};
use samovar_wire::QueueStatus;
use std::time::Duration;

/// Maximum time of a query for figures.
const FIGURES_LIMIT: Duration = Duration::from_millis(400);

/// Numbers of jobs of a queue, on all machines.
pub(super) struct Depth {
    /// Ready, delayed and running jobs.
    pub(super) waiting: [u64; 3],
    dead: u64,
    oldest_ms: u64,
    is_paused: bool,
}

impl SharedQueues {
    pub(super) fn obey_command(&mut self, command: &Command, now_ms: u64) -> CommandResult {
        self.remote.set_clock(now_ms);
        let done = match command {
            Command::Figures => {
                return match self.figures(now_ms) {
                    Ok(figures) => CommandResult::Figures(figures),
                    Err(error) => CommandResult::Failed(error.to_string()),
                };
            }
            Command::Dead(chosen) => {
                let found = self.find(&chosen.queue);
                return match found.and_then(|_| catalogue::dead(&mut self.remote, chosen)) {
                    Ok((jobs, cursor)) => CommandResult::Dead(jobs, cursor),
                    Err(why) => CommandResult::Failed(why),
                };
            }
            Command::Retry(chosen) => self.change_all(Stage::Dead, chosen, "revive"),
            Command::DropDead(chosen) => self.change_all(Stage::Dead, chosen, "forget"),
            Command::Drop(chosen) => self.change_all(Stage::Alive, chosen, "drop"),
            Command::Move { from, to, stage } => self.relocate(from, to, *stage),
            Command::Pause(queue) => self.pause(queue, "pause"),
            Command::Resume(queue) => self.pause(queue, "resume"),
        };
        match done {
            Ok((count, cursor)) => CommandResult::Changed(count, cursor),
            Err(why) => CommandResult::Failed(why),
        }
    }

    fn change_all(
        &mut self,
        stage: Stage,
        chosen: &Chosen,
        kind: &str,
    ) -> Result<(usize, Cursor), String> {
        self.find(&chosen.queue)?;
        let (jobs, cursor) = catalogue::chosen(&mut self.remote, stage, chosen)?;
        let mut count = 0;
        for job in jobs.into_iter().filter(|job| !job.is_running) {
            let mut change = Arguments::default();
            change.add(kind).add(&padded(job.id));
            self.change(change);
            count += 1;
        }
        Ok((count, cursor))
    }

    fn relocate(
        &mut self,
        chosen: &Chosen,
        to: &str,
        stage: Stage,
    ) -> Result<(usize, Cursor), String> {
        self.find(to)?;
        if chosen.queue == to {
            return Err("the jobs are in this queue already\nhint: name another queue".to_owned());
        }
        let (jobs, cursor) = catalogue::chosen(&mut self.remote, stage, chosen)?;
        let kind = match stage {
            Stage::Alive => "move",
            Stage::Dead => "move_dead",
        };
        let mut count = 0;
        for job in jobs.into_iter().filter(|job| !job.is_running) {
            let mut change = Arguments::default();
            change.add(kind).add(&padded(job.id)).add(&chosen.queue).add(to);
            self.change(change);
            count += 1;
        }
        if count == 0 && chosen.after == 0 {
            // Most likely the name is wrong.
            self.find(&chosen.queue)?;
        }
        Ok((count, cursor))
    }

    fn pause(&mut self, queue: &str, kind: &str) -> Result<(usize, Cursor), String> {
        self.find(queue)?;
        let mut change = Arguments::default();
        change.add(kind).add(queue);
        self.change(change);
        Ok((1, Cursor::default()))
    }

    pub(super) fn depths(
        &mut self,
        queues: &[usize],
        now_ms: u64,
    ) -> Result<Vec<Depth>, StoreError> {
        self.remote.set_clock(now_ms);
        let mut call = Arguments::default();
        call.number(queues.len());
        for at in queues {
            call.add(&self.queues[*at].name);
        }
        let reply = self.remote.call("figures", call, FIGURES_LIMIT)?;
        let depth = |of: &samovar_redis::Reply| {
            let values: Option<Vec<i64>> =
                of.list()?.iter().map(samovar_redis::Reply::number).collect();
            let [ready, delayed, running, dead, oldest_ms, paused] = values?[..] else {
                return None;
            };
            let count = |value: i64| u64::try_from(value).unwrap_or(0);
            Some(Depth {
                waiting: [count(ready), count(delayed), count(running)],
                dead: count(dead),
                oldest_ms: count(oldest_ms),
                is_paused: paused == 1,
            })
        };
        let depths: Option<_> = reply.list().unwrap_or_default().iter().map(depth).collect();
        depths.ok_or(StoreError::Foreign("figures"))
    }

    fn figures(&mut self, now_ms: u64) -> Result<Vec<QueueStatus>, StoreError> {
        let all: Vec<usize> = (0..self.queues.len()).collect();
        let depths = self.depths(&all, now_ms)?;
        let of = |(at, depth): (usize, Depth)| {
            let [ready, delayed, running] =
                depth.waiting.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
            QueueStatus {
                ready,
                delayed,
                running,
                dead: depth.dead,
                oldest_ms: depth.oldest_ms,
                oldest_max_ms: milliseconds(self.queues[at].oldest_max),
                paused: depth.is_paused,
                ..self.totals[at].figures.clone()
            }
        };
        Ok(depths.into_iter().enumerate().map(of).collect())
    }
}
