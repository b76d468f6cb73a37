//! What operators see of certificates: how long they last, and what came to nothing of fetching them.

use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::CertificateStatus;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: f64 = 86_400.0;

/// A sample for each name, where there is something to say.
pub(super) fn metrics(certificates: &[CertificateStatus], page: &mut Exposition) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    family(
        page,
        certificates,
        "samovar_certificate_days",
        "Days until the name's certificate ends; below zero: it has ended.",
        |one| one.valid_until.map(|until| (seconds(until) - now) / SECONDS_A_DAY),
    );
    family(
        page,
        certificates,
        "samovar_certificate_failures",
        "Attempts in a row to fetch one that came to nothing.",
        |one| one.file.is_none().then(|| f64::from(one.failures)),
    );
    family(
        page,
        certificates,
        "samovar_certificate_failed_timestamp_seconds",
        "When such an attempt came to nothing last.",
        |one| one.failed_at.map(seconds),
    );
}

fn family(
    page: &mut Exposition,
    certificates: &[CertificateStatus],
    name: &'static str,
    help: &'static str,
    value: impl Fn(&CertificateStatus) -> Option<f64>,
) {
    let mut samples = BTreeMap::new();
    for one in certificates {
        if let Some(value) = value(one) {
            // A file may be named twice.
            samples.insert((&one.domain, &one.file), value);
        }
    }
    if samples.is_empty() {
        return;
    }
    page.family(name, Kind::Gauge, help);
    for ((domain, file), value) in samples {
        match file {
            Some(file) => page.sample(&[("domain", domain), ("file", file)], value),
            None => page.sample(&[("domain", domain)], value),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // No date is 2^52 seconds away.
fn seconds(at: u64) -> f64 {
    at as f64
}
