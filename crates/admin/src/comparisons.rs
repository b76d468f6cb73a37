//! Two periods of each route side by side, and a cache of them. `compare.rs` reads them from the
//! history.

use samovar_insight::Histogram;
use samovar_insight::store::RouteSum;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Time in seconds for which a comparison is cached: reading the minutes of a thousand routes takes
/// a tenth of a second.
const GOOD_FOR_S: u64 = 30;
/// Minimum number of requests on both sides; with fewer, a change may be chance.
const REQUESTS_MIN: u64 = 20;

/// Period that the last minutes are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Hour,
    Day,
    Reload,
}

impl Base {
    pub(crate) const ALL: [Base; 3] = [Base::Hour, Base::Day, Base::Reload];

    /// Name in links.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Base::Hour => "hour",
            Base::Day => "day",
            Base::Reload => "reload",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Base::Hour => "an hour ago",
            Base::Day => "yesterday",
            Base::Reload => "before the last reload",
        }
    }

    pub(crate) fn of_key(key: &str) -> Base {
        Base::ALL.into_iter().find(|base| base.key() == key).unwrap_or(Base::Hour)
    }
}

/// Two periods with their figures by route.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) now: HashMap<String, RouteSum>,
    pub(crate) then: HashMap<String, RouteSum>,
    /// Reason why no comparison is possible; empty if it is.
    pub(crate) why_not: String,
}

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
}

/// Relative change of a figure, and the interval in which the true change probably is: 0.5 is an
/// increase by half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RelativeChange {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
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
        let error = ratio * ERRORS_OF_95 * relative(now).hypot(relative(then));
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

impl Comparison {
    pub(crate) fn of(&self, route: &str) -> Change {
        let (Some(now), Some(then)) = (self.now.get(route), self.then.get(route)) else {
            return Change::default();
        };
        if now.requests.min(then.requests) < REQUESTS_MIN {
            return Change::default();
        }
        Change {
            p95: RelativeChange::of_p95(&now.wall, &then.wall),
            cpu: RelativeChange::of_mean(&now.cpu, &then.cpu),
        }
    }

    pub(crate) fn impossible(why: &str) -> Comparison {
        Comparison { why_not: why.to_owned(), ..Comparison::default() }
    }
}

type Held = Option<(u64, Arc<Comparison>)>;

/// Cache of the last comparison with each base.
#[derive(Debug, Default)]
pub(crate) struct Comparisons(Mutex<[Held; Base::ALL.len()]>);

impl Comparisons {
    /// Returns the cached comparison, or else a new one of `compare`.
    pub(crate) fn get(
        &self,
        base: Base,
        now: u64,
        compare: impl FnOnce() -> Comparison,
    ) -> Arc<Comparison> {
        // A panic while reading leaves the previous comparisons, which are valid.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut held[base as usize];
        match place {
            Some((at, good)) if now.abs_diff(*at) < GOOD_FOR_S => Arc::clone(good),
            _ => {
                let made = Arc::new(compare());
                *place = Some((now, Arc::clone(&made)));
                made
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, RelativeChange};
    use samovar_insight::Histogram;
    use samovar_insight::store::RouteSum;

    #[test]
    fn change_of_few_requests_is_none() {
        let sum = |requests, ns| {
            let mut wall = Histogram::default();
            (0..requests).for_each(|_| wall.add(ns));
            RouteSum { requests, cpu: wall.clone(), wall, ..RouteSum::default() }
        };
        let sums = |requests, ns| [("r".to_owned(), sum(requests, ns))].into_iter().collect();
        let comparison = |n, m| Comparison {
            now: sums(n, 3_000_000),
            then: sums(m, 2_000_000),
            why_not: String::new(),
        };
        let change = comparison(20, 20).of("r");
        assert!((change.p95.unwrap().value - 0.5).abs() < 0.02, "{change:?}");
        assert!((change.cpu.unwrap().value - 0.5).abs() < 1e-9, "{change:?}");
        assert_eq!(comparison(20, 19).of("r").p95, None);
        assert_eq!(comparison(20, 20).of("other").p95, None);
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
