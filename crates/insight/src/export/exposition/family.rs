//! Parts of a family of samples: type, labels, buckets of a histogram.

use crate::histogram::Histogram;

/// Type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Never decreases; its samples' names end in `_total`.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts of values up to bounds.
    Histogram,
}

/// Labels as (name, value).
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Example of a value that a bucket counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Trace id, 32 hexadecimal digits.
    pub trace_id: String,
    /// Value in the family's unit.
    pub value: f64,
    /// Time in seconds since 1970.
    pub at: f64,
}

/// Sample of a histogram: counts up to each bound.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'a> {
    /// Upper bounds in the family's unit, ascending, without infinity.
    pub bounds: &'a [f64],
    /// Number of values up to each bound.
    pub cumulative: &'a [u64],
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Example of a value.
    pub exemplar: Option<&'a Exemplar>,
    /// All values, for native histograms.
    pub times: Option<&'a Histogram>,
}
