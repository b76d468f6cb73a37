//! Tables of metrics: an entry is a family, and each row of what is shown gives it a sample.

use samovar_insight::export::exposition::{Exposition, Kind};
use std::collections::BTreeMap;

/// A family: its name, its kind, what it means, and its value for a row.
pub(super) type Metric<T, V> = (&'static str, Kind, &'static str, fn(&T) -> V);

/// What tells a row from others.
pub(super) type Labels<'a> = Vec<(&'a str, &'a str)>;

/// What a sample says; `None`: this row has none.
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

#[allow(clippy::cast_precision_loss)] // Counts beyond 2⁵³ are no server's.
pub(super) fn count(number: u64) -> f64 {
    number as f64
}

/// All families of a table.
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

/// A family of counters that has a sample for each reason of a row.
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
