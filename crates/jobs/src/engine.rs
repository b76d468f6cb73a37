//! All queues and the store. Each step collects changes in memory; [`Engine::commit`] stores them
//! together, then applies them.

use crate::batch::{self, BATCH_BYTES_MAX, Failure, Outcome, RunError};
use crate::command::{Chosen, Command, CommandResult, Cursor};
use crate::death_log::log_death;
use crate::job::{JOBS_MAX, JobState, QueueSettings, milliseconds};
use crate::line_up::{LineUp, Next};
use crate::push_check::{DELAY_MS_MAX, check};
use crate::store::{Change, Insert, Loaded, Page, Stage, Store, StoreError};
use crate::totals::Totals;
use samovar_channel::{Push, PushReply, TraceContext};
use samovar_log::Throttle;
use samovar_wire::{DeadJob, QueueStatus};
use std::collections::HashMap;

/// Pause of a queue whose workers have not begun a batch, in milliseconds.
const NOT_STARTED_PAUSE_MS: u64 = 1_000;
/// Pause after the store has failed, in milliseconds.
const STORE_PAUSE_MS: u64 = 1_000;
/// Maximum number of jobs that one command shows or changes. The operator's program repeats it.
const COMMAND_JOBS_MAX: usize = 1_000;
/// Maximum bytes of the jobs that one command shows. The first job may have more.
const SHOWN_BYTES_MAX: usize = 1 << 20;
/// A batch to run.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) queue: usize,
    pub(crate) lease: u64,
    pub(crate) body: Vec<u8>,
    /// One per job.
    pub(crate) traces: Vec<TraceContext>,
    /// Id of the first job.
    pub(crate) first: i64,
}

#[derive(Debug)]
struct Lease {
    queue: usize,
    ids: Vec<i64>,
}

/// A change of the queue in memory, applied when the store has it.
enum Applied {
    /// `class`: it failed.
    Remove {
        id: i64,
        class: Option<String>,
    },
    Bury {
        id: i64,
        bytes: u64,
        class: String,
    },
    PutBack {
        id: i64,
        attempts: u32,
        due_ms: u64,
        failed: Option<String>,
    },
    RemoveDead {
        bytes: u64,
    },
    Move {
        id: i64,
        to: usize,
    },
    MoveDead {
        bytes: u64,
        to: usize,
    },
    /// A dead job of a queue that does not exist any more.
    TakeDead {
        bytes: u64,
    },
    /// A waiting job of such a queue.
    Take(i64),
    Revive {
        id: i64,
        bytes: u64,
    },
    Pause(bool),
}

/// All queues.
pub(crate) struct Engine {
    store: Box<dyn Store>,
    queues: Vec<LineUp>,
    totals: Vec<Totals>,
    leases: HashMap<u64, Lease>,
    next_lease: u64,
    bytes_max: u64,
    inserts: Vec<Insert>,
    inserted_at: Vec<usize>,
    pending_bytes: u64,
    changes: Vec<Change>,
    applied: Vec<(usize, Applied)>,
    store_pause_until_ms: u64,
    is_stopping: bool,
    death_lines: Throttle,
}

/// Position of a push's jobs among the inserts of the next commit; `None`: a duplicate.
pub(crate) type Pending = Vec<Option<usize>>;

impl Engine {
    /// Takes the content of the store. Jobs of queues that do not exist any more stay in the store.
    pub(crate) fn open(
        mut store: Box<dyn Store>,
        settings: Vec<QueueSettings>,
        bytes_max: u64,
        now_ms: u64,
    ) -> Result<Engine, StoreError> {
        let loaded = store.load()?;
        let queues: Vec<LineUp> = settings.into_iter().map(LineUp::new).collect();
        let of = |queue: &LineUp| Totals {
            figures: QueueStatus { name: queue.settings.name.clone(), ..QueueStatus::default() },
            ..Totals::default()
        };
        let totals = queues.iter().map(of).collect();
        let mut engine = Engine {
            store,
            queues,
            totals,
            leases: HashMap::new(),
            next_lease: 1,
            bytes_max,
            inserts: Vec::new(),
            inserted_at: Vec::new(),
            pending_bytes: 0,
            changes: Vec::new(),
            applied: Vec::new(),
            store_pause_until_ms: 0,
            is_stopping: false,
            death_lines: Throttle::default(),
        };
        engine.take(loaded, now_ms);
        Ok(engine)
    }

    /// Takes the content of the store again, when the server before this one has ended. No batch
    /// was started before.
    pub(crate) fn reload(&mut self, now_ms: u64) -> Result<(), StoreError> {
        let loaded = self.store.load()?;
        for queue in &mut self.queues {
            let fresh = LineUp::new(queue.settings.clone());
            *queue = fresh;
        }
        self.take(loaded, now_ms);
        Ok(())
    }

    fn take(&mut self, loaded: Loaded, now_ms: u64) {
        let names: HashMap<String, usize> =
            self.queues.iter().enumerate().map(|(at, q)| (q.settings.name.clone(), at)).collect();
        for (name, job) in loaded.jobs {
            if let Some(at) = names.get(&name) {
                self.queues[*at].add(job, now_ms);
            }
        }
        for totals in &mut self.totals {
            (totals.figures.dead, totals.dead_bytes) = (0, 0);
        }
        for (name, count, bytes) in loaded.dead {
            if let Some(at) = names.get(&name) {
                (self.totals[*at].figures.dead, self.totals[*at].dead_bytes) = (count, bytes);
            }
        }
        for name in loaded.paused {
            if let Some(at) = names.get(&name) {
                self.queues[*at].is_paused = true;
            }
        }
    }

    fn find(&self, name: &str) -> Result<usize, String> {
        self.queues.iter().position(|queue| queue.settings.name == name).ok_or_else(|| {
            let known: Vec<_> =
                self.queues.iter().map(|queue| format!("`{}`", queue.settings.name)).collect();
            let name = name.escape_debug();
            format!("there is no queue `{name}`\nhint: the queues are {}", known.join(", "))
        })
    }

    /// Replies to a push without jobs.
    pub(crate) fn depth(&self, queue: &str) -> PushReply {
        match self.find(queue) {
            Ok(at) => {
                let depth = self.queues[at].depth();
                PushReply::Depth(
                    [depth.ready, depth.delayed, depth.running].map(|count| count as u64),
                )
            }
            Err(why) => PushReply::Wrong(why),
        }
    }

    /// Checks a push, and adds its jobs to the next commit.
    pub(crate) fn push(&mut self, mut push: Push, now_ms: u64) -> Result<Pending, PushReply> {
        let at = self.find(&push.queue).map_err(PushReply::Wrong)?;
        check(&mut push).map_err(PushReply::Wrong)?;
        let states: Vec<_> = push.jobs.iter().map(|new| JobState::of(0, new, now_ms)).collect();
        let bytes: u64 = states.iter().map(JobState::bytes).sum();
        let jobs: usize = self.queues.iter().map(LineUp::len).sum();
        let used: u64 = self.queues.iter().map(LineUp::bytes).sum::<u64>()
            + self.totals.iter().map(|totals| totals.dead_bytes).sum::<u64>()
            + self.pending_bytes;
        let full = if used + bytes > self.bytes_max {
            Some(format!("it has {used} of {} bytes (jobs.bytes_max)", self.bytes_max))
        } else if jobs + self.inserts.len() + states.len() > JOBS_MAX {
            Some(format!("it has {jobs} of {JOBS_MAX} jobs"))
        } else {
            None
        };
        if let Some(full) = full {
            self.totals[at].figures.refused_total += 1;
            return Err(PushReply::Refused(format!("the store of jobs is full: {full}")));
        }
        let mut pending = Vec::with_capacity(push.jobs.len());
        for (job, state) in push.jobs.into_iter().zip(states) {
            if self.is_duplicate(at, &state, now_ms) {
                pending.push(None);
                continue;
            }
            self.pending_bytes += state.bytes();
            pending.push(Some(self.inserts.len()));
            self.inserts.push(Insert { queue: push.queue.clone(), job, pushed_ms: now_ms });
            self.inserted_at.push(at);
        }
        Ok(pending)
    }

    fn is_duplicate(&self, at: usize, state: &JobState, now_ms: u64) -> bool {
        let Some(key) = state.key.as_deref().filter(|_| state.unique_until_ms > 0) else {
            return false;
        };
        let is_pending = |(insert, of): (&Insert, &usize)| {
            *of == at && insert.job.unique_ms > 0 && insert.job.key.as_deref() == Some(key)
        };
        self.queues[at].unique(key, now_ms).is_some()
            || self.inserts.iter().zip(&self.inserted_at).any(is_pending)
    }

    /// Takes the results of a batch. They are stored by the next commit.
    pub(crate) fn finish(&mut self, lease: u64, ran: &Result<Vec<u8>, RunError>, now_ms: u64) {
        let Some(Lease { queue, ids }) = self.leases.remove(&lease) else { return };
        match ran {
            Err(RunError::NotStarted(_)) => {
                self.totals[queue].pause_until_ms = now_ms + NOT_STARTED_PAUSE_MS;
            }
            Err(RunError::Stopping) => self.is_stopping = true,
            _ => {}
        }
        for (id, outcome) in ids.iter().zip(batch::outcomes(ids.len(), ran)) {
            self.end(queue, *id, outcome, now_ms);
        }
    }

    fn end(&mut self, queue: usize, id: i64, outcome: Outcome, now_ms: u64) {
        let line_up = &self.queues[queue];
        let Some(job) = line_up.get(id) else { return };
        let attempts = job.attempts.saturating_add(1);
        let attempts_max =
            if job.attempts_max == 0 { line_up.settings.attempts } else { job.attempts_max };
        match outcome {
            Outcome::Done => {
                self.change(queue, Change::Remove(id), Applied::Remove { id, class: None });
            }
            Outcome::Released(delay_ms) => {
                let due_ms = now_ms.saturating_add(delay_ms.min(DELAY_MS_MAX));
                let due_ms = if delay_ms == 0 { job.due_ms } else { due_ms };
                let back = Applied::PutBack { id, attempts: job.attempts, due_ms, failed: None };
                self.applied.push((queue, back));
            }
            Outcome::Retry(delay_ms, failure) if attempts < attempts_max => {
                let delay_ms = delay_ms.map_or_else(
                    || line_up.backoff_ms(attempts, |to| fastrand::u64(..to)),
                    |delay_ms| delay_ms.min(DELAY_MS_MAX),
                );
                let due_ms = now_ms.saturating_add(delay_ms);
                let Failure { class, text: error, .. } = failure;
                let change = Change::Retry { id, attempts, due_ms, error };
                let failed = Some(class);
                self.change(queue, change, Applied::PutBack { id, attempts, due_ms, failed });
            }
            Outcome::Retry(_, failure) | Outcome::Dead(failure) => {
                log_death(&self.death_lines, line_up, (id, attempts), &failure.text);
                let class = failure.class.clone();
                if line_up.settings.dead_letter {
                    let bytes = job.bytes() + failure.bytes();
                    let change = Change::Bury { id, attempts, died_ms: now_ms, failure };
                    self.change(queue, change, Applied::Bury { id, bytes, class });
                } else {
                    let applied = Applied::Remove { id, class: Some(class) };
                    self.change(queue, Change::Remove(id), applied);
                }
            }
        }
    }

    fn change(&mut self, queue: usize, change: Change, applied: Applied) {
        self.changes.push(change);
        self.applied.push((queue, applied));
    }

    /// Stores everything that was collected. Returns the ids of the inserted jobs.
    ///
    /// If the store fails, the inserts are refused. The changes stay for the next commit.
    pub(crate) fn commit(&mut self, now_ms: u64) -> Result<Vec<i64>, String> {
        let inserts = std::mem::take(&mut self.inserts);
        let inserted_at = std::mem::take(&mut self.inserted_at);
        self.pending_bytes = 0;
        if inserts.is_empty() && self.changes.is_empty() {
            self.apply(now_ms);
            return Ok(Vec::new());
        }
        let stored = self.store.commit(&inserts, &self.changes, !inserts.is_empty());
        let ids = match stored {
            Ok(ids) => ids,
            Err(error) => {
                self.store_pause_until_ms = now_ms + STORE_PAUSE_MS;
                for at in inserted_at {
                    self.totals[at].figures.refused_total += 1;
                }
                return Err(error.to_string());
            }
        };
        self.changes.clear();
        self.apply(now_ms);
        for ((insert, at), id) in inserts.iter().zip(inserted_at).zip(&ids) {
            self.queues[at].add(JobState::of(*id, &insert.job, insert.pushed_ms), now_ms);
            self.totals[at].figures.pushed_total += 1;
        }
        Ok(ids)
    }

    fn apply(&mut self, now_ms: u64) {
        for (at, applied) in std::mem::take(&mut self.applied) {
            let (queue, totals) = (&mut self.queues[at], &mut self.totals[at]);
            let figures = &mut totals.figures;
            match applied {
                Applied::Remove { id, class } => {
                    queue.remove(id);
                    if let Some(class) = class {
                        totals.count_failure(class);
                        totals.figures.dead_total += 1;
                    } else {
                        figures.done_total += 1;
                    }
                }
                Applied::Bury { id, bytes, class } => {
                    queue.remove(id);
                    totals.dead_bytes += bytes;
                    figures.dead += 1;
                    figures.dead_total += 1;
                    totals.count_failure(class);
                }
                Applied::PutBack { id, attempts, due_ms, failed } => {
                    queue.put_back(id, attempts, due_ms, now_ms);
                    if let Some(class) = failed {
                        figures.retried_total += 1;
                        totals.count_failure(class);
                    }
                }
                Applied::Move { id, to } => {
                    // It may have been dropped in the same turn.
                    if let Some(job) = queue.remove(id) {
                        self.queues[to].add(job, now_ms);
                    }
                }
                Applied::MoveDead { bytes, to } => {
                    totals.remove_dead(bytes);
                    self.totals[to].add_dead(bytes);
                }
                Applied::TakeDead { bytes } => totals.add_dead(bytes),
                Applied::Take(id) => {
                    if let Ok(Some(job)) = self.store.job(id) {
                        queue.add(job, now_ms);
                    }
                }
                Applied::RemoveDead { bytes } => totals.remove_dead(bytes),
                Applied::Revive { id, bytes } => {
                    totals.remove_dead(bytes);
                    if let Ok(Some(job)) = self.store.job(id) {
                        queue.add(job, now_ms);
                    }
                }
                Applied::Pause(is_paused) => queue.is_paused = is_paused,
            }
        }
    }

    /// Whether changes wait for a store that failed.
    pub(crate) fn is_behind(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Selects the batches that can start now. Also returns the time at which to look again, in
    /// Unix milliseconds.
    pub(crate) fn start(&mut self, now_ms: u64) -> (Vec<Started>, Option<u64>) {
        let mut started = Vec::new();
        let mut look_ms: Option<u64> = None;
        let mut at_least = |at: u64| look_ms = Some(look_ms.map_or(at, |look| look.min(at)));
        if self.is_behind() {
            at_least(self.store_pause_until_ms);
        }
        if self.is_stopping || self.is_behind() {
            return (started, look_ms);
        }
        for at in 0..self.queues.len() {
            if self.totals[at].pause_until_ms > now_ms {
                at_least(self.totals[at].pause_until_ms);
                continue;
            }
            let running = self.leases.values().filter(|lease| lease.queue == at).count();
            for _ in running..self.queues[at].settings.workers {
                let jobs = match self.queues[at].next(now_ms, BATCH_BYTES_MAX) {
                    Next::Batch(jobs) => jobs,
                    Next::At(look) => {
                        at_least(look);
                        break;
                    }
                    Next::Nothing => break,
                };
                started.extend(self.lease(at, jobs, now_ms));
            }
        }
        (started, look_ms)
    }

    fn lease(&mut self, queue: usize, jobs: Vec<JobState>, now_ms: u64) -> Option<Started> {
        let ids: Vec<i64> = jobs.iter().map(|job| job.id).collect();
        let contents = match self.store.contents(&ids) {
            Ok(contents) => contents,
            Err(error) => {
                tracing::error!("{error}");
                self.totals[queue].pause_until_ms = now_ms + STORE_PAUSE_MS;
                for job in jobs {
                    self.queues[queue].put_back(job.id, job.attempts, job.due_ms, now_ms);
                }
                return None;
            }
        };
        let mut batch = Vec::with_capacity(jobs.len());
        for (job, content) in jobs.into_iter().zip(contents) {
            match content {
                Some(content) => batch.push((job, content)),
                // The other server of an upgrade has ended it.
                None => drop(self.queues[queue].remove(job.id)),
            }
        }
        let first = batch.first()?.0.id;
        let body = batch::encode(&self.queues[queue].settings.name, &batch);
        let (lease, ids) = (self.next_lease, batch.iter().map(|(job, _)| job.id).collect());
        self.next_lease += 1;
        self.leases.insert(lease, Lease { queue, ids });
        let traces = batch.into_iter().map(|(_, content)| content.trace).collect();
        Some(Started { queue, lease, body, traces, first })
    }

    /// Carries out a command. Its changes are stored by the next commit.
    pub(crate) fn obey(&mut self, command: &Command, now_ms: u64) -> CommandResult {
        let done = match command {
            Command::Figures => return CommandResult::Figures(self.figures(now_ms)),
            Command::Dead(chosen) => {
                return match self.dead(chosen) {
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

    /// Returns the part of the jobs that the next command is about.
    fn page(&mut self, stage: Stage, chosen: &Chosen) -> Result<Page, String> {
        let until = match chosen.until {
            0 => self.store.last(stage).map_err(|error| error.to_string())?,
            until => until,
        };
        let max = if chosen.limit == 0 { COMMAND_JOBS_MAX } else { chosen.limit };
        let max = max.min(COMMAND_JOBS_MAX);
        Ok(Page { after: chosen.after, until, max, bytes_max: SHOWN_BYTES_MAX })
    }

    fn dead(&mut self, chosen: &Chosen) -> Result<(Vec<DeadJob>, Cursor), String> {
        self.find(&chosen.queue)?;
        let page = self.page(Stage::Dead, chosen)?;
        let failed = |error: StoreError| error.to_string();
        if !chosen.ids.is_empty() {
            let mut jobs = Vec::new();
            let mut bytes = 0;
            for id in chosen.ids.iter().take(page.max) {
                let one = Page { after: id.saturating_sub(1), until: *id, max: 1, ..page };
                jobs.extend(self.store.dead(&chosen.queue, &one).map_err(failed)?);
                bytes += jobs.last().map_or(0, |job| job.payload.len() + job.error.len());
                if bytes > SHOWN_BYTES_MAX {
                    break;
                }
            }
            return Ok((jobs, Cursor::default()));
        }
        let jobs = self.store.dead(&chosen.queue, &page).map_err(failed)?;
        let last = jobs.last().map_or(0, |job| job.id);
        let rest = Page { after: last, max: 1, ..page };
        let has_more = last > 0
            && !self.store.ids(Stage::Dead, &chosen.queue, &rest).map_err(failed)?.is_empty();
        Ok((jobs, Cursor { next: if has_more { last } else { 0 }, until: page.until }))
    }

    /// Returns the jobs that the command changes, with their bytes in the store.
    fn chosen(
        &mut self,
        stage: Stage,
        chosen: &Chosen,
    ) -> Result<(Vec<(i64, u64)>, Cursor), String> {
        let page = self.page(stage, chosen)?;
        let mut of = |page: &Page| {
            self.store.ids(stage, &chosen.queue, page).map_err(|error| error.to_string())
        };
        if chosen.ids.is_empty() {
            let found = of(&page)?;
            let is_full = found.len() == page.max;
            let next = found.last().filter(|_| is_full).map_or(0, |(id, _)| *id);
            return Ok((found, Cursor { next, until: page.until }));
        }
        let mut ids = chosen.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        let is_next = |id: &i64| *id > page.after && *id <= page.until;
        let ids: Vec<i64> = ids.into_iter().filter(is_next).take(page.max).collect();
        let next = ids.last().filter(|_| ids.len() == page.max).copied().unwrap_or(0);
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(of(&Page { after: id.saturating_sub(1), until: id, max: 1, ..page })?);
        }
        Ok((found, Cursor { next, until: page.until }))
    }

    fn change_dead(&mut self, chosen: &Chosen, revives: bool) -> Result<(usize, Cursor), String> {
        let queue = self.find(&chosen.queue)?;
        let (jobs, cursor) = self.chosen(Stage::Dead, chosen)?;
        for (id, bytes) in &jobs {
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
        let (jobs, cursor) = self.chosen(Stage::Alive, chosen)?;
        let mut dropped = 0;
        for (id, _) in jobs {
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
        let (jobs, cursor) = self.chosen(stage, chosen)?;
        let here: usize = self.queues.iter().map(LineUp::len).sum();
        if from.is_none() && stage == Stage::Alive && here + jobs.len() > JOBS_MAX {
            return Err(format!("there is no room: the queues have {here} of {JOBS_MAX} jobs"));
        }
        let mut moved = 0;
        for (id, bytes) in jobs {
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

#[cfg(test)]
mod tests;
