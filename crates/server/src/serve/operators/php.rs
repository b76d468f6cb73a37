//! Metrics of PHP's engine in each pool: opcache, messages by level, growing values.

use super::table::{Labels, Metric, count, put};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::{GrowthStatus, MessagesStatus, OpcacheStatus, Status};

/// Time for which a report about a growing value counts, s.
const GROWTH_S: u64 = 3600;

const OPCACHE_METRICS: &[Metric<OpcacheStatus, u64>] = &[
    (
        "samovar_opcache_full",
        Kind::Gauge,
        "Whether the memory of opcache is full, so that each request compiles further scripts.",
        |of| u64::from(of.full),
    ),
    ("samovar_opcache_strings", Kind::Gauge, "Interned strings in opcache.", |of| of.strings),
    ("samovar_opcache_scripts", Kind::Gauge, "Scripts in opcache.", |of| of.scripts),
    ("samovar_opcache_keys", Kind::Gauge, "Names under which opcache finds scripts.", |of| of.keys),
    ("samovar_opcache_keys_max", Kind::Gauge, "Maximum number of these names.", |of| of.keys_max),
    ("samovar_opcache_hits", Kind::Counter, "Scripts found in opcache.", |of| of.hits_total),
    ("samovar_opcache_misses", Kind::Counter, "Scripts that opcache compiled.", |of| {
        of.misses_total
    }),
];

type Parts = fn(&OpcacheStatus) -> Vec<(&'static str, u64)>;

const OPCACHE_PARTS: [(&str, Kind, &str, &str, Parts); 3] = [
    ("samovar_opcache_memory_bytes", Kind::Gauge, "Memory of opcache, by state.", "state", |of| {
        vec![("used", of.used_bytes), ("free", of.free_bytes), ("wasted", of.wasted_bytes)]
    }),
    (
        "samovar_opcache_strings_bytes",
        Kind::Gauge,
        "Memory for interned strings in opcache, by state.",
        "state",
        |of| vec![("used", of.strings_used_bytes), ("free", of.strings_free_bytes)],
    ),
    (
        "samovar_opcache_restarts",
        Kind::Counter,
        "Restarts of opcache, which empty it, by reason.",
        "reason",
        |of| {
            vec![
                ("memory", of.restarts_memory_total),
                ("keys", of.restarts_keys_total),
                ("manual", of.restarts_manual_total),
            ]
        },
    ),
];

/// Writes the metrics. As for other metrics of applications, only those of other pools than the
/// default one have the label `pool`.
pub(super) fn metrics(status: &Status, page: &mut Exposition) {
    let applications = status.applications().into_iter().enumerate();
    let all: Vec<Row> = applications
        .map(|(at, of)| {
            let labels = (at > 0).then_some(("pool", of.pool)).into_iter().collect();
            (labels, of.opcache, of.messages)
        })
        .collect();
    messages(&all, page);
    growth(&status.growth, page);
    let opcaches: Vec<_> = all
        .into_iter()
        .filter_map(|(labels, opcache, _)| opcache.map(|opcache| (labels, opcache)))
        .collect();
    if opcaches.is_empty() {
        return;
    }
    put(page, OPCACHE_METRICS, &opcaches);
    for (name, kind, help, label, parts) in OPCACHE_PARTS {
        page.family(name, kind, help);
        for (labels, opcache) in &opcaches {
            for (part, value) in parts(opcache) {
                page.sample(&[&labels[..], &[(label, part)]].concat(), count(value));
            }
        }
    }
}

fn growth(growth: &[GrowthStatus], page: &mut Exposition) {
    let since = samovar_insight::now().saturating_sub(GROWTH_S);
    let growing = growth.iter().filter(|one| one.at >= since).count();
    page.family(
        "samovar_growing_values",
        Kind::Gauge,
        "Values that have grown in resident workers in the last hour.",
    );
    page.sample(&[], count(growing as u64));
}

/// Labels and figures of one pool.
type Row<'a> = (Labels<'a>, Option<&'a OpcacheStatus>, &'a MessagesStatus);

fn messages(all: &[Row<'_>], page: &mut Exposition) {
    page.family(
        "samovar_php_messages",
        Kind::Counter,
        "Messages of PHP in workers, without excluded ones, by level.",
    );
    for (labels, _, messages) in all {
        for (level, number) in messages.by_level() {
            page.sample(&[&labels[..], &[("level", level)]].concat(), count(number));
        }
    }
}
