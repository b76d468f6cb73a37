//! Decides which test starts next: a value with `decide` and `ended`, without clock or processes.
//!
//! Tests that may run next to others come first. The longest of them start first, so that none is
//! left over at the end. The tests of a group with a limit wait for each other. Exclusive tests
//! follow, one at a time, when all others have ended.

use crate::groups::Groups;
use std::collections::VecDeque;

/// A test, as the schedule sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Index in the caller's list.
    pub index: usize,
    /// Seconds that the test took in an earlier run; 0 if unknown.
    pub seconds: f64,
    /// Group of the test.
    pub group: Option<usize>,
}

/// The caller's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start the test with this index in the caller's list.
    Start(usize),
    /// Nothing can start before another test ends.
    Wait,
    /// All tests have been started.
    Done,
}

/// The tests that have not been started, and the number of running ones.
#[derive(Debug)]
pub struct Schedule {
    side_by_side: VecDeque<Entry>,
    exclusive: VecDeque<Entry>,
    at_once: Vec<Option<usize>>,
    running_of: Vec<usize>,
    running: usize,
    is_exclusive_running: bool,
    at_once_max: usize,
}

impl Schedule {
    /// Creates a schedule of these tests, of which at most `at_once_max` run at a time.
    pub fn new(entries: Vec<Entry>, groups: &Groups, at_once_max: usize) -> Schedule {
        let at_once: Vec<Option<usize>> = groups.groups.iter().map(|group| group.at_once).collect();
        let is_exclusive =
            |entry: &Entry| entry.group.is_some_and(|group| at_once[group].is_none());
        let (mut exclusive, mut others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(is_exclusive);
        let longest_first = |a: &Entry, b: &Entry| {
            b.seconds.total_cmp(&a.seconds).then_with(|| a.index.cmp(&b.index))
        };
        exclusive.sort_by(longest_first);
        others.sort_by(longest_first);
        Schedule {
            side_by_side: others.into(),
            exclusive: exclusive.into(),
            running_of: vec![0; at_once.len()],
            at_once,
            running: 0,
            is_exclusive_running: false,
            at_once_max: at_once_max.max(1),
        }
    }

    /// Returns the next step. A test that it returns counts as running.
    pub fn decide(&mut self) -> Next {
        if self.side_by_side.is_empty() && self.exclusive.is_empty() {
            return Next::Done;
        }
        if self.is_exclusive_running || self.running >= self.at_once_max {
            return Next::Wait;
        }
        let free = self.side_by_side.iter().position(|entry| self.has_room(entry.group));
        if let Some(entry) = free.and_then(|place| self.side_by_side.remove(place)) {
            return self.start(&entry);
        }
        if self.running > 0 || !self.side_by_side.is_empty() {
            return Next::Wait;
        }
        match self.exclusive.pop_front() {
            Some(entry) => {
                self.is_exclusive_running = true;
                self.start(&entry)
            }
            None => Next::Done,
        }
    }

    /// Records that a test of that group has ended.
    pub fn ended(&mut self, group: Option<usize>) {
        self.running -= 1;
        self.is_exclusive_running = false;
        if let Some(group) = group {
            self.running_of[group] -= 1;
        }
    }

    fn has_room(&self, group: Option<usize>) -> bool {
        let Some(group) = group else { return true };
        self.at_once[group].is_none_or(|most| self.running_of[group] < most)
    }

    fn start(&mut self, entry: &Entry) -> Next {
        self.running += 1;
        if let Some(group) = entry.group {
            self.running_of[group] += 1;
        }
        Next::Start(entry.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> Groups {
        Groups::parse(
            "[[group]]\nname = 'alone'\nreason = 'r'\ntests = ['a']\n\
             [[group]]\nname = 'pair'\nreason = 'r'\nat_once = 1\ntests = ['p']\n",
        )
        .unwrap()
    }

    fn entry(index: usize, seconds: f64, group: Option<usize>) -> Entry {
        Entry { index, seconds, group }
    }

    #[test]
    fn longest_starts_first_and_the_limit_holds() {
        let entries = vec![entry(0, 1.0, None), entry(1, 5.0, None), entry(2, 3.0, None)];
        let mut schedule = Schedule::new(entries, &groups(), 2);
        assert_eq!(schedule.decide(), Next::Start(1));
        assert_eq!(schedule.decide(), Next::Start(2));
        assert_eq!(schedule.decide(), Next::Wait);
        schedule.ended(None);
        assert_eq!(schedule.decide(), Next::Start(0));
        assert_eq!(schedule.decide(), Next::Done);
    }

    #[test]
    fn group_with_a_limit_lets_others_pass() {
        let entries = vec![entry(0, 9.0, Some(1)), entry(1, 8.0, Some(1)), entry(2, 1.0, None)];
        let mut schedule = Schedule::new(entries, &groups(), 3);
        assert_eq!(schedule.decide(), Next::Start(0));
        assert_eq!(schedule.decide(), Next::Start(2));
        assert_eq!(schedule.decide(), Next::Wait);
        schedule.ended(Some(1));
        assert_eq!(schedule.decide(), Next::Start(1));
    }

    #[test]
    fn exclusive_tests_run_last_and_with_no_other() {
        let entries = vec![entry(0, 9.0, Some(0)), entry(1, 1.0, None), entry(2, 2.0, Some(0))];
        let mut schedule = Schedule::new(entries, &groups(), 4);
        assert_eq!(schedule.decide(), Next::Start(1));
        assert_eq!(schedule.decide(), Next::Wait);
        schedule.ended(None);
        assert_eq!(schedule.decide(), Next::Start(0));
        assert_eq!(schedule.decide(), Next::Wait);
        schedule.ended(Some(0));
        assert_eq!(schedule.decide(), Next::Start(2));
        assert_eq!(schedule.decide(), Next::Done);
    }
}
