//! Figures of each pool, where there are several.

use super::table::{Metric, put, put_reasons};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::PoolStatus;

/// Those that each of several pools has.
const POOL_METRICS: &[Metric<PoolStatus, u64>] = &[
    ("samovar_pool_generation", Kind::Gauge, "A pool's generation; 0: none serves.", |p| {
        p.generation
    }),
    ("samovar_pool_failed", Kind::Gauge, "Whether a pool could not be booted.", |p| {
        u64::from(p.failed)
    }),
    ("samovar_pool_workers", Kind::Gauge, "A pool's workers that take requests.", |p| p.workers),
    ("samovar_pool_workers_busy", Kind::Gauge, "Those of them that run one.", |p| p.busy),
    ("samovar_pool_queue_depth", Kind::Gauge, "Requests that wait for a pool's workers.", |p| {
        p.queue_depth
    }),
    ("samovar_pool_requests_in_flight", Kind::Gauge, "A pool's requests in flight.", |p| {
        p.in_flight
    }),
    ("samovar_pool_requests", Kind::Counter, "A pool's requests.", |p| p.requests_total),
    ("samovar_pool_responses_5xx", Kind::Counter, "A pool's answers from 500 on.", |p| {
        p.responses_5xx_total
    }),
    (
        "samovar_pool_requests_timed_out",
        Kind::Counter,
        "A pool's requests without an answer in time.",
        |p| p.timeouts_total,
    ),
    ("samovar_pool_retries", Kind::Counter, "A pool's requests that were run again.", |p| {
        p.retries_total
    }),
    (
        "samovar_pool_worker_restarts",
        Kind::Counter,
        "A pool's workers replaced after a death.",
        |p| p.worker_restarts_total,
    ),
    (
        "samovar_pool_workers_recycled",
        Kind::Counter,
        "A pool's workers replaced because they had done enough.",
        |p| p.workers_recycled_total,
    ),
];

/// Nothing where there is one.
pub(super) fn metrics(pools: &[PoolStatus], page: &mut Exposition) {
    if pools.is_empty() {
        return;
    }
    let each: Vec<_> = pools.iter().map(|pool| (vec![("pool", &*pool.name)], pool)).collect();
    put(page, POOL_METRICS, &each);
    let reasons = each.into_iter().map(|(labels, pool)| (labels, &pool.rejected_reasons));
    put_reasons(
        page,
        ("samovar_pool_requests_shed", "A pool's rejected requests by reason."),
        reasons,
    );
}
