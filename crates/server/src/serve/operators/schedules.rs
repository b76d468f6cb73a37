//! Metrics of schedules.

use super::table::{Labels, Metric, count, put};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::{ScheduleResults, ScheduleStatus};

#[allow(clippy::cast_precision_loss)] // Far below 2^52 milliseconds.
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

const METRICS: &[Metric<ScheduleStatus, Option<f64>>] = &[
    (
        "samovar_schedule_running",
        Kind::Gauge,
        "Whether a run of the schedule is in progress.",
        |s| Some(f64::from(u8::from(s.state == "running"))),
    ),
    ("samovar_schedule_run_seconds", Kind::Counter, "Duration of all runs of the schedule.", |s| {
        Some(seconds(s.run_ms_total))
    }),
    (
        "samovar_schedule_last_success_timestamp_seconds",
        Kind::Gauge,
        "End of the last run of the schedule that succeeded.",
        |s| (s.succeeded_ms > 0).then(|| seconds(s.succeeded_ms)),
    ),
    ("samovar_schedule_next_timestamp_seconds", Kind::Gauge, "Next start of the schedule.", |s| {
        (s.next_ms > 0).then(|| seconds(s.next_ms))
    }),
];

type Result = (&'static str, fn(&ScheduleResults) -> u64);

const RESULTS: [Result; 7] = [
    ("succeeded", |runs| runs.succeeded),
    ("failed", |runs| runs.failed),
    ("timed_out", |runs| runs.timed_out),
    ("stopped", |runs| runs.stopped),
    ("not_started", |runs| runs.not_started),
    ("interrupted", |runs| runs.interrupted),
    ("skipped", |runs| runs.skipped),
];

/// Writes the metrics; nothing if the server has no schedules.
pub(super) fn metrics(schedules: &[ScheduleStatus], page: &mut Exposition) {
    if schedules.is_empty() {
        return;
    }
    let rows: Vec<(Labels<'_>, &ScheduleStatus)> =
        schedules.iter().map(|one| (vec![("schedule", &*one.name)], one)).collect();
    put(page, METRICS, &rows);
    page.family("samovar_schedule_runs", Kind::Counter, "Runs of the schedule, by result.");
    for one in schedules {
        for (result, of) in RESULTS {
            page.sample(&[("schedule", &one.name), ("result", result)], count(of(&one.runs)));
        }
    }
}
