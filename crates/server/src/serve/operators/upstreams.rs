//! Metrics of each php-fpm of `fastcgi_pass`, and of each address of its host name.

use super::table::{Labels, Metric, put, put_reasons};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::{UpstreamAddress, UpstreamStatus};

/// Maximum number of php-fpm servers with samples, and of addresses. A page has no room for more.
const ROWS_MAX: usize = 256;

/// Metrics of each pool with upstreams.
const QUEUES: &[Metric<UpstreamStatus, u64>] = &[
    (
        "samovar_upstream_pool_queue_depth",
        Kind::Gauge,
        "Requests of a pool waiting for a connection to any php-fpm.",
        |one| one.queued,
    ),
    (
        "samovar_upstream_pool_queue_max",
        Kind::Gauge,
        "Maximum number of requests of a pool waiting for a php-fpm.",
        |one| one.queue_max,
    ),
];

/// Metrics of each php-fpm.
const PLACES: &[Metric<UpstreamStatus, u64>] = &[
    (
        "samovar_upstream_server_connections",
        Kind::Gauge,
        "Connections in use to a php-fpm.",
        |one| one.connections,
    ),
    (
        "samovar_upstream_server_connections_max",
        Kind::Gauge,
        "Maximum number of connections to a php-fpm.",
        |one| one.connections_max,
    ),
    (
        "samovar_upstream_server_queue_depth",
        Kind::Gauge,
        "Requests waiting for a connection to a php-fpm.",
        |one| one.waiting,
    ),
    ("samovar_upstream_server_requests", Kind::Counter, "Requests sent to a php-fpm.", |one| {
        one.tally.requests_total
    }),
    ("samovar_upstream_server_responses", Kind::Counter, "Responses begun by a php-fpm.", |one| {
        one.tally.responses_total
    }),
];

const WAITS: &[Metric<UpstreamStatus, f64>] = &[(
    "samovar_upstream_server_wait_seconds",
    Kind::Counter,
    "Total time that requests waited for the response head of a php-fpm.",
    |one| one.tally.waited_seconds,
)];

/// Metrics of addresses are separate families, so that a sum over a php-fpm's samples counts each
/// request once.
const ADDRESSES: &[Metric<UpstreamAddress, u64>] = &[
    (
        "samovar_upstream_address_connections",
        Kind::Gauge,
        "Connections in use to an address of a php-fpm's host name.",
        |one| one.connections,
    ),
    (
        "samovar_upstream_address_requests",
        Kind::Counter,
        "Requests sent to an address of a php-fpm's host name.",
        |one| one.tally.requests_total,
    ),
    (
        "samovar_upstream_address_responses",
        Kind::Counter,
        "Responses begun by an address of a php-fpm's host name.",
        |one| one.tally.responses_total,
    ),
];

const ADDRESS_WAITS: &[Metric<UpstreamAddress, f64>] = &[(
    "samovar_upstream_address_wait_seconds",
    Kind::Counter,
    "Total time that requests waited for the response head of an address.",
    |one| one.tally.waited_seconds,
)];

/// Writes the metrics; nothing if there are no upstreams.
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
    let errors = each.into_iter().map(|(labels, one)| (labels, &one.tally.troubles));
    put_reasons(
        page,
        ("samovar_upstream_server_errors", "Requests without a complete response, by reason."),
        errors,
    );
    address_metrics(shown, page);
}

/// Writes the metrics of addresses; nothing if the settings name all php-fpm servers by address.
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
    let errors = each.into_iter().map(|(labels, at)| (labels, &at.tally.troubles));
    put_reasons(
        page,
        (
            "samovar_upstream_address_errors",
            "Failed connections and requests without a complete response, by reason.",
        ),
        errors,
    );
}

fn labels(of: &UpstreamStatus) -> Labels<'_> {
    vec![("pool", &of.pool), ("upstream", &of.address)]
}
