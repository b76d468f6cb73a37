//! Changes of a route's figures between two periods, with the interval of each change.

use samovar_insight::Histogram;
use samovar_insight::store::RouteSum;

/// Minimum number of requests on both sides; with fewer, a change may be chance.
const REQUESTS_MIN: u64 = 20;

/// Number of standard errors on each side of a value within which the true one is with a
/// probability of 95 %.
const ERRORS_OF_95: f64 = 1.96;
/// Minimum relative change that is significant in practice.
const CHANGE_MIN: f64 = 0.1;

/// Changes of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) p95: Option<RelativeChange>,
    pub(crate) cpu: Option<RelativeChange>,
    pub(crate) errors: Option<ShareChange>,
}

/// Relative change of a figure, and the interval in which the true change probably is: 0.5 is an
/// increase by half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RelativeChange {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Returns the error of a sum or difference of two independent values. Not `f64::hypot`: see
/// clippy.toml.
fn combined(one: f64, other: f64) -> f64 {
    (one.powi(2) + other.powi(2)).sqrt()
}

impl RelativeChange {
    /// Returns whether the change is too large to be chance.
    pub(crate) fn is_significant(self) -> bool {
        self.value.abs() >= CHANGE_MIN && (self.low > 0.0 || self.high < 0.0)
    }

    /// Change of the mean. Its standard error is that of a quotient of two means.
    fn of_mean(now: &Histogram, then: &Histogram) -> Option<RelativeChange> {
        let (now, then) = (mean_and_error(now), mean_and_error(then));
        let ratio = (then.0 > 0.0).then(|| now.0 / then.0)?;
        let relative = |(mean, error): (f64, f64)| if mean > 0.0 { error / mean } else { 0.0 };
        let error = ratio * ERRORS_OF_95 * combined(relative(now), relative(then));
        Some(RelativeChange {
            value: ratio - 1.0,
            low: ratio - error - 1.0,
            high: ratio + error - 1.0,
        })
    }

    /// Change of the 95th percentile. The bounds are those of the percentile's rank on each side.
    fn of_p95(now: &Histogram, then: &Histogram) -> Option<RelativeChange> {
        const Q: f64 = 0.95;
        let at = |times: &Histogram, errors: f64| {
            let rank_error = (Q * (1.0 - Q) / times.count().max(1) as f64).sqrt();
            times.quantile_ns((Q + errors * rank_error).clamp(0.0, 1.0)) as f64
        };
        // Both bounds are exceeded at once only with the square of one bound's probability.
        let errors = ERRORS_OF_95 / std::f64::consts::SQRT_2;
        let change = |now: f64, then: f64| (then > 0.0).then(|| now / then - 1.0);
        Some(RelativeChange {
            value: change(at(now, 0.0), at(then, 0.0))?,
            low: change(at(now, -errors), at(then, errors))?,
            high: change(at(now, errors), at(then, -errors))?,
        })
    }
}

/// Returns the mean of the times, and its standard error.
fn mean_and_error(times: &Histogram) -> (f64, f64) {
    let n = times.count().max(1) as f64;
    let mean = times.sum_ns() as f64 / n;
    let squares = times.filled().into_iter().map(|(ns, of)| of as f64 * (ns as f64 - mean).powi(2));
    (mean, (squares.sum::<f64>() / n / n).sqrt())
}

impl Change {
    /// Compares two periods; there is no change if one of them has too few requests.
    pub(crate) fn of(now: &RouteSum, then: &RouteSum) -> Change {
        if now.requests.min(then.requests) < REQUESTS_MIN {
            return Change::default();
        }
        Change {
            p95: RelativeChange::of_p95(&now.wall, &then.wall),
            cpu: RelativeChange::of_mean(&now.cpu, &then.cpu),
            errors: Some(ShareChange::of((now.errors, now.requests), (then.errors, then.requests))),
        }
    }
}

/// Change of a share in points of 0 to 1, and the interval in which the true change probably is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShareChange {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl ShareChange {
    /// The interval combines the score intervals of both shares (Newcombe 1998, method 10). It is
    /// valid for shares near 0, which error shares are.
    pub(crate) fn of(now: (u64, u64), then: (u64, u64)) -> ShareChange {
        let (now, then) = (score(now), score(then));
        let value = now.0 - then.0;
        ShareChange {
            value,
            low: value - combined(now.0 - now.1, then.2 - then.0),
            high: value + combined(now.2 - now.0, then.0 - then.1),
        }
    }

    /// Returns whether the change is too large to be chance.
    pub(crate) fn is_significant(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Returns a share, and the bounds of its score interval (Wilson 1927).
fn score((part, of): (u64, u64)) -> (f64, f64, f64) {
    const Z: f64 = ERRORS_OF_95;
    let n = of.max(1) as f64;
    let share = part as f64 / n;
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    (share, (middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
}

#[cfg(test)]
mod tests {
    use super::{Change, RelativeChange, ShareChange};
    use samovar_insight::Histogram;
    use samovar_insight::store::RouteSum;

    #[test]
    fn change_of_few_requests_is_none() {
        let sum = |requests, ns| {
            let mut wall = Histogram::default();
            (0..requests).for_each(|_| wall.add(ns));
            RouteSum { requests, cpu: wall.clone(), wall, ..RouteSum::default() }
        };
        let change = |n, m| Change::of(&sum(n, 3_000_000), &sum(m, 2_000_000));
        let of_enough = change(20, 20);
        assert!((of_enough.p95.unwrap().value - 0.5).abs() < 0.02, "{of_enough:?}");
        assert!((of_enough.cpu.unwrap().value - 0.5).abs() < 1e-9, "{of_enough:?}");
        assert_eq!(change(20, 19), Change::default());
    }

    /// Figures of Newcombe's table II, and error shares as they occur.
    #[test]
    fn change_of_a_share_has_its_interval() {
        for (now, then, (low, high)) in [
            ((56, 70), (48, 80), (0.0524, 0.3339)),
            ((9, 10), (3, 10), (0.1705, 0.8090)),
            ((5, 56), (0, 29), (-0.0381, 0.1926)),
        ] {
            let found = ShareChange::of(now, then);
            let is_near = |a: f64, b: f64| (a - b).abs() < 1e-4;
            assert!(is_near(found.low, low) && is_near(found.high, high), "{found:?}");
        }
        for (now, then, is_significant) in [
            ((0, 1_000), (0, 1_000), false),
            ((1, 1_000), (0, 1_000), false),
            ((20, 1_000), (0, 1_000), true),
            ((0, 1_000), (20, 1_000), true),
            ((30, 1_000), (25, 1_000), false),
        ] {
            let found = ShareChange::of(now, then);
            assert_eq!(found.is_significant(), is_significant, "{now:?} {then:?} {found:?}");
        }
    }

    /// Two samples of the same distribution differ; a real change of the same size is found with
    /// more requests.
    #[test]
    fn change_within_noise_is_not_significant() {
        let times = |requests: u64, factor: f64, phase: u64| {
            let mut times = Histogram::default();
            // Between 1 ms and 10 ms, unevenly.
            let at = |n: u64| 1.0 + 9.0 * (((n * 7919 + phase) % 1009) as f64 / 1009.0).powi(4);
            (0..requests).for_each(|n| times.add((at(n) * factor * 1e6) as u64));
            times
        };
        let changes = |requests, factor| {
            let (now, then) = (times(requests, factor, 500), times(requests, 1.0, 0));
            [RelativeChange::of_p95(&now, &then), RelativeChange::of_mean(&now, &then)]
        };
        for change in changes(30, 1.0).into_iter().chain(changes(1000, 1.0)).flatten() {
            assert!(!change.is_significant(), "{change:?}");
            assert!(change.low <= change.value && change.value <= change.high, "{change:?}");
        }
        for change in changes(1000, 1.4).into_iter().flatten() {
            assert!(change.is_significant(), "{change:?}");
            assert!(change.low <= 0.4 && 0.4 <= change.high + 0.02, "{change:?}");
        }
    }
}
