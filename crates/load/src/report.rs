//! The result as JSON. bench/README.md explains each figure.

use crate::measure::{Errors, Measure};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

const NS_PER_US: f64 = 1000.0;

/// The printed result. The sum of requests, errors and hung is the number of requests that were
/// due.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Time in which requests were begun.
    seconds: f64,
    /// Complete responses with 2xx or 3xx, also in the grace time.
    requests: u64,
    /// Responses within the window, per second; a request in flight at its end counts in part.
    rate: f64,
    statuses: BTreeMap<u16, u64>,
    errors: Errors,
    /// Requests without a response at the end of the grace time.
    hung: u64,
    /// The part of them for which no connection was free.
    unsent: u64,
    bytes: u64,
    latency_us: Latency,
    classes: BTreeMap<String, Class>,
    client: Client,
}

#[derive(Clone, Debug, Serialize)]
struct Class {
    requests: u64,
    latency_us: Latency,
}

/// Latency of good responses; null if there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Latency {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

/// Resources that the client itself used. At a share near 1 it measures itself.
#[derive(Clone, Debug, Serialize)]
struct Client {
    cpu_us: Option<f64>,
    cpu_share: f64,
}

/// Facts other than the counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) window: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    pub(crate) unsent: u64,
}

impl Report {
    pub(crate) fn new(measure: &Measure, facts: Facts) -> Report {
        let all = measure.latency_ns();
        let seconds = facts.window.as_secs_f64();
        let cpu_us = (!all.is_empty())
            .then(|| round(facts.cpu.as_secs_f64() * 1e6 / float(all.len()), 100.0));
        let cpu_share = round(facts.cpu.as_secs_f64() / facts.elapsed.as_secs_f64(), 1000.0);
        Report {
            seconds,
            requests: all.len(),
            rate: round(measure.in_window / seconds, 10.0),
            statuses: measure.statuses.clone(),
            errors: measure.errors,
            hung: measure.under_way() + facts.unsent,
            unsent: facts.unsent,
            bytes: measure.bytes,
            latency_us: Latency::of(&all),
            classes: measure.classes.iter().map(Class::entry).collect(),
            client: Client { cpu_us, cpu_share },
        }
    }
}

impl Class {
    fn entry(class: &crate::measure::Class) -> (String, Class) {
        let latency = &class.latency_ns;
        (class.name.clone(), Class { requests: latency.len(), latency_us: Latency::of(latency) })
    }
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Latency {
        if histogram.is_empty() {
            return Latency::default();
        }
        let microseconds = |ns: f64| Some(round(ns / NS_PER_US, 10.0));
        let at = |quantile| microseconds(float(histogram.value_at_quantile(quantile)));
        Latency {
            mean: microseconds(histogram.mean()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: microseconds(float(histogram.max())),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people: 53 bits are enough")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Rounds to multiples of one `parts`-th.
fn round(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::{Facts, Report};
    use crate::connection::Reply;
    use crate::measure::{Measure, Outcome};
    use serde_json::{Value, json};
    use std::time::Duration;

    const FACTS: Facts = Facts {
        window: Duration::from_secs(2),
        elapsed: Duration::from_secs(4),
        cpu: Duration::from_millis(2),
        unsent: 3,
    };

    fn report(measure: &Measure) -> Value {
        serde_json::to_value(Report::new(measure, FACTS)).unwrap()
    }

    #[test]
    fn report_contains_every_figure() {
        let mut measure = Measure::new(["a", "b"].into_iter());
        for microseconds in 1..=1000 {
            measure.begin();
            let latency = Duration::from_micros(microseconds);
            let result = Ok(Reply { status: 200, bytes: 7 });
            measure.end(&Outcome { class: 0, result, latency, in_window: 0.5 });
        }
        measure.begin();
        let report = report(&measure);
        let errors = json!({"connect": 0, "io": 0, "status": 0, "timeout": 0, "incomplete": 0});
        for (key, value) in [
            ("seconds", json!(2.0)),
            ("requests", json!(1000)),
            ("rate", json!(250.0)),
            ("statuses", json!({"200": 1000})),
            ("errors", errors),
            ("hung", json!(4)),
            ("unsent", json!(3)),
            ("bytes", json!(7000)),
            ("client", json!({"cpu_us": 2.0, "cpu_share": 0.001})),
        ] {
            assert_eq!(report[key], value, "{key}");
        }
        let p99 = report["latency_us"]["p99"].as_f64().unwrap();
        assert!((989.0..=991.0).contains(&p99), "{p99}");
        assert_eq!(report["classes"]["a"]["latency_us"], report["latency_us"]);
        assert_eq!(report["classes"]["b"]["requests"], 0);
    }

    #[test]
    fn report_without_responses_has_null_times() {
        let report = report(&Measure::new(["a"].into_iter()));
        assert_eq!(report["latency_us"]["p50"], Value::Null);
        assert_eq!(report["client"]["cpu_us"], Value::Null);
    }
}
