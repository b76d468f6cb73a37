//! Queues of jobs: the sockets between each pool's processes and crates/jobs, and the batches that
//! it passes to the front.

use crate::descriptors;
use crate::idle::Gate;
use crate::pools::Pools;
use anyhow::{Context, Result};
use samovar_channel::{RequestEnds, TraceContext};
use samovar_config::{Pool, Queue, Settings};
use samovar_front::{BatchError, FrontHandle, TraceHeaders};
use samovar_insight::HandoverGate;
use samovar_insight::export::otlp::{JobBatch, JobSpans};
use samovar_jobs::{
    BatchToRun, BatchTrace, Chosen, Command, CommandResult, Cursor, Jobs, JobsOptions,
    QueueSettings, Ran, Rate, RunError, SharedOptions, Stage, StorePlace, first_failure,
};
use samovar_wire::{QueueAction, QueueQuestion, QueueResponse};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the server's ends of the sockets for pushes, and those that the templates of each pool
/// inherit. There are none without queues.
pub(crate) fn sockets(settings: &Settings) -> Result<(Vec<OwnedFd>, Vec<Arc<OwnedFd>>)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    if queues(settings).next().is_none() {
        return Ok((ours, theirs));
    }
    for _ in crate::pools::settings(settings) {
        let ends = RequestEnds::new().context("cannot create the socket for pushed jobs")?;
        ours.push(descriptors::put_high(ends.server));
        theirs.push(Arc::new(ends.others));
    }
    Ok((ours, theirs))
}

fn queues(settings: &Settings) -> impl Iterator<Item = (&Pool, &Queue)> {
    settings.pools.iter().filter_map(|pool| Some((pool, pool.queue.as_ref()?)))
}

fn queue_settings((pool, queue): (&Pool, &Queue)) -> QueueSettings {
    QueueSettings {
        name: pool.name.clone(),
        workers: pool.settings.workers.max,
        batch: queue.batch,
        linger: queue.linger,
        attempts: queue.attempts,
        backoff: queue.backoff,
        backoff_max: queue.backoff_max,
        dead_letter: queue.dead_letter,
        concurrency_per_key: queue.concurrency_per_key,
        rate: queue.rate.map(|rate| Rate { count: rate.count, period_ms: rate.period_ms }),
        oldest_max: queue.oldest_max,
    }
}

/// Opens the store, and starts the thread that serves the queues. `None`: there are no queues.
pub(crate) fn start(
    settings: &Settings,
    sockets: Vec<OwnedFd>,
    (front, pools): (&FrontHandle, &Pools),
    (gate, spans): (HandoverGate, Option<JobSpans>),
) -> Result<Option<Jobs>> {
    let all: Vec<QueueSettings> = queues(settings).map(queue_settings).collect();
    if all.is_empty() {
        return Ok(None);
    }
    let place = place(settings)?;
    let of = |queue: &QueueSettings| pools.iter().find(|pool| pool.name == queue.name);
    let fronts: Vec<_> = all.iter().filter_map(of).map(|pool| pool.front.clone()).collect();
    let front_of_http = front;
    let front = front.clone();
    let names: Vec<String> = all.iter().map(|queue| queue.name.clone()).collect();
    let share_ppm = settings.insight.trace_share_ppm;
    let run = move |batch: BatchToRun, ran: Ran| match fronts.get(batch.queue) {
        Some(own) if !front.drains() => {
            let (trace, ran) = match &spans {
                Some(spans) => traced(&batch, &names[batch.queue], (spans, share_ppm), ran),
                None => (pushed_by(&batch), ran),
            };
            own.run_batch(batch.body, trace, Box::new(|done| ran(done.map_err(of_front))));
        }
        _ => ran(Err(RunError::Stopping)),
    };
    let rules =
        Gate::new(settings, queues(settings).map(|(_, queue)| queue), (front_of_http, pools));
    let options = JobsOptions {
        closed: Box::new(move |queue, now_ms| rules.closed(queue, now_ms)),
        place,
        bytes_max: settings.jobs.bytes_max,
        queues: all,
        sockets,
        run: Box::new(run),
        is_alone: Box::new(move || gate.is_open()),
    };
    Ok(Some(Jobs::start(options)?))
}

/// Returns the place of the jobs. Creates the folder of a file.
fn place(settings: &Settings) -> Result<StorePlace> {
    let (redis, prefix) = (crate::convert::redis(settings), settings.jobs.redis_prefix.clone());
    if let Some(redis) = redis {
        let lease = settings.jobs.lease;
        return Ok(StorePlace::Shared(SharedOptions { redis, prefix, lease }));
    }
    let path = settings.jobs.store.clone();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| {
            let hint = "create it, or set `jobs.store` to a file in another folder";
            format!("cannot create the folder `{}`\nhint: {hint}", folder.display())
        })?;
    }
    Ok(StorePlace::File(path))
}

/// Returns the trace that PHP gets if spans are not collected: that of the only job's push.
fn pushed_by(batch: &BatchToRun) -> TraceHeaders {
    match &batch.traces[..] {
        [TraceContext { traceparent, tracestate }] => {
            TraceHeaders { traceparent: traceparent.clone(), tracestate: tracestate.clone() }
        }
        _ => TraceHeaders::default(),
    }
}

/// Begins the span of a batch. The returned callback sends it to the collector.
fn traced(
    batch: &BatchToRun,
    queue: &str,
    (spans, share_ppm): (&JobSpans, u32),
    ran: Ran,
) -> (TraceHeaders, Ran) {
    let trace = BatchTrace::begin(&batch.traces, share_ppm);
    let headers = TraceHeaders { traceparent: trace.traceparent(), ..pushed_by(batch) };
    if !trace.is_sampled() {
        return (headers, ran);
    }
    let span = JobBatch {
        queue: queue.to_owned(),
        jobs: batch.traces.len(),
        first: batch.first,
        trace_id: trace.trace_id(),
        span_id: trace.span_id(),
        parent_id: trace.parent_id,
        links: trace.links.iter().map(|link| (link.trace_id, link.span_id)).collect(),
        began_unix_ns: unix_ns(),
        ..JobBatch::default()
    };
    let (spans, since) = (spans.clone(), Instant::now());
    let record = move |result: Result<Vec<u8>, RunError>| {
        // A batch that no worker has begun is tried again.
        if !matches!(result, Err(RunError::NotStarted(_) | RunError::Stopping)) {
            let error = first_failure(span.jobs, &result);
            let wall_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            spans.add(&JobBatch { wall_ns, error, ..span });
        }
        ran(result);
    };
    (headers, Box::new(record))
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Converts a request of the control socket.
pub(crate) fn command(question: QueueQuestion) -> Command {
    let QueueQuestion { action, queue, ids, after, until, limit, to, dead } = question;
    let stage = if dead { Stage::Dead } else { Stage::Alive };
    let chosen = Chosen { queue, ids, after, until, limit };
    match action {
        QueueAction::List => Command::Figures,
        QueueAction::Show => Command::Dead(chosen),
        QueueAction::Retry => Command::Retry(chosen),
        QueueAction::Forget => Command::DropDead(chosen),
        QueueAction::Drop => Command::Drop(chosen),
        QueueAction::Move => Command::Move { from: chosen, to, stage },
        QueueAction::Pause => Command::Pause(chosen.queue),
        QueueAction::Resume => Command::Resume(chosen.queue),
    }
}

/// Converts the result of a command.
pub(crate) fn response(result: CommandResult) -> QueueResponse {
    let empty = QueueResponse::default();
    match result {
        CommandResult::Figures(queues) => QueueResponse { queues, ..empty },
        CommandResult::Dead(jobs, Cursor { next, until }) => {
            QueueResponse { jobs, next, until, ..empty }
        }
        CommandResult::Changed(changed, Cursor { next, until }) => {
            QueueResponse { changed, next, until, ..empty }
        }
        CommandResult::Failed(why) => QueueResponse::refused(why),
    }
}

fn of_front(error: BatchError) -> RunError {
    match error {
        BatchError::NotStarted(why) => RunError::NotStarted(why),
        BatchError::Stopping => RunError::Stopping,
        BatchError::Failed { class, why } => RunError::Failed { class, why },
    }
}
