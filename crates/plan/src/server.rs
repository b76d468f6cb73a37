//! A running server as an input: its machine, and its history on disk.

use crate::machine::Machine;
use crate::problem::Problem;
use crate::samples::{Collector, Record};
use crate::topology::Topology;
use samovar_insight::store::{Store, StoreError};
use samovar_wire::Status;
use std::path::Path;

const HOUR: i64 = 3600;
/// Days of a history that are read.
const DAYS: i64 = 400;
/// Minutes without an entry up to which the server had no requests, and after which it did not run.
const QUIET_MAX: i64 = 10;
/// Share of free memory that further workers can use.
const MEMORY_SHARE: f64 = 0.9;

/// Returns the machine of a server that runs here, with the limits of its control group, its
/// workers and its memory.
pub fn machine(status: &Status) -> Machine {
    let capacity = &status.capacity;
    let mut machine = Topology::read().machine("this machine");
    if capacity.cores > 0.0 && capacity.cores < machine.threads() - 0.005 {
        machine.quota = Some(capacity.cores);
    }
    if status.pools.is_empty() {
        let most = status.scaling.first().map(|line| line.max as f64);
        let count = status.workers.len() as f64;
        machine.workers_max = most.or((count > 0.0).then_some(count));
        if capacity.worker_bytes > 0 {
            let free = capacity.memory_free_bytes as f64 * MEMORY_SHARE;
            machine.workers_affordable =
                Some(count + (free / capacity.worker_bytes as f64).floor());
        }
    }
    machine
}

/// Returns the CPU time of the server's own process per request, in seconds: the history has only
/// that of workers.
pub fn own_cpu(status: &Status) -> f64 {
    let requests = status.front.pools.requests_total as f64;
    if requests > 0.0 { status.cpu_seconds / requests } else { 0.0 }
}

/// The problem of a server without a history on disk.
pub fn no_history() -> Problem {
    Problem::new(
        "the server keeps its history in memory only",
        format!(
            "set `insight.store` to a file and `insight.days_max` to 400, restart the server, and \
             plan after {} days",
            crate::plan::TREND_DAYS
        ),
    )
}

/// Adds the minutes of the history in a file.
///
/// `of_server` is the CPU time of the server's own process per request, in seconds.
///
/// # Errors
///
/// The file is no history, or cannot be read.
pub fn history(
    path: &Path,
    now: i64,
    of_server: f64,
    to: &mut Collector,
) -> Result<(), StoreError> {
    let store = Store::reader(path)?;
    let mut last: Option<i64> = None;
    let mut from = now - DAYS * 24 * HOUR;
    while from <= now {
        let until = from + HOUR;
        let rows = store.costs(from.max(0).unsigned_abs(), until.max(0).unsigned_abs())?;
        for minute in rows.chunk_by(|a, b| a.0 == b.0) {
            let at = i64::try_from(minute[0].0).unwrap_or(0);
            let quiet = last.map_or(0, |last| (at - last) / 60 - 1);
            if (1..=QUIET_MAX).contains(&quiet) {
                let (at, seconds) = (at - 60 * quiet, 60 * quiet);
                let zero = Some(0.0);
                let record = Record { at, seconds, requests: zero, cpu: zero, ..Record::default() };
                to.add(&Record { in_workers: zero, ..record });
            }
            last = Some(at);
            let mut sum = (0.0, 0.0, 0.0);
            for (_, route, costs) in minute {
                let (requests, cpu) = (costs.requests as f64, costs.cpu_ns as f64 / 1e9);
                sum = (sum.0 + requests, sum.1 + cpu, sum.2 + costs.run_ns as f64 / 1e9);
                to.add_route(at, 60, route, requests, Some(cpu));
            }
            to.add(&Record {
                at,
                seconds: 60,
                requests: Some(sum.0),
                cpu: Some(sum.1 + sum.0 * of_server),
                in_workers: Some(sum.2),
                ..Record::default()
            });
        }
        from = until;
    }
    Ok(())
}
