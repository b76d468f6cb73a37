//! Map with a limited number of names. Names come from outside, so inventing names must not
//! increase memory.

use std::collections::HashMap;

/// Name for all names beyond the limit.
pub const OTHER: &str = "(other)";

/// Values by name, in the order of arrival; the first one is [`OTHER`].
#[derive(Clone, Debug)]
pub(crate) struct Capped<T> {
    places: HashMap<Box<str>, usize>,
    entries: Vec<(Box<str>, T)>,
    names_max: usize,
    beyond: u64,
    /// Number of names that are used instead of others beyond the limit.
    instead: usize,
    /// Index of the last entry. Most names repeat, and a comparison is cheaper than a lookup.
    last: usize,
}

impl<T: Default> Capped<T> {
    /// Creates a map with at most `names_max` names.
    pub(crate) fn new(names_max: usize) -> Capped<T> {
        let other = (Box::from(OTHER), T::default());
        Capped {
            places: HashMap::new(),
            entries: vec![other],
            names_max,
            beyond: 0,
            instead: 0,
            last: 0,
        }
    }

    /// Returns the value of the name, or of [`OTHER`] beyond the limit.
    pub(crate) fn entry(&mut self, name: &str) -> &mut T {
        self.entry_for(name, 1)
    }

    /// Like [`Capped::entry`], and counts this number of uses.
    pub(crate) fn entry_for(&mut self, name: &str, many: u64) -> &mut T {
        if self.last > 0 && *self.entries[self.last].0 == *name {
            return &mut self.entries[self.last].1;
        }
        let place = match self.places.get(name) {
            Some(place) => *place,
            None if name == OTHER => 0,
            None if self.names() >= self.names_max => {
                self.beyond += many;
                0
            }
            None => self.insert(name),
        };
        self.last = place;
        &mut self.entries[place].1
    }

    /// Returns the index of the name, or beyond the limit that of `instead()`. There must be a
    /// limited number of different `instead()`: they do not count as names.
    pub(crate) fn place_or(&mut self, name: &str, instead: impl FnOnce() -> String) -> usize {
        match self.places.get(name) {
            Some(place) => return *place,
            None if name == OTHER => return 0,
            None if self.names() < self.names_max => return self.insert(name),
            None => {}
        }
        let instead = instead();
        match self.places.get(&*instead) {
            Some(place) => *place,
            None if instead == OTHER => {
                self.beyond += 1;
                0
            }
            None => {
                self.instead += 1;
                self.insert(&instead)
            }
        }
    }

    /// Returns the value at an index, which must be one of this map.
    pub(crate) fn at(&mut self, place: usize) -> &mut T {
        &mut self.entries[place].1
    }

    /// Removes up to `many` names, those with the lowest rank first, and of these the oldest. A
    /// name with the rank `None` stays. Returns their values; `uses` of them now belong to
    /// [`OTHER`]. Changes the indices.
    pub(crate) fn evict(
        &mut self,
        many: usize,
        rank: impl Fn(&T) -> Option<u64>,
        uses: impl Fn(&T) -> u64,
    ) -> Vec<(Box<str>, T)> {
        let ranked = self.entries.iter().enumerate().skip(1);
        let ranked = ranked.filter_map(|(place, (_, value))| Some((rank(value)?, place)));
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_unstable();
        ranked.truncate(many);
        let mut places: Vec<_> = ranked.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        let removed: Vec<_> =
            places.into_iter().rev().map(|place| self.entries.remove(place)).collect();
        self.beyond += removed.iter().map(|(_, value)| uses(value)).sum::<u64>();
        for (name, _) in &removed {
            self.places.remove(name);
        }
        for (place, (name, _)) in self.entries.iter().enumerate().skip(1) {
            if let Some(known) = self.places.get_mut(name) {
                *known = place;
            }
        }
        self.last = 0;
        removed
    }

    /// Returns whether a further name would be beyond the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.names() >= self.names_max
    }

    fn insert(&mut self, name: &str) -> usize {
        let place = self.entries.len();
        self.places.insert(Box::from(name), place);
        self.entries.push((Box::from(name), T::default()));
        place
    }

    fn names(&self) -> usize {
        self.places.len() - self.instead
    }

    /// Returns the value of [`OTHER`], for a name that must not get its own entry although there is
    /// room.
    pub(crate) fn other(&mut self, many: u64) -> &mut T {
        self.beyond += many;
        &mut self.entries[0].1
    }

    /// Returns the number of uses beyond the limit.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns all entries that were used, [`OTHER`] last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let other = self.entries.first().filter(|_| self.beyond > 0);
        self.entries.iter().skip(1).chain(other).map(|(name, one)| (&**name, one))
    }

    /// Returns all entries, [`OTHER`] first. Only [`Capped::evict`] changes the
    /// index of an entry.
    pub(crate) fn named_places(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, one)| (&**name, one))
    }

    /// Like [`Capped::named_places`], without the names.
    pub(crate) fn places(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, one)| one)
    }

    /// Like [`Capped::named_places`], mutable.
    pub(crate) fn named_places_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        self.entries.iter_mut().map(|(name, one)| (&**name, one))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        let place = if name == OTHER { Some(&0) } else { self.places.get(name) };
        place.map(|place| &self.entries[*place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Capped, OTHER};

    #[test]
    fn names_beyond_the_cap_share_one_entry() {
        let mut counts = Capped::<u32>::new(2);
        for name in ["a", "b", "a", "c", "d", "b", OTHER] {
            *counts.entry(name) += 1;
        }
        let all: Vec<_> = counts.iter().map(|(name, n)| (name.to_owned(), *n)).collect();
        assert_eq!(all, [("a".into(), 2), ("b".into(), 2), (OTHER.into(), 3)]);
        assert_eq!((counts.beyond(), counts.len()), (2, 2));
        assert_eq!(
            (counts.get("a"), counts.get("c"), counts.get(OTHER)),
            (Some(&2), None, Some(&3))
        );
    }

    #[test]
    fn names_with_lowest_rank_are_evicted() {
        let mut counts = Capped::<u64>::new(4);
        for name in ["a", "b", "b", "c", "d", "e"] {
            *counts.entry(name) += 1;
        }
        let rank = |n: &u64| (*n < 2).then_some(*n);
        let evicted = counts.evict(2, rank, |n| *n);
        let names: Vec<_> = evicted.iter().map(|(name, _)| &**name).collect();
        assert_eq!((names, counts.beyond()), (vec!["c", "a"], 3));
        *counts.entry("e") += 1;
        *counts.entry("d") += 1;
        let all: Vec<_> = counts.iter().map(|(name, n)| (name.to_owned(), *n)).collect();
        let expected = [("b", 2), ("d", 2), ("e", 1), (OTHER, 1)];
        assert_eq!(all, expected.map(|(name, n)| (name.to_owned(), n)));
        assert_eq!(counts.evict(9, |_| None, |n| *n), []);
    }

    #[test]
    fn unused_other_entry_is_not_listed() {
        let mut counts = Capped::<u32>::new(2);
        *counts.entry("a") += 1;
        assert_eq!(counts.iter().count(), 1);
    }
}
