//! Tables of metrics: each entry is a family, and each row of data gives it a sample.

use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::{CounterKind, CounterMetric};
use std::collections::BTreeMap;

/// Family: its name, kind, help, and the function for a row's value.
pub(super) type Metric<T, V> = (&'static str, Kind, &'static str, fn(&T) -> V);

/// Labels that identify a row.
pub(super) type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Value of a sample; `None`: the row has no sample.
pub(super) trait Value {
    fn number(self) -> Option<f64>;
}

impl Value for f64 {
    fn number(self) -> Option<f64> {
        Some(self)
    }
}

impl Value for u64 {
    fn number(self) -> Option<f64> {
        Some(count(self))
    }
}

impl<V: Value> Value for Option<V> {
    fn number(self) -> Option<f64> {
        self.and_then(V::number)
    }
}

#[allow(clippy::cast_precision_loss)] // Counters stay below 2⁵³.
pub(super) fn count(number: u64) -> f64 {
    number as f64
}

/// Writes all families of a table.
pub(super) fn put<T, V: Value>(
    page: &mut Exposition,
    table: &[Metric<T, V>],
    rows: &[(Labels<'_>, &T)],
) {
    for (name, kind, help, value) in table {
        page.family(name, *kind, help);
        for (labels, row) in rows {
            if let Some(number) = value(row).number() {
                page.sample(labels, number);
            }
        }
    }
}

/// Writes the families of a table of crates/wire, under the names that `name` selects.
pub(super) fn put_counters<T>(
    page: &mut Exposition,
    table: &[CounterMetric<T>],
    name: fn(&CounterMetric<T>) -> &'static str,
    rows: &[(Labels<'_>, &T)],
) {
    for metric in table {
        let kind = match metric.kind {
            CounterKind::Gauge => Kind::Gauge,
            CounterKind::Counter => Kind::Counter,
        };
        page.family(name(metric), kind, metric.help);
        for (labels, row) in rows {
            page.sample(labels, count((metric.value)(row)));
        }
    }
}

/// Writes a family of counters with a sample for each reason of a row.
pub(super) fn put_reasons<'a>(
    page: &mut Exposition,
    (name, help): (&'static str, &'static str),
    rows: impl IntoIterator<Item = (Labels<'a>, &'a BTreeMap<String, u64>)>,
) {
    page.family(name, Kind::Counter, help);
    for (labels, reasons) in rows {
        for (reason, number) in reasons {
            let labels = [&labels[..], &[("reason", &**reason)]].concat();
            page.sample(&labels, count(*number));
        }
    }
}
