//! Metrics of the canary.

use super::table::{Labels, Metric, count, put};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::CanaryBrief;

const METRICS: &[Metric<CanaryBrief, f64>] = &[
    (
        "samovar_canary_share_ratio",
        Kind::Gauge,
        "Share of the visitors that the canary serves.",
        |canary| f64::from(canary.share_ppm) / 1e6,
    ),
    (
        "samovar_canary_evidence_ratio",
        Kind::Gauge,
        "Strongest evidence of a regression in the canary; 1 aborts it.",
        |canary| canary.evidence,
    ),
    ("samovar_canary_generation", Kind::Gauge, "Generation of the canary.", |canary| {
        count(canary.generation)
    }),
];

/// Writes the metrics; nothing if there is no canary.
pub(super) fn metrics(canary: Option<&CanaryBrief>, page: &mut Exposition) {
    let Some(canary) = canary else { return };
    let own: Labels<'_> =
        if canary.pool.is_empty() { Vec::new() } else { vec![("pool", &*canary.pool)] };
    put(page, METRICS, &[(own.clone(), canary)]);
    page.family(
        "samovar_canary_requests",
        Kind::Counter,
        "Requests since the start of the canary, by generation.",
    );
    for (arm, requests) in
        ["serving", "canary"].into_iter().zip([canary.requests_serving, canary.requests_canary])
    {
        page.sample(&[&own[..], &[("arm", arm)]].concat(), count(requests));
    }
}
