//! Cache of the figures of periods: a live page is rendered every two seconds, and reading a day of
//! a thousand routes takes longer.

use crate::range::Period;
use std::any::Any;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of cached results.
const ENTRIES_MAX: usize = 24;
/// A result is used for this many times the time that it took, so reading takes at most a part of
/// the thread's time.
const COST_FACTOR: u32 = 10;
/// Maximum time for which a result is used.
const GOOD_FOR_MAX: Duration = Duration::from_secs(30);

/// Subject of a cached result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// Sums of each route.
    Routes,
    /// Figures over time of one route, or of all.
    Timeline(Option<String>),
}

/// A period of which the end may be now: the end of an open one changes every second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key(Subject, u64, Option<u64>);

struct Entry {
    made: Instant,
    good_for: Duration,
    value: Arc<dyn Any + Send + Sync>,
}

/// Results by subject and period.
#[derive(Default)]
pub(crate) struct PeriodCache(Mutex<HashMap<Key, Entry>>);

impl PeriodCache {
    /// Returns the cached result, or else that of `make`.
    pub(crate) fn get<T: Send + Sync + 'static>(
        &self,
        subject: Subject,
        period: Period,
        now: u64,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let key = Key(subject, period.from, (period.to <= now).then_some(period.to));
        // A panic while reading leaves the previous results, which are valid.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| entry.made.elapsed() < entry.good_for);
        let hit = entries.get(&key).and_then(|entry| Arc::clone(&entry.value).downcast().ok());
        if let Some(hit) = hit {
            return hit;
        }
        let begin = Instant::now();
        let value = Arc::new(make());
        let good_for = (begin.elapsed() * COST_FACTOR).min(GOOD_FOR_MAX);
        if entries.len() < ENTRIES_MAX {
            let value: Arc<dyn Any + Send + Sync> = Arc::clone(&value) as _;
            entries.insert(key, Entry { made: Instant::now(), good_for, value });
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::{PeriodCache, Subject};
    use crate::range::Period;

    #[test]
    fn cache_separates_subjects_and_periods_and_is_bounded() {
        let cache = PeriodCache::default();
        let get = |subject: &Subject, from, to, value: u64| {
            *cache.get(subject.clone(), Period { from, to }, 1_000, || value)
        };
        let (all, one) = (Subject::Timeline(None), Subject::Timeline(Some("/a".into())));
        assert_eq!(get(&Subject::Routes, 1, 900, 1), 1);
        assert_eq!((get(&all, 1, 900, 2), get(&one, 1, 900, 3)), (2, 3));
        assert_eq!(get(&one, 1, 901, 4), 4, "another end");
        for from in 0..100 {
            get(&one, from, 800, from);
        }
        assert!(cache.0.lock().unwrap().len() <= super::ENTRIES_MAX);
    }
}
