//! A sequential test of two distributions: are the canary's requests costlier?
//!
//! The costs of requests have heavy tails, so their means are of little use. The test compares the
//! shares of requests above a threshold: a quantile of the serving generation's latest values, and
//! in the canary that quantile plus the tolerated difference. If the canary's costs exceed those of
//! the serving generation by no more than the tolerance, its share is not higher. Then the test of
//! two rates applies (`evidence`), without an assumption about the distribution. The evidence of
//! several thresholds is averaged, which again gives an e-process.

use crate::evidence::{Evidence, log_mean};
use crate::metric::Arm;
use crate::quantiles::Latest;

/// Levels of the thresholds: the usual request, the slower ones, and the slowest.
const LEVELS: [f64; 3] = [0.5, 0.8, 0.95];

/// Evidence that the canary's values are higher than tolerated.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostTest {
    latest: Latest,
    thresholds: Option<[f64; LEVELS.len()]>,
    evidence: [Evidence; LEVELS.len()],
    /// Sums of the values and their numbers, by arm.
    sums: [(f64, f64); 2],
}

impl CostTest {
    /// Adds a request's value. `tolerance`: that of the metric.
    pub(crate) fn add(&mut self, tolerance: (f64, f64), arm: Arm, value: f64) {
        if let Some(thresholds) = self.thresholds {
            let (factor, extra) = match arm {
                Arm::Old => (1.0, 0.0),
                Arm::New => tolerance,
            };
            for (evidence, threshold) in self.evidence.iter_mut().zip(thresholds) {
                // A negative threshold, of memory that is freed, must not shrink.
                let tolerated = threshold + threshold.abs() * (factor - 1.0) + extra;
                evidence.add(arm, value > tolerated);
            }
        }
        if arm == Arm::Old {
            self.latest.add(value);
        }
    }

    /// Adds a value to the mean only.
    pub(crate) fn note(&mut self, arm: Arm, value: f64) {
        let (sum, of) = &mut self.sums[arm as usize];
        (*sum, *of) = (*sum + value, *of + 1.0);
    }

    /// Ends the block. New thresholds apply from the next block on: they must not depend on the
    /// block's own values.
    pub(crate) fn close_block(&mut self) {
        self.evidence.iter_mut().for_each(Evidence::close_block);
        let is_between_blocks = self.evidence[0].is_between_blocks();
        if is_between_blocks && let Some(found) = self.latest.take_quantiles(LEVELS) {
            self.thresholds = Some(found);
        }
    }

    /// Natural logarithm of the evidence.
    pub(crate) fn log_e(&self) -> f64 {
        log_mean(&self.evidence.map(|evidence| evidence.log_e()))
    }

    /// Mean values by arm; 0 without requests.
    pub(crate) fn means(&self) -> [f64; 2] {
        self.sums.map(|(sum, of)| if of > 0.0 { sum / of } else { 0.0 })
    }
}
