//! Metrics of each pool, if there are several pools.

use super::table::{Metric, put, put_counters, put_reasons};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::{PoolCounters, PoolStatus};

/// Metrics of each pool.
const POOL_METRICS: &[Metric<PoolStatus, u64>] = &[
    (
        "samovar_pool_generation",
        Kind::Gauge,
        "Generation of the pool that serves; 0 if none does.",
        |p| p.generation,
    ),
    (
        "samovar_pool_failed",
        Kind::Gauge,
        "Whether the boot or the start of the pool failed.",
        |p| u64::from(p.failed),
    ),
    ("samovar_pool_workers", Kind::Gauge, "Workers of the pool that are idle or busy.", |p| {
        p.workers
    }),
    ("samovar_pool_workers_busy", Kind::Gauge, "Busy workers of the pool.", |p| p.busy),
    (
        "samovar_pool_worker_restarts",
        Kind::Counter,
        "Workers of the pool replaced after they died.",
        |p| p.worker_restarts_total,
    ),
    (
        "samovar_pool_workers_recycled",
        Kind::Counter,
        "Workers of the pool replaced after they reached a recycling limit.",
        |p| p.workers_recycled_total,
    ),
];

/// Writes the metrics; nothing if the server has one pool.
pub(super) fn metrics(pools: &[PoolStatus], page: &mut Exposition) {
    if pools.is_empty() {
        return;
    }
    let each: Vec<_> = pools.iter().map(|pool| (vec![("pool", &*pool.name)], pool)).collect();
    put(page, POOL_METRICS, &each);
    let counts: Vec<_> = each.iter().map(|(labels, pool)| (labels.clone(), &pool.counts)).collect();
    put_counters(page, PoolCounters::METRICS, |metric| metric.pool_name, &counts);
    let reasons = each.into_iter().map(|(labels, pool)| (labels, &pool.rejected_reasons));
    put_reasons(
        page,
        ("samovar_pool_requests_rejected", "Requests of the pool rejected, by reason."),
        reasons,
    );
}
