//! submit: a bounded map of servers or addresses that were used recently. Entries that are not used
//! any more are removed.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which an entry is reported after its last use.
const REMEMBERED_FOR: Duration = Duration::from_hours(1);

/// State of a server or address that is kept in the map.
pub(super) trait Asked {
    /// Time of its last use; `None` if it was not used yet.
    fn asked(&self) -> Option<Instant>;

    /// Whether there is a connection to it, or a request that waits for one.
    fn is_in_use(&self) -> bool;

    /// Whether it is included in reported figures.
    fn is_told_of(&self, now: Instant) -> bool {
        self.is_in_use() || self.asked().is_none_or(|at| now.duration_since(at) < REMEMBERED_FOR)
    }
}

/// A map of at most `max` entries, plus those that are referenced elsewhere.
#[derive(Debug)]
pub(super) struct Remembered<K, V> {
    by_key: Mutex<HashMap<K, Arc<V>>>,
    max: usize,
}

impl<K: Clone + Eq + Hash, V: Asked + Default> Remembered<K, V> {
    pub(super) fn new(max: usize) -> Remembered<K, V> {
        Remembered { by_key: Mutex::default(), max }
    }

    /// Returns the entry for `key`; creates it if necessary.
    pub(super) fn of(&self, key: &K, now: Instant) -> Arc<V> {
        let mut all = self.lock();
        let is_held = |one: &Arc<V>| Arc::strong_count(one) > 1;
        let was_asked = |one: &Arc<V>| one.asked().is_some() && one.is_told_of(now);
        all.retain(|known, one| known == key || is_held(one) || was_asked(one));
        if all.len() >= self.max && !all.contains_key(key) {
            let let_go = all.iter().filter(|(_, one)| !is_held(one));
            let oldest = let_go.min_by_key(|(_, one)| one.asked());
            let oldest = oldest.map(|(known, _)| known.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        Arc::clone(all.entry(key.clone()).or_default())
    }

    /// Returns the entry for `key`, if there is one.
    pub(super) fn known(&self, key: &K) -> Option<Arc<V>> {
        self.lock().get(key).cloned()
    }

    /// Returns the entries to report, in any order.
    pub(super) fn told_of(&self, now: Instant) -> Vec<(K, Arc<V>)> {
        let all = self.lock();
        let told = all.iter().filter(|(_, one)| one.is_told_of(now));
        told.map(|(key, one)| (key.clone(), Arc::clone(one))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<V>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct One {
        asked: Mutex<Option<Instant>>,
        is_in_use: Mutex<bool>,
    }

    impl Asked for One {
        fn asked(&self) -> Option<Instant> {
            *self.asked.lock().expect("nobody panics")
        }

        fn is_in_use(&self) -> bool {
            *self.is_in_use.lock().expect("nobody panics")
        }
    }

    /// Uses all of them, one after another.
    fn ask(all: &Remembered<u32, One>, keys: impl Iterator<Item = u32>, now: Instant) {
        for key in keys {
            let at = now + Duration::from_millis(key.into());
            *all.of(&key, at).asked.lock().expect("nobody panics") = Some(at);
        }
    }

    fn told(all: &Remembered<u32, One>, now: Instant) -> Vec<u32> {
        let mut told: Vec<_> = all.told_of(now).into_iter().map(|(key, _)| key).collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn full_map_evicts_least_recently_used_entry() {
        let (all, now) = (Remembered::new(4), Instant::now());
        ask(&all, 0..5, now);
        assert_eq!(told(&all, now), [1, 2, 3, 4]);
        // Referenced entries are not removed, even if there are more than `max`.
        let held: Vec<_> = (10..20).map(|key| all.of(&key, now)).collect();
        assert_eq!(told(&all, now), (10..20).collect::<Vec<_>>());
        drop(held);
        drop(all.of(&7, now));
        assert_eq!(told(&all, now), [7], "the others are unused");
    }

    #[test]
    fn unused_entry_is_removed_and_used_one_stays() {
        let (all, now) = (Remembered::new(4), Instant::now());
        ask(&all, 1..2, now);
        drop(all.of(&2, now));
        drop(all.of(&3, now));
        assert_eq!(told(&all, now), [1, 3]);
    }

    /// Even if no other entry was used since, and an idle thread still holds a reference.
    #[test]
    fn entry_without_recent_use_is_not_reported() {
        let (all, now) = (Remembered::new(4), Instant::now());
        ask(&all, 0..2, now);
        let (held, later) = (all.of(&1, now), now + REMEMBERED_FOR);
        assert_eq!(told(&all, later), [1], "a millisecond younger");
        assert_eq!(told(&all, later + Duration::from_secs(1)), Vec::<u32>::new());
        *held.is_in_use.lock().expect("nobody panics") = true;
        assert_eq!(told(&all, later + Duration::from_secs(1)), [1], "it is at it still");
    }
}
