//! Change of each route: its last ten minutes compared with ten earlier minutes from the history.

use crate::Sources;
use samovar_insight::store::{EventKind, RouteSum};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Length of the compared periods in seconds.
const WINDOW_S: u64 = 600;
/// Time in seconds for which a comparison is cached: reading the minutes of a thousand routes takes
/// a tenth of a second.
const GOOD_FOR_S: u64 = 30;
/// Minimum number of requests on both sides; with fewer, a change may be chance.
const REQUESTS_MIN: u64 = 20;
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 86_400;

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

    fn impossible(why: &str) -> Comparison {
        Comparison { why_not: why.to_owned(), ..Comparison::default() }
    }
}

type Held = Option<(u64, Arc<Comparison>)>;

/// Cache of the last comparison with each base.
#[derive(Debug, Default)]
pub(crate) struct Comparisons(Mutex<[Held; Base::ALL.len()]>);

impl Comparisons {
    pub(crate) fn get(&self, base: Base, sources: &Sources, now: u64) -> Arc<Comparison> {
        // A panic while reading leaves the previous comparisons, which are valid.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut held[base as usize];
        match place {
            Some((at, good)) if now.abs_diff(*at) < GOOD_FOR_S => Arc::clone(good),
            _ => {
                let made = Arc::new(compare(base, sources, now));
                *place = Some((now, Arc::clone(&made)));
                made
            }
        }
    }
}

/// The two periods as (from, to): now and then.
type Spans = ((u64, u64), (u64, u64));

fn compare(base: Base, sources: &Sources, now: u64) -> Comparison {
    let Some(store) = sources.store() else {
        return Comparison::impossible("no history to compare with");
    };
    let reload = || {
        let events = sources.events(now.saturating_sub(30 * DAY_S), now + 1);
        events.iter().rev().find(|event| event.kind == EventKind::Reload).map(|event| event.at)
    };
    let Some((here, there)) = spans(base, now, reload) else {
        return Comparison::impossible("no reload in the history, or the last one is too recent");
    };
    let sums = |(from, to)| store.sums(from, to).map(HashMap::from_iter);
    match (sums(here), sums(there)) {
        (Ok(now), Ok(then)) => Comparison { now, then, why_not: String::new() },
        (Err(error), _) | (_, Err(error)) => Comparison::impossible(&error.to_string()),
    }
}

fn spans(base: Base, now: u64, reload: impl Fn() -> Option<u64>) -> Option<Spans> {
    let to = now - now % MINUTE_S;
    let from = to.saturating_sub(WINDOW_S);
    let shifted = |by: u64| Some(((from, to), (from.saturating_sub(by), to.saturating_sub(by))));
    match base {
        Base::Hour => shifted(HOUR_S),
        Base::Day => shifted(DAY_S),
        Base::Reload => {
            // The minute of the reload belongs to both generations, so it is left out.
            let at = reload()?;
            let (before, after) = (at - at % MINUTE_S, at.next_multiple_of(MINUTE_S));
            let here = (after.max(from), to);
            (here.0 < to).then_some((here, (before.saturating_sub(WINDOW_S), before)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Base, Comparison, spans};
    use samovar_insight::Histogram;
    use samovar_insight::store::RouteSum;

    #[test]
    fn spans_consist_of_whole_minutes() {
        let of = |base, reload| spans(base, 100_030, || reload);
        assert_eq!(of(Base::Hour, None), Some(((99_420, 100_020), (95_820, 96_420))));
        assert_eq!(of(Base::Day, None), Some(((99_420, 100_020), (13_020, 13_620))));
        assert_eq!(of(Base::Reload, None), None);
        assert_eq!(of(Base::Reload, Some(99_901)), Some(((99_960, 100_020), (99_300, 99_900))));
        assert_eq!(of(Base::Reload, Some(90_000)), Some(((99_420, 100_020), (89_400, 90_000))));
        assert_eq!(of(Base::Reload, Some(100_025)), None, "no minute is over since");
        for base in Base::ALL {
            assert_eq!(Base::of_key(base.key()), base);
        }
    }

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
