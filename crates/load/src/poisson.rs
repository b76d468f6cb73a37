//! Random arrivals: times at which requests of many independent visitors are due. Pure;
//! `open_loop` waits and sends.
//!
//! The gaps of a Poisson process are exponential. Evenly spaced requests would never meet, and a
//! server would carry more of them than of real visitors at the same p99.

use fastrand::Rng;
use std::time::Duration;

/// Requests that are due at random times, at a mean rate.
#[derive(Debug)]
pub(crate) struct Poisson {
    /// Mean gap, s.
    gap: f64,
    random: Rng,
    /// Time of the next request from the start, s.
    next: f64,
}

impl Poisson {
    /// Creates the arrivals of `rate` requests per second. The same seed gives the same times.
    pub(crate) fn new(rate: f64, seed: u64) -> Poisson {
        let mut arrivals = Poisson { gap: 1.0 / rate, random: Rng::with_seed(seed), next: 0.0 };
        arrivals.advance();
        arrivals
    }

    /// Time at which the next request is due, from the start.
    pub(crate) fn next(&self) -> Duration {
        Duration::from_secs_f64(self.next)
    }

    /// Moves on to the request after the next one.
    pub(crate) fn advance(&mut self) {
        // `f64()` is below 1, so the logarithm is finite.
        self.next -= self.gap * (1.0 - self.random.f64()).ln();
    }
}

#[cfg(test)]
mod tests {
    use super::Poisson;

    #[test]
    fn gaps_are_exponential_with_the_mean_of_the_rate() {
        let (rate, count) = (200.0, 100_000_u32);
        let mut arrivals = Poisson::new(rate, 1);
        let (mut last, mut gaps) = (0.0, Vec::new());
        for _ in 0..count {
            let next = arrivals.next().as_secs_f64();
            gaps.push(next - last);
            last = next;
            arrivals.advance();
        }
        let count = f64::from(count);
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        assert!((mean * rate - 1.0).abs() < 0.02, "{mean}");
        // The standard deviation of an exponential distribution is its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn same_seed_gives_same_times() {
        let times = |seed| {
            let mut arrivals = Poisson::new(10.0, seed);
            let each = |_| {
                arrivals.advance();
                arrivals.next()
            };
            (0..10).map(each).collect::<Vec<_>>()
        };
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
    }
}
