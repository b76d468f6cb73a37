//! Order of the files that whole scripts include, and the start that all routes share. Pure.

use super::report::{Kind, Report};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Maximum number of compared inclusions of a request.
const ORDER_MAX: usize = 4_096;
/// Maximum number of files that can be advised.
const CANDIDATES_MAX: usize = 16;

/// Start of all routes: the part of their scripts that a checkpoint can keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedStart {
    /// Number of routes.
    pub routes: u64,
    /// Candidates for `checkpoint_after`: files whose inclusion ends before routes differ, the last
    /// one first. Front controllers, caches and files of autoloaded classes are none: the
    /// inclusion of a class depends on more than the order of lines.
    pub candidates: Vec<Candidate>,
    /// Number of files that all routes include in the same order.
    pub files_shared: u64,
    /// Number of files of the route with the fewest files.
    pub files_min: u64,
    /// Source line of the first inclusion that is not the same for all routes; empty: unknown.
    pub differs_at: String,
}

/// A file that could be followed by a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// Path of the file.
    pub file: String,
    /// Number of files that are included until its end.
    pub files: u64,
}

/// First inclusions of a request's files, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// File, and the number of inclusions until the end of its own.
    files: Vec<(u32, usize)>,
    /// First file after the shared ones, if it is known.
    next: Option<u32>,
    /// Smallest number of files of a request.
    len_min: usize,
}

impl Order {
    pub(super) fn of(report: &Report, numbers: &[Option<u32>]) -> Order {
        let mut files: Vec<(u32, usize)> = Vec::new();
        // For each load, the innermost file that contains it, as an index of `files`.
        let mut within: Vec<Option<usize>> = Vec::with_capacity(report.loads.len());
        let mut parents: Vec<Option<usize>> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (at, load) in report.loads.iter().enumerate() {
            let parent = load.parent.and_then(|parent| within[parent]);
            let number = numbers[at].filter(|_| load.kind == Kind::File);
            let is_new =
                number.is_some_and(|number| files.len() < ORDER_MAX && seen.insert(number));
            let (true, Some(number)) = (is_new, number) else {
                within.push(parent);
                continue;
            };
            files.push((number, files.len() + 1));
            parents.push(parent);
            let end = files.len();
            within.push(Some(end - 1));
            let mut above = parent;
            while let Some(of) = above {
                files[of].1 = end;
                above = parents[of];
            }
        }
        let len_min = files.len();
        Order { files, next: None, len_min }
    }

    /// Keeps the start that both have.
    pub(super) fn keep_shared(&mut self, other: &Order) {
        let same = self.files.iter().zip(&other.files).take_while(|(a, b)| a.0 == b.0).count();
        for (own, other) in self.files.iter_mut().zip(&other.files).take(same) {
            own.1 = own.1.max(other.1);
        }
        if same < self.files.len() || same < other.files.len() {
            let first = other.files.get(same).or(self.files.get(same));
            self.next = first.map(|(number, _)| *number).or(self.next);
        }
        self.files.truncate(same);
        self.len_min = self.len_min.min(other.len_min);
    }
}

/// A file as it was included first.
pub(super) struct FirstInclusion {
    pub(super) path: String,
    pub(super) place: String,
    /// Whether it was included for a class, or is part of a cache, so that its path may change.
    pub(super) is_volatile: bool,
}

/// Returns the start that all routes share, if there are several.
pub(super) fn shared_start(
    routes: &[&Order],
    file: impl Fn(u32) -> FirstInclusion,
) -> Option<SharedStart> {
    let (first, rest) = routes.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let mut shared = (*first).clone();
    for order in rest {
        shared.keep_shared(order);
    }
    let len = shared.files.len();
    // The first of several files that end together contains the others.
    let mut ends: Vec<(u32, usize)> = shared.files.iter().skip(1).copied().collect();
    ends.retain(|(number, end)| *end <= len && !file(*number).is_volatile);
    ends.sort_by_key(|(_, end)| Reverse(*end));
    ends.dedup_by_key(|(_, end)| *end);
    ends.truncate(CANDIDATES_MAX);
    let candidate =
        |(number, end): (u32, usize)| Candidate { file: file(number).path, files: end as u64 };
    Some(SharedStart {
        routes: routes.len() as u64,
        candidates: ends.into_iter().map(candidate).collect(),
        files_shared: len as u64,
        files_min: shared.len_min as u64,
        differs_at: shared.next.map(|number| file(number).place).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files are named by numbers.
    fn order(files: &[(&str, usize)]) -> Order {
        let report = Report::of_script("/", files);
        let numbers: Vec<_> = report.loads.iter().map(|load| load.name.parse().ok()).collect();
        Order::of(&report, &numbers)
    }

    /// Files from 90 are included for classes. `ends` has the candidates, with numbers of files.
    fn check(routes: &[&[(&str, usize)]], ends: &[(&str, u64)], shared: u64, differs: &str) {
        let orders: Vec<_> = routes.iter().map(|files| order(files)).collect();
        let orders: Vec<_> = orders.iter().collect();
        let found = shared_start(&orders, |n| FirstInclusion {
            path: n.to_string(),
            place: format!("by {n}"),
            is_volatile: n >= 90,
        });
        let found = found.expect("several routes");
        let got: Vec<_> = found.candidates.iter().map(|it| (&*it.file, it.files)).collect();
        assert_eq!(got, ends, "{routes:?}");
        assert_eq!((found.files_shared, &*found.differs_at), (shared, differs), "{routes:?}");
    }

    #[test]
    fn shared_start_ends_before_routes_differ() {
        // 1 is the front controller; 2 includes 3 and 4.
        let start = [("1", 0), ("2", 1), ("3", 2), ("4", 2)];
        let of = |more: &'static str| [&start[..], &[(more, 1)]].concat();
        check(&[&of("5"), &of("6")], &[("2", 4), ("3", 3)], 4, "by 6");
        check(&[&of("5"), &of("5")], &[("5", 5), ("2", 4), ("3", 3)], 5, "");
        // 2 includes all the rest, so it does not end before the difference; 3 does.
        let runs = |more: &'static str| [&start[..3], &[(more, 2)]].concat();
        check(&[&runs("5"), &runs("6")], &[("3", 3)], 3, "by 6");
        check(&[&[("1", 0)], &[("2", 0)]], &[], 0, "by 2");
        check(&[&start, &start[..2]], &[], 2, "by 3");
        let class = [("1", 0), ("2", 1), ("91", 1)];
        check(&[&class, &class], &[("2", 2)], 3, "");
        let file =
            |_| FirstInclusion { path: String::new(), place: String::new(), is_volatile: false };
        assert_eq!(shared_start(&[&order(&start)], file), None);
        assert_eq!(shared_start(&[], file), None);
    }

    #[test]
    fn file_included_again_is_counted_once() {
        let again = order(&[("1", 0), ("2", 1), ("2", 1), ("3", 1)]);
        assert_eq!(again.files, [(1, 3), (2, 2), (3, 3)]);
    }
}
