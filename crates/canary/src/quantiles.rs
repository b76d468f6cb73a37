//! Thresholds: quantiles of the latest values of the serving generation.

/// Number of values kept.
const VALUES_MAX: usize = 256;
/// Minimum number of values for a threshold.
const VALUES_MIN: usize = 20;

/// The latest values, as a ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest {
    values: Vec<f64>,
    next: usize,
    is_changed: bool,
}

impl Latest {
    /// Adds a value.
    pub(crate) fn add(&mut self, value: f64) {
        if self.values.len() < VALUES_MAX {
            self.values.push(value);
        } else {
            self.values[self.next] = value;
            self.next = (self.next + 1) % VALUES_MAX;
        }
        self.is_changed = true;
    }

    /// Returns the quantiles at these levels; `None` if there are too few values, or none since the
    /// last call.
    pub(crate) fn take_quantiles<const N: usize>(&mut self, levels: [f64; N]) -> Option<[f64; N]> {
        if self.values.len() < VALUES_MIN || !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = (sorted.len() - 1) as f64;
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "0 to 255")]
        let at = |level: f64| sorted[(level * last).round() as usize];
        Some(levels.map(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_follow_the_latest_values() {
        let mut latest = Latest::default();
        for n in 0..VALUES_MIN - 1 {
            latest.add(n as f64);
        }
        assert_eq!(latest.take_quantiles([0.5]), None);
        for n in 0..10 * VALUES_MAX {
            latest.add(1_000.0 + (n % 101) as f64);
        }
        let [median, high] = latest.take_quantiles([0.5, 0.9]).expect("enough");
        assert!((1_040.0..1_060.0).contains(&median), "{median}");
        assert!((1_080.0..1_100.0).contains(&high), "{high}");
        assert_eq!(latest.take_quantiles([0.5]), None, "nothing has changed");
        assert_eq!(latest.values.len(), VALUES_MAX);
    }
}
