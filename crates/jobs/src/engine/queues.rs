//! The queues in memory. Each step collects changes in memory; `commit` stores
//! them together, then applies them.

use crate::backend::{Backend, NOT_STARTED_PAUSE_MS, Pending, STORE_PAUSE_MS, Started, find};
use crate::batch::{self, BATCH_BYTES_MAX, Failure, Outcome, RunError};
use crate::command::{Command, CommandResult};
use crate::job::{JOBS_MAX, JobState, QueueSettings};
use crate::line_up::{LineUp, Next};
use crate::push_check::check;
use crate::store::{Change, Insert, Loaded, Store, StoreError};
use crate::totals::Totals;
use crate::verdict::{Run, Verdict, judge};
use samovar_channel::{Push, PushReply};
use samovar_log::Throttle;
use std::collections::HashMap;

#[derive(Debug)]
struct Lease {
    queue: usize,
    ids: Vec<i64>,
}

/// A change of the queue in memory, applied when the store has it.
pub(super) enum Applied {
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
    pub(super) store: Box<dyn Store>,
    pub(super) queues: Vec<LineUp>,
    pub(super) totals: Vec<Totals>,
    leases: HashMap<u64, Lease>,
    next_lease: u64,
    bytes_max: u64,
    inserts: Vec<Insert>,
    inserted_at: Vec<usize>,
    pending_bytes: u64,
    pub(super) changes: Vec<Change>,
    applied: Vec<(usize, Applied)>,
    store_pause_until_ms: u64,
    is_stopping: bool,
    death_lines: Throttle,
}

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
        let totals = queues.iter().map(|queue| Totals::of(&queue.settings.name)).collect();
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

    pub(super) fn find(&self, name: &str) -> Result<usize, String> {
        find(self.queues.iter().map(|queue| &*queue.settings.name), name)
    }

    /// Returns the bytes of all jobs in the store.
    pub(crate) fn used(&self) -> u64 {
        self.queues.iter().map(LineUp::bytes).sum::<u64>()
            + self.totals.iter().map(|totals| totals.dead_bytes).sum::<u64>()
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

    fn end(&mut self, queue: usize, id: i64, outcome: Outcome, now_ms: u64) {
        let line_up = &self.queues[queue];
        let Some(job) = line_up.get(id) else { return };
        let run = Run { id, attempts: job.attempts, attempts_max: job.attempts_max };
        match judge(&line_up.settings, run, outcome, &self.death_lines) {
            Verdict::Remove(class) => {
                self.change(queue, Change::Remove(id), Applied::Remove { id, class });
            }
            Verdict::Release(delay_ms) => {
                let due_ms = delay_ms.map_or(job.due_ms, |delay| now_ms.saturating_add(delay));
                let back = Applied::PutBack { id, attempts: job.attempts, due_ms, failed: None };
                self.applied.push((queue, back));
            }
            Verdict::Retry { attempts, delay_ms, failure } => {
                let due_ms = now_ms.saturating_add(delay_ms);
                let Failure { class, text: error, .. } = failure;
                let change = Change::Retry { id, attempts, due_ms, error };
                let failed = Some(class);
                self.change(queue, change, Applied::PutBack { id, attempts, due_ms, failed });
            }
            Verdict::Bury { attempts, failure } => {
                let (bytes, class) = (job.bytes() + failure.bytes(), failure.class.clone());
                let change = Change::Bury { id, attempts, died_ms: now_ms, failure };
                self.change(queue, change, Applied::Bury { id, bytes, class });
            }
        }
    }

    pub(super) fn change(&mut self, queue: usize, change: Change, applied: Applied) {
        self.changes.push(change);
        self.applied.push((queue, applied));
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
    fn is_behind(&self) -> bool {
        !self.changes.is_empty()
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
}

impl Backend for Engine {
    fn reload(&mut self, now_ms: u64) -> Result<(), StoreError> {
        let loaded = self.store.load()?;
        for queue in &mut self.queues {
            let fresh = LineUp::new(queue.settings.clone());
            *queue = fresh;
        }
        self.take(loaded, now_ms);
        Ok(())
    }

    fn depth(&mut self, queue: &str, _: u64) -> PushReply {
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

    fn push(&mut self, mut push: Push, now_ms: u64) -> Result<Pending, PushReply> {
        let at = self.find(&push.queue).map_err(PushReply::Wrong)?;
        check(&mut push).map_err(PushReply::Wrong)?;
        let states: Vec<_> = push.jobs.iter().map(|new| JobState::of(0, new, now_ms)).collect();
        let bytes: u64 = states.iter().map(JobState::bytes).sum();
        let jobs: usize = self.queues.iter().map(LineUp::len).sum();
        let used = self.used() + self.pending_bytes;
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

    fn finish(&mut self, lease: u64, ran: &Result<Vec<u8>, RunError>, now_ms: u64) {
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

    fn commit(&mut self, now_ms: u64) -> Result<Vec<Option<i64>>, String> {
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
        Ok(ids.into_iter().map(Some).collect())
    }

    fn start(
        &mut self,
        now_ms: u64,
        closed: &dyn Fn(usize) -> Option<u64>,
    ) -> (Vec<Started>, Option<u64>) {
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
            if self.queues[at].len() == 0 {
                continue;
            }
            if let Some(look) = closed(at) {
                at_least(look);
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

    fn obey(&mut self, command: &Command, now_ms: u64) -> CommandResult {
        self.obey_command(command, now_ms)
    }
}
