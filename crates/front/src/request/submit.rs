//! submit: a routed request into the ring, and its answer out of it.
//!
//! Backpressure lives here: with no free slot, or no worker, within `timeouts.queue` the answer is 503. A request
//! whose worker died before the client got a byte is run again, if running it twice does no harm.

use super::context::ScriptRequest;
use super::interim;
use super::sampled;
use super::traced;
use super::upload::{self, Upload};
use crate::answer::error_page::Failure;
use crate::exchange::admission::Places;
use crate::exchange::deaths::Attempt;
use crate::exchange::shares::Held;
use crate::exchange::{Answer, BodyFailure, Exchange, Lost, Order, SlotWait, WorkerMessage};
use crate::log::RequestLogEntry;
use crate::route::target::Target;
use crate::runtime::shed::Shed;
use crate::shared::Shared;
use http::Method;
use samovar_ring::{Death, Filling, Lane};
use std::future::poll_fn;

/// Runs the request and waits for the start of its answer; the exchange, if more is to come.
pub(super) async fn submit(
    request: &ScriptRequest<'_>,
    upload: Upload,
    entry: &mut RequestLogEntry,
) -> Result<(Answer, Option<Exchange>), Failure> {
    let shared = request.shared();
    let is_head_only = request.parts.method == Method::HEAD;
    let may_run_again = is_idempotent(&request.parts.method) && matches!(upload, Upload::None);
    let mut upload = Some(upload);
    let mut attempts = 0;
    loop {
        let held = if attempts == 0 { admit(request)? } else { None };
        let upload = upload.take().unwrap_or(Upload::None);
        let exchange = queue(request, upload, held, attempts == 0).await?;
        let mut run = Run { exchange: Some(exchange), entry };
        match run.answer(request, is_head_only).await {
            Ok(answer) => {
                let rest = run.exchange.take().filter(|_| answer.is_open);
                return Ok((answer, rest));
            }
            Err(Lost::Orphaned(death)) if may_run_again && retry(request, death, attempts) => {
                attempts += 1;
                run.entry.retried();
                shared.counters.retries.add(1);
                log_death(request, Some(attempts));
            }
            Err(lost) => return Err(failure(request, lost)),
        }
    }
}

/// A request at a worker. Whoever stops awaiting its answer, because the client has gone or its time is over, leaves it
/// to the worker: what it has cost is noted all the same.
struct Run<'a> {
    exchange: Option<Exchange>,
    entry: &'a mut RequestLogEntry,
}

impl Run<'_> {
    /// Waits for the answer; passes on what comes ahead of it.
    async fn answer(
        &mut self,
        request: &ScriptRequest<'_>,
        is_head_only: bool,
    ) -> Result<Answer, Lost> {
        let exchange = self.exchange.as_mut().expect("it is taken when the answer is there");
        loop {
            match poll_fn(|cx| exchange.poll_answer(is_head_only, cx)).await? {
                WorkerMessage::Interim(status, lines) => interim::send(request, status, &lines),
                WorkerMessage::Answer(answer) => return Ok(answer),
            }
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            self.entry.costs(exchange.give_up());
        }
    }
}

/// Whether a request that is lost with its worker is run on another one.
fn retry(request: &ScriptRequest<'_>, death: Death, attempts: usize) -> bool {
    let shared = request.shared();
    let page = request.parts.uri.path().as_bytes();
    let attempt = Attempt { page, death, attempts, now_ms: shared.clock.real_ms() };
    let retries_max = request.context.setup.settings.limits.retries_max;
    shared.common.deaths().allow_another(&attempt, retries_max)
}

fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether there is room for it; its client's place, where places are counted. Whose worker has died has been taken in.
fn admit(request: &ScriptRequest<'_>) -> Result<Option<Held>, Failure> {
    let shared = request.shared();
    let limits = &request.context.setup.settings.limits;
    let places = Places {
        queue_max: limits.queue_max,
        in_time_max: usize::MAX,
        share_percent: limits.client_share,
        has_priority: !limits.priority_paths.is_empty(),
        is_priority: request.script.terms.is_priority,
    };
    let client = request.client();
    let own = || shared.request_shares.count(client);
    let admitted = shared.exchanges.borrow().admit(&places, own);
    admitted.map_err(|shed| busy(shared, shed))?;
    let is_counted = limits.client_share < 100;
    Ok(is_counted.then(|| shared.request_shares.hold(client)))
}

/// Fills a slot and queues it.
async fn queue(
    request: &ScriptRequest<'_>,
    upload: Upload,
    held: Option<Held>,
    is_first: bool,
) -> Result<Exchange, Failure> {
    let shared = request.shared();
    let filling = shared.exchanges.borrow_mut().fill();
    let filling = match filling {
        Some(filling) => (filling, 0),
        None => wait_for_slot(shared).await?,
    };
    let exchange = fill(request, filling, &upload, held, is_first)?;
    if matches!(upload, Upload::Spooled(..) | Upload::Live(..)) {
        upload::pump(shared, upload, exchange.feed());
    }
    Ok(exchange)
}

/// The slot, and for how long it was waited for, ms: a part of the time that the request may wait for a worker.
async fn wait_for_slot(shared: &Shared) -> Result<(Filling, u64), Failure> {
    let since_ms = shared.clock.now_ms();
    let mut wait = SlotWait::new(&shared.exchanges);
    let filling = poll_fn(|cx| wait.poll(cx)).await;
    let filling = filling.map_err(|()| busy(shared, Shed::Waited))?;
    Ok((filling, shared.clock.now_ms().saturating_sub(since_ms)))
}

/// Nothing is awaited between taking the slot and queueing it, so no slot is lost.
fn fill(
    request: &ScriptRequest<'_>,
    (filling, waited_ms): (Filling, u64),
    upload: &Upload,
    held: Option<Held>,
    is_first: bool,
) -> Result<Exchange, Failure> {
    let shared = request.shared();
    let mut encoded = shared.encoded.borrow_mut();
    let mut exchanges = shared.exchanges.borrow_mut();
    let is_whole = is_first && sampled::runs_whole(request, upload, &mut exchanges);
    if request.encode(upload.bytes(), is_whole, &mut encoded).is_err() {
        exchanges.give_up(filling);
        return Err(Failure::HeadTooLarge);
    }
    exchanges.put_request(&filling, &encoded);
    let body: Option<&[u8]> = match upload {
        Upload::None => Some(&[]),
        Upload::Whole(body) => Some(body),
        Upload::Spooled(..) | Upload::Live(..) => None,
    };
    if let Some(body) = body
        && !exchanges.put_body(&filling, body)
    {
        exchanges.give_up(filling);
        return Err(Failure::Internal);
    }
    let lane = match (is_whole, is_first) {
        (true, _) => Lane::Script,
        (false, true) => traced::lane(request, &exchanges),
        (false, false) => request.script.lane,
    };
    let terms = request.script.terms;
    let extended = request.context.setup.settings.timeouts.extended;
    let submitted = exchanges.submit(filling, Order { lane, terms, extended, waited_ms, held });
    exchanges.announce_lane(lane);
    drop(exchanges);
    match submitted {
        Ok(submitted) => Ok(Exchange::new(&shared.exchanges, submitted)),
        Err(()) => Err(busy(shared, Shed::Full)),
    }
}

fn busy(shared: &Shared, shed: Shed) -> Failure {
    // Who has waited in vain for the first boot must not be told of busy workers.
    let is_starting = shed != Shed::Share && !shared.exchanges.borrow().has_workers();
    let shed = if is_starting { Shed::Starting } else { shed };
    if let Some(suppressed) = shared.common.warnings.shed[shed as usize].pass() {
        let (what, hint) = shed.words();
        let _named = samovar_log::pool::enter(shared.pool_name());
        tracing::warn!(what, suppressed, "a request was refused: 503\nhint: {hint}");
    }
    Failure::Busy(shed, shared.exchanges.borrow().retry_after_s())
}

/// What a lost request's client is told, and the log.
fn failure(request: &ScriptRequest<'_>, lost: Lost) -> Failure {
    let shared = request.shared();
    match lost {
        Lost::QueueTimeout => busy(shared, Shed::Waited),
        // The supervisor has the details, and logs them.
        Lost::Overrun(_) => Failure::Overrun,
        Lost::Orphaned(_) => {
            log_death(request, None);
            Failure::WorkerDied
        }
        // `exchange` has logged what was broken and had the worker killed.
        Lost::Broken(_) | Lost::Aborted | Lost::Short => Failure::BrokenAnswer,
        Lost::Body(BodyFailure::TooLarge) => Failure::BodyTooLarge,
        Lost::Body(BodyFailure::Timeout) => Failure::BodyTimeout,
        Lost::Body(BodyFailure::Incomplete) => Failure::BadBody,
        Lost::Disk => Failure::Internal,
    }
}

/// Its worker has died; `attempts`: it is run again, for the how manieth time.
fn log_death(request: &ScriptRequest<'_>, attempts: Option<usize>) {
    let warnings = &request.shared().common.warnings;
    let throttle = if attempts.is_some() { &warnings.retried } else { &warnings.died };
    let Some(suppressed) = throttle.pass() else { return };
    let _named = samovar_log::pool::enter(request.shared().pool_name());
    let uri = Target::of(request.parts).whole.escape_ascii();
    let request_id = request.context.id.to_str().unwrap_or_default();
    if let Some(attempts) = attempts {
        tracing::info!(
            %uri,
            request_id,
            attempts,
            suppressed,
            "a worker died while it ran this request, which is run again (hint: the worker's log says why)"
        );
    } else {
        tracing::warn!(
            %uri,
            request_id,
            suppressed,
            "a worker died while it ran this request: 502 (hint: the worker's log says why)"
        );
    }
}
