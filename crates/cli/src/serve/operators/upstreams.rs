//! What operators see of each php-fpm that `fastcgi_pass` names, and of each address that one's name stands for.

use super::table::{Labels, Metric, put, put_reasons};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::{UpstreamAddress, UpstreamStatus};

/// php-fpms with samples of their own, and as many addresses; beyond, the settings name more than a page has room for.
const ROWS_MAX: usize = 256;

/// Of each pool that has some.
const QUEUES: &[Metric<UpstreamStatus, u64>] = &[
    (
        "samovar_upstream_queue",
        Kind::Gauge,
        "Requests that wait for a connection to any of a pool's php-fpms.",
        |one| one.queued,
    ),
    ("samovar_upstream_queue_max", Kind::Gauge, "How many may wait.", |one| one.queue_max),
];

/// Of each php-fpm.
const PLACES: &[Metric<UpstreamStatus, u64>] = &[
    ("samovar_upstream_connections", Kind::Gauge, "Connections to a php-fpm in use.", |one| {
        one.connections
    }),
    ("samovar_upstream_connections_max", Kind::Gauge, "How many there may be.", |one| {
        one.connections_max
    }),
    ("samovar_upstream_waiting", Kind::Gauge, "Requests that wait for one of them.", |one| {
        one.waiting
    }),
    ("samovar_upstream_requests", Kind::Counter, "Requests that a php-fpm was sent.", |one| {
        one.tally.requests_total
    }),
    ("samovar_upstream_answers", Kind::Counter, "Answers that a php-fpm has begun.", |one| {
        one.tally.answers_total
    }),
];

const WAITS: &[Metric<UpstreamStatus, f64>] = &[(
    "samovar_upstream_wait_seconds",
    Kind::Counter,
    "How long requests waited for the head of these answers.",
    |one| one.tally.waited_seconds,
)];

/// Families of their own: a sum over a php-fpm's samples is that of its requests.
const ADDRESSES: &[Metric<UpstreamAddress, u64>] = &[
    (
        "samovar_upstream_address_connections",
        Kind::Gauge,
        "Connections in use to one of the addresses of a php-fpm's name.",
        |one| one.connections,
    ),
    (
        "samovar_upstream_address_requests",
        Kind::Counter,
        "Requests that such an address was sent.",
        |one| one.tally.requests_total,
    ),
    ("samovar_upstream_address_answers", Kind::Counter, "Answers that it has begun.", |one| {
        one.tally.answers_total
    }),
];

const ADDRESS_WAITS: &[Metric<UpstreamAddress, f64>] = &[(
    "samovar_upstream_address_wait_seconds",
    Kind::Counter,
    "How long requests waited for the head of these answers.",
    |one| one.tally.waited_seconds,
)];

/// Nothing where nobody is asked.
pub(super) fn metrics(upstreams: &[UpstreamStatus], page: &mut Exposition) {
    let shown = &upstreams[..upstreams.len().min(ROWS_MAX)];
    if shown.is_empty() {
        return;
    }
    let by_pool = shown.chunk_by(|a, b| a.pool == b.pool).map(|of_one| &of_one[0]);
    let pools: Vec<_> = by_pool.map(|one| (vec![("pool", &*one.pool)], one)).collect();
    put(page, QUEUES, &pools);
    let each: Vec<_> = shown.iter().map(|one| (labels(one), one)).collect();
    put(page, PLACES, &each);
    put(page, WAITS, &each);
    let help = "Requests that a php-fpm did not answer, or not to the end, by reason.";
    let troubles = each.into_iter().map(|(labels, one)| (labels, &one.tally.troubles));
    put_reasons(page, ("samovar_upstream_troubles", help), troubles);
    address_metrics(shown, page);
}

/// Nothing where all are named by their own addresses.
fn address_metrics<'a>(shown: &'a [UpstreamStatus], page: &mut Exposition) {
    let of_one = |one: &'a UpstreamStatus| {
        let row = move |at: &'a UpstreamAddress| {
            ([labels(one), vec![("address", &*at.address)]].concat(), at)
        };
        one.addresses.iter().map(row)
    };
    let each: Vec<_> = shown.iter().flat_map(of_one).take(ROWS_MAX).collect();
    if each.is_empty() {
        return;
    }
    put(page, ADDRESSES, &each);
    put(page, ADDRESS_WAITS, &each);
    let help = "Connections that it did not take, and requests that it did not answer, or not to the end, by reason.";
    let troubles = each.into_iter().map(|(labels, at)| (labels, &at.tally.troubles));
    put_reasons(page, ("samovar_upstream_address_troubles", help), troubles);
}

fn labels(of: &UpstreamStatus) -> Labels<'_> {
    vec![("pool", &of.pool), ("upstream", &of.address)]
}
