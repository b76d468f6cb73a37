//! submit: a routed request into the ring, and its answer out of it.
//!
//! Backpressure lives here: with no free slot, or no worker, within `timeouts.queue` the answer is 503. A request
//! whose worker died before the client got a byte is run again, if running it twice does no harm.

use crate::error_page::Failure;
use crate::exchange::{Answer, BodyFailure, Exchange, Lost, SlotWait, Told};
use crate::head::Caller;
use crate::interim;
use crate::record::Passage;
use crate::shared::Shared;
use crate::upload::{self, Upload};
use http::Method;
use samovar_ring::Filling;
use std::future::poll_fn;
use std::rc::Rc;

/// Runs the request and waits for the start of its answer; the exchange, if more is to come.
pub(crate) async fn submit(
    caller: &Caller<'_>,
    upload: Upload,
    passage: &mut Passage,
) -> Result<(Answer, Option<Exchange>), Failure> {
    let shared = &caller.connection.shared;
    let is_head_only = caller.parts.method == Method::HEAD;
    let may_run_again = is_idempotent(&caller.parts.method) && matches!(upload, Upload::None);
    let mut upload = Some(upload);
    let mut attempts = 0;
    loop {
        let mut exchange = queue(caller, upload.take().unwrap_or(Upload::None)).await?;
        match answer(caller, &mut exchange, is_head_only).await {
            Ok(answer) => {
                let rest = answer.is_open.then_some(exchange);
                return Ok((answer, rest));
            }
            Err(Lost::Orphaned)
                if may_run_again && attempts < caller.setup.options.limits.retries_max =>
            {
                attempts += 1;
                passage.retried();
                shared.counters.retries.add(1);
            }
            Err(lost) => return Err(failure(caller, lost)),
        }
    }
}

/// Waits for the answer; passes on what comes ahead of it.
async fn answer(
    caller: &Caller<'_>,
    exchange: &mut Exchange,
    is_head_only: bool,
) -> Result<Answer, Lost> {
    loop {
        match poll_fn(|cx| exchange.poll_answer(is_head_only, cx)).await? {
            Told::Interim(status, lines) => interim::send(caller, status, &lines),
            Told::Answer(answer) => return Ok(answer),
        }
    }
}

fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Fills a slot and queues it.
async fn queue(caller: &Caller<'_>, upload: Upload) -> Result<Exchange, Failure> {
    let shared = &caller.connection.shared;
    let queue_max = caller.setup.options.limits.queue_max;
    let filling = {
        let mut exchanges = shared.exchanges.borrow_mut();
        if !exchanges.has_queue_room(queue_max) {
            drop(exchanges);
            return Err(busy(shared, "the queue is full"));
        }
        exchanges.fill()
    };
    let filling = match filling {
        Some(filling) => filling,
        None => wait_for_slot(shared).await?,
    };
    let exchange = fill(caller, filling, &upload)?;
    if matches!(upload, Upload::Spooled(..) | Upload::Live(..)) {
        upload::pump(&caller.setup.options, upload, exchange.feed());
    }
    Ok(exchange)
}

async fn wait_for_slot(shared: &Rc<Shared>) -> Result<Filling, Failure> {
    let mut wait = SlotWait::new(shared);
    let filling = poll_fn(|cx| wait.poll(cx)).await;
    filling.map_err(|()| busy(shared, "no slot became free in time"))
}

/// Nothing is awaited between taking the slot and queueing it, so no slot is lost.
fn fill(caller: &Caller<'_>, filling: Filling, upload: &Upload) -> Result<Exchange, Failure> {
    let shared = &caller.connection.shared;
    let mut encoded = shared.encoded.borrow_mut();
    let mut exchanges = shared.exchanges.borrow_mut();
    if caller.encode(upload.bytes(), &mut encoded).is_err() {
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
    let lane = caller.script.lane;
    let submitted = exchanges.submit(filling, lane);
    drop(exchanges);
    shared.announce_lane(lane);
    match submitted {
        Ok(submitted) => Ok(Exchange::new(shared, submitted)),
        Err(()) => Err(busy(shared, "the ring's queue is full")),
    }
}

fn busy(shared: &Shared, what: &str) -> Failure {
    if let Some(suppressed) = shared.warnings.queue.pass() {
        tracing::warn!(
            what,
            suppressed,
            "answered 503 (hint: all workers are busy; add workers, or find the slow requests)"
        );
    }
    Failure::Busy
}

/// What a lost request's client is told, and the log.
fn failure(caller: &Caller<'_>, lost: Lost) -> Failure {
    let shared = &caller.connection.shared;
    match lost {
        Lost::QueueTimeout => busy(shared, "no worker took the request in time"),
        Lost::AnswerTimeout => {
            log_timeout(caller);
            Failure::AnswerTimeout
        }
        Lost::Orphaned => {
            log_death(caller);
            Failure::WorkerDied
        }
        // `exchange` has logged what was broken and had the worker killed.
        Lost::Broken(_) | Lost::Aborted | Lost::Short => Failure::BrokenAnswer,
        Lost::Body(BodyFailure::TooLarge) => Failure::BodyTooLarge,
        Lost::Body(BodyFailure::Timeout) => Failure::BodyTimeout,
        Lost::Body(BodyFailure::Incomplete) => Failure::BadBody,
    }
}

fn log_timeout(caller: &Caller<'_>) {
    if let Some(suppressed) = caller.connection.shared.warnings.answer.pass() {
        tracing::warn!(
            uri = %caller.parts.uri,
            request_id = caller.id.to_str().unwrap_or_default(),
            suppressed,
            "a worker gave no answer in time: 504, the worker is replaced (hint: raise the answer \
             time-out for slow pages)"
        );
    }
}

fn log_death(caller: &Caller<'_>) {
    if let Some(suppressed) = caller.connection.shared.warnings.died.pass() {
        tracing::warn!(
            uri = %caller.parts.uri,
            request_id = caller.id.to_str().unwrap_or_default(),
            suppressed,
            "a worker died while it ran this request: 502 (hint: the worker's log says why)"
        );
    }
}
