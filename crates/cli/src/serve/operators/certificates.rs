//! What operators see of certificates that are fetched: how long they last, and what came to nothing.

use super::table::{Metric, count, put};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::CertificateStatus;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: f64 = 86_400.0;

const METRICS: &[Metric<CertificateStatus, Option<f64>>] = &[
    (
        "samovar_certificate_days",
        Kind::Gauge,
        "Days until the name's certificate ends; below zero: it has ended.",
        |one| one.valid_until.map(|until| (count(until) - now()) / SECONDS_A_DAY),
    ),
    (
        "samovar_certificate_failures",
        Kind::Gauge,
        "Attempts in a row to fetch one that came to nothing.",
        |one| Some(f64::from(one.failures)),
    ),
    (
        "samovar_certificate_failed_timestamp_seconds",
        Kind::Gauge,
        "When such an attempt came to nothing last.",
        |one| one.failed_at.map(count),
    ),
];

/// A sample for each name, where there is something to say.
pub(super) fn metrics(certificates: &[CertificateStatus], page: &mut Exposition) {
    if certificates.is_empty() {
        return;
    }
    let each: Vec<_> =
        certificates.iter().map(|one| (vec![("domain", &*one.domain)], one)).collect();
    put(page, METRICS, &each);
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
