//! Constant rate: when each request is due. Pure; `arrivals` waits and counts.

use std::time::Duration;

const NANOS_PER_SECOND: f64 = 1e9;

/// Requests 0, 1, 2 … due evenly over a time.
#[derive(Debug)]
pub(crate) struct Schedule {
    spacing_ns: f64,
    total: u64,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// So many more requests are due.
    pub(crate) due: u64,
    /// How long until the next; None after the last.
    pub(crate) wait: Option<Duration>,
}

impl Schedule {
    /// As many requests per second, the first at once, the last before the window ends.
    #[expect(clippy::cast_sign_loss, reason = "rate and window are positive")]
    pub(crate) fn new(rate: f64, window: Duration) -> Schedule {
        let total = (rate * window.as_secs_f64()).ceil() as u64;
        Schedule { spacing_ns: NANOS_PER_SECOND / rate, total }
    }

    /// How many requests become due in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// When a request is due, counted from the start. Multiplied, not summed: errors do not add up.
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "below 2^53, positive")]
    pub(crate) fn due(&self, number: u64) -> Duration {
        Duration::from_nanos((number as f64 * self.spacing_ns) as u64)
    }

    /// What is due after that time, when so many were released before.
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
    fn evenly_spaced_without_drift() {
        let schedule = Schedule::new(3.0, Duration::from_secs(1_000_000));
        assert_eq!(schedule.total(), 3_000_000);
        assert_eq!(schedule.due(0), Duration::ZERO);
        assert_eq!(schedule.due(3), Duration::from_secs(1));
        assert_eq!(schedule.due(2_999_997), Duration::from_secs(999_999));
    }

    #[test]
    fn the_last_is_due_within_the_window() {
        for (rate, seconds, total) in [(100.0, 1, 100), (2.5, 1, 3), (0.1, 3, 1), (0.5, 3, 2)] {
            let window = Duration::from_secs(seconds);
            let schedule = Schedule::new(rate, window);
            assert_eq!(schedule.total(), total, "{rate}/s");
            assert!(schedule.due(total - 1) < window, "{rate}/s");
            assert!(schedule.due(total) >= window, "{rate}/s");
        }
    }

    #[test]
    fn releases_what_is_due_and_waits_for_the_next() {
        let schedule = Schedule::new(100.0, ms(50));
        for (released, elapsed, due, wait) in [
            (0, ms(0), 1, Some(ms(10))),
            (1, ms(4), 0, Some(ms(6))),
            (1, ms(10), 1, Some(ms(10))),
            // The client was held up: nothing is left out.
            (2, ms(35), 2, Some(ms(5))),
            (4, ms(1000), 1, None),
            (5, ms(2000), 0, None),
        ] {
            assert_eq!(schedule.step(released, elapsed), Step { due, wait }, "at {elapsed:?}");
        }
    }
}
