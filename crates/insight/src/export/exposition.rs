//! Prometheus' text format, its protobuf format, and `OpenMetrics` 1.0: writes families of samples
//! in the order of the calls.
//!
//! Specifications: [text format
//! 0.0.4](https://prometheus.io/docs/instrumenting/exposition_formats/),
//! [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/). No library is used
//! because one page supports all formats. In the text format a family's name ends in `_total`, in
//! `OpenMetrics` it does not.

mod family;
mod protobuf;

pub use family::{Buckets, Exemplar, Kind, Labels};
use std::fmt::Write as _;

/// Format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format.
    Text,
    /// `OpenMetrics`, with units and exemplars.
    OpenMetrics,
    /// Prometheus' protobuf format, with native histograms.
    Protobuf,
}

/// Media type of the protobuf format.
const PROTOBUF: &str = "application/vnd.google.protobuf";
/// Media type of `OpenMetrics`.
const OPEN_METRICS: &str = "application/openmetrics-text";

impl Format {
    /// Returns the format that a client prefers, from its `Accept` header.
    #[must_use]
    pub fn of_accept(accept: &str) -> Format {
        let quality = |media: &str| {
            let ranges = accept.split(',').filter(|range| range.trim().starts_with(media));
            let is_delimited = |range: &&str| media != PROTOBUF || is_delimited(range);
            ranges.filter(is_delimited).map(quality).fold(0.0, f64::max)
        };
        let (protobuf, open_metrics) = (quality(PROTOBUF), quality(OPEN_METRICS));
        if protobuf > 0.0 && protobuf >= open_metrics {
            Format::Protobuf
        } else if open_metrics > 0.0 {
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
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }
}

/// Returns whether a media range of the protobuf format is the one that is written.
fn is_delimited(range: &str) -> bool {
    range.contains("io.prometheus.client.MetricFamily") && range.contains("encoding=delimited")
}

/// Returns the quality of a media range; 1 without one.
fn quality(range: &str) -> f64 {
    let value = range.split(';').find_map(|part| part.trim().strip_prefix("q="));
    value.map_or(1.0, |q| q.trim().parse().unwrap_or(0.0))
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
    /// Used instead of the text in the protobuf format.
    messages: protobuf::Page,
    family: &'static str,
    kind: Kind,
}

impl Exposition {
    /// Creates an empty page.
    #[must_use]
    pub fn new(format: Format) -> Exposition {
        let messages = protobuf::Page::default();
        Exposition { format, text: String::new(), messages, family: "", kind: Kind::Gauge }
    }

    /// Begins a family. `name` has no `_total` suffix, and ends in the unit if there is one.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        (self.family, self.kind) = (name, kind);
        if self.format == Format::Protobuf {
            return self.messages.family(format!("{name}{}", self.suffix()), kind, help);
        }
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
        if self.format == Format::Protobuf {
            return self.messages.sample(labels, value);
        }
        let suffix = self.suffix();
        self.line(suffix, labels, None, value);
        self.text.push('\n');
    }

    /// Writes a histogram.
    pub fn buckets(&mut self, labels: Labels, buckets: &Buckets) {
        if self.format == Format::Protobuf {
            return self.messages.buckets(labels, buckets);
        }
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
    pub fn finish(mut self) -> Vec<u8> {
        if self.format == Format::Protobuf {
            return self.messages.finish();
        }
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text.into_bytes()
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
    use super::protobuf::{HISTOGRAM, Histogram as Native, MetricFamily};
    use super::{Buckets, Exemplar, Exposition, Format, Kind};
    use crate::histogram::Histogram as Times;
    use prost::Message as _;

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
                times: None,
            },
        );
        String::from_utf8(page.finish()).expect("text")
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
        // Of a Prometheus that scrapes native histograms.
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                      encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5";
        assert_eq!(Format::of_accept(native), Format::Protobuf);
        assert_eq!(Format::of_accept(&native.replace("q=0.6", "q=0.4")), Format::OpenMetrics);
        assert_eq!(Format::of_accept(&native.replace("delimited", "text")), Format::OpenMetrics);
    }

    /// Returns a quantile as Prometheus computes it: interpolated within a native bucket.
    fn quantile(of: &Native, q: f64) -> f64 {
        let rank = q * of.sample_count as f64;
        let (mut bucket, mut count, mut below) = (0, 0, of.zero_count as f64);
        let mut deltas = of.positive_delta.iter();
        for span in &of.positive_span {
            bucket += span.offset;
            for delta in deltas.by_ref().take(span.length as usize) {
                count += delta;
                if below + count as f64 >= rank {
                    let share = (rank - below) / count as f64;
                    return 2_f64.powf((f64::from(bucket) - 1.0 + share) / 8.0);
                }
                below += count as f64;
                bucket += 1;
            }
        }
        f64::NAN
    }

    /// Prometheus' p95 was 97 ms for 59 ms.
    #[test]
    fn native_quantiles_are_within_five_percent() {
        let mut times = Times::default();
        for n in 0..10_000_u64 {
            times.add(20_000_000 + n * 41_000_000 / 10_000); // 20 to 61 ms
        }
        times.add(0);
        times.add(3_000_000_000);
        let mut page = Exposition::new(Format::Protobuf);
        page.family("samovar_empty", Kind::Counter, "Nothing.");
        page.family("samovar_duration_seconds", Kind::Histogram, "Durations.");
        let buckets = Buckets {
            bounds: &[0.05],
            cumulative: &times.cumulative(&[50_000_000]),
            count: times.count(),
            sum: 1.5,
            exemplar: None,
            times: Some(&times),
        };
        page.buckets(&[("route", "r")], &buckets);
        page.family("samovar_requests", Kind::Counter, "Requests.");
        page.sample(&[], 3.0);
        let bytes = page.finish();
        let mut rest = &bytes[..];
        let family = MetricFamily::decode_length_delimited(&mut rest).expect("a family");
        assert_eq!((&*family.name, family.kind), ("samovar_duration_seconds", HISTOGRAM));
        assert_eq!(family.metric[0].label[0].value, "r");
        let found = family.metric[0].histogram.as_ref().expect("a histogram");
        assert_eq!((found.sample_count, found.zero_count, found.bucket.len()), (10_002, 1, 2));
        for q in [0.5, 0.95, 0.99] {
            let (truth, shown) = (times.quantile_ns(q) as f64 / 1e9, quantile(found, q));
            assert!((shown / truth - 1.0).abs() < 0.05, "{q}: {shown}, not {truth}");
        }
        let requests = MetricFamily::decode_length_delimited(&mut rest).expect("a family");
        assert_eq!(requests.name, "samovar_requests_total");
        assert_eq!(requests.metric[0].counter.as_ref().map(|c| c.value), Some(3.0));
        assert!(rest.is_empty());
    }
}
