//! Prometheus' families as OpenTelemetry metrics: cumulative since the server's start.

mod message;

use super::attributes::text;
use super::identity::Identity;
use crate::export::exposition::{Buckets, Families, Kind, Labels};
use message::{
    CUMULATIVE, ExportMetricsServiceRequest, Gauge, Histogram, HistogramPoint, Metric, NumberPoint,
    Points, ResourceMetrics, ScopeMetrics, Sum,
};
use prost::Message as _;

/// Metrics of one point in time, being written.
#[derive(Debug)]
pub struct Measures {
    begun_ns: u64,
    now_ns: u64,
    metrics: Vec<Metric>,
}

impl Measures {
    /// Creates an empty set. Times are ns since 1970: the start of counting, and now.
    #[must_use]
    pub fn new(begun_ns: u64, now_ns: u64) -> Measures {
        Measures { begun_ns, now_ns, metrics: Vec::new() }
    }

    /// Returns the body of a request to the collector.
    #[must_use]
    pub fn encode(self, identity: &Identity) -> Vec<u8> {
        // A family without points is of no use to a collector.
        let metrics = self.metrics.into_iter().filter(Metric::has_points).collect();
        let scope_metrics = vec![ScopeMetrics { scope: Some(identity.scope()), metrics }];
        let resource = Some(identity.resource());
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
        let Some(Points::Histogram(histogram)) =
            self.metrics.last_mut().and_then(|metric| metric.points.as_mut())
        else {
            return;
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
            attributes: labels.iter().map(|(name, value)| text(name, value)).collect(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::message::{ExportMetricsServiceRequest, Points};
    use super::{Buckets, Families, Identity, Kind, Measures};
    use prost::Message as _;

    #[test]
    fn families_are_encoded_as_otlp_metrics() {
        let mut measures = Measures::new(1, 2);
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
}
