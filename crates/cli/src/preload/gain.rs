//! Rounds of measurements → the gain with its interval. Pure.

use serde::Serialize;

/// Quantiles of Student's distribution for an interval of 95 %, by degrees of freedom from 1.
const STUDENT: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
/// The same for more degrees of freedom than the table has.
const STUDENT_MANY: f64 = 2.09;

/// One out of this number of rounds is cut at each end.
const CUT: usize = 5;

/// CPU time per request of one round, µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) before_us: f64,
    pub(super) after_us: f64,
}

/// Gain in CPU time per request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Gain {
    /// Mean CPU time per request without the preload file, µs.
    pub(super) before_us: f64,
    /// The same with the preload file, µs.
    pub(super) after_us: f64,
    /// Mean gain in percent of the time before.
    pub(super) percent: f64,
    /// Half of the 95 % interval of the gain, in percent.
    pub(super) interval: f64,
}

impl Gain {
    /// Returns `None` with fewer than two usable rounds.
    pub(super) fn of(rounds: &[Round]) -> Option<Gain> {
        let usable = |r: &&Round| r.before_us.is_normal() && r.after_us.is_finite();
        let rounds: Vec<&Round> = rounds.iter().filter(usable).collect();
        if rounds.len() < 2 {
            return None;
        }
        #[allow(clippy::cast_precision_loss)] // A few rounds.
        let n = rounds.len() as f64;
        let mean = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(|r| of(r)).sum::<f64>() / n;
        let gains = rounds.iter().map(|r| (1.0 - r.after_us / r.before_us) * 100.0).collect();
        let (percent, interval) = trimmed(gains);
        Some(Gain {
            before_us: mean(&|r| r.before_us),
            after_us: mean(&|r| r.after_us),
            percent,
            interval,
        })
    }

    /// Whether the gain is larger than its uncertainty.
    pub(super) fn is_clear(&self) -> bool {
        self.percent - self.interval > 0.0
    }

    /// Returns a line for people.
    pub(super) fn text(&self) -> String {
        let Gain { before_us, after_us, percent, interval } = self;
        let figures = format!(
            "{percent:.1} % ± {interval:.1} ({before_us:.0} µs → {after_us:.0} µs of CPU per \
             request)"
        );
        if self.is_clear() {
            format!("gain {figures}")
        } else {
            format!("no clear gain: {figures}")
        }
    }
}

/// Returns the mean without the highest and lowest fifth, and half of its 95 % interval: a round
/// that another process has disturbed does not count. The variance is that of the values with the
/// cut ones moved to the edges (Yuen).
fn trimmed(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / CUT;
    let (low, high) = (values[cut], values[values.len() - 1 - cut]);
    let kept = &values[cut..values.len() - cut];
    #[allow(clippy::cast_precision_loss)] // A few rounds.
    let (n, n_kept) = (values.len() as f64, kept.len() as f64);
    let mean = kept.iter().sum::<f64>() / n_kept;
    let moved: Vec<f64> = values.iter().map(|value| value.clamp(low, high)).collect();
    let middle = moved.iter().sum::<f64>() / n;
    let variance = moved.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (n - 1.0);
    let error = variance.sqrt() * n.sqrt() / n_kept;
    let student = STUDENT.get(kept.len() - 2).copied().unwrap_or(STUDENT_MANY);
    (mean, student * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(of: &[(f64, f64)]) -> Vec<Round> {
        of.iter()
            .map(|(before_us, after_us)| Round { before_us: *before_us, after_us: *after_us })
            .collect()
    }

    #[test]
    fn gain_has_interval_of_its_rounds() {
        let gain = Gain::of(&rounds(&[(1000.0, 900.0), (1000.0, 880.0), (1000.0, 920.0)]));
        let gain = gain.expect("three rounds");
        assert!((gain.percent - 10.0).abs() < 1e-9);
        // Standard deviation 2, over the root of 3, times 4.30.
        assert!((gain.interval - 4.965).abs() < 0.01, "{gain:?}");
        assert!(gain.is_clear());
        assert_eq!(gain.text(), "gain 10.0 % ± 5.0 (1000 µs → 900 µs of CPU per request)");
    }

    #[test]
    fn disturbed_round_does_not_count() {
        let mut all = vec![(1000.0, 900.0); 9];
        all.push((1000.0, 5000.0));
        let gain = Gain::of(&rounds(&all)).expect("ten rounds");
        assert!((gain.percent - 10.0).abs() < 1e-9 && gain.interval < 1e-9, "{gain:?}");
    }

    #[test]
    fn gain_within_its_interval_is_none() {
        let gain = Gain::of(&rounds(&[(1000.0, 900.0), (1000.0, 1060.0)])).expect("two rounds");
        assert!(!gain.is_clear());
        assert!(gain.text().starts_with("no clear gain: 2.0 % ±"), "{}", gain.text());
        let worse = Gain::of(&rounds(&[(10.0, 11.0), (10.0, 11.0)])).expect("two rounds");
        assert!(!worse.is_clear());
    }

    #[test]
    fn unusable_rounds_are_ignored() {
        assert_eq!(Gain::of(&[]), None);
        assert_eq!(Gain::of(&rounds(&[(0.0, 1.0), (1.0, 1.0), (f64::NAN, 1.0)])), None);
    }
}
