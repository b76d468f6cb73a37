//! Draining: connections finish their requests. Batches of jobs, and scripts that continue after
//! their response, finish too.

use super::sweep::{SWEEP, all};
use crate::client::connection::ConnectionState;
use crate::client::registry::Connections;
use crate::shared::Shared;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A client whose last request is at most this old may already be sending the next one, and gets
/// this much time for it. The response announces the close.
const LAST_CALL: Duration = Duration::from_millis(100);
/// The same limit during a handover. It is longer, because no operator waits for this server to
/// end.
const LAST_CALL_OF_MANY: Duration = Duration::from_secs(1);
/// Interval at which a draining front checks whether it is done.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// Time limit for cut connections to close.
const CUT_LIMIT: Duration = Duration::from_secs(1);
/// Time limit, in addition to `timeouts.grace`, for killed workers to be reaped.
const BURIAL_LIMIT: Duration = Duration::from_secs(3);

/// Lets connections, and scripts that continue without a client, finish for at most
/// `timeouts.drain` (zero: without limit). `is_succeeded`: another server has taken over.
pub(super) async fn finish(shared: &Shared, connections: &Connections, is_succeeded: bool) {
    let drain = limit(shared);
    shared.draining.set(true);
    let now_ms = shared.clock.now_ms();
    // The clock that dates the phases advances only with the sweeps.
    let recent_ms = if is_succeeded { u64::MAX } else { (SWEEP + LAST_CALL).as_millis() as u64 };
    let is_quick = |c: &Rc<ConnectionState>| c.is_between_requests(recent_ms, now_ms);
    let are_quick = {
        let all = connections.all();
        all.iter().filter(|c| !is_quick(c)).for_each(|c| c.finish());
        all.iter().any(is_quick)
    };
    if are_quick {
        if is_succeeded {
            last_call(connections).await;
        } else {
            tokio::time::sleep(LAST_CALL).await;
        }
        connections.all().iter().for_each(|c| c.finish());
    }
    // Connections accepted last, or still in the TLS handshake, may not have sent a request yet.
    // They get this much time.
    let patience_ms =
        if is_succeeded { LAST_CALL_OF_MANY } else { SWEEP + LAST_CALL }.as_millis() as u64;
    let done = async {
        while connections.count() > 0 {
            let now_ms = shared.clock.now_ms();
            for connection in connections.all().iter() {
                connection.leave(patience_ms, now_ms);
            }
            tokio::time::sleep(DRAIN_LOOK).await;
        }
        while at_work(shared) + batches(shared) > 0 {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    if drain.is_zero() {
        done.await;
    } else if tokio::time::timeout(drain, done).await.is_err() {
        cut(connections, drain).await;
        end_scripts(shared, drain).await;
    }
}

/// Number of scripts, of all pools, that run although no client waits for them.
fn at_work(shared: &Shared) -> usize {
    all(shared).map(|pool| pool.exchanges.borrow().at_work()).sum()
}

/// Number of batches of jobs, of all pools, that run.
fn batches(shared: &Shared) -> usize {
    all(shared).map(|pool| pool.batches.get()).sum()
}

async fn cut(connections: &Connections, drain: Duration) {
    let count = connections.count();
    if count == 0 {
        return;
    }
    tracing::warn!(
        connections = count,
        seconds = drain.as_secs(),
        "requests still in flight at the end of the drain timeout; their connections are closed"
    );
    connections.all().iter().for_each(|connection| connection.cut());
    wait_until(CUT_LIMIT, || connections.count() == 0).await;
}

/// Ends scripts that still run without a client, in the same way as scripts that exceed their own
/// time limit. Each is logged. Scripts that do not end are killed after `timeouts.grace`.
async fn end_scripts(shared: &Shared, drain: Duration) {
    let (mut told, mut grace) = (0, Duration::ZERO);
    for pool in all(shared) {
        let mut events = Vec::new();
        let limit = pool.setup().settings.timeouts.grace;
        let scripts = pool.exchanges.borrow_mut().end_alone(limit, &mut events);
        pool.counters.pool.drain_timeouts_total.add(scripts as u64);
        pool.exchanges.borrow().tell(events);
        told += scripts;
        grace = grace.max(limit);
    }
    if told > 0 {
        tracing::warn!(
            scripts = told,
            seconds = drain.as_secs(),
            "scripts without a client still running at the end of the drain timeout; they are \
             aborted\n\
             hint: raise `timeouts.drain`, or move long work to a queue"
        );
    }
    wait_until(grace + BURIAL_LIMIT, || at_work(shared) == 0).await;
}

async fn wait_until(limit: Duration, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() && begun.elapsed() < limit {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

/// Returns the longest `timeouts.drain` of all pools, because pools share the connections. Zero
/// means no limit.
fn limit(shared: &Shared) -> Duration {
    let own = |pool: &Shared| pool.setup().settings.timeouts.drain;
    let others = shared.others().iter().map(|pool| own(pool));
    let longest = |one: Duration, other: Duration| {
        if one.is_zero() || other.is_zero() { Duration::ZERO } else { one.max(other) }
    };
    others.fold(own(shared), longest)
}

/// Waits for idle clients. A client that sends a request in this time gets a response that
/// announces the close; the connections of all others are closed afterwards.
async fn last_call(connections: &Connections) {
    let begun = Instant::now();
    let is_idle = |c: &Rc<ConnectionState>| c.is_between_requests(u64::MAX, 0);
    while begun.elapsed() < LAST_CALL_OF_MANY && connections.all().iter().any(is_idle) {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}
