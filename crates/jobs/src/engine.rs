//! All queues and the store. Each step collects changes in memory; [`Engine::commit`] stores them
//! together, then applies them.

use crate::batch::{self, BATCH_BYTES_MAX, Outcome, RunError};
use crate::job::{JOB_BYTES, JOBS_MAX, JobState, QueueSettings};
use crate::line_up::{LineUp, Next};
use crate::store::{Change, Insert, Loaded, Store, StoreError};
use samovar_channel::{KEY_BYTES_MAX, PAYLOAD_BYTES_MAX, PUSHED_JOBS_MAX, Push, PushReply};
use samovar_log::Throttle;
use samovar_wire::{DeadJob, QueueStatus};
use serde::de::IgnoredAny;
use std::collections::HashMap;

/// Maximum delay of a job: a year, in milliseconds.
const DELAY_MS_MAX: u64 = 366 * 24 * 3_600 * 1_000;
/// Maximum number of attempts that a push can ask for.
const ATTEMPTS_MAX: u32 = 1_000;
/// Pause of a queue whose workers have not begun a batch, in milliseconds.
const NOT_STARTED_PAUSE_MS: u64 = 1_000;
/// Pause after the store has failed, in milliseconds.
const STORE_PAUSE_MS: u64 = 1_000;
/// Maximum number of characters of a job's error in a log line.
const LOGGED_CHARS_MAX: usize = 300;
/// Maximum number of jobs in the result of a command.
const SHOWN_MAX: usize = 1_000;

/// A command of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Returns the figures of all queues.
    Figures,
    /// Returns dead jobs with ids above the second value.
    Dead(String, i64),
    /// Makes dead jobs ready again: these, or (empty) all.
    Retry(String, Vec<i64>),
    /// Removes dead jobs: these, or (empty) all.
    DropDead(String, Vec<i64>),
    /// Removes waiting jobs: these, or (empty) all.
    Drop(String, Vec<i64>),
    /// Starts no further batches.
    Pause(String),
    /// Starts batches again.
    Resume(String),
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandResult {
    /// Figures of all queues.
    Figures(Vec<QueueStatus>),
    /// Dead jobs.
    Dead(Vec<DeadJob>),
    /// Number of jobs that have changed.
    Changed(usize),
    /// Nothing was done.
    Failed(String),
}

/// A batch to run.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) queue: usize,
    pub(crate) lease: u64,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
struct Lease {
    queue: usize,
    ids: Vec<i64>,
}

#[derive(Debug, Default)]
struct Totals {
    figures: QueueStatus,
    dead_bytes: u64,
    /// No batch is started before this time.
    pause_until_ms: u64,
}

/// A change of the queue in memory, applied when the store has it.
enum Applied {
    Remove { id: i64, is_done: bool },
    Bury { id: i64, bytes: u64 },
    PutBack { id: i64, attempts: u32, due_ms: u64, failed: bool },
    RemoveDead { bytes: u64 },
    Revive(i64),
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

    /// Checks a push, and adds its jobs to the next commit.
    pub(crate) fn push(&mut self, push: Push, now_ms: u64) -> Result<Pending, PushReply> {
        let at = self.find(&push.queue).map_err(PushReply::Wrong)?;
        check(&push).map_err(PushReply::Wrong)?;
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
                self.change(queue, Change::Remove(id), Applied::Remove { id, is_done: true });
            }
            Outcome::Released(delay_ms) => {
                let due_ms = now_ms.saturating_add(delay_ms.min(DELAY_MS_MAX));
                let due_ms = if delay_ms == 0 { job.due_ms } else { due_ms };
                let back = Applied::PutBack { id, attempts: job.attempts, due_ms, failed: false };
                self.applied.push((queue, back));
            }
            Outcome::Retry(delay_ms, error) if attempts < attempts_max => {
                let delay_ms = delay_ms.map_or_else(
                    || line_up.backoff_ms(attempts, |to| fastrand::u64(..to)),
                    |delay_ms| delay_ms.min(DELAY_MS_MAX),
                );
                let due_ms = now_ms.saturating_add(delay_ms);
                let change = Change::Retry { id, attempts, due_ms, error };
                self.change(queue, change, Applied::PutBack { id, attempts, due_ms, failed: true });
            }
            Outcome::Retry(_, error) | Outcome::Dead(error) => {
                log_death(&self.death_lines, line_up, (id, attempts), &error);
                if line_up.settings.dead_letter {
                    let bytes = job.bytes() + error.len() as u64;
                    let change = Change::Bury { id, attempts, died_ms: now_ms, error };
                    self.change(queue, change, Applied::Bury { id, bytes });
                } else {
                    let applied = Applied::Remove { id, is_done: false };
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
                Applied::Remove { id, is_done } => {
                    queue.remove(id);
                    if is_done {
                        figures.done_total += 1;
                    } else {
                        figures.failed_total += 1;
                        figures.dead_total += 1;
                    }
                }
                Applied::Bury { id, bytes } => {
                    queue.remove(id);
                    totals.dead_bytes += bytes;
                    figures.dead += 1;
                    figures.failed_total += 1;
                    figures.dead_total += 1;
                }
                Applied::PutBack { id, attempts, due_ms, failed } => {
                    queue.put_back(id, attempts, due_ms, now_ms);
                    figures.failed_total += u64::from(failed);
                }
                Applied::RemoveDead { bytes } => {
                    totals.dead_bytes = totals.dead_bytes.saturating_sub(bytes);
                    figures.dead = figures.dead.saturating_sub(1);
                }
                Applied::Revive(id) => {
                    figures.dead = figures.dead.saturating_sub(1);
                    if let Ok(Some(job)) = self.store.job(id) {
                        totals.dead_bytes = totals.dead_bytes.saturating_sub(job.bytes());
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
        let payloads = match self.store.payloads(&ids) {
            Ok(payloads) => payloads,
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
        for (job, payload) in jobs.into_iter().zip(payloads) {
            match payload {
                Some(payload) => batch.push((job, payload)),
                // The other server of an upgrade has ended it.
                None => drop(self.queues[queue].remove(job.id)),
            }
        }
        if batch.is_empty() {
            return None;
        }
        let body = batch::encode(&self.queues[queue].settings.name, &batch);
        let (lease, ids) = (self.next_lease, batch.iter().map(|(job, _)| job.id).collect());
        self.next_lease += 1;
        self.leases.insert(lease, Lease { queue, ids });
        Some(Started { queue, lease, body })
    }

    /// Carries out a command. Its changes are stored by the next commit.
    pub(crate) fn obey(&mut self, command: &Command, now_ms: u64) -> CommandResult {
        let done = match command {
            Command::Figures => return CommandResult::Figures(self.figures(now_ms)),
            Command::Dead(queue, after) => {
                let found = self.find(queue).and_then(|_| {
                    self.store.dead(queue, *after, SHOWN_MAX).map_err(|error| error.to_string())
                });
                return found.map_or_else(CommandResult::Failed, CommandResult::Dead);
            }
            Command::Retry(queue, ids) => self.change_dead(queue, ids, true),
            Command::DropDead(queue, ids) => self.change_dead(queue, ids, false),
            Command::Drop(queue, ids) => self.drop_waiting(queue, ids),
            Command::Pause(queue) => self.pause(queue, true),
            Command::Resume(queue) => self.pause(queue, false),
        };
        done.map_or_else(CommandResult::Failed, CommandResult::Changed)
    }

    fn change_dead(&mut self, name: &str, ids: &[i64], revives: bool) -> Result<usize, String> {
        let queue = self.find(name)?;
        let (mut after, mut changed) = (0, 0);
        loop {
            let dead =
                self.store.dead(name, after, SHOWN_MAX).map_err(|error| error.to_string())?;
            let Some(last) = dead.last() else { return Ok(changed) };
            after = last.id;
            for job in dead.iter().filter(|job| ids.is_empty() || ids.contains(&job.id)) {
                changed += 1;
                let bytes = JOB_BYTES + (job.payload.len() + job.error.len()) as u64;
                if revives {
                    self.change(queue, Change::Revive(job.id), Applied::Revive(job.id));
                } else {
                    let applied = Applied::RemoveDead { bytes };
                    self.change(queue, Change::RemoveDead(job.id), applied);
                }
            }
        }
    }

    fn drop_waiting(&mut self, name: &str, ids: &[i64]) -> Result<usize, String> {
        let queue = self.find(name)?;
        let waiting = self.queues[queue].waiting();
        let dropped: Vec<i64> = waiting.filter(|id| ids.is_empty() || ids.contains(id)).collect();
        for id in &dropped {
            // Removed at once, so that it does not start before the commit.
            self.queues[queue].remove(*id);
            self.changes.push(Change::Remove(*id));
        }
        Ok(dropped.len())
    }

    fn pause(&mut self, name: &str, is_paused: bool) -> Result<usize, String> {
        let queue = self.find(name)?;
        self.change(queue, Change::Pause(name.to_owned(), is_paused), Applied::Pause(is_paused));
        Ok(1)
    }

    fn figures(&self, now_ms: u64) -> Vec<QueueStatus> {
        let of = |(queue, totals): (&LineUp, &Totals)| {
            let depth = queue.depth();
            QueueStatus {
                ready: depth.ready,
                delayed: depth.delayed,
                running: depth.running,
                oldest_ms: depth.oldest_ms.map_or(0, |at| now_ms.saturating_sub(at)),
                paused: queue.is_paused,
                ..totals.figures.clone()
            }
        };
        self.queues.iter().zip(&self.totals).map(of).collect()
    }
}

fn log_death(lines: &Throttle, of: &LineUp, (job, runs): (i64, u32), error: &str) {
    let Some(suppressed) = lines.pass() else { return };
    let queue = &of.settings.name;
    let line = error.lines().next().unwrap_or_default();
    let first: String = line.chars().take(LOGGED_CHARS_MAX).collect();
    let hint = if of.settings.dead_letter {
        format!("`samovar queue show {queue}` has its payload and the stack")
    } else {
        "it was removed, because `dead_letter` is false".to_owned()
    };
    tracing::warn!(queue, job, runs, suppressed, "a job is dead: {first}\nhint: {hint}");
}

/// Checks a push, which a worker may have made up.
fn check(push: &Push) -> Result<(), String> {
    if push.jobs.is_empty() || push.jobs.len() > PUSHED_JOBS_MAX {
        return Err(format!("a push has 1 to {PUSHED_JOBS_MAX} jobs, not {}", push.jobs.len()));
    }
    for job in &push.jobs {
        if job.payload.len() > PAYLOAD_BYTES_MAX {
            return Err(format!(
                "a payload has at most {PAYLOAD_BYTES_MAX} bytes as JSON, not {}\nhint: store the \
                 data elsewhere, and push its name",
                job.payload.len()
            ));
        }
        if let Some(key) = job.key.as_ref().filter(|key| !(1..=KEY_BYTES_MAX).contains(&key.len()))
        {
            return Err(format!("a key has 1 to {KEY_BYTES_MAX} bytes, not {}", key.len()));
        }
        if job.key.is_none() && job.unique_ms > 0 {
            return Err("a unique job needs a key".to_owned());
        }
        if job.delay_ms.max(job.unique_ms) > DELAY_MS_MAX {
            return Err("a job is delayed or unique for at most 366 days".to_owned());
        }
        if job.attempts > ATTEMPTS_MAX {
            return Err(format!("a job has at most {ATTEMPTS_MAX} attempts, not {}", job.attempts));
        }
        if serde_json::from_str::<IgnoredAny>(&job.payload).is_err() {
            return Err("the payload is not JSON, or is nested too deeply".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
