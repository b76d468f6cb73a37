//! The batches of this server, and its pushes and results that Redis does not have yet.
//!
//! A batch has a lease, which the server extends while it runs. When a lease has ended, its jobs
//! are ready again, and a result that comes later has no effect.

use super::options::SharedOptions;
use super::remote::{Arguments, Remote, padded};
use crate::backend::{Backend, NOT_STARTED_PAUSE_MS, Pending, STORE_PAUSE_MS, Started, find};
use crate::batch::{self, BATCH_BYTES_MAX, RunError};
use crate::command::{Command, CommandResult};
use crate::job::{Content, JobState, QueueSettings, milliseconds};
use crate::push_check::check;
use crate::store::StoreError;
use crate::totals::Totals;
use crate::verdict::{Run, Verdict, judge};
use samovar_channel::{Push, PushReply, TraceContext};
use samovar_log::Throttle;
use samovar_redis::Reply;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of jobs or changes in one call of a script: Redis serves others in between.
const CALL_JOBS_MAX: usize = 1_000;
/// Maximum time of a commit. Within it, requests are repeated on a new connection.
const COMMIT_LIMIT: Duration = Duration::from_secs(3);
/// Maximum time of a search for batches.
const CLAIM_LIMIT: Duration = Duration::from_secs(1);
/// A lease is extended after this part of its time.
const EXTENSIONS: u32 = 3;

struct Lease {
    queue: usize,
    token: String,
    runs: Vec<Run>,
    is_lost: bool,
}

/// Effect of a change on the figures, if the change has an effect.
enum Tally {
    Nothing,
    Done,
    Retried(String),
    /// Also of a job that is not kept.
    Dead(String),
}

struct Pushed {
    queue: usize,
    jobs: usize,
    arguments: Arguments,
}

/// All queues, in a Redis.
pub(crate) struct SharedQueues {
    pub(super) remote: Remote,
    pub(super) queues: Vec<QueueSettings>,
    pub(super) totals: Vec<Totals>,
    leases: HashMap<u64, Lease>,
    next_lease: u64,
    lease: Duration,
    extended: Instant,
    bytes_max: u64,
    pushes: Vec<Pushed>,
    pushed: usize,
    changes: Vec<(Arguments, usize, Tally)>,
    store_pause_until_ms: u64,
    is_stopping: bool,
    death_lines: Throttle,
    failure_lines: Throttle,
}

impl SharedQueues {
    /// Opens a connection. If Redis cannot be reached at present, the server starts nevertheless.
    pub(crate) fn open(
        options: &SharedOptions,
        queues: Vec<QueueSettings>,
        bytes_max: u64,
    ) -> Result<SharedQueues, StoreError> {
        let mut remote = Remote::new(options, &queues);
        match remote.call("last", Arguments::default(), CLAIM_LIMIT) {
            Err(StoreError::Redis(error)) if error.is_temporary() => {
                tracing::error!(
                    "{error}\nhint: the server starts; jobs are stored and run when Redis can be \
                     reached"
                );
            }
            result => drop(result?),
        }
        Ok(SharedQueues {
            remote,
            totals: queues.iter().map(|queue| Totals::of(&queue.name)).collect(),
            queues,
            leases: HashMap::new(),
            next_lease: 1,
            lease: options.lease,
            extended: Instant::now(),
            bytes_max,
            pushes: Vec::new(),
            pushed: 0,
            changes: Vec::new(),
            store_pause_until_ms: 0,
            is_stopping: false,
            death_lines: Throttle::default(),
            failure_lines: Throttle::default(),
        })
    }

    /// Returns the name of this server in Redis.
    pub(crate) fn server(&self) -> &str {
        &self.remote.server
    }

    pub(super) fn find(&self, name: &str) -> Result<usize, String> {
        find(self.queues.iter().map(|queue| &*queue.name), name)
    }

    fn end(&mut self, lease: &Lease, run: Run, outcome: batch::Outcome) {
        let queue = lease.queue;
        let verdict = judge(&self.queues[queue], run, outcome, &self.death_lines);
        let about = |kind: &str| {
            let mut of = Arguments::default();
            of.add(kind).add(&lease.token).add(&padded(run.id));
            of
        };
        let (arguments, tally) = match verdict {
            Verdict::Remove(None) => (about("done"), Tally::Done),
            Verdict::Remove(Some(class)) => (about("done"), Tally::Dead(class)),
            Verdict::Release(delay_ms) => {
                let mut back = about("back");
                let delay = delay_ms.map_or_else(|| "-1".to_owned(), |delay| delay.to_string());
                back.number(run.attempts).add(&delay).add("");
                (back, Tally::Nothing)
            }
            Verdict::Retry { attempts, delay_ms, failure } => {
                let mut back = about("back");
                back.number(attempts).number(delay_ms).add(&failure.text);
                (back, Tally::Retried(failure.class))
            }
            Verdict::Bury { attempts, failure } => {
                let mut bury = about("bury");
                bury.number(attempts).add(&failure.class).add(&failure.place).add(&failure.text);
                (bury, Tally::Dead(failure.class))
            }
        };
        self.changes.push((arguments, queue, tally));
    }

    /// Adds a change that has no effect on the figures.
    pub(super) fn change(&mut self, arguments: Arguments) {
        self.changes.push((arguments, 0, Tally::Nothing));
    }

    fn push_calls(&mut self) -> Vec<Arguments> {
        let pushes = std::mem::take(&mut self.pushes);
        self.pushed = 0;
        let (mut calls, mut group, mut jobs) = (Vec::new(), Vec::new(), 0);
        for push in pushes {
            if jobs + push.jobs > CALL_JOBS_MAX && !group.is_empty() {
                calls.push(std::mem::take(&mut group));
                jobs = 0;
            }
            jobs += push.jobs;
            group.push(push);
        }
        if !group.is_empty() {
            calls.push(group);
        }
        let number = self.remote.next_call();
        let call = |(at, group): (usize, Vec<Pushed>)| {
            let mut call = Arguments::default();
            call.add(&format!("{}:{at}", self.remote.server)).number(number);
            call.number(self.bytes_max).number(group.len());
            for push in group {
                call.append(push.arguments);
            }
            call
        };
        calls.into_iter().enumerate().map(call).collect()
    }

    fn change_calls(&self) -> Vec<Arguments> {
        let call = |part: &[(Arguments, usize, Tally)]| {
            let mut call = Arguments::default();
            call.add(&self.remote.server).number(part.len());
            for (arguments, ..) in part {
                call.append(arguments.clone());
            }
            call
        };
        self.changes.chunks(CALL_JOBS_MAX).map(call).collect()
    }

    /// Counts the changes that had an effect, and forgets them.
    fn apply(&mut self, effects: &[i64]) {
        let changes: Vec<_> = self.changes.drain(..effects.len()).collect();
        for ((_, queue, tally), _) in changes.into_iter().zip(effects).filter(|(_, n)| **n > 0) {
            let totals = &mut self.totals[queue];
            match tally {
                Tally::Nothing => {}
                Tally::Done => totals.figures.done_total += 1,
                Tally::Retried(class) => {
                    totals.figures.retried_total += 1;
                    totals.count_failure(class);
                }
                Tally::Dead(class) => {
                    totals.figures.dead_total += 1;
                    totals.count_failure(class);
                }
            }
        }
    }

    fn fail(&mut self, error: &StoreError, now_ms: u64) {
        self.store_pause_until_ms = now_ms + STORE_PAUSE_MS;
        if let Some(suppressed) = self.failure_lines.pass() {
            tracing::error!(suppressed, "{error}");
        }
    }

    /// Extends the leases of the running batches, if it is time.
    fn extend(&mut self, now_ms: u64) -> Result<(), StoreError> {
        let held: Vec<u64> =
            self.leases.iter().filter(|(_, lease)| !lease.is_lost).map(|(id, _)| *id).collect();
        if held.is_empty() || self.extended.elapsed() < self.lease / EXTENSIONS {
            return Ok(());
        }
        self.remote.set_clock(now_ms);
        for part in held.chunks(CALL_JOBS_MAX) {
            let mut call = Arguments::default();
            call.number(milliseconds(self.lease)).number(part.len());
            for id in part {
                call.add(&self.leases[id].token);
            }
            let reply = self.remote.call("extend", call, CLAIM_LIMIT)?;
            for (id, is_held) in part.iter().zip(reply.list().unwrap_or_default()) {
                if is_held.number() == Some(0)
                    && let Some(lease) = self.leases.get_mut(id)
                {
                    lease.is_lost = true;
                    tracing::warn!(
                        queue = self.queues[lease.queue].name,
                        jobs = lease.runs.len(),
                        "the lease of running jobs has ended: they may run a second time\nhint: \
                         Redis did not respond for longer than `jobs.lease`, or this server was \
                         stopped for so long"
                    );
                }
            }
        }
        self.extended = Instant::now();
        Ok(())
    }

    fn claim_call(&mut self, queue: usize, count: usize) -> Arguments {
        let settings = &self.queues[queue];
        let mut call = Arguments::default();
        call.add(&self.remote.server).number(milliseconds(self.lease)).add(&settings.name);
        call.number(count).number(self.next_lease).number(settings.batch);
        call.number(BATCH_BYTES_MAX).number(milliseconds(settings.linger));
        let (rate, period) = settings.rate.map_or((0, 1), |rate| (rate.count, rate.period_ms));
        call.number(rate).number(period);
        self.next_lease += count as u64;
        call
    }

    /// Takes the batches of a reply. The first of them has the lease `first`.
    fn take(&mut self, queue: usize, first: u64, reply: &Reply) -> Option<(Vec<Started>, i64)> {
        let [reaped, wait_ms, batches @ ..] = reply.list()? else { return None };
        if let Some(jobs @ 1..) = reaped.number() {
            tracing::warn!(jobs, "jobs whose lease has ended are ready again");
        }
        let mut started = Vec::new();
        for (lease, batch) in (first..).zip(batches) {
            let mut jobs = Vec::new();
            for job in batch.list()? {
                jobs.push(claimed(job.list()?)?);
            }
            let (head, _) = jobs.first()?;
            let head = head.id;
            let run = |(job, _): &(JobState, Content)| {
                let JobState { id, attempts, attempts_max, .. } = *job;
                Run { id, attempts, attempts_max }
            };
            let runs = jobs.iter().map(run).collect();
            let token = self.remote.token(lease);
            self.leases.insert(lease, Lease { queue, token, runs, is_lost: false });
            let body = batch::encode(&self.queues[queue].name, &jobs);
            let traces = jobs.into_iter().map(|(_, content)| content.trace).collect();
            started.push(Started { queue, lease, body, traces, first: head });
        }
        Some((started, wait_ms.number()?))
    }

    /// Gives up leases that Redis may have granted in a response that was lost.
    fn abandon(&mut self, from: u64, until: u64) {
        for lease in from..until {
            if !self.leases.contains_key(&lease) {
                let mut abandon = Arguments::default();
                abandon.add("abandon").add(&self.remote.token(lease));
                self.change(abandon);
            }
        }
    }

    fn try_commit(&mut self) -> Result<Vec<Option<i64>>, StoreError> {
        let changes = self.change_calls();
        let pushes = self.push_calls();
        let count = changes.len();
        let calls = changes.into_iter().map(|call| ("change", call));
        let calls: Vec<_> = calls.chain(pushes.into_iter().map(|call| ("push", call))).collect();
        let mut replies = self.remote.call_all(calls, COMMIT_LIMIT, true)?.into_iter();
        for reply in replies.by_ref().take(count) {
            let effects = numbers(&reply?)?;
            self.apply(&effects[..effects.len().min(self.changes.len())]);
        }
        let mut ids = Vec::new();
        let mut failure = None;
        for reply in replies {
            match reply.and_then(|reply| numbers(&reply)) {
                Ok(all) => ids.extend(all.into_iter().map(|id| Some(id).filter(|id| *id >= 0))),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(ids), Err)
    }
}

fn numbers(reply: &Reply) -> Result<Vec<i64>, StoreError> {
    let all: Option<_> = reply.list().unwrap_or_default().iter().map(Reply::number).collect();
    all.ok_or(StoreError::Foreign("commit"))
}

/// Parses a job of a batch.
fn claimed(fields: &[Reply]) -> Option<(JobState, Content)> {
    let [id, attempts, attempts_max, key, payload, traceparent, tracestate] = fields else {
        return None;
    };
    let job = JobState {
        id: id.number()?,
        priority: 0,
        key: Some(key.text()?.to_owned()).filter(|key| !key.is_empty()),
        unique_until_ms: 0,
        due_ms: 0,
        pushed_ms: 0,
        attempts: u32::try_from(attempts.number()?).ok()?,
        attempts_max: u32::try_from(attempts_max.number()?).ok()?,
        payload_bytes: 0,
    };
    let trace = TraceContext {
        traceparent: traceparent.text()?.to_owned(),
        tracestate: tracestate.text()?.to_owned(),
    };
    Some((job, Content { payload: payload.text()?.to_owned(), trace }))
}

impl Backend for SharedQueues {
    fn reload(&mut self, _: u64) -> Result<(), StoreError> {
        Ok(())
    }

    fn depth(&mut self, queue: &str, now_ms: u64) -> PushReply {
        let at = match self.find(queue) {
            Ok(at) => at,
            Err(why) => return PushReply::Wrong(why),
        };
        // The other callers of this turn do not wait for Redis one after another.
        if self.store_pause_until_ms > now_ms {
            return PushReply::Refused("the store of jobs does not respond".to_owned());
        }
        match self.depths(&[at], now_ms) {
            Ok(depths) => PushReply::Depth(depths.first().map_or([0; 3], |depth| depth.waiting)),
            Err(error) => {
                self.fail(&error, now_ms);
                PushReply::Refused(error.to_string())
            }
        }
    }

    fn push(&mut self, mut push: Push, now_ms: u64) -> Result<Pending, PushReply> {
        let queue = self.find(&push.queue).map_err(PushReply::Wrong)?;
        check(&mut push).map_err(PushReply::Wrong)?;
        let mut arguments = Arguments::default();
        let states: Vec<_> = push.jobs.iter().map(|new| JobState::of(0, new, now_ms)).collect();
        let jobs = states.len();
        arguments.number(jobs).number(states.iter().map(JobState::bytes).sum::<u64>());
        for (job, state) in push.jobs.iter().zip(states) {
            arguments.add(&push.queue).number(job.priority);
            arguments.add(job.key.as_deref().unwrap_or_default());
            arguments.number(job.unique_ms).number(job.delay_ms).number(job.attempts);
            arguments.add(&job.payload).add(&job.trace.traceparent).add(&job.trace.tracestate);
            arguments.number(state.bytes()).number(state.batch_bytes());
        }
        let pending = (self.pushed..self.pushed + jobs).map(Some).collect();
        self.pushed += jobs;
        self.pushes.push(Pushed { queue, jobs, arguments });
        Ok(pending)
    }

    fn finish(&mut self, lease: u64, ran: &Result<Vec<u8>, RunError>, now_ms: u64) {
        let Some(lease) = self.leases.remove(&lease) else { return };
        match ran {
            Err(RunError::NotStarted(_)) => {
                self.totals[lease.queue].pause_until_ms = now_ms + NOT_STARTED_PAUSE_MS;
            }
            Err(RunError::Stopping) => self.is_stopping = true,
            _ => {}
        }
        for (run, outcome) in lease.runs.iter().zip(batch::outcomes(lease.runs.len(), ran)) {
            self.end(&lease, *run, outcome);
        }
        let mut end = Arguments::default();
        end.add("end").add(&lease.token);
        self.change(end);
    }

    fn commit(&mut self, now_ms: u64) -> Result<Vec<Option<i64>>, String> {
        if self.pushes.is_empty() && self.changes.is_empty() {
            return Ok(Vec::new());
        }
        if self.pushes.is_empty() && self.store_pause_until_ms > now_ms {
            return Err("the store of jobs does not respond".to_owned());
        }
        self.remote.set_clock(now_ms);
        let pushed: Vec<_> = self.pushes.iter().map(|push| (push.queue, push.jobs)).collect();
        let stored = self.try_commit();
        let mut at = 0;
        for (queue, jobs) in pushed {
            let figures = &mut self.totals[queue].figures;
            match &stored {
                Ok(ids) => {
                    let ids = &ids[at.min(ids.len())..(at + jobs).min(ids.len())];
                    figures.pushed_total +=
                        ids.iter().filter(|id| id.is_some_and(|id| id > 0)).count() as u64;
                    figures.refused_total += u64::from(ids.contains(&None));
                }
                Err(_) => figures.refused_total += jobs as u64,
            }
            at += jobs;
        }
        stored.map_err(|error| {
            self.fail(&error, now_ms);
            error.to_string()
        })
    }

    fn start(
        &mut self,
        now_ms: u64,
        closed: &dyn Fn(usize) -> Option<u64>,
    ) -> (Vec<Started>, Option<u64>) {
        if self.store_pause_until_ms > now_ms {
            return (Vec::new(), Some(self.store_pause_until_ms));
        }
        if let Err(error) = self.extend(now_ms) {
            self.fail(&error, now_ms);
        }
        if self.is_stopping || !self.changes.is_empty() {
            return (Vec::new(), (!self.changes.is_empty()).then_some(now_ms + STORE_PAUSE_MS));
        }
        let mut look_ms: Option<u64> = None;
        let (mut calls, mut queues) = (Vec::new(), Vec::new());
        let from = self.next_lease;
        for at in 0..self.queues.len() {
            let pause = self.totals[at].pause_until_ms.max(closed(at).unwrap_or(0));
            if pause > now_ms {
                look_ms = Some(look_ms.map_or(pause, |look| look.min(pause)));
                continue;
            }
            let running = self.leases.values().filter(|lease| lease.queue == at).count();
            let free = self.queues[at].workers.saturating_sub(running);
            if free > 0 {
                queues.push((at, self.next_lease));
                calls.push(("claim", self.claim_call(at, free)));
            }
        }
        if calls.is_empty() {
            return (Vec::new(), look_ms);
        }
        self.remote.set_clock(now_ms);
        let mut started = Vec::new();
        let replies = match self.remote.call_all(calls, CLAIM_LIMIT, false) {
            Ok(replies) => replies,
            Err(error) => {
                self.fail(&error, now_ms);
                self.abandon(from, self.next_lease);
                return (started, Some(self.store_pause_until_ms));
            }
        };
        for ((queue, first), reply) in queues.into_iter().zip(replies) {
            let taken = reply.and_then(|reply| {
                self.take(queue, first, &reply).ok_or(StoreError::Foreign("claim"))
            });
            match taken {
                Ok((batches, wait_ms)) => {
                    started.extend(batches);
                    if let Ok(wait_ms) = u64::try_from(wait_ms) {
                        let at = now_ms.saturating_add(wait_ms);
                        look_ms = Some(look_ms.map_or(at, |look| look.min(at)));
                    }
                }
                Err(error) => self.fail(&error, now_ms),
            }
        }
        (started, look_ms)
    }

    fn obey(&mut self, command: &Command, now_ms: u64) -> CommandResult {
        self.obey_command(command, now_ms)
    }
}
