//! submit: those that were asked lately, by name or address. Bounded; what nobody has asked any more is forgotten.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long one is told of that nobody has asked any more.
const REMEMBERED_FOR: Duration = Duration::from_hours(1);

/// Who may be asked.
pub(super) trait Asked {
    /// When it was asked last; `None`: not yet.
    fn asked(&self) -> Option<Instant>;

    /// Somebody has a connection to it, or waits for one.
    fn is_in_use(&self) -> bool;

    /// Whether it is told of.
    fn is_told_of(&self, now: Instant) -> bool {
        self.is_in_use() || self.asked().is_none_or(|at| now.duration_since(at) < REMEMBERED_FOR)
    }
}

/// At most `max` of them, but for those that somebody holds.
#[derive(Debug)]
pub(super) struct Remembered<K, V> {
    by_key: Mutex<HashMap<K, Arc<V>>>,
    max: usize,
}

impl<K: Clone + Eq + Hash, V: Asked + Default> Remembered<K, V> {
    pub(super) fn new(max: usize) -> Remembered<K, V> {
        Remembered { by_key: Mutex::default(), max }
    }

    /// It may be new.
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

    /// If it is remembered.
    pub(super) fn known(&self, key: &K) -> Option<Arc<V>> {
        self.lock().get(key).cloned()
    }

    /// Those that there is something to tell of, in any order.
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

    /// Asks all of them, one after the other.
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
    fn of_too_many_the_one_is_forgotten_that_was_asked_longest_ago() {
        let (all, now) = (Remembered::new(4), Instant::now());
        ask(&all, 0..5, now);
        assert_eq!(told(&all, now), [1, 2, 3, 4]);
        // Who is held is not forgotten, however many there are.
        let held: Vec<_> = (10..20).map(|key| all.of(&key, now)).collect();
        assert_eq!(told(&all, now), (10..20).collect::<Vec<_>>());
        drop(held);
        drop(all.of(&7, now));
        assert_eq!(told(&all, now), [7], "nobody has asked the others");
    }

    #[test]
    fn who_was_asked_lately_is_remembered() {
        let (all, now) = (Remembered::new(4), Instant::now());
        ask(&all, 1..2, now);
        drop(all.of(&2, now));
        drop(all.of(&3, now));
        assert_eq!(told(&all, now), [1, 3]);
    }

    /// Also where nobody has asked any other one since, and a thread that has nothing to do holds it.
    #[test]
    fn who_was_asked_long_ago_is_not_told_of() {
        let (all, now) = (Remembered::new(4), Instant::now());
        ask(&all, 0..2, now);
        let (held, later) = (all.of(&1, now), now + REMEMBERED_FOR);
        assert_eq!(told(&all, later), [1], "a millisecond younger");
        assert_eq!(told(&all, later + Duration::from_secs(1)), Vec::<u32>::new());
        *held.is_in_use.lock().expect("nobody panics") = true;
        assert_eq!(told(&all, later + Duration::from_secs(1)), [1], "it is at it still");
    }
}
