//! Figures of a step of `OpenLoop`.

use crate::connection::Reply;
use crate::failure::Failure;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest latency of the histograms, µs; longer ones count as this.
const LATENCY_US_MAX: u64 = 600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Finished requests from which a share of failures ends the step.
const FAILURES_COUNT_MIN: u64 = 50;
/// This share of failures ends a step.
const FAILURES_SHARE_MAX: f64 = 0.5;
/// Failures to connect in a row, without any response since, that are the end of the server.
const DEAD_CONNECTS: u64 = 20;

/// Reason why a step ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// More requests than allowed waited for a connection.
    Backlog,
    /// More than half of the requests failed.
    Failures,
    /// The server accepts no connections.
    Dead,
    /// Ctrl-C.
    Interrupted,
}

/// Figures of one step, without those of its warm-up.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Requests that became due.
    pub due: u64,
    /// Complete responses.
    pub responses: u64,
    /// Responses with status 429 or from 500 on.
    pub refused: u64,
    /// Requests without a complete response in time.
    pub failed: u64,
    /// Responses with another status than the recorded one.
    pub other_status: u64,
    /// Responses by status, those of the warm-up included.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by kind, those of the warm-up included.
    pub failures: BTreeMap<Failure, u64>,
    /// Responses from 300 to 499, without 429, that are not the recorded one; those of the warm-up
    /// included.
    pub unusual: u64,
    /// Time from the moment at which a request was due to the end of its response, µs.
    pub latency_us: Histogram<u64>,
    /// Time from the start of sending to the end of the response, µs.
    pub on_connection_us: Histogram<u64>,
    /// Lateness of the client itself: from the moment at which a request was due to its
    /// release, µs.
    pub lag_us: Histogram<u64>,
    /// Highest number of requests in flight.
    pub in_flight_max: usize,
    /// Measured time.
    pub elapsed: Duration,
    /// CPU time of the client's thread per second.
    pub cpu_share: f64,
    /// Reason for an early end.
    pub cut: Option<Cut>,
    watch: Watch,
}

/// Counters of all requests of a step, those of its warm-up too: a dying server gets no further
/// load.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    ended: u64,
    bad: u64,
    /// Failures to connect since the last response.
    unconnected: u64,
}

impl Figures {
    pub(crate) fn new() -> Figures {
        Figures {
            due: 0,
            responses: 0,
            refused: 0,
            failed: 0,
            other_status: 0,
            statuses: BTreeMap::new(),
            failures: BTreeMap::new(),
            unusual: 0,
            latency_us: histogram(),
            on_connection_us: histogram(),
            lag_us: histogram(),
            in_flight_max: 0,
            elapsed: Duration::ZERO,
            cpu_share: 0.0,
            cut: None,
            watch: Watch::default(),
        }
    }

    /// Counts the end of any request, for `reason_to_end` and the kinds of responses.
    pub(crate) fn observe(&mut self, result: Result<Reply, Failure>, expected: Option<u16>) {
        let failure = match result {
            Ok(Reply { status, .. }) => {
                *self.statuses.entry(status).or_default() += 1;
                let is_unusual = (300..500).contains(&status) && !is_refusal(status);
                self.unusual += u64::from(is_unusual && expected != Some(status));
                is_refusal(status).then_some(Failure::Refused)
            }
            Err(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            *self.failures.entry(failure).or_default() += 1;
        }
        let watch = &mut self.watch;
        watch.ended += 1;
        match result {
            Ok(reply) => {
                watch.unconnected = 0;
                watch.bad += u64::from(is_refusal(reply.status));
            }
            Err(failure) => {
                watch.bad += 1;
                watch.unconnected += u64::from(failure == Failure::Connect);
            }
        }
    }

    /// Counts the end of a request after the warm-up. A timeout counts as a late response; other
    /// failures have no latency, because a fast failure would look good.
    pub(crate) fn end(
        &mut self,
        result: Result<Reply, Failure>,
        expected: Option<u16>,
        latency: Duration,
        on_connection: Duration,
    ) {
        match result {
            Ok(reply) => {
                self.responses += 1;
                self.refused += u64::from(is_refusal(reply.status));
                self.other_status +=
                    u64::from(expected.is_some_and(|expected| expected != reply.status));
                record(&mut self.latency_us, latency);
                record(&mut self.on_connection_us, on_connection);
            }
            Err(failure) => {
                self.failed += 1;
                if failure == Failure::Timeout {
                    record(&mut self.latency_us, latency);
                    record(&mut self.on_connection_us, on_connection);
                }
            }
        }
    }

    /// Counts a request that became due, with the lateness of its release.
    pub(crate) fn release(&mut self, lag: Duration) {
        self.due += 1;
        record(&mut self.lag_us, lag);
    }

    /// Share of the finished requests that failed or were refused.
    #[allow(clippy::cast_precision_loss)] // Below 2^52.
    pub fn errors_share(&self) -> f64 {
        let finished = self.responses + self.failed;
        (self.refused + self.failed) as f64 / finished.max(1) as f64
    }

    /// A reason to end the step now.
    pub(crate) fn reason_to_end(&self) -> Option<Cut> {
        let Watch { ended, bad, unconnected } = self.watch;
        if unconnected >= DEAD_CONNECTS {
            return Some(Cut::Dead);
        }
        #[allow(clippy::cast_precision_loss)] // Below 2^52.
        let share = bad as f64 / ended.max(1) as f64;
        (ended >= FAILURES_COUNT_MIN && share > FAILURES_SHARE_MAX).then_some(Cut::Failures)
    }
}

/// Returns the latency that this share of the requests does not exceed; `None` without requests.
#[allow(clippy::cast_precision_loss)] // Below 2^52.
pub(crate) fn seconds_at(histogram: &Histogram<u64>, share: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(share) as f64 / 1e6)
}

impl Figures {
    /// Latency that this share of the requests does not exceed, s; `None`: no response.
    pub fn latency(&self, share: f64) -> Option<f64> {
        seconds_at(&self.latency_us, share)
    }

    /// The same without the time in which a request waited for a connection, s.
    pub fn on_connection(&self, share: f64) -> Option<f64> {
        seconds_at(&self.on_connection_us, share)
    }

    /// Lateness of the client that this share of the requests does not exceed, s.
    pub fn lag(&self, share: f64) -> f64 {
        seconds_at(&self.lag_us, share).unwrap_or(0.0)
    }
}

/// Whether a server refuses a request with this status: overload, or an error of its own.
fn is_refusal(status: u16) -> bool {
    status == 429 || status >= 500
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    let us = u64::try_from(time.as_micros()).unwrap_or(LATENCY_US_MAX);
    histogram.saturating_record(us.max(1));
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS)
        .expect("bounds and digits that hdrhistogram allows")
}

#[cfg(test)]
mod tests {
    use super::{Cut, DEAD_CONNECTS, Figures};
    use crate::connection::Reply;
    use crate::failure::Failure;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn reply(status: u16) -> Reply {
        Reply { status, bytes: 10 }
    }

    #[test]
    fn errors_are_late_responses_refusals_and_failures() {
        let mut figures = Figures::new();
        for (status, expected) in [(200, None), (404, Some(404)), (302, Some(200)), (503, None)] {
            figures.end(Ok(reply(status)), expected, MS * 2, MS);
        }
        figures.end(Err(Failure::Io), None, MS, MS);
        figures.end(Err(Failure::Timeout), None, MS * 900, MS * 800);
        assert_eq!((figures.refused, figures.failed, figures.other_status), (1, 2, 1));
        assert!((figures.errors_share() - 0.5).abs() < 1e-9);
        // The timeout is in the latency; a fast failure is not, because it would look good.
        assert_eq!(figures.latency_us.len(), 5);
        assert!(figures.latency(0.99).is_some_and(|p99| (0.89..0.91).contains(&p99)));
        assert!(figures.latency(0.5).is_some_and(|p50| (0.0019..0.0021).contains(&p50)));
        assert_eq!(figures.reason_to_end(), None);
    }

    #[test]
    fn dead_server_and_many_errors_end_a_step() {
        let mut figures = Figures::new();
        for _ in 1..DEAD_CONNECTS {
            figures.observe(Err(Failure::Connect), None);
        }
        assert_eq!(figures.reason_to_end(), None);
        figures.observe(Err(Failure::Connect), None);
        assert_eq!(figures.reason_to_end(), Some(Cut::Dead));
        figures.observe(Ok(reply(200)), None);
        for _ in 0..40 {
            figures.observe(Ok(reply(503)), None);
        }
        assert_eq!(figures.reason_to_end(), Some(Cut::Failures));
        let expected = [(Failure::Connect, DEAD_CONNECTS), (Failure::Refused, 40)];
        assert_eq!(figures.failures, BTreeMap::from(expected));
        assert_eq!(figures.statuses, BTreeMap::from([(200, 1), (503, 40)]));
    }

    #[test]
    fn redirects_and_refusals_of_the_client_are_unusual_unless_recorded() {
        for (status, expected, unusual) in [
            (200, None, 0),
            (302, None, 1),
            (302, Some(200), 1),
            (302, Some(302), 0),
            (404, None, 1),
            (499, None, 1),
            (429, None, 0),
            (500, None, 0),
        ] {
            let mut figures = Figures::new();
            figures.observe(Ok(reply(status)), expected);
            assert_eq!(figures.unusual, unusual, "{status} {expected:?}");
        }
    }
}
