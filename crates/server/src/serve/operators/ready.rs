//! Readiness of the server, for `/ready` and load balancers.

use crate::pools::unknown;
use samovar_config::DEFAULT_POOL;
use samovar_wire::Status;
use std::fmt::Write;

/// Fraction of `limits.queue_max` from which on no more requests should come: three quarters.
const QUEUE_SHARE: (u64, u64) = (3, 4);

/// Readiness of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// It has workers, but too many queued requests.
    Busy(String),
    /// No worker would answer.
    Absent,
}

impl Readiness {
    fn words(&self) -> &str {
        match self {
            Readiness::Ready => "ready",
            Readiness::Busy(why) => why,
            Readiness::Absent => "no worker has booted yet",
        }
    }
}

/// Returns whether requests should come, with a line for each pool if there are several. `limits`
/// are the queue limits of the pools, the default pool first.
///
/// All pools are checked: if one of them has no worker, another server is the better choice. If a
/// pool other than the default one is busy, its line reports that, but the server stays in service:
/// pools exist to keep such load apart.
pub(super) fn readiness(
    status: &Status,
    limits: &[u64],
    pool: Option<&str>,
) -> Result<String, String> {
    if status.draining {
        return Err("the server is draining or has not started".to_owned());
    }
    if status.pools.is_empty() {
        let queue_max = limits.first().copied().unwrap_or(u64::MAX);
        let own = of_pool(status, "", status.front.pools.queue_depth, queue_max);
        return match pool {
            None | Some(DEFAULT_POOL) if own == Readiness::Ready => Ok(own.words().to_owned()),
            None | Some(DEFAULT_POOL) => Err(own.words().to_owned()),
            Some(other) => Err(unknown(other, &[DEFAULT_POOL])),
        };
    }
    let of = |(one, queue_max): (&samovar_wire::PoolStatus, &u64)| {
        (one.name.clone(), of_pool(status, &one.name, one.counts.queue_depth, *queue_max))
    };
    let all: Vec<(String, Readiness)> = status.pools.iter().zip(limits).map(of).collect();
    if let Some(name) = pool {
        let Some((_, found)) = all.iter().find(|(its, _)| its == name) else {
            let known: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
            return Err(unknown(name, &known));
        };
        let words = found.words().to_owned();
        return if *found == Readiness::Ready { Ok(words) } else { Err(words) };
    }
    let is_against = |(name, found): &(String, Readiness)| match found {
        Readiness::Ready => false,
        Readiness::Busy(_) => name == DEFAULT_POOL,
        Readiness::Absent => true,
    };
    let is_ready = !all.iter().any(is_against);
    let mut text = if is_ready { "ready" } else { "not ready" }.to_owned();
    for (name, found) in &all {
        let _ = write!(text, "\npool {name}: {}", found.words());
    }
    if is_ready { Ok(text) } else { Err(text) }
}

fn of_pool(status: &Status, name: &str, queued: u64, queue_max: u64) -> Readiness {
    let takes_requests = |state: &str| matches!(state, "idle" | "busy");
    let mut workers = status.serving_workers().filter(|worker| worker.pool == name);
    if !workers.any(|worker| takes_requests(&worker.state)) {
        return Readiness::Absent;
    }
    let (share, of) = QUEUE_SHARE;
    if queued >= queue_max.saturating_mul(share) / of {
        return Readiness::Busy(format!("{queued} requests wait for a worker"));
    }
    Readiness::Ready
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_wire::{PoolCounters, PoolStatus, WorkerStatus};

    /// Returns a status with pools, the state of their worker, and the number of waiting requests.
    fn status(pools: &[(&str, &str, u64)]) -> Status {
        let worker = |(pool, state, _): &(&str, &str, u64)| WorkerStatus {
            pool: (*pool).to_owned(),
            state: (*state).to_owned(),
            ..WorkerStatus::default()
        };
        let pool = |(name, _, queue_depth): &(&str, &str, u64)| PoolStatus {
            name: (*name).to_owned(),
            counts: PoolCounters { queue_depth: *queue_depth, ..PoolCounters::default() },
            ..PoolStatus::default()
        };
        let is_one = pools.len() == 1;
        Status {
            workers: pools.iter().map(worker).collect(),
            pools: pools.iter().filter(|_| !is_one).map(pool).collect(),
            ..Status::default()
        }
    }

    #[test]
    fn readiness_of_single_pool_is_one_line() {
        let ask = |state, pool| readiness(&status(&[("", state, 0)]), &[100], pool);
        assert_eq!(ask("idle", None), Ok("ready".to_owned()));
        assert_eq!(ask("busy", Some("default")), Ok("ready".to_owned()));
        assert_eq!(ask("booting", None), Err("no worker has booted yet".to_owned()));
        assert_eq!(ask("idle", Some("api")), Err(unknown("api", &["default"])));
        let drains = Status { draining: true, ..status(&[("", "idle", 0)]) };
        assert!(readiness(&drains, &[100], None).is_err());
        let mut full = status(&[("", "busy", 0)]);
        full.front.pools.queue_depth = 75;
        let waits = Err("75 requests wait for a worker".to_owned());
        assert_eq!(readiness(&full, &[100], None), waits);
        full.front.pools.queue_depth = 74;
        assert!(readiness(&full, &[100], None).is_ok());
    }

    #[test]
    fn readiness_names_each_of_several_pools() {
        let ask = |pools: &[(&str, &str, u64)], pool| readiness(&status(pools), &[100, 20], pool);
        let good = [("default", "idle", 0), ("api", "busy", 14)];
        assert_eq!(ask(&good, None), Ok("ready\npool default: ready\npool api: ready".to_owned()));
        let absent = [("default", "idle", 0), ("api", "booting", 0)];
        let not = "not ready\npool default: ready\npool api: no worker has booted yet";
        assert_eq!(ask(&absent, None), Err(not.to_owned()));
        assert_eq!(ask(&absent, Some("default")), Ok("ready".to_owned()));
        assert!(ask(&absent, Some("api")).is_err() && ask(&absent, Some("x")).is_err());
        // Waiting exports must not affect the shop.
        let busy = [("default", "idle", 0), ("api", "busy", 15)];
        let said = "ready\npool default: ready\npool api: 15 requests wait for a worker";
        assert_eq!(ask(&busy, None), Ok(said.to_owned()));
        assert!(ask(&busy, Some("api")).is_err());
        let full = [("default", "busy", 75), ("api", "busy", 0)];
        assert!(ask(&full, None).is_err());
    }
}
