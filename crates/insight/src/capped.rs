//! Names that come from outside, told apart up to a cap: nobody can make memory grow by inventing more.

use std::collections::HashMap;

/// The name of all that is beyond the cap.
pub const OTHER: &str = "(other)";

/// What is kept for each name, in the order they came; the first is [`OTHER`]'s.
#[derive(Clone, Debug)]
pub(crate) struct Capped<T> {
    places: HashMap<Box<str>, usize>,
    entries: Vec<(Box<str>, T)>,
    names_max: usize,
    beyond: u64,
    /// Where the last one was found: most come several times in a row, and to compare is cheaper than to look up.
    last: usize,
}

impl<T: Default> Capped<T> {
    /// Tells `names_max` names apart.
    pub(crate) fn new(names_max: usize) -> Capped<T> {
        let other = (Box::from(OTHER), T::default());
        Capped { places: HashMap::new(), entries: vec![other], names_max, beyond: 0, last: 0 }
    }

    /// The name's own, or everybody else's.
    pub(crate) fn entry(&mut self, name: &str) -> &mut T {
        self.entry_for(name, 1)
    }

    /// As [`Capped::entry`], for so many.
    pub(crate) fn entry_for(&mut self, name: &str, many: u64) -> &mut T {
        if self.last > 0 && *self.entries[self.last].0 == *name {
            return &mut self.entries[self.last].1;
        }
        let place = match self.places.get(name) {
            Some(place) => *place,
            None if name == OTHER => 0,
            None if self.places.len() >= self.names_max => {
                self.beyond += many;
                0
            }
            None => {
                let place = self.entries.len();
                self.places.insert(Box::from(name), place);
                self.entries.push((Box::from(name), T::default()));
                place
            }
        };
        self.last = place;
        &mut self.entries[place].1
    }

    /// Everybody else's, for a name that is not to be told apart although there is room.
    pub(crate) fn other(&mut self, many: u64) -> &mut T {
        self.beyond += many;
        &mut self.entries[0].1
    }

    /// How often a name was beyond the cap.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// How many names are told apart.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// All that were used, [`OTHER`] last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let other = self.entries.first().filter(|_| self.beyond > 0);
        self.entries.iter().skip(1).chain(other).map(|(name, one)| (&**name, one))
    }

    /// All there are, [`OTHER`] first, each always at the same place.
    pub(crate) fn named_places(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, one)| (&**name, one))
    }

    /// As [`Capped::named_places`], without their names.
    pub(crate) fn places(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, one)| one)
    }

    /// As [`Capped::named_places`].
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
    fn beyond_the_cap_all_names_are_one() {
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
    fn other_is_not_shown_while_nobody_is_in_it() {
        let mut counts = Capped::<u32>::new(2);
        *counts.entry("a") += 1;
        assert_eq!(counts.iter().count(), 1);
    }
}
