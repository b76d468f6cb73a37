//! Prometheus' protobuf format with native histograms: messages of `io.prometheus.client`
//! (`metrics.proto` of `prometheus/client_model`), with the used fields only. Each message follows
//! its length.

use super::family::{Buckets, Exemplar, Kind, Labels};
use crate::export::log_buckets::{LogBuckets, SCALE};
use crate::histogram::Histogram as Times;
use prost::Message as _;

/// Width of the bucket for zero, s: below the unit of the histograms.
const ZERO_THRESHOLD: f64 = 1e-9;
const NS_PER_S: f64 = 1e9;

/// Values of `MetricType`.
const COUNTER: i32 = 0;
const GAUGE: i32 = 1;
pub(super) const HISTOGRAM: i32 = 4;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricFamily {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) help: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// `Gauge` or `Counter`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Value {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Histogram {
    #[prost(uint64, tag = "1")]
    pub(super) sample_count: u64,
    #[prost(double, tag = "2")]
    pub(super) sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(super) bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    pub(super) schema: i32,
    #[prost(double, tag = "6")]
    pub(super) zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub(super) zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(super) positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Bucket {
    #[prost(uint64, tag = "1")]
    pub(super) cumulative_count: u64,
    #[prost(double, tag = "2")]
    pub(super) upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    pub(super) exemplar: Option<ExemplarMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExemplarMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    pub(super) value: f64,
    #[prost(message, optional, tag = "3")]
    pub(super) timestamp: Option<Timestamp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// Families that are being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Page(Vec<MetricFamily>);

impl Page {
    pub(super) fn family(&mut self, name: String, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => COUNTER,
            Kind::Gauge => GAUGE,
            Kind::Histogram => HISTOGRAM,
        };
        self.0.push(MetricFamily { name, help: help.to_owned(), kind, metric: Vec::new() });
    }

    pub(super) fn sample(&mut self, labels: Labels, value: f64) {
        let Some(family) = self.0.last_mut() else { return };
        let value = Some(Value { value });
        let (gauge, counter) = if family.kind == COUNTER { (None, value) } else { (value, None) };
        family.metric.push(Metric { label: pairs(labels), gauge, counter, histogram: None });
    }

    pub(super) fn buckets(&mut self, labels: Labels, buckets: &Buckets) {
        let Some(family) = self.0.last_mut() else { return };
        let histogram = Some(histogram(buckets));
        family.metric.push(Metric { label: pairs(labels), histogram, ..Metric::default() });
    }

    /// Returns the page. A family without samples is omitted.
    pub(super) fn finish(self) -> Vec<u8> {
        let families = self.0.into_iter().filter(|family| !family.metric.is_empty());
        families.flat_map(|family| family.encode_length_delimited_to_vec()).collect()
    }
}

fn pairs(labels: Labels) -> Vec<LabelPair> {
    let pair =
        |(name, value): &(&str, &str)| LabelPair { name: (*name).into(), value: (*value).into() };
    labels.iter().map(pair).collect()
}

fn exemplar(of: &Exemplar) -> ExemplarMessage {
    let seconds = of.at.floor();
    let timestamp =
        Timestamp { seconds: seconds as i64, nanos: ((of.at - seconds) * NS_PER_S) as i32 };
    ExemplarMessage {
        label: pairs(&[("trace_id", &of.trace_id)]),
        value: of.value,
        timestamp: Some(timestamp),
    }
}

/// Returns a histogram with classic and with native buckets.
fn histogram(buckets: &Buckets) -> Histogram {
    let mut example = buckets.exemplar;
    let infinite = [(f64::INFINITY, buckets.count)];
    let bounds = buckets.bounds.iter().copied().zip(buckets.cumulative.iter().copied());
    let bucket = bounds.chain(infinite).map(|(upper_bound, cumulative_count)| Bucket {
        cumulative_count,
        upper_bound,
        exemplar: example.take_if(|e| e.value <= upper_bound).map(exemplar),
    });
    let native = buckets.times.map(native).unwrap_or_default();
    Histogram {
        sample_count: buckets.count,
        sample_sum: buckets.sum,
        bucket: bucket.collect(),
        ..native
    }
}

/// Returns the native buckets.
fn native(times: &Times) -> Histogram {
    let LogBuckets { zeros, counts } = LogBuckets::of(times);
    let mut native = Histogram {
        schema: SCALE,
        zero_threshold: ZERO_THRESHOLD,
        zero_count: zeros,
        ..Histogram::default()
    };
    let (mut next, mut before) = (0, 0);
    for (bucket, n) in counts {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        match native.positive_span.last_mut() {
            Some(span) if bucket == next => span.length += 1,
            _ => native.positive_span.push(BucketSpan { offset: bucket - next, length: 1 }),
        }
        native.positive_delta.push(n - before);
        (next, before) = (bucket + 1, n);
    }
    native
}
