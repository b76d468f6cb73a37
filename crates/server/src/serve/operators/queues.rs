//! Metrics of the queues of jobs.

use super::table::{Metric, count, put};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::QueueStatus;

const TIMES: &[Metric<QueueStatus, f64>] = &[
    (
        "samovar_jobs_oldest_ready_seconds",
        Kind::Gauge,
        "Time for which the oldest ready job of a queue has been ready.",
        |queue| seconds(queue.oldest_ms),
    ),
    (
        "samovar_jobs_oldest_ready_max_seconds",
        Kind::Gauge,
        "Value of oldest_max of a queue; 0: no limit.",
        |queue| seconds(queue.oldest_max_ms),
    ),
];

const TOTALS: &[Metric<QueueStatus, u64>] = &[
    ("samovar_jobs_paused", Kind::Gauge, "Whether a queue is paused.", |queue| {
        u64::from(queue.paused)
    }),
    ("samovar_jobs_pushed", Kind::Counter, "Jobs pushed.", |queue| queue.pushed_total),
    ("samovar_jobs_pushes_rejected", Kind::Counter, "Pushes that were not stored.", |queue| {
        queue.refused_total
    }),
    ("samovar_jobs_succeeded", Kind::Counter, "Jobs that succeeded.", |queue| queue.done_total),
    (
        "samovar_jobs_retried",
        Kind::Counter,
        "Failed runs after which the job runs again.",
        |queue| queue.retried_total,
    ),
    ("samovar_jobs_died", Kind::Counter, "Jobs that failed for the last time.", |queue| {
        queue.dead_total
    }),
];

fn seconds(ms: u64) -> f64 {
    count(ms) / 1_000.0
}

/// Writes the metrics; nothing if there are no queues.
pub(super) fn metrics(queues: &[QueueStatus], page: &mut Exposition) {
    if queues.is_empty() {
        return;
    }
    page.family("samovar_jobs", Kind::Gauge, "Jobs in a queue, by state.");
    for queue in queues {
        let states = [
            ("ready", queue.ready as u64),
            ("delayed", queue.delayed as u64),
            ("running", queue.running as u64),
            ("dead", queue.dead),
        ];
        for (state, number) in states {
            page.sample(&[("queue", &queue.name), ("state", state)], count(number));
        }
    }
    let rows: Vec<_> = queues.iter().map(|queue| (vec![("queue", &*queue.name)], queue)).collect();
    put(page, TIMES, &rows);
    put(page, TOTALS, &rows);
    page.family(
        "samovar_jobs_failures",
        Kind::Counter,
        "Failed runs, by the class of the exception; other reasons are in parentheses.",
    );
    for queue in queues {
        for (class, number) in &queue.failures {
            page.sample(&[("queue", &queue.name), ("class", class)], count(*number));
        }
    }
}
