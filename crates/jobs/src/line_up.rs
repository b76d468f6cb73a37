//! One queue in memory: which of its jobs are ready, delayed or running. Pure: the caller passes
//! the time, and stores the changes.

use crate::job::{JobState, QueueSettings};
use crate::token_bucket::TokenBucket;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of ready jobs that one search for a batch looks at.
const SEARCH_MAX: usize = 10_000;
/// Maximum number of ready jobs whose age is compared.
const AGES_MAX: usize = 1_000;

/// Rank of a ready job: higher priorities first, then earlier jobs.
type QueueRank = (Reverse<i32>, i64);

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready,
    Delayed,
    /// Ready, but as many jobs with its key run as may run at the same time.
    Parked,
    Running,
}

#[derive(Debug)]
struct Entry {
    state: JobState,
    stage: Stage,
}

/// A queue.
#[derive(Debug)]
pub(crate) struct LineUp {
    pub(crate) settings: QueueSettings,
    jobs: HashMap<i64, Entry>,
    ready: BTreeSet<QueueRank>,
    delayed: BTreeSet<(u64, i64)>,
    /// Jobs by key that wait for another job with that key.
    parked: HashMap<String, BTreeSet<QueueRank>>,
    /// Number of running jobs by key.
    running_keys: HashMap<String, usize>,
    /// With `concurrency_per_key = 1`: the job that keeps the turn of its key while it waits to run
    /// again.
    turns: HashMap<String, i64>,
    bucket: Option<TokenBucket>,
    /// Unique jobs by key.
    unique: HashMap<String, i64>,
    running: usize,
    bytes: u64,
    pub(crate) is_paused: bool,
}

/// Numbers of jobs by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    pub(crate) ready: usize,
    pub(crate) delayed: usize,
    pub(crate) running: usize,
    /// Time since which the oldest ready job is ready, in Unix milliseconds.
    pub(crate) oldest_ms: Option<u64>,
}

/// Result of a search for a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// These jobs run now.
    Batch(Vec<JobState>),
    /// Nothing can run before this time, in Unix milliseconds.
    At(u64),
    /// Nothing can run before another event.
    Nothing,
}

impl LineUp {
    pub(crate) fn new(settings: QueueSettings) -> LineUp {
        LineUp {
            bucket: settings.rate.map(|rate| TokenBucket::new(rate, settings.batch, 0)),
            settings,
            turns: HashMap::new(),
            jobs: HashMap::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            parked: HashMap::new(),
            running_keys: HashMap::new(),
            unique: HashMap::new(),
            running: 0,
            bytes: 0,
            is_paused: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Bytes of all jobs in the store.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn get(&self, id: i64) -> Option<&JobState> {
        self.jobs.get(&id).map(|entry| &entry.state)
    }

    /// Returns the unique job with this key, unless its time is over.
    pub(crate) fn unique(&self, key: &str, now_ms: u64) -> Option<i64> {
        let id = *self.unique.get(key)?;
        self.get(id).filter(|job| job.unique_until_ms > now_ms).map(|job| job.id)
    }

    /// Adds a job of the store.
    pub(crate) fn add(&mut self, state: JobState, now_ms: u64) {
        self.bytes += state.bytes();
        if let Some(key) = state.key.as_ref().filter(|_| state.unique_until_ms > now_ms) {
            self.unique.insert(key.clone(), state.id);
        }
        let id = state.id;
        // It has failed before the server was started.
        if state.attempts > 0 {
            self.keep_turn(&state);
        }
        self.jobs.insert(id, Entry { state, stage: Stage::Ready });
        self.wait(id, now_ms);
    }

    /// Removes a job from the queue, in any stage.
    pub(crate) fn remove(&mut self, id: i64) -> Option<JobState> {
        self.leave_stage(id);
        let entry = self.jobs.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(entry.state.bytes());
        if let Some(key) = &entry.state.key
            && self.unique.get(key) == Some(&id)
        {
            self.unique.remove(key);
        }
        // It may have been the next one with its key.
        if let Some(key) = &entry.state.key {
            if self.turns.get(key) == Some(&id) {
                self.turns.remove(key);
            }
            self.unpark(key);
        }
        Some(entry.state)
    }

    /// Lets no later job with the key of this one run before it, if they run one after another.
    fn keep_turn(&mut self, job: &JobState) {
        if self.settings.concurrency_per_key != 1 {
            return;
        }
        if let Some(key) = &job.key {
            self.turns.entry(key.clone()).or_insert(job.id);
        }
    }

    /// Whether another job with its key must run before this one.
    fn has_no_turn(&self, job: &JobState) -> bool {
        let turn = job.key.as_ref().and_then(|key| self.turns.get(key));
        turn.is_some_and(|id| *id != job.id)
    }

    /// Puts a running job back. It becomes ready at `due_ms`, in its old place.
    pub(crate) fn put_back(&mut self, id: i64, attempts: u32, due_ms: u64, now_ms: u64) {
        if let Some(state) = self.jobs.get(&id).map(|entry| entry.state.clone()) {
            self.keep_turn(&state);
        }
        self.leave_stage(id);
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.state.attempts = attempts;
            entry.state.due_ms = due_ms;
            self.wait(id, now_ms);
        }
    }

    /// Puts a job that is in no stage into the stage in which it waits.
    fn wait(&mut self, id: i64, now_ms: u64) {
        let per_key = self.settings.concurrency_per_key;
        let has_no_turn = self.jobs.get(&id).is_some_and(|entry| self.has_no_turn(&entry.state));
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let place = (Reverse(entry.state.priority), id);
        let key = entry.state.key.as_ref().filter(|_| per_key > 0);
        if entry.state.due_ms > now_ms {
            entry.stage = Stage::Delayed;
            self.delayed.insert((entry.state.due_ms, id));
        } else if let Some(key) = key
            .filter(|key| has_no_turn || self.running_keys.get(*key).is_some_and(|n| *n >= per_key))
        {
            entry.stage = Stage::Parked;
            self.parked.entry(key.clone()).or_default().insert(place);
        } else {
            entry.stage = Stage::Ready;
            self.ready.insert(place);
        }
    }

    /// Takes a job out of the set of its stage.
    fn leave_stage(&mut self, id: i64) {
        let Some(entry) = self.jobs.get(&id) else { return };
        let place = (Reverse(entry.state.priority), id);
        match entry.stage {
            Stage::Ready => {
                self.ready.remove(&place);
            }
            Stage::Delayed => {
                self.delayed.remove(&(entry.state.due_ms, id));
            }
            Stage::Parked => {
                if let Some(key) = &entry.state.key
                    && let Some(parked) = self.parked.get_mut(key)
                {
                    parked.remove(&place);
                    if parked.is_empty() {
                        self.parked.remove(key);
                    }
                }
            }
            Stage::Running => {
                self.running = self.running.saturating_sub(1);
                if let Some(key) = entry.state.key.clone() {
                    self.free_key(&key);
                }
            }
        }
    }

    /// A job with this key has ended. The next one with the key becomes ready.
    fn free_key(&mut self, key: &str) {
        if let Some(count) = self.running_keys.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.running_keys.remove(key);
            }
        }
        self.unpark(key);
    }

    /// Makes as many parked jobs with this key ready as may run at the same time. The search for a
    /// batch parks those that may not run yet.
    fn unpark(&mut self, key: &str) {
        for _ in 0..self.settings.concurrency_per_key {
            let Some(parked) = self.parked.get_mut(key) else { return };
            let next = parked.pop_first();
            if parked.is_empty() {
                self.parked.remove(key);
            }
            if let Some(place) = next
                && let Some(entry) = self.jobs.get_mut(&place.1)
            {
                entry.stage = Stage::Ready;
                self.ready.insert(place);
            }
        }
    }

    fn park(&mut self, id: i64) {
        self.leave_stage(id);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        if let Some(key) = entry.state.key.clone() {
            entry.stage = Stage::Parked;
            self.parked.entry(key).or_default().insert((Reverse(entry.state.priority), id));
        }
    }

    /// Selects a batch whose payloads have at most `bytes_max` bytes, and marks its jobs as
    /// running.
    ///
    /// A job that has failed runs alone, so that it does not fail others again.
    pub(crate) fn next(&mut self, now_ms: u64, bytes_max: usize) -> Next {
        self.wake(now_ms);
        if self.is_paused {
            return Next::Nothing;
        }
        let later = self.delayed.first().map_or(Next::Nothing, |(due_ms, _)| Next::At(*due_ms));
        let (mut batch, mut parked) = (Vec::new(), Vec::new());
        let (mut bytes, mut keys) = (0, HashMap::<&str, usize>::new());
        for (_, id) in self.ready.iter().take(SEARCH_MAX) {
            let job = &self.jobs[id].state;
            let is_alone = job.attempts > 0;
            if is_alone && !batch.is_empty() {
                continue;
            }
            let per_key = self.settings.concurrency_per_key;
            if let Some(key) = job.key.as_deref().filter(|_| per_key > 0) {
                let running = self.running_keys.get(key).copied().unwrap_or(0);
                let taken = keys.entry(key).or_default();
                if running >= per_key || self.has_no_turn(job) {
                    parked.push(*id);
                    continue;
                }
                if running + *taken >= per_key {
                    continue;
                }
                *taken += 1;
            }
            bytes += job.batch_bytes();
            if !batch.is_empty() && bytes > bytes_max {
                break;
            }
            batch.push(*id);
            if is_alone || batch.len() >= self.settings.batch {
                break;
            }
        }
        drop(keys);
        for id in parked {
            self.park(id);
        }
        let Some(first) = batch.first() else { return later };
        let first = &self.jobs[first].state;
        let is_full = batch.len() >= self.settings.batch || first.attempts > 0 || bytes > bytes_max;
        let linger = u64::try_from(self.settings.linger.as_millis()).unwrap_or(u64::MAX);
        let complete_ms = first.pushed_ms.max(first.due_ms).saturating_add(linger);
        // A clock that was set back must not delay the batch for longer than `linger`.
        if !is_full && complete_ms > now_ms && complete_ms <= now_ms.saturating_add(linger) {
            return match later {
                Next::At(due_ms) => Next::At(due_ms.min(complete_ms)),
                _ => Next::At(complete_ms),
            };
        }
        if let Some(bucket) = &mut self.bucket {
            match bucket.grant(batch.len(), now_ms) {
                Ok(granted) => batch.truncate(granted),
                Err(at_ms) => {
                    return match later {
                        Next::At(due_ms) => Next::At(due_ms.min(at_ms)),
                        _ => Next::At(at_ms),
                    };
                }
            }
            bucket.take(batch.len());
        }
        Next::Batch(batch.into_iter().filter_map(|id| self.begin(id)).collect())
    }

    fn begin(&mut self, id: i64) -> Option<JobState> {
        self.leave_stage(id);
        let entry = self.jobs.get_mut(&id)?;
        entry.stage = Stage::Running;
        self.running += 1;
        if let Some(key) = entry.state.key.clone() {
            *self.running_keys.entry(key).or_default() += 1;
        }
        self.jobs.get(&id).map(|entry| entry.state.clone())
    }

    /// Makes delayed jobs ready at their time.
    fn wake(&mut self, now_ms: u64) {
        while let Some((due_ms, id)) = self.delayed.first().copied() {
            if due_ms > now_ms {
                break;
            }
            self.delayed.pop_first();
            self.wait(id, now_ms);
        }
    }

    pub(crate) fn depth(&self) -> Depth {
        let parked: usize = self.parked.values().map(BTreeSet::len).sum();
        Depth {
            ready: self.ready.len() + parked,
            delayed: self.delayed.len(),
            running: self.running,
            oldest_ms: self.oldest_ms(),
        }
    }

    /// Returns the time since which the oldest ready job is ready, in Unix milliseconds.
    ///
    /// Looks at the next jobs, and at the first one of each priority and of each key, at most at
    /// `AGES_MAX` of each kind: later jobs are hardly older.
    fn oldest_ms(&self) -> Option<u64> {
        let age = |id: &i64| self.get(*id).map(|job| job.pushed_ms.max(job.due_ms));
        let next = self.ready.iter().take(AGES_MAX).filter_map(|(_, id)| age(id));
        let first = |of: Option<&QueueRank>| of.and_then(|(_, id)| age(id));
        let parked = self.parked.values().take(AGES_MAX).filter_map(|of| first(of.first()));
        let mut oldest = next.chain(parked).min();
        let mut from = self.ready.first();
        for _ in 0..AGES_MAX {
            let Some((priority, id)) = from else { break };
            oldest = [oldest, age(id)].into_iter().flatten().min();
            from = self.ready.range((*priority, i64::MAX)..).next();
        }
        oldest
    }

    /// Whether the job runs.
    pub(crate) fn is_running(&self, id: i64) -> bool {
        self.jobs.get(&id).is_some_and(|entry| entry.stage == Stage::Running)
    }
}

#[cfg(test)]
mod tests;
