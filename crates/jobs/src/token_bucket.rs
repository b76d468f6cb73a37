//! Limits the rate at which the jobs of a queue start. Pure: the caller passes the time.

use crate::job::Rate;

/// Time in milliseconds whose jobs may start at once, and which a batch waits for at most.
const BURST_MS: u64 = 1_000;

/// A token bucket. A job takes a token when it starts; the tokens of a period come evenly.
///
/// Tokens are counted in parts: a job takes `period_ms` of them, and each millisecond adds `count`.
/// So there is no rounding.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    /// Maximum number of jobs that start at once.
    burst: u64,
    parts: u64,
    filled_ms: u64,
}

impl TokenBucket {
    /// Creates a full bucket, for batches of this size.
    pub(crate) fn new(rate: Rate, batch: usize, now_ms: u64) -> TokenBucket {
        let rate = Rate { count: rate.count.max(1), period_ms: rate.period_ms.max(1) };
        let in_burst = rate.count.saturating_mul(BURST_MS) / rate.period_ms;
        let burst = in_burst.min(batch as u64).max(1);
        TokenBucket { rate, burst, parts: burst.saturating_mul(rate.period_ms), filled_ms: now_ms }
    }

    /// Returns how many of `wanted` jobs can start now, or `Err` with the time in Unix milliseconds
    /// at which more can. Waits for all of them, so that batches are large, but not for longer than
    /// `BURST_MS`.
    pub(crate) fn grant(&mut self, wanted: usize, now_ms: u64) -> Result<usize, u64> {
        self.fill(now_ms);
        let needed = self.burst.min(wanted as u64).max(1).saturating_mul(self.rate.period_ms);
        if self.parts < needed {
            let missing = needed - self.parts;
            return Err(now_ms.saturating_add(missing.div_ceil(self.rate.count)));
        }
        Ok(usize::try_from(self.parts / self.rate.period_ms).unwrap_or(usize::MAX).min(wanted))
    }

    /// Takes the tokens of the jobs that start.
    pub(crate) fn take(&mut self, jobs: usize) {
        let parts = (jobs as u64).saturating_mul(self.rate.period_ms);
        self.parts = self.parts.saturating_sub(parts);
    }

    fn fill(&mut self, now_ms: u64) {
        // A clock that was set back adds nothing.
        let elapsed_ms = now_ms.saturating_sub(self.filled_ms);
        self.filled_ms = now_ms;
        let full = self.burst.saturating_mul(self.rate.period_ms);
        let more = elapsed_ms.saturating_mul(self.rate.count);
        self.parts = self.parts.saturating_add(more).min(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(count: u64, period_ms: u64, batch: usize) -> TokenBucket {
        TokenBucket::new(Rate { count, period_ms }, batch, 0)
    }

    #[test]
    fn single_jobs_start_evenly() {
        let mut bucket = bucket(10, 60_000, 1);
        assert_eq!(bucket.grant(1, 0), Ok(1));
        bucket.take(1);
        assert_eq!(bucket.grant(1, 1), Err(6_000));
        assert_eq!(bucket.grant(1, 6_000), Ok(1));
        bucket.take(1);
        assert_eq!(bucket.grant(1, 600_000), Ok(1), "a pause does not save tokens");
        bucket.take(1);
        assert_eq!(bucket.grant(1, 600_000), Err(606_000));
    }

    #[test]
    fn batch_waits_until_it_is_full() {
        let mut fast = bucket(1_000, 1_000, 100);
        assert_eq!(fast.grant(100, 0), Ok(100));
        fast.take(100);
        assert_eq!(fast.grant(100, 1), Err(100));
        assert_eq!(fast.grant(3, 3), Ok(3));
        let mut slow = bucket(3, 1_000, 100);
        assert_eq!(slow.grant(100, 0), Ok(3), "a batch does not wait longer than a second");
    }

    #[test]
    fn clock_that_was_set_back_adds_nothing() {
        let mut bucket = bucket(1, 1_000, 1);
        assert_eq!(bucket.grant(1, 5_000), Ok(1));
        bucket.take(1);
        assert_eq!(bucket.grant(1, 0), Err(1_000));
        assert_eq!(bucket.grant(1, 999), Err(1_000));
        assert_eq!(bucket.grant(1, 1_000), Ok(1));
    }

    proptest! {
        /// Between any two points of time, at most the jobs of that time and of one burst start.
        #[test]
        fn rate_is_kept(
            count in 1_u64..500,
            period_ms in prop_oneof![Just(1_000_u64), Just(60_000), Just(3_600_000)],
            batch in 1_usize..300,
            steps in prop::collection::vec((0_u64..5_000, 1_usize..300), 1..60),
        ) {
            let mut bucket = bucket(count, period_ms, batch);
            let (mut now_ms, mut started) = (0, Vec::new());
            for (step_ms, wanted) in steps {
                now_ms += step_ms;
                if let Ok(granted) = bucket.grant(wanted.min(batch), now_ms) {
                    prop_assert!(granted >= 1);
                    bucket.take(granted);
                    started.push((now_ms, granted as u64));
                }
            }
            for from in 0..started.len() {
                let mut sum = 0;
                for (at_ms, jobs) in &started[from..] {
                    sum += jobs;
                    let allowed = (at_ms - started[from].0) * count / period_ms + bucket.burst;
                    prop_assert!(sum <= allowed, "{sum} jobs, {allowed} allowed");
                }
            }
        }
    }
}
