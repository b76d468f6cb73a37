//! Bounds of the classic histograms that are exported to Prometheus and to a collector.

use std::sync::Arc;
use std::time::Duration;

/// Usual bounds, in ms/20: half a millisecond to ten seconds, at most 1.5 times apart. A quantile
/// that Prometheus interpolates is off by the distance of two bounds at most.
const USUAL_20TH_MS: [u64; 31] = {
    /// Bounds of ten times, from which the others follow.
    const DECADE: [u64; 7] = [20, 30, 40, 50, 70, 100, 150];
    let mut bounds = [0; 31];
    (bounds[0], bounds[1], bounds[30]) = (10, 15, 200_000);
    let (mut at, mut scale) = (2, 1);
    while at < 30 {
        bounds[at] = DECADE[(at - 2) % 7] * scale;
        at += 1;
        if (at - 2) % 7 == 0 {
            scale *= 10;
        }
    }
    bounds
};
const NS_PER_20TH_MS: u64 = 1_000_000 / 20;

/// Upper bounds of buckets in ns, ascending. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds(Arc<[u64]>);

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds(USUAL_20TH_MS.map(|bound| bound * NS_PER_20TH_MS).into())
    }
}

impl Bounds {
    /// Returns these bounds, which must be ascending; the usual ones if there are none.
    #[must_use]
    pub fn of(times: &[Duration]) -> Bounds {
        if times.is_empty() {
            return Bounds::default();
        }
        let ns = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Bounds(times.iter().map(ns).collect())
    }

    /// Returns the bounds in ns.
    #[must_use]
    pub fn ns(&self) -> &[u64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Bounds;
    use std::time::Duration;

    #[test]
    fn usual_bounds_are_at_most_one_and_a_half_apart() {
        let usual = Bounds::of(&[]);
        let is_near = |pair: &[u64]| pair[0] < pair[1] && pair[1] * 2 <= pair[0] * 3;
        assert!(usual.ns().windows(2).all(is_near), "{usual:?}");
        // Rules of users compare with these bounds.
        for tenths in [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000] {
            assert!(usual.ns().contains(&(tenths * 100_000)), "{tenths}");
        }
        assert_eq!(Bounds::of(&[Duration::from_millis(3)]).ns(), [3_000_000]);
    }
}
