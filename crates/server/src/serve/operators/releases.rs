//! Metric of the releases that serve.

use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::Status;

/// Writes a sample for each pool, and for the canary. A release without a label has none: the
/// metric has no series for each generation.
pub(super) fn metrics(status: &Status, page: &mut Exposition) {
    page.family(
        "samovar_release_info",
        Kind::Gauge,
        "Label of the serving release, if an operator has given one.",
    );
    let mut sample = |pool: &str, arm: &str, release: &str| {
        if release.is_empty() {
            return;
        }
        let labels = [("pool", pool), ("arm", arm), ("release", release)];
        page.sample(&labels[usize::from(pool.is_empty())..], 1.0);
    };
    if status.pools.is_empty() {
        sample("", "serving", &status.release);
    }
    for pool in &status.pools {
        sample(&pool.name, "serving", &pool.release);
    }
    if let Some(canary) = &status.canary {
        sample(&canary.pool, "canary", &canary.release);
    }
}
