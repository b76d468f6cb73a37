//! The end: connections may finish what they do, and scripts what they do behind their answers.

use super::sweep::{SWEEP, all};
use crate::client::connection::ConnectionState;
use crate::client::registry::Connections;
use crate::shared::Shared;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A client that has asked this recently may be sending its next request: it has this long for it, and the answer says
/// that it is the last.
const LAST_CALL: Duration = Duration::from_millis(100);
/// The same where another server goes on: nobody waits for this one's end.
const LAST_CALL_OF_MANY: Duration = Duration::from_secs(1);
/// How often a draining front looks whether it is done.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// For connections that are cut to be gone.
const CUT_LIMIT: Duration = Duration::from_secs(1);
/// Beyond `timeouts.grace`, for workers that are killed to be buried.
const BURIAL_LIMIT: Duration = Duration::from_secs(3);

/// Lets connections end, and scripts that go on without a client, for at most `timeouts.drain` (zero: as long as they need). `is_succeeded`: another server goes on.
pub(super) async fn finish(shared: &Shared, connections: &Connections, is_succeeded: bool) {
    let drain = limit(shared);
    shared.draining.set(true);
    let now_ms = shared.clock.now_ms();
    // The clock of the phases goes on with the sweeps.
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
    // Who was accepted last, or is not secure yet, has not asked by then.
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
        while at_work(shared) > 0 {
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

/// Scripts that run although nobody waits for them any more, of all pools.
fn at_work(shared: &Shared) -> usize {
    all(shared).map(|pool| pool.exchanges.borrow().at_work()).sum()
}

async fn cut(connections: &Connections, drain: Duration) {
    let count = connections.count();
    if count == 0 {
        return;
    }
    tracing::warn!(
        connections = count,
        seconds = drain.as_secs(),
        "requests were still in flight when the drain time-out ended; their connections are cut"
    );
    connections.all().iter().for_each(|connection| connection.cut());
    wait_until(CUT_LIMIT, || connections.count() == 0).await;
}

/// Has scripts end as those do whose own time is over: the log tells of each, and who does not end is killed after
/// `timeouts.grace`.
async fn end_scripts(shared: &Shared, drain: Duration) {
    let (mut told, mut grace) = (0, Duration::ZERO);
    for pool in all(shared) {
        let mut events = Vec::new();
        let scripts = pool.exchanges.borrow_mut().end_alone(&mut events);
        pool.counters.drain_timeouts.add(scripts as u64);
        pool.exchanges.borrow().tell(events);
        told += scripts;
        grace = grace.max(pool.setup().settings.timeouts.grace);
    }
    if told > 0 {
        tracing::warn!(
            scripts = told,
            seconds = drain.as_secs(),
            "scripts went on without a client when the drain time-out ended; they are told to end\n\
             hint: a longer `timeouts.drain` lets them; a queue is the place for long work"
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

/// The longest `timeouts.drain` of all pools: their connections are the same ones. Zero: as long as they need.
fn limit(shared: &Shared) -> Duration {
    let own = |pool: &Shared| pool.setup().settings.timeouts.drain;
    let others = shared.others().iter().map(|pool| own(pool));
    let longest = |one: Duration, other: Duration| {
        if one.is_zero() || other.is_zero() { Duration::ZERO } else { one.max(other) }
    };
    others.fold(own(shared), longest)
}

/// Who asks meanwhile is told that it was the last time; who never does is let go in the end.
async fn last_call(connections: &Connections) {
    let begun = Instant::now();
    let is_idle = |c: &Rc<ConnectionState>| c.is_between_requests(u64::MAX, 0);
    while begun.elapsed() < LAST_CALL_OF_MANY && connections.all().iter().any(is_idle) {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}
