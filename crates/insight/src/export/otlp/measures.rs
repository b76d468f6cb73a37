//! Prometheus' families as OpenTelemetry metrics: cumulative since the server's start.

mod message;

use super::attributes::text;
use super::identity::Identity;
use crate::export::exposition::{Buckets, Families, Kind, Labels};
use crate::export::log_buckets::{LogBuckets, SCALE};
use crate::histogram::Histogram as Times;
use message::{
    CUMULATIVE, Exponential, ExponentialBuckets, ExponentialPoint, ExportMetricsServiceRequest,
    Gauge, Histogram, HistogramPoint, Metric, NumberPoint, Points, ResourceMetrics, ScopeMetrics,
    Sum,
};
use prost::Message as _;

/// Form of histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistogramForm {
    /// Buckets with the bounds of the classic histograms; every receiver reads them.
    #[default]
    Explicit,
    /// Exponential buckets, at most 9 % apart.
    Exponential,
}

/// Maximum number of buckets of an exponential histogram: the usual one of OpenTelemetry's
/// libraries. A wider range has a lower resolution.
const EXPONENTIAL_MAX: usize = 160;

/// Metrics of one point in time, being written.
#[derive(Debug)]
pub struct Measures {
    begun_ns: u64,
    now_ns: u64,
    histograms: HistogramForm,
    metrics: Vec<Metric>,
}

impl Measures {
    /// Creates an empty set. Times are ns since 1970: the start of counting, and now.
    #[must_use]
    pub fn new(begun_ns: u64, now_ns: u64, histograms: HistogramForm) -> Measures {
        Measures { begun_ns, now_ns, histograms, metrics: Vec::new() }
    }

    /// Returns the body of a request to the collector.
    #[must_use]
    pub fn encode(self, identity: &Identity) -> Vec<u8> {
        // A family without points is of no use to a collector.
        let metrics = self.metrics.into_iter().filter(Metric::has_points).collect();
        let scope_metrics = vec![ScopeMetrics { scope: Some(identity.scope()), metrics }];
        let resource = Some(identity.resource(&identity.releases.of_server()));
        let resource_metrics = vec![ResourceMetrics { resource, scope_metrics }];
        ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
    }
}

impl Families for Measures {
    fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        let points = match kind {
            Kind::Counter => Points::Sum(Sum {
                data_points: Vec::new(),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            Kind::Gauge => Points::Gauge(Gauge::default()),
            Kind::Histogram if self.histograms == HistogramForm::Exponential => {
                Points::Exponential(Exponential {
                    data_points: Vec::new(),
                    aggregation_temporality: CUMULATIVE,
                })
            }
            Kind::Histogram => Points::Histogram(Histogram {
                data_points: Vec::new(),
                aggregation_temporality: CUMULATIVE,
            }),
        };
        let unit = [("seconds", "s"), ("bytes", "By")];
        let unit = unit.into_iter().find(|(end, _)| name.ends_with(end)).map_or("1", |(_, u)| u);
        self.metrics.push(Metric {
            name: name.to_owned(),
            description: help.to_owned(),
            unit: unit.to_owned(),
            points: Some(points),
        });
    }

    fn sample(&mut self, labels: Labels, value: f64) {
        let point = NumberPoint {
            start_time_unix_nano: self.begun_ns,
            time_unix_nano: self.now_ns,
            as_double: Some(value),
            attributes: labels.iter().map(|(name, value)| text(name, value)).collect(),
        };
        match self.metrics.last_mut().and_then(|metric| metric.points.as_mut()) {
            Some(Points::Sum(sum)) => sum.data_points.push(point),
            Some(Points::Gauge(gauge)) => gauge.data_points.push(point),
            _ => {}
        }
    }

    fn buckets(&mut self, labels: Labels, buckets: &Buckets) {
        let points = self.metrics.last_mut().and_then(|metric| metric.points.as_mut());
        let attributes = labels.iter().map(|(name, value)| text(name, value)).collect();
        let histogram = match (points, buckets.times) {
            (Some(Points::Histogram(histogram)), _) => histogram,
            (Some(Points::Exponential(histogram)), Some(times)) => {
                let point = exponential(times);
                return histogram.data_points.push(ExponentialPoint {
                    attributes,
                    start_time_unix_nano: self.begun_ns,
                    time_unix_nano: self.now_ns,
                    count: buckets.count,
                    sum: Some(buckets.sum),
                    ..point
                });
            }
            _ => return,
        };
        let ends = buckets.cumulative.iter().copied().chain([buckets.count]);
        let mut before = 0;
        let each = ends.map(|end| end.saturating_sub(std::mem::replace(&mut before, end)));
        histogram.data_points.push(HistogramPoint {
            start_time_unix_nano: self.begun_ns,
            time_unix_nano: self.now_ns,
            count: buckets.count,
            sum: Some(buckets.sum),
            bucket_counts: each.collect(),
            explicit_bounds: buckets.bounds.to_vec(),
            attributes,
        });
    }
}

/// Returns the buckets of times. Bucket `i` of a scale `s` contains the times above 2^(i/2^s) s and
/// up to 2^((i+1)/2^s) s.
fn exponential(times: &Times) -> ExponentialPoint {
    let LogBuckets { zeros, counts } = LogBuckets::of(times);
    let (first, last) = (counts.first().map_or(0, |of| of.0), counts.last().map_or(0, |of| of.0));
    let lower = |bucket: i32, halvings: i32| (bucket - 1) >> halvings;
    let length =
        |halvings| usize::try_from(lower(last, halvings) - lower(first, halvings)).unwrap_or(0) + 1;
    let halvings = (0..31).find(|halvings| length(*halvings) <= EXPONENTIAL_MAX).unwrap_or(31);
    let offset = lower(first, halvings);
    let mut bucket_counts = vec![0_u64; if counts.is_empty() { 0 } else { length(halvings) }];
    for (bucket, n) in counts {
        let at = usize::try_from(lower(bucket, halvings) - offset).ok();
        if let Some(count) = at.and_then(|at| bucket_counts.get_mut(at)) {
            *count = count.saturating_add(n);
        }
    }
    ExponentialPoint {
        scale: SCALE - halvings,
        zero_count: zeros,
        positive: Some(ExponentialBuckets { offset, bucket_counts }),
        ..ExponentialPoint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::message::{ExportMetricsServiceRequest, Points};
    use super::{
        Buckets, EXPONENTIAL_MAX, Families, HistogramForm, Identity, Kind, Measures, Times,
        exponential,
    };
    use prost::Message as _;

    #[test]
    fn families_are_encoded_as_otlp_metrics() {
        let mut measures = Measures::new(1, 2, HistogramForm::Explicit);
        measures.family("samovar_waits", Kind::Counter, "Waits.");
        measures.sample(&[("route", "a")], 3.0);
        measures.sample(&[("route", "b")], 4.0);
        measures.family("samovar_empty", Kind::Counter, "Nothing.");
        measures.family("samovar_duration_seconds", Kind::Histogram, "Durations.");
        let (bounds, cumulative) = ([0.1, 0.5], [1, 3]);
        let buckets = Buckets {
            bounds: &bounds,
            cumulative: &cumulative,
            count: 4,
            sum: 2.5,
            exemplar: None,
            times: None,
        };
        measures.buckets(&[], &buckets);
        measures.family("samovar_routes", Kind::Gauge, "Routes.");
        measures.sample(&[], 7.0);

        let body = measures.encode(&Identity::default());
        let request = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        let [waits, durations, routes] = &metrics[..] else { panic!("{metrics:?}") };
        let Some(Points::Sum(sum)) = &waits.points else { panic!("{waits:?}") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.data_points[1].as_double, Some(4.0));
        assert_eq!(sum.data_points[1].attributes[0].key, "route");
        let Some(Points::Histogram(histogram)) = &durations.points else { panic!("{durations:?}") };
        assert_eq!((durations.unit.as_str(), waits.unit.as_str()), ("s", "1"));
        assert_eq!(histogram.data_points[0].bucket_counts, [1, 2, 1]);
        assert_eq!(histogram.data_points[0].explicit_bounds, bounds);
        let Some(Points::Gauge(gauge)) = &routes.points else { panic!("{routes:?}") };
        assert_eq!((gauge.data_points.len(), gauge.data_points[0].time_unix_nano), (1, 2));
    }

    /// Returns a quantile: the upper bound of its bucket.
    fn quantile(of: &super::ExponentialPoint, q: f64) -> f64 {
        let base = 2_f64.powf(2_f64.powi(-of.scale));
        let buckets = of.positive.as_ref().expect("buckets");
        let (mut below, rank) = (of.zero_count as f64, q * of.count as f64);
        for (at, count) in buckets.bucket_counts.iter().enumerate() {
            below += *count as f64;
            if below >= rank {
                return base.powi(buckets.offset + i32::try_from(at).expect("few buckets") + 1);
            }
        }
        f64::NAN
    }

    #[test]
    fn exponential_histograms_have_near_quantiles() {
        let mut times = Times::default();
        for n in 0..10_000_u64 {
            times.add(20_000_000 + n * 4_000); // 20 to 60 ms
        }
        times.add_zeros(3);
        times.add(3_000_000_000);
        let mut measures = Measures::new(1, 2, HistogramForm::Exponential);
        measures.family("samovar_duration_seconds", Kind::Histogram, "Durations.");
        let (count, sum) = (times.count(), times.sum_ns() as f64 / 1e9);
        let (bounds, cumulative, exemplar) = (&[0.1][..], &[7][..], None);
        let times_of = Some(&times);
        let buckets = Buckets { bounds, cumulative, count, sum, exemplar, times: times_of };
        measures.buckets(&[("route", "r")], &buckets);
        measures.family("samovar_other_seconds", Kind::Histogram, "Nothing.");
        let body = measures.encode(&Identity::default());
        let request = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
        let [metric] = &request.resource_metrics[0].scope_metrics[0].metrics[..] else {
            panic!("{request:?}")
        };
        let Some(Points::Exponential(found)) = &metric.points else { panic!("{metric:?}") };
        let point = &found.data_points[0];
        assert_eq!((point.count, point.zero_count, point.scale), (10_004, 3, 3));
        assert_eq!((found.aggregation_temporality, point.attributes[0].key.as_str()), (2, "route"));
        let counted: u64 = point.positive.as_ref().unwrap().bucket_counts.iter().sum();
        assert_eq!(counted + point.zero_count, point.count);
        for q in [0.5, 0.95, 0.99] {
            let truth = times.quantile_ns(q) as f64 / 1e9;
            let shown = quantile(point, q);
            assert!((1.0..1.1).contains(&(shown / truth)), "{q}: {shown}, not {truth}");
        }
    }

    #[test]
    fn wide_histogram_has_lower_resolution_and_all_times() {
        for (range, scale) in [
            (&[][..], 3),
            (&[1][..], 3),
            (&[1_000_000_000][..], 3),
            (&[2_000, 1_000_000_000][..], 3),
            (&[100, u64::MAX][..], 2),
        ] {
            let mut times = Times::default();
            for ns in range {
                times.add(*ns);
            }
            let found = exponential(&times);
            assert_eq!(found.scale, scale, "{range:?}");
            let counts = found.positive.expect("buckets").bucket_counts;
            assert!(counts.len() <= EXPONENTIAL_MAX, "{range:?}: {}", counts.len());
            assert_eq!(counts.iter().sum::<u64>() + found.zero_count, range.len() as u64);
        }
        // A bound belongs to the bucket below it: 1 s is 2^0 s.
        let mut times = Times::default();
        times.add(1_000_000_000);
        assert!([-1, 0].contains(&exponential(&times).positive.expect("buckets").offset));
    }
}
