//! Two periods of each route side by side, and a cache of them. `compare.rs` reads them from the
//! history.

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

/// Relative change of a route: 0.5 is an increase by half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) p95: Option<f64>,
    pub(crate) cpu: Option<f64>,
}

impl Comparison {
    pub(crate) fn of(&self, route: &str) -> Change {
        let (Some(now), Some(then)) = (self.now.get(route), self.then.get(route)) else {
            return Change::default();
        };
        if now.requests.min(then.requests) < REQUESTS_MIN {
            return Change::default();
        }
        let change = |now: f64, then: f64| (then > 0.0).then(|| now / then - 1.0);
        let mean = |sum: &RouteSum| sum.cpu.sum_ns() as f64 / sum.requests as f64;
        let p95 = |sum: &RouteSum| sum.wall.quantile_ns(0.95) as f64;
        Change { p95: change(p95(now), p95(then)), cpu: change(mean(now), mean(then)) }
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
    use super::Comparison;
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
        assert!((change.p95.unwrap() - 0.5).abs() < 0.02, "{change:?}");
        assert!((change.cpu.unwrap() - 0.5).abs() < 1e-9, "{change:?}");
        assert_eq!(comparison(20, 19).of("r").p95, None);
        assert_eq!(comparison(20, 20).of("other").p95, None);
    }
}
