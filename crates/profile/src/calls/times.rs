//! Distribution of durations: eight steps per doubling, so a percentile is exact within five per
//! cent.

// The casts are of times and their means.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const STEPS: f64 = 8.0;

/// Counts by step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times(BTreeMap<u16, u64>);

impl Times {
    /// Adds one duration in ns.
    pub fn add(&mut self, ns: u64) {
        let step = ((ns.max(1) as f64).log2() * STEPS).round() as u16;
        *self.0.entry(step).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: &Times) {
        for (step, count) in &other.0 {
            let sum = self.0.entry(*step).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// Returns this percentile in ns.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let all: u64 = self.0.values().sum();
        let rank = (all as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (step, count) in &self.0 {
            seen += count;
            if seen >= rank {
                return (f64::from(*step) / STEPS).exp2().round() as u64;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_within_five_per_cent() {
        let mut times = Times::default();
        assert_eq!(times.percentile(50.0), 0);
        (1..=1_000).for_each(|n| times.add(n * 1_000));
        for (percent, expected) in [(50.0, 500_000.0), (95.0, 950_000.0), (99.0, 990_000.0)] {
            let found = times.percentile(percent) as f64;
            assert!((found / expected - 1.0).abs() < 0.05, "{percent}: {found}");
        }
        times.add(u64::MAX);
        times.add(0);
        assert!(times.percentile(100.0) > 1 << 62);
    }
}
