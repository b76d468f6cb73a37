//! What operators see of each php-fpm that `fastcgi_pass` names.

use super::pools::count;
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::UpstreamStatus;

/// php-fpms with samples of their own; beyond, the settings name more than a page has room for.
const UPSTREAMS_MAX: usize = 256;

type UpstreamMetric = (&'static str, Kind, &'static str, fn(&UpstreamStatus) -> f64);

const METRICS: &[UpstreamMetric] = &[
    ("samovar_upstream_connections", Kind::Gauge, "Connections to a php-fpm in use.", |one| {
        count(one.connections)
    }),
    ("samovar_upstream_waiting", Kind::Gauge, "Requests that wait for one of them.", |one| {
        count(one.waiting)
    }),
    ("samovar_upstream_requests", Kind::Counter, "Requests that a php-fpm was sent.", |one| {
        count(one.requests_total)
    }),
    ("samovar_upstream_answers", Kind::Counter, "Answers that a php-fpm has begun.", |one| {
        count(one.answers_total)
    }),
    (
        "samovar_upstream_wait_seconds",
        Kind::Counter,
        "How long requests waited for the head of these answers.",
        |one| one.waited_seconds,
    ),
];

/// Nothing where nobody is asked.
pub(super) fn metrics(upstreams: &[UpstreamStatus], page: &mut Exposition) {
    let upstreams = &upstreams[..upstreams.len().min(UPSTREAMS_MAX)];
    if upstreams.is_empty() {
        return;
    }
    for (name, kind, help, value) in METRICS {
        page.family(name, *kind, help);
        for one in upstreams {
            page.sample(&[("pool", &one.pool), ("upstream", &one.address)], value(one));
        }
    }
    page.family(
        "samovar_upstream_troubles",
        Kind::Counter,
        "Requests that a php-fpm did not answer, or not to the end, by reason.",
    );
    for one in upstreams {
        for (reason, number) in &one.troubles {
            let labels = [("pool", &*one.pool), ("upstream", &one.address), ("reason", reason)];
            page.sample(&labels, count(*number));
        }
    }
}
