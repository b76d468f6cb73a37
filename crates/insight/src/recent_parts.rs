//! Figures of each route in the last minutes and hours, in memory.
//!
//! A part is a minute, or less: a reload divides a minute, so that the requests of two releases are
//! separate. Older parts are merged into parts of ten minutes. Memory is limited: if there are many
//! routes, the oldest parts are dropped earlier.

use crate::store::RouteMinute;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum memory of all parts, in bytes. With a thousand active routes it holds ten to thirty
/// minutes, with a hundred some hours, with ten a day.
pub(crate) const RECENT_BYTES_MAX: usize = 16 << 20;
/// Age in seconds from which minutes are merged.
const MINUTES_KEPT_S: u64 = 2 * 3_600 + 600;
/// Length of a merged part in seconds.
const MERGED_S: u64 = 600;
/// Age in seconds from which parts are dropped: a day, and the part in which it begins.
const KEPT_S: u64 = 86_400 + MERGED_S;

/// Figures of each route in a short period.
#[derive(Clone, Debug)]
pub struct Part {
    /// Begin, in seconds since 1970.
    pub from: u64,
    /// End.
    pub until: u64,
    /// Figures of the routes with requests.
    pub routes: Arc<Vec<(Box<str>, RouteMinute)>>,
}

impl Part {
    pub(crate) fn new(from: u64, until: u64, routes: Arc<Vec<(Box<str>, RouteMinute)>>) -> Part {
        Part { from, until: until.max(from), routes }
    }

    /// Returns the point in time that decides to which period the part belongs. Each part belongs
    /// to one of two adjacent periods. A part that a reload ended in the second of its begin
    /// belongs to the period before the reload.
    #[must_use]
    pub fn middle(&self) -> u64 {
        match self.until - self.from {
            0 => self.from.saturating_sub(1),
            seconds => self.from + seconds / 2,
        }
    }

    fn bytes(&self) -> usize {
        let each = self.routes.iter();
        each.map(|(name, figures)| size_of_val(name) + name.len() + figures.bytes()).sum()
    }
}

#[derive(Clone, Debug)]
struct Held {
    part: Part,
    bytes: usize,
    /// Whether a reload ended it: it is never merged with the next one.
    is_divided: bool,
}

/// Parts in order. A period without requests has empty parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentParts {
    held: VecDeque<Held>,
    bytes: usize,
    /// Number of parts from the oldest on that are already merged.
    merged: usize,
}

impl RecentParts {
    /// Adds the latest part. `is_divided` if a reload ended it.
    pub(crate) fn put(&mut self, part: Part, is_divided: bool) {
        let now = part.until;
        let bytes = part.bytes();
        self.bytes += bytes;
        self.held.push_back(Held { part, bytes, is_divided });
        self.merge_before(now.saturating_sub(MINUTES_KEPT_S));
        while self
            .held
            .front()
            .is_some_and(|oldest| self.bytes > RECENT_BYTES_MAX || oldest.part.until + KEPT_S < now)
        {
            let dropped = self.held.pop_front().map_or(0, |oldest| oldest.bytes);
            self.bytes -= dropped;
            self.merged = self.merged.saturating_sub(1);
        }
    }

    fn merge_before(&mut self, at: u64) {
        while self.held.get(self.merged).is_some_and(|next| next.part.until <= at) {
            let slot = |held: &Held| held.part.from / MERGED_S;
            let before = self.merged.checked_sub(1).map(|last| &self.held[last]);
            let is_same = before.is_some_and(|before| {
                !before.is_divided && slot(before) == slot(&self.held[self.merged])
            });
            if !is_same {
                self.merged += 1;
                continue;
            }
            let Some(next) = self.held.remove(self.merged) else { return };
            let into = &mut self.held[self.merged - 1];
            self.bytes -= into.bytes + next.bytes;
            into.add(&next);
            self.bytes += into.bytes;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Part> {
        self.held.iter().map(|held| &held.part)
    }
}

impl Held {
    fn add(&mut self, next: &Held) {
        self.part.until = next.part.until;
        self.is_divided = next.is_divided;
        let routes = Arc::make_mut(&mut self.part.routes);
        let places: HashMap<Box<str>, usize> =
            routes.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        for (name, figures) in next.part.routes.iter() {
            match places.get(name) {
                Some(at) => routes[*at].1.merge(figures),
                None => routes.push((name.clone(), figures.clone())),
            }
        }
        self.bytes = self.part.bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_S, MERGED_S, MINUTES_KEPT_S, Part, RECENT_BYTES_MAX, RecentParts};
    use crate::store::RouteMinute;
    use std::sync::Arc;

    const HOUR_S: u64 = 3_600;

    fn part(from: u64, until: u64, routes: &[(&str, u64)]) -> Part {
        let figures = |n: u64| {
            let mut minute = RouteMinute { requests: n, ..RouteMinute::default() };
            (0..n).for_each(|n| minute.wall.add(1_000_000 + n * 20_000));
            minute
        };
        let routes = routes.iter().map(|(name, n)| (Box::from(*name), figures(*n)));
        Part::new(from, until, Arc::new(routes.collect()))
    }

    #[test]
    fn old_minutes_are_merged_and_none_is_lost() {
        let mut parts = RecentParts::default();
        let minutes = 23 * 60;
        for n in 0..minutes {
            let at = n * 60;
            parts.put(part(at, at + 60, &[("a", 2), (["b", "c"][n as usize % 2], 1)]), false);
        }
        let all: Vec<_> = parts.iter().collect();
        assert!(all.windows(2).all(|two| two[0].until == two[1].from), "no gap, no overlap");
        let lengths: Vec<_> = all.iter().map(|part| part.until - part.from).collect();
        assert!(lengths.iter().all(|length| [60, MERGED_S].contains(length)), "{lengths:?}");
        let single = lengths.iter().filter(|length| **length == 60).count() as u64;
        assert!((MINUTES_KEPT_S / 60..=MINUTES_KEPT_S / 60 + 10).contains(&single), "{single}");
        let requests = |name: &str| -> u64 {
            let each = all.iter().flat_map(|part| part.routes.iter());
            each.filter(|(known, _)| **known == *name).map(|(_, m)| m.requests).sum()
        };
        assert_eq!((requests("a"), requests("b")), (2 * minutes, minutes / 2));
        let merged = &all[0].routes.iter().find(|(name, _)| &**name == "a").expect("a").1;
        assert_eq!((merged.requests, merged.wall.count()), (20, 20));
    }

    /// A test's server starts, serves and reloads within a second.
    #[test]
    fn part_that_ends_in_its_second_is_before_the_reload() {
        assert_eq!(part(100, 100, &[]).middle(), 99);
        assert_eq!([part(100, 101, &[]), part(60, 120, &[])].map(|p| p.middle()), [100, 90]);
    }

    #[test]
    fn parts_before_and_after_reload_are_not_merged() {
        let mut parts = RecentParts::default();
        parts.put(part(0, 60, &[("a", 1)]), false);
        parts.put(part(60, 85, &[("a", 1)]), true);
        parts.put(part(85, 120, &[("a", 5)]), false);
        for n in 2..300 {
            parts.put(part(n * 60, n * 60 + 60, &[("a", 1)]), false);
        }
        let found: Vec<_> =
            parts.iter().take(2).map(|p| (p.from, p.until, p.routes[0].1.requests)).collect();
        assert_eq!(found, [(0, 85, 2), (85, 600, 13)]);
    }

    #[test]
    fn memory_and_age_are_limited() {
        let mut parts = RecentParts::default();
        let names: Vec<String> = (0..1_000).map(|n| format!("route {n}")).collect();
        let routes: Vec<_> = names.iter().map(|name| (name.as_str(), 50)).collect();
        for n in 0..200 {
            parts.put(part(n * 60, n * 60 + 60, &routes), false);
            assert!(parts.bytes <= RECENT_BYTES_MAX);
            assert_eq!(parts.bytes, parts.iter().map(Part::bytes).sum::<usize>());
        }
        let held = parts.iter().count();
        assert!((5..120).contains(&held), "{held} minutes of a thousand routes");
        for n in 200..200 + 30 * 60 {
            parts.put(part(n * 60, n * 60 + 60, &[("a", 1)]), false);
        }
        let (first, last) = (parts.iter().next().unwrap(), parts.iter().last().unwrap());
        let kept = last.until - first.from;
        assert!((24 * HOUR_S..=KEPT_S + MERGED_S).contains(&kept), "{kept} s");
    }
}
