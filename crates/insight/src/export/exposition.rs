//! Prometheus' text format and `OpenMetrics` 1.0: writes families of samples in the order of the
//! calls.
//!
//! Specifications: [text format
//! 0.0.4](https://prometheus.io/docs/instrumenting/exposition_formats/),
//! [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/). No library is used
//! because one page supports both formats. In the text format a family's name ends in `_total`, in
//! `OpenMetrics` it does not.

use std::fmt::Write as _;

/// Format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format.
    Text,
    /// `OpenMetrics`, with units and exemplars.
    OpenMetrics,
}

impl Format {
    /// Returns the format that a client prefers, from its `Accept` header.
    #[must_use]
    pub fn of_accept(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") {
            Format::OpenMetrics
        } else {
            Format::Text
        }
    }

    /// Returns the `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

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
}

/// Writer for families of samples, one family after another.
pub trait Families {
    /// Begins a family. `name` has no `_total` suffix, and ends in the unit if there is one.
    fn family(&mut self, name: &'static str, kind: Kind, help: &str);
    /// Writes the value of a counter or a gauge.
    fn sample(&mut self, labels: Labels, value: f64);
    /// Writes a histogram.
    fn buckets(&mut self, labels: Labels, buckets: &Buckets);
}

impl Families for Exposition {
    fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        Exposition::family(self, name, kind, help);
    }

    fn sample(&mut self, labels: Labels, value: f64) {
        Exposition::sample(self, labels, value);
    }

    fn buckets(&mut self, labels: Labels, buckets: &Buckets) {
        Exposition::buckets(self, labels, buckets);
    }
}

/// A page that is being written.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
    family: &'static str,
    kind: Kind,
}

impl Exposition {
    /// Creates an empty page.
    #[must_use]
    pub fn new(format: Format) -> Exposition {
        Exposition { format, text: String::new(), family: "", kind: Kind::Gauge }
    }

    /// Begins a family. `name` has no `_total` suffix, and ends in the unit if there is one.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        (self.family, self.kind) = (name, kind);
        let suffix = if self.format == Format::Text { self.suffix() } else { "" };
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.text, "# HELP {name}{suffix} {}", escape(help, self.format));
        let _ = writeln!(self.text, "# TYPE {name}{suffix} {word}");
        if self.format == Format::OpenMetrics
            && let Some(unit) = ["seconds", "bytes"].into_iter().find(|u| name.ends_with(u))
        {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    fn suffix(&self) -> &'static str {
        if self.kind == Kind::Counter { "_total" } else { "" }
    }

    /// Writes the value of a counter or a gauge.
    pub fn sample(&mut self, labels: Labels, value: f64) {
        let suffix = self.suffix();
        self.line(suffix, labels, None, value);
        self.text.push('\n');
    }

    /// Writes a histogram.
    pub fn buckets(&mut self, labels: Labels, buckets: &Buckets) {
        let mut exemplar = buckets.exemplar;
        let infinite = [(f64::INFINITY, buckets.count)];
        let bounds = buckets.bounds.iter().copied().zip(buckets.cumulative.iter().copied());
        for (bound, count) in bounds.chain(infinite) {
            self.line("_bucket", labels, Some(bound), count as f64);
            if self.format == Format::OpenMetrics
                && let Some(example) = exemplar.take_if(|e| e.value <= bound)
            {
                let Exemplar { trace_id, value, at } = example;
                let _ = write!(self.text, " # {{trace_id=\"{trace_id}\"}} {value} {at:.3}");
            }
            self.text.push('\n');
        }
        for (suffix, value) in [("_sum", buckets.sum), ("_count", buckets.count as f64)] {
            self.line(suffix, labels, None, value);
            self.text.push('\n');
        }
    }

    fn line(&mut self, suffix: &str, labels: Labels, bound: Option<f64>, value: f64) {
        let _ = write!(self.text, "{}{suffix}", self.family);
        let mut before = '{';
        for (name, label) in labels {
            let _ = write!(self.text, "{before}{name}=\"{}\"", escape_label(label));
            before = ',';
        }
        if let Some(bound) = bound {
            let _ = write!(self.text, "{before}le=\"{}\"", number(bound));
            before = ',';
        }
        let end = if before == ',' { "}" } else { "" };
        let _ = write!(self.text, "{end} {}", number(value));
    }

    /// Returns the whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

fn number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}

fn escape(help: &str, format: Format) -> String {
    let text = help.replace('\\', "\\\\").replace('\n', "\\n");
    if format == Format::OpenMetrics { text.replace('"', "\\\"") } else { text }
}

fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Exemplar, Exposition, Format, Kind};

    fn page(format: Format) -> String {
        let mut page = Exposition::new(format);
        page.family("samovar_requests", Kind::Counter, "Requests.");
        page.sample(&[("route", "a\"b\\c\nd"), ("class", "2xx")], 3.0);
        page.family("samovar_wait_seconds", Kind::Gauge, "A \"wait\".");
        page.sample(&[], 0.25);
        page.family("samovar_duration_seconds", Kind::Histogram, "Durations.");
        let exemplar = Exemplar { trace_id: "ab".repeat(16), value: 0.04, at: 1.5 };
        page.buckets(
            &[("route", "r")],
            &Buckets {
                bounds: &[0.01, 0.1],
                cumulative: &[1, 3],
                count: 4,
                sum: 2.5,
                exemplar: Some(&exemplar),
            },
        );
        page.finish()
    }

    #[test]
    fn text_format_has_counter_names_with_total() {
        let expected = r#"# HELP samovar_requests_total Requests.
# TYPE samovar_requests_total counter
samovar_requests_total{route="a\"b\\c\nd",class="2xx"} 3
# HELP samovar_wait_seconds A "wait".
# TYPE samovar_wait_seconds gauge
samovar_wait_seconds 0.25
# HELP samovar_duration_seconds Durations.
# TYPE samovar_duration_seconds histogram
samovar_duration_seconds_bucket{route="r",le="0.01"} 1
samovar_duration_seconds_bucket{route="r",le="0.1"} 3
samovar_duration_seconds_bucket{route="r",le="+Inf"} 4
samovar_duration_seconds_sum{route="r"} 2.5
samovar_duration_seconds_count{route="r"} 4
"#;
        assert_eq!(page(Format::Text), expected);
    }

    #[test]
    fn openmetrics_has_units_exemplars_and_eof() {
        let page = page(Format::OpenMetrics);
        assert!(page.contains("# TYPE samovar_requests counter\n"), "{page}");
        assert!(page.contains("samovar_requests_total{"), "{page}");
        assert!(page.contains("# UNIT samovar_wait_seconds seconds\n"), "{page}");
        let trace = "ab".repeat(16);
        let bucket = format!("le=\"0.1\"}} 3 # {{trace_id=\"{trace}\"}} 0.04 1.500\n");
        assert!(page.contains(&bucket), "{page}");
        assert!(page.ends_with("# EOF\n"), "{page}");
    }

    #[test]
    fn format_is_chosen_from_accept_header() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2,*/*;q=0.1";
        assert_eq!(Format::of_accept(prometheus), Format::OpenMetrics);
        assert_eq!(Format::of_accept("*/*"), Format::Text);
    }
}
