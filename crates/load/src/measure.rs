//! Measured values: counters, and a histogram of latency per class.

use crate::connection::Reply;
use crate::failure::Failure;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

const SIGNIFICANT_DIGITS: u8 = 3;
const LATENCY_NS_MAX: u64 = 24 * 3600 * 1_000_000_000; // No timeout is longer.

/// Requests that were begun and have no good response, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Errors {
    pub(crate) connect: u64,
    pub(crate) io: u64,
    /// Complete response, but not with 2xx or 3xx.
    pub(crate) status: u64,
    pub(crate) timeout: u64,
    pub(crate) incomplete: u64,
}

/// Good responses of one class. Errors have no latency here: a fast failure would look good.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) latency_ns: Histogram<u64>,
}

/// The sums so far.
#[derive(Debug)]
pub(crate) struct Measure {
    pub(crate) classes: Vec<Class>,
    /// Status codes of all complete responses.
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) errors: Errors,
    pub(crate) bytes: u64,
    /// Good responses within the window. A request in flight at its end counts in part: if the
    /// window is short compared with the latency, complete ones alone would be too few.
    pub(crate) in_window: f64,
    begun: u64,
    ended: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) class: usize,
    pub(crate) result: Result<Reply, Failure>,
    pub(crate) latency: Duration,
    /// Fraction of its time on the connection that was before the window's end: 0 to 1.
    pub(crate) in_window: f64,
}

impl Measure {
    pub(crate) fn new<'a>(classes: impl Iterator<Item = &'a str>) -> Measure {
        let class = |name: &str| Class { name: name.to_owned(), latency_ns: histogram() };
        Measure {
            classes: classes.map(class).collect(),
            statuses: BTreeMap::new(),
            errors: Errors::default(),
            bytes: 0,
            in_window: 0.0,
            begun: 0,
            ended: 0,
        }
    }

    /// Begins a request. Returns its running number, starting at 1.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    pub(crate) fn end(&mut self, outcome: &Outcome) {
        self.ended += 1;
        match outcome.result {
            Ok(reply) => self.responded(reply, outcome),
            Err(Failure::Connect) => self.errors.connect += 1,
            Err(Failure::Io) => self.errors.io += 1,
            Err(Failure::Incomplete | Failure::Malformed | Failure::HeadLimit) => {
                self.errors.incomplete += 1;
            }
            Err(Failure::Timeout) => self.errors.timeout += 1,
            Err(Failure::Refused) => self.errors.status += 1,
        }
    }

    fn responded(&mut self, reply: Reply, outcome: &Outcome) {
        *self.statuses.entry(reply.status).or_default() += 1;
        self.bytes += reply.bytes;
        if !(200..400).contains(&reply.status) {
            self.errors.status += 1;
            return;
        }
        self.in_window += outcome.in_window;
        let latency_ns = outcome.latency.as_nanos() as u64;
        self.classes[outcome.class].latency_ns.saturating_record(latency_ns);
    }

    /// Requests that were begun and have neither a response nor failed.
    pub(crate) fn under_way(&self) -> u64 {
        self.begun - self.ended
    }

    /// Latency of all classes.
    pub(crate) fn latency_ns(&self) -> Histogram<u64> {
        let mut sum = histogram();
        for class in &self.classes {
            sum.add(&class.latency_ns).expect("all histograms have the same bounds");
        }
        sum
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
        .expect("bounds and digits that hdrhistogram allows")
}

#[cfg(test)]
mod tests {
    use super::{Errors, Measure, Outcome};
    use crate::connection::Reply;
    use crate::failure::Failure;
    use std::collections::BTreeMap;
    use std::time::Duration;

    type Result = std::result::Result<Reply, Failure>;

    fn end(measure: &mut Measure, class: usize, result: Result, millis: u64) {
        let latency = Duration::from_millis(millis);
        measure.end(&Outcome { class, result, latency, in_window: 0.5 });
    }

    const fn reply(status: u16) -> Reply {
        Reply { status, bytes: 10 }
    }

    #[test]
    fn every_request_is_counted_once() {
        let mut measure = Measure::new(["a"].into_iter());
        for number in 1..=9 {
            assert_eq!(measure.begin(), number);
        }
        for status in [200, 200, 302, 503] {
            end(&mut measure, 0, Ok(reply(status)), 1);
        }
        for failure in [Failure::Connect, Failure::Io, Failure::Incomplete, Failure::Timeout] {
            end(&mut measure, 0, Err(failure), 1);
        }
        let once = Errors { connect: 1, io: 1, status: 1, timeout: 1, incomplete: 1 };
        assert_eq!(measure.errors, once);
        assert_eq!(measure.statuses, BTreeMap::from([(200, 2), (302, 1), (503, 1)]));
        assert_eq!(measure.under_way(), 1);
        assert_eq!(measure.bytes, 40);
    }

    #[test]
    fn latency_counts_good_responses_by_class() {
        let mut measure = Measure::new(["short", "long"].into_iter());
        for (class, status, millis) in [(0, 200, 1), (0, 200, 3), (1, 200, 500), (1, 503, 9000)] {
            measure.begin();
            end(&mut measure, class, Ok(reply(status)), millis);
        }
        let max_ms = |histogram: &hdrhistogram::Histogram<u64>| histogram.max() / 1_000_000;
        assert_eq!(max_ms(&measure.classes[0].latency_ns), 3);
        assert_eq!(max_ms(&measure.classes[1].latency_ns), 500);
        assert_eq!((measure.latency_ns().len(), max_ms(&measure.latency_ns())), (3, 500));
        assert!((measure.in_window - 1.5).abs() < 1e-9, "{}", measure.in_window);
    }

    #[test]
    fn latency_has_three_exact_digits() {
        let mut measure = Measure::new(["a"].into_iter());
        measure.begin();
        end(&mut measure, 0, Ok(reply(200)), 12_345);
        let error = measure.latency_ns().value_at_quantile(0.5).abs_diff(12_345_000_000);
        assert!(error < 12_345_000, "{error}");
    }
}
