//! Change of each route: its last ten minutes compared with ten earlier minutes from the history.

use crate::comparisons::{Base, Comparison};
use crate::sources::Sources;
use samovar_insight::store::EventKind;
use std::collections::HashMap;
use std::sync::Arc;

/// Length of the compared periods in seconds.
const WINDOW_S: u64 = 600;
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 86_400;

/// Returns the comparison with a base, from the cache if it is recent.
pub(crate) fn comparison(base: Base, sources: &Sources, now: u64) -> Arc<Comparison> {
    sources.comparisons.get(base, now, || compare(base, sources, now))
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
    use super::spans;
    use crate::comparisons::Base;

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
}
