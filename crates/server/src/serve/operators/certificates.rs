//! Metrics of certificates: their remaining validity, and failed attempts to obtain them.

use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::CertificateStatus;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: f64 = 86_400.0;

/// Writes a sample for each name that has a value.
pub(super) fn metrics(certificates: &[CertificateStatus], page: &mut Exposition) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    family(
        page,
        certificates,
        ("samovar_certificate_days", Kind::Gauge),
        "Days until the certificate expires; negative if it has expired.",
        |one| one.valid_until.map(|until| (seconds(until) - now) / SECONDS_A_DAY),
    );
    family(
        page,
        certificates,
        ("samovar_certificate_failures", Kind::Gauge),
        "Failed attempts in a row to obtain a certificate.",
        |one| one.file.is_none().then(|| f64::from(one.failures)),
    );
    family(
        page,
        certificates,
        ("samovar_certificate_failed_timestamp_seconds", Kind::Gauge),
        "Time of the last failed attempt to obtain a certificate.",
        |one| one.failed_at.map(seconds),
    );
}

fn family(
    page: &mut Exposition,
    certificates: &[CertificateStatus],
    (name, kind): (&'static str, Kind),
    help: &'static str,
    value: impl Fn(&CertificateStatus) -> Option<f64>,
) {
    let mut samples = BTreeMap::new();
    for one in certificates {
        if let Some(value) = value(one) {
            // The same file may be in the settings twice.
            samples.insert((&one.domain, &one.file), value);
        }
    }
    if samples.is_empty() {
        return;
    }
    page.family(name, kind, help);
    for ((domain, file), value) in samples {
        match file {
            Some(file) => page.sample(&[("domain", domain), ("file", file)], value),
            None => page.sample(&[("domain", domain)], value),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // Far below 2^52 seconds.
fn seconds(at: u64) -> f64 {
    at as f64
}
