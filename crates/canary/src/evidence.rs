//! A sequential test of two rates: does an event occur more often in the canary?
//!
//! The requests of both generations are compared in blocks of time. Each block multiplies the
//! evidence by an e-variable. Its expected value is at most 1 if the canary's rate is not higher,
//! for any values of both rates. So the evidence is an e-process. It ever exceeds `1 / α` with a
//! probability of at most α (Ville's inequality).
//!
//! The e-variable is that of Turner, Ly and Grünwald, "Generic E-variables for exact sequential
//! k-sample tests that allow for optional stopping" (2024), for two Bernoulli samples. A rate that
//! changes in both generations, as in the course of a day, is no evidence.

use crate::metric::Arm;

/// Requests with an event, and all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) hits: f64,
    pub(crate) of: f64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.hits += other.hits;
        self.of += other.of;
    }

    /// Estimated rate: the Krichevsky–Trofimov estimate, which is never 0 or 1.
    fn rate(self) -> f64 {
        (self.hits + 0.5) / (self.of + 1.0)
    }
}

/// Evidence that the canary's rate is higher.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// Counts of the closed blocks, by arm.
    past: [Tally; 2],
    /// Counts of the current block.
    block: [Tally; 2],
    /// Natural logarithm of the evidence.
    log_e: f64,
}

impl Evidence {
    /// Adds a request.
    pub(crate) fn add(&mut self, arm: Arm, is_hit: bool) {
        let tally = &mut self.block[arm as usize];
        tally.of += 1.0;
        tally.hits += f64::from(u8::from(is_hit));
    }

    /// Adds `requests` without the event.
    pub(crate) fn add_misses(&mut self, arm: Arm, requests: f64) {
        self.block[arm as usize].of += requests;
    }

    /// Ends the block, if it has requests of both arms. Otherwise the block continues.
    pub(crate) fn close_block(&mut self) {
        let [old, new] = self.block;
        if old.of == 0.0 || new.of == 0.0 {
            return;
        }
        // The alternative uses only earlier blocks.
        let [old_rate, new_rate] = [self.past[0].rate(), self.past[1].rate()];
        let is_started = self.past[0].of > 0.0;
        if is_started && new_rate > old_rate {
            let null = (old.of * old_rate + new.of * new_rate) / (old.of + new.of);
            let gain = |tally: Tally, rate: f64| {
                tally.hits * (rate / null).ln()
                    + (tally.of - tally.hits) * ((1.0 - rate) / (1.0 - null)).ln()
            };
            self.log_e += gain(old, old_rate) + gain(new, new_rate);
        }
        self.past[0].add(old);
        self.past[1].add(new);
        self.block = Default::default();
    }

    /// Whether the current block has no request.
    pub(crate) fn is_between_blocks(&self) -> bool {
        self.block == <[Tally; 2]>::default()
    }

    /// Natural logarithm of the evidence after the last closed block.
    pub(crate) fn log_e(&self) -> f64 {
        self.log_e
    }

    /// Counts so far, by arm.
    pub(crate) fn totals(&self) -> [Tally; 2] {
        let mut totals = self.past;
        for (total, block) in totals.iter_mut().zip(self.block) {
            total.add(block);
        }
        totals
    }
}

/// Natural logarithm of the mean of evidence values, given as logarithms.
pub(crate) fn log_mean(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return 0.0;
    }
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    most + (sum / logs.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_only_in_canary_become_evidence() {
        let mut evidence = Evidence::default();
        for n in 0..400 {
            for _ in 0..19 {
                evidence.add(Arm::Old, false);
            }
            evidence.add(Arm::New, n % 100 == 50);
            evidence.close_block();
        }
        assert!(evidence.log_e() > (1_000_f64).ln(), "{}", evidence.log_e());
        assert_eq!(evidence.totals()[1], Tally { hits: 4.0, of: 400.0 });
    }

    #[test]
    fn block_without_requests_of_one_arm_waits() {
        let mut evidence = Evidence::default();
        evidence.add(Arm::New, true);
        evidence.close_block();
        assert!(evidence.log_e().abs() < 1e-9);
        assert_eq!(evidence.block[1], Tally { hits: 1.0, of: 1.0 });
        evidence.add(Arm::Old, false);
        evidence.close_block();
        assert_eq!(evidence.block, <[Tally; 2]>::default());
    }

    #[test]
    fn fewer_events_in_canary_are_no_evidence() {
        let mut evidence = Evidence::default();
        for n in 0..2_000 {
            evidence.add(Arm::Old, n % 3 == 0);
            evidence.add(Arm::New, n % 10 == 0);
            evidence.close_block();
        }
        assert!(evidence.log_e() <= 0.0);
    }

    #[test]
    fn mean_of_logarithms_does_not_overflow() {
        assert!((log_mean(&[1_000.0, 0.0]) - (1_000.0 - 2_f64.ln())).abs() < 1e-9);
        assert!(log_mean(&[]).abs() < 1e-9);
    }
}
