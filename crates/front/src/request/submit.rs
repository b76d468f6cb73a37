//! submit: puts a routed request into the ring and receives its response.
//!
//! This is the place of backpressure: without a free slot, or without a worker, within
//! `timeouts.queue` the response is 503. A request whose worker died before the client got a byte
//! is run again, if running it twice is harmless.

use super::context::ScriptRequest;
use super::interim;
use super::recording;
use super::script_sampling;
use super::trace_selection;
use super::upload::{self, Upload};
use crate::exchange::admission::Places;
use crate::exchange::deaths::Attempt;
use crate::exchange::shares::{self, Held};
use crate::exchange::{
    BodyFailure, Exchange, Lost, Order, ResponseReader, SlotWait, Turn, WorkerMessage,
};
use crate::log::RequestLogEntry;
use crate::response::error_page::Failure;
use crate::route::target::Target;
use crate::runtime::rejection::Rejection;
use crate::shared::Shared;
use http::Method;
use samovar_ring::{Death, Filling, Lane};
use std::future::poll_fn;

/// Runs the request and waits for the start of its response. Also returns the exchange if more of
/// the response follows.
pub(super) async fn submit(
    request: &ScriptRequest<'_>,
    upload: Upload,
    entry: &mut RequestLogEntry,
) -> Result<(ResponseReader, Option<Exchange>), Failure> {
    let shared = request.shared();
    let is_head_only = request.parts.method == Method::HEAD;
    let may_run_again = is_idempotent(&request.parts.method) && matches!(upload, Upload::None);
    if shared.common.recordings.is_on() {
        Box::pin(recording::hold(request, &upload, entry)).await;
    }
    let mut upload = Some(upload);
    let mut attempts = 0;
    loop {
        let held = if attempts == 0 { admit(request)? } else { None };
        let upload = upload.take().unwrap_or(Upload::None);
        let exchange = queue(request, upload, held, attempts == 0).await?;
        let mut run = Run { exchange: Some(exchange), entry };
        match run.respond(request, is_head_only).await {
            Ok(response) => {
                let mut rest = run.exchange.take().filter(|_| response.is_open);
                if let Some(tap) = recording::hear(run.entry, &response)
                    && let Some(rest) = &mut rest
                {
                    rest.set_tap(tap);
                }
                return Ok((response, rest));
            }
            Err(Lost::Orphaned(death)) if may_run_again && retry(request, death, attempts) => {
                attempts += 1;
                run.entry.retried();
                shared.counters.pool.retries_total.add(1);
                log_death(request, Some(attempts));
            }
            Err(lost) => return Err(failure(request, lost)),
        }
    }
}

/// A request at a worker. The wait for the response may be dropped, because the client has
/// disconnected or the deadline has passed. The request then stays with the worker, and its cost is
/// still recorded.
struct Run<'a> {
    exchange: Option<Exchange>,
    entry: &'a mut RequestLogEntry,
}

impl Run<'_> {
    /// Waits for the response. Forwards interim responses.
    async fn respond(
        &mut self,
        request: &ScriptRequest<'_>,
        is_head_only: bool,
    ) -> Result<ResponseReader, Lost> {
        let exchange = self.exchange.as_mut().expect("taken only after the response is complete");
        loop {
            match poll_fn(|cx| exchange.poll_response(is_head_only, cx)).await? {
                WorkerMessage::Interim(status, lines) => interim::send(request, status, &lines),
                WorkerMessage::ResponseReader(response) => return Ok(response),
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

/// Whether a request that was lost with its worker is run again on another worker.
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

/// Checks whether there is room for the request. Returns its client's place, if places are counted.
/// Not called for a retry after a worker's death, which was admitted before.
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
    if is_unread(request) {
        return Err(busy(shared, Rejection::Unread));
    }
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
    let turn = turn(request);
    let filling = shared.exchanges.borrow_mut().fill(turn);
    let filling = match filling {
        Some(filling) => (filling, 0),
        None => wait_for_slot(request, turn).await?,
    };
    let exchange = fill(request, filling, &upload, (held, turn), is_first)?;
    if matches!(upload, Upload::Spooled(..) | Upload::Live(..)) {
        upload::pump(shared, upload, exchange.feed());
    }
    Ok(exchange)
}

/// Whether the client has left too many response bytes unread.
fn is_unread(request: &ScriptRequest<'_>) -> bool {
    let budgets = &request.context.connection.shared.budgets;
    budgets.memory.is_used_up_by(|| request.client())
}

/// The client whose turn it must be, if the queue is fair by client.
fn turn(request: &ScriptRequest<'_>) -> Option<Turn> {
    let is_fair = request.context.setup.settings.limits.client_share < 100;
    is_fair.then(|| Turn {
        client: shares::client(request.client()),
        is_app: request.script.lane.is_app(),
    })
}

/// Waits for a slot. Also returns the waiting time in ms, which counts as part of the time that the
/// request may wait for a worker.
async fn wait_for_slot(
    request: &ScriptRequest<'_>,
    turn: Option<Turn>,
) -> Result<(Filling, u64), Failure> {
    let shared = request.shared();
    let since_ms = shared.clock.now_ms();
    let mut wait = SlotWait::new(&shared.exchanges, turn);
    let filling = poll_fn(|cx| wait.poll(cx)).await;
    let filling = filling.map_err(|()| busy(shared, Rejection::Waited))?;
    // Its client may have left other responses unread meanwhile.
    if is_unread(request) {
        shared.exchanges.borrow_mut().give_up(filling);
        return Err(busy(shared, Rejection::Unread));
    }
    Ok((filling, shared.clock.now_ms().saturating_sub(since_ms)))
}

/// Fills and queues a slot. Nothing is awaited in between, so no slot is lost.
fn fill(
    request: &ScriptRequest<'_>,
    (filling, waited_ms): (Filling, u64),
    upload: &Upload,
    (held, turn): (Option<Held>, Option<Turn>),
    is_first: bool,
) -> Result<Exchange, Failure> {
    let shared = request.shared();
    let mut encoded = shared.encoded.borrow_mut();
    let mut exchanges = shared.exchanges.borrow_mut();
    let is_whole = is_first && script_sampling::runs_whole(request, upload, &mut exchanges);
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
    let canary = request.context.canary.filter(|canary| shared.is_current(canary));
    let is_canary = canary.is_some();
    let lane = match (is_whole, is_first && !is_canary) {
        (true, _) => Lane::Script,
        (false, true) => trace_selection::lane(request, &exchanges),
        (false, false) => request.script.lane,
    };
    // The canary's workers are held back from the lanes of the others.
    let lane = if is_canary { lane.probe() } else { lane };
    let terms = request.script.terms;
    let extended = request.context.setup.settings.timeouts.extended;
    let order = Order { lane, terms, extended, waited_ms, held, turn, is_canary };
    let submitted = exchanges.submit(filling, order);
    exchanges.announce_lane(lane);
    drop(exchanges);
    match submitted {
        Ok(submitted) => Ok(Exchange::new(&shared.exchanges, submitted)),
        Err(()) => Err(busy(shared, Rejection::Full)),
    }
}

fn busy(shared: &Shared, shed: Rejection) -> Failure {
    // A client that waited in vain for the first boot must not get a message about busy workers.
    let is_clients = matches!(shed, Rejection::Share | Rejection::Unread);
    let is_starting = !is_clients && !shared.exchanges.borrow().has_workers();
    let shed = if is_starting { Rejection::Starting } else { shed };
    if let Some(suppressed) = shared.common.warnings.shed[shed as usize].pass() {
        let (what, hint) = shed.words();
        let _named = samovar_log::pool::enter(shared.pool_name());
        tracing::warn!(what, suppressed, "request rejected: 503\nhint: {hint}");
    }
    Failure::Busy(shed, shared.exchanges.borrow().retry_after_s())
}

/// Maps a lost request to its response, and logs it.
pub(super) fn failure(request: &ScriptRequest<'_>, lost: Lost) -> Failure {
    let shared = request.shared();
    match lost {
        Lost::QueueTimeout => busy(shared, Rejection::Waited),
        // The supervisor has the details, and logs them.
        Lost::Overrun(_) => Failure::Overrun,
        Lost::Orphaned(_) => {
            log_death(request, None);
            Failure::WorkerDied
        }
        // `exchange` has logged the error and had the worker killed.
        Lost::Broken(_) | Lost::Aborted | Lost::Short => Failure::BrokenResponse,
        Lost::Body(BodyFailure::TooLarge) => Failure::BodyTooLarge,
        Lost::Body(BodyFailure::Timeout) => Failure::BodyTimeout,
        Lost::Body(BodyFailure::Incomplete) => Failure::BadBody,
        Lost::Disk => Failure::Internal,
    }
}

/// Logs that the request's worker died. `attempts`: number of retries including the next one, if
/// the request is run again.
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
            "worker died while running this request; the request is run again (hint: see the \
             worker's log)"
        );
    } else {
        tracing::warn!(
            %uri,
            request_id,
            suppressed,
            "worker died while running this request: 502 (hint: see the worker's log)"
        );
    }
}
