//! Constant rate: the times at which requests are due. Pure; `arrivals` waits and counts.

use std::time::Duration;

const NANOS_PER_SECOND: f64 = 1e9;

/// Requests 0, 1, 2 …, due evenly over a time.
#[derive(Debug)]
pub(crate) struct Schedule {
    spacing_ns: f64,
    total: u64,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Number of requests that have become due.
    pub(crate) due: u64,
    /// Time until the next one; `None` after the last.
    pub(crate) wait: Option<Duration>,
}

impl Schedule {
    /// Creates a schedule of `rate` requests per second: the first at once, the last before the
    /// window ends.
    #[expect(clippy::cast_sign_loss, reason = "rate and window are positive")]
    pub(crate) fn new(rate: f64, window: Duration) -> Schedule {
        let total = (rate * window.as_secs_f64()).ceil() as u64;
        Schedule { spacing_ns: NANOS_PER_SECOND / rate, total }
    }

    /// Total number of requests.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Time at which a request is due, from the start. Multiplied, not summed, so that errors do
    /// not accumulate.
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "below 2^53, positive")]
    pub(crate) fn due(&self, number: u64) -> Duration {
        Duration::from_nanos((number as f64 * self.spacing_ns) as u64)
    }

    /// Requests that are due after `elapsed`, if `released` were released before.
    pub(crate) fn step(&self, released: u64, elapsed: Duration) -> Step {
        let mut next = released;
        while next < self.total && self.due(next) <= elapsed {
            next += 1;
        }
        let wait = (next < self.total).then(|| self.due(next).saturating_sub(elapsed));
        Step { due: next - released, wait }
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, Step};
    use std::time::Duration;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn requests_are_evenly_spaced_without_drift() {
        let schedule = Schedule::new(3.0, Duration::from_secs(1_000_000));
        assert_eq!(schedule.total(), 3_000_000);
        assert_eq!(schedule.due(0), Duration::ZERO);
        assert_eq!(schedule.due(3), Duration::from_secs(1));
        assert_eq!(schedule.due(2_999_997), Duration::from_secs(999_999));
    }

    #[test]
    fn last_request_is_due_within_the_window() {
        for (rate, seconds, total) in [(100.0, 1, 100), (2.5, 1, 3), (0.1, 3, 1), (0.5, 3, 2)] {
            let window = Duration::from_secs(seconds);
            let schedule = Schedule::new(rate, window);
            assert_eq!(schedule.total(), total, "{rate}/s");
            assert!(schedule.due(total - 1) < window, "{rate}/s");
            assert!(schedule.due(total) >= window, "{rate}/s");
        }
    }

    #[test]
    fn step_releases_due_requests_and_waits_for_next() {
        let schedule = Schedule::new(100.0, ms(50));
        for (released, elapsed, due, wait) in [
            (0, ms(0), 1, Some(ms(10))),
            (1, ms(4), 0, Some(ms(6))),
            (1, ms(10), 1, Some(ms(10))),
            // The client was delayed: no request is skipped.
            (2, ms(35), 2, Some(ms(5))),
            (4, ms(1000), 1, None),
            (5, ms(2000), 0, None),
        ] {
            assert_eq!(schedule.step(released, elapsed), Step { due, wait }, "at {elapsed:?}");
        }
    }
}
