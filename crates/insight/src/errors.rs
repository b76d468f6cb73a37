//! Errors of requests: exceptions and fatal errors, grouped by class and place.
//!
//! Class, message and place come from the application, so inventing them must not increase memory:
//! a new group replaces the one that was seen least recently, and the counters by class and route
//! share one entry beyond their limit.

use crate::bounded_map::{Capped, OTHER};
use crate::recent_requests::RecentRequest;
use crate::recorded_error::RecordedError;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of groups.
pub(crate) const ERROR_GROUPS_MAX: usize = 200;
/// Maximum number of counters by kind, class and route.
pub(crate) const ERROR_SERIES_MAX: usize = 500;
/// Maximum number of separate routes of one group.
const ROUTES_MAX: usize = 16;
/// Maximum number of requests of one group whose details are kept, the latest ones.
const REQUESTS_MAX: usize = 3;

/// Separator between the parts of a key; names do not contain it.
const SEPARATOR: char = '\u{1f}';

/// Errors with the same class and place.
#[derive(Clone, Debug)]
pub struct ErrorGroup {
    /// Fingerprint of class and place.
    pub id: u64,
    /// The latest error.
    pub latest: RecordedError,
    /// Number of errors.
    pub count: u64,
    /// Time of the first error, in seconds since 1970.
    pub first_at: u64,
    /// Time of the latest error.
    pub last_at: u64,
    /// Generation of the application that had the first error.
    pub first_generation: u32,
    /// Generation that had the latest one.
    pub last_generation: u32,
    /// Label of the release that had the first error; empty: none was given.
    pub first_release: Box<str>,
    /// Label of the release that had the latest one.
    pub last_release: Box<str>,
    routes: Capped<u64>,
    requests: VecDeque<Arc<RecentRequest>>,
}

impl ErrorGroup {
    /// Returns the routes as (name, number of errors).
    pub fn routes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.routes.iter().map(|(name, count)| (name, *count))
    }

    /// Returns the latest requests, latest first.
    pub fn requests(&self) -> impl Iterator<Item = &Arc<RecentRequest>> {
        self.requests.iter().rev()
    }
}

/// Groups of errors, and their counters.
#[derive(Clone, Debug)]
pub struct ErrorGroups {
    groups: HashMap<u64, ErrorGroup>,
    counters: Capped<u64>,
    evicted: u64,
}

impl Default for ErrorGroups {
    fn default() -> ErrorGroups {
        let counters = Capped::new(ERROR_SERIES_MAX);
        ErrorGroups { groups: HashMap::new(), counters, evicted: 0 }
    }
}

impl ErrorGroups {
    /// Adds the errors of a request.
    pub(crate) fn add(&mut self, request: &Arc<RecentRequest>, now: u64) {
        for error in &request.errors {
            let RecordedError { kind, class, .. } = error;
            let route = &request.route;
            let key = format!("{}{SEPARATOR}{class}{SEPARATOR}{route}", kind.name());
            *self.counters.entry(&key) += 1;
            self.group(error, request, now);
        }
    }

    fn group(&mut self, error: &RecordedError, request: &Arc<RecentRequest>, now: u64) {
        let id = fingerprint(&error.class, &error.file, error.line);
        if !self.groups.contains_key(&id) && self.groups.len() == ERROR_GROUPS_MAX {
            let oldest = self.groups.values().min_by_key(|group| (group.last_at, group.id));
            if let Some(oldest) = oldest.map(|group| group.id) {
                self.groups.remove(&oldest);
                self.evicted += 1;
            }
        }
        let generation = request.numbers.generation;
        let group = self.groups.entry(id).or_insert_with(|| ErrorGroup {
            id,
            latest: error.clone(),
            count: 0,
            first_at: now,
            last_at: now,
            first_generation: generation,
            last_generation: generation,
            first_release: request.release.clone(),
            last_release: request.release.clone(),
            routes: Capped::new(ROUTES_MAX),
            requests: VecDeque::new(),
        });
        group.latest = error.clone();
        group.count += 1;
        group.last_at = now;
        group.last_generation = generation;
        group.last_release.clone_from(&request.release);
        *group.routes.entry(&request.route) += 1;
        if group.requests.back().is_some_and(|last| Arc::ptr_eq(last, request)) {
            return;
        }
        if group.requests.len() == REQUESTS_MAX {
            group.requests.pop_front();
        }
        group.requests.push_back(Arc::clone(request));
    }

    /// Returns the groups, the one seen latest first.
    #[must_use]
    pub fn latest(&self) -> Vec<&ErrorGroup> {
        let mut all: Vec<_> = self.groups.values().collect();
        all.sort_by_key(|group| std::cmp::Reverse((group.last_at, group.count, group.id)));
        all
    }

    /// Returns the group with this fingerprint.
    #[must_use]
    pub fn group_of(&self, id: u64) -> Option<&ErrorGroup> {
        self.groups.get(&id)
    }

    /// Returns a request with this id that had an error.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Arc<RecentRequest>> {
        self.groups.values().flat_map(ErrorGroup::requests).find(|request| &*request.id == id)
    }

    /// Returns the counters as (kind, class, route, number of errors).
    pub fn counters(&self) -> impl Iterator<Item = (&str, &str, &str, u64)> {
        self.counters.iter().map(|(key, count)| {
            let mut parts = key.splitn(3, SEPARATOR);
            let mut part = || parts.next().unwrap_or(OTHER);
            (part(), part(), part(), *count)
        })
    }

    /// Returns the number of groups that newer ones have replaced.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

/// Returns the fingerprint of class and place (FNV-1a, 64 bits). It is the same in each process, so
/// links to a group survive a restart.
fn fingerprint(class: &str, file: &str, line: u32) -> u64 {
    let parts = [class.as_bytes(), &[0], file.as_bytes(), &[0], &line.to_le_bytes()];
    parts.concat().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{ERROR_GROUPS_MAX, ERROR_SERIES_MAX, ErrorGroups};
    use crate::finished::{Finished, Numbers};
    use crate::recent_requests::RecentRequest;
    use crate::report::{Entry, ErrorKind, ReportedError};
    use std::sync::Arc;

    fn error(kind: ErrorKind, class: &'static str, line: u32) -> Entry<'static> {
        let (file, message, stack) = ("/srv/a.php", "no stock".into(), "#0 /srv/a.php(3): f()");
        Entry::Error(ReportedError { kind, class, file, line, message, stack })
    }

    fn request(id: &str, route: &str, generation: u32, entries: &[Entry]) -> Arc<RecentRequest> {
        let numbers = Numbers { generation, ..Numbers::default() };
        let finished = Finished { numbers, id, ..Finished::default() };
        Arc::new(RecentRequest::new(&finished, route, entries))
    }

    #[test]
    fn errors_with_same_class_and_place_are_one_group() {
        let mut groups = ErrorGroups::default();
        for (n, (class, line, route)) in
            [("A", 1, "r"), ("A", 1, "s"), ("B", 1, "r"), ("A", 2, "r")].into_iter().enumerate()
        {
            let entries = [error(ErrorKind::Uncaught, class, line)];
            groups.add(&request(&n.to_string(), route, 1 + n as u32, &entries), 100 + n as u64);
        }
        let latest = groups.latest();
        let brief: Vec<_> = latest.iter().map(|g| (&*g.latest.class, g.count)).collect();
        assert_eq!(brief, [("A", 1), ("B", 1), ("A", 2)]);
        let group = latest[2];
        assert_eq!((group.first_at, group.last_at), (100, 101));
        assert_eq!((group.first_generation, group.last_generation), (1, 2));
        assert_eq!(group.routes().collect::<Vec<_>>(), [("r", 1), ("s", 1)]);
        let ids: Vec<_> = group.requests().map(|request| &*request.id).collect();
        assert_eq!(ids, ["1", "0"]);
        assert!(groups.find("0").is_some() && groups.find("9").is_none());
        assert_eq!(groups.group_of(group.id).map(|group| group.count), Some(2));
        let counters: Vec<_> = groups.counters().collect();
        assert!(counters.contains(&("uncaught", "A", "r", 2)), "{counters:?}");
    }

    #[test]
    fn groups_and_counters_beyond_their_limits_keep_memory_bounded() {
        let mut groups = ErrorGroups::default();
        for n in 0..2_000_u32 {
            let entries = [error(ErrorKind::Fatal, "E", n)];
            groups.add(&request("id", &format!("r{n}"), 1, &entries), n.into());
        }
        assert_eq!(groups.latest().len(), ERROR_GROUPS_MAX);
        assert_eq!(groups.evicted(), 2_000 - ERROR_GROUPS_MAX as u64);
        assert_eq!(groups.latest()[0].latest.line, 1_999);
        assert_eq!(groups.counters().count(), ERROR_SERIES_MAX + 1);
        assert_eq!(groups.counters().map(|(.., count)| count).sum::<u64>(), 2_000);
    }
}
