//! Releases of the applications: the label that an operator gave to each generation, and the time
//! since which it serves. A generation without a label is a release of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of remembered releases of all pools.
const KNOWN_MAX: usize = 256;
/// Part of a generation's number that workers report.
const REPORTED_BITS: u64 = 0xffff;

/// A generation of a pool that serves from a time on, and the label of its release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Time since which it serves, in seconds since 1970.
    pub at: u64,
    /// Name of the pool; empty if the server has one pool.
    pub pool: String,
    /// Number of the generation.
    pub generation: u64,
    /// Label; empty: none was given.
    pub label: Arc<str>,
}

/// All releases of this server. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Releases(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// The serving release of each pool; at most one per pool of the settings.
    serving: Vec<Release>,
    /// The canary, or the last one: its requests may still be on their way.
    canary: Option<Release>,
    is_canary_on: bool,
    /// Labels of reloads that are running, by pool: their generations serve a moment before
    /// [`Releases::begin`].
    expected: Vec<(String, Arc<str>)>,
    /// Oldest first, serving ones included.
    known: VecDeque<Release>,
}

impl Releases {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Each change is complete at once, so the table is usable after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a release serves from now on, in place of the previous one of its pool.
    pub fn begin(&self, release: Release) {
        let mut table = self.table();
        table.expected.retain(|(pool, _)| *pool != release.pool);
        match table.serving.iter_mut().find(|one| one.pool == release.pool) {
            Some(one) => *one = release.clone(),
            None => table.serving.push(release.clone()),
        }
        if table.known.len() == KNOWN_MAX {
            table.known.pop_front();
        }
        table.known.push_back(release);
    }

    /// Records that a reload of a pool is running, and the label of its release.
    pub fn expect(&self, pool: &str, label: &str) {
        let mut table = self.table();
        table.expected.retain(|(known, _)| known != pool);
        table.expected.push((pool.to_owned(), label.into()));
    }

    /// Records that the reload of a pool has failed.
    pub fn keep(&self, pool: &str) {
        self.table().expected.retain(|(known, _)| known != pool);
    }

    /// Records the release of a canary that serves a share of the requests.
    pub fn begin_canary(&self, release: Release) {
        let mut table = self.table();
        (table.canary, table.is_canary_on) = (Some(release), true);
    }

    /// Records that no canary serves any more. The responses on their way keep its label.
    pub fn end_canary(&self) {
        self.table().is_canary_on = false;
    }

    /// Returns the label of the generation that a worker has reported, or of the serving one if
    /// `generation` is 0; empty: it has none.
    #[must_use]
    pub fn label_of(&self, pool: &str, generation: u32) -> Arc<str> {
        let table = self.table();
        let serving = table.serving.iter().find(|one| one.pool == pool);
        let wanted = u64::from(generation) & REPORTED_BITS;
        let number = |one: &Release| one.generation & REPORTED_BITS;
        let is_serving = wanted == 0 || serving.is_some_and(|one| number(one) == wanted);
        if is_serving {
            return serving.map(|one| Arc::clone(&one.label)).unwrap_or_default();
        }
        let mut canary = table.canary.iter();
        let canary = canary.find(|one| one.pool == pool && number(one) == wanted);
        let is_newer = serving.is_none_or(|one| number(one) < wanted);
        let expected = table.expected.iter().find(|(known, _)| is_newer && known == pool);
        if let (None, Some((_, label))) = (canary, expected) {
            return Arc::clone(label);
        }
        let own = || table.known.iter().rev().filter(|one| one.pool == pool);
        // A template that was started again has a number of its own, and the same release.
        let found = canary
            .or_else(|| own().find(|one| number(one) == wanted))
            .or_else(|| own().find(|one| number(one) < wanted))
            .or(serving);
        found.map(|one| Arc::clone(&one.label)).unwrap_or_default()
    }

    /// Returns the label of a pool's serving release; empty: it has none.
    #[must_use]
    pub fn serving(&self, pool: &str) -> Arc<str> {
        self.label_of(pool, 0)
    }

    /// Returns the serving release of each pool.
    #[must_use]
    pub fn all_serving(&self) -> Vec<Release> {
        self.table().serving.clone()
    }

    /// Returns the label of the whole server: that of all pools, if they agree; else empty.
    #[must_use]
    pub fn of_server(&self) -> Arc<str> {
        let table = self.table();
        let mut labels = table.serving.iter().map(|one| &one.label);
        let first = labels.next().cloned().unwrap_or_default();
        if labels.all(|label| *label == first) { first } else { Arc::default() }
    }

    /// Returns the canary that serves a share of the requests.
    #[must_use]
    pub fn canary(&self) -> Option<Release> {
        let table = self.table();
        table.canary.clone().filter(|_| table.is_canary_on)
    }

    /// Returns the last releases since the server's start, oldest first.
    #[must_use]
    pub fn known(&self) -> Vec<Release> {
        self.table().known.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN_MAX, Release, Releases};

    fn release(pool: &str, generation: u64, label: &str) -> Release {
        Release { at: 100 + generation, pool: pool.to_owned(), generation, label: label.into() }
    }

    #[test]
    fn label_follows_reported_generation() {
        let releases = Releases::default();
        releases.begin(release("", 1, "1.0"));
        releases.begin(release("", 4, "1.1"));
        for (generation, expected) in [
            (0, "1.1"), // a worker that died
            (1, "1.0"),
            (2, "1.0"), // its template was started again
            (4, "1.1"),
            (5, "1.1"),
        ] {
            assert_eq!(&*releases.label_of("", generation), expected, "{generation}");
        }
        releases.begin_canary(release("", 6, "2.0"));
        assert_eq!((&*releases.label_of("", 6), &*releases.serving("")), ("2.0", "1.1"));
        releases.end_canary();
        assert_eq!(releases.canary(), None);
        // It is aborted, and its last requests arrive.
        assert_eq!((&*releases.label_of("", 6), &*releases.serving("")), ("2.0", "1.1"));
        releases.begin(release("", 65_543, ""));
        assert_eq!((&*releases.label_of("", 7), &*releases.label_of("", 4)), ("", "1.1"));
        assert_eq!(&*releases.label_of("api", 4), "", "an unknown pool");
    }

    #[test]
    fn running_reload_labels_its_generation_until_it_fails() {
        let releases = Releases::default();
        releases.begin(release("", 1, "1.0"));
        releases.expect("", "2.0");
        assert_eq!((&*releases.label_of("", 2), &*releases.label_of("", 1)), ("2.0", "1.0"));
        releases.keep("");
        assert_eq!((&*releases.label_of("", 2), &*releases.serving("")), ("1.0", "1.0"));
        releases.expect("", "2.0");
        releases.begin(release("", 3, "2.0"));
        releases.expect("", "");
        assert_eq!((&*releases.label_of("", 3), &*releases.label_of("", 4)), ("2.0", ""));
    }

    #[test]
    fn pools_have_their_own_labels() {
        let releases = Releases::default();
        releases.begin(release("default", 1, "1.0"));
        releases.begin(release("api", 1, "1.0"));
        assert_eq!(&*releases.of_server(), "1.0");
        releases.begin(release("api", 2, "7"));
        assert_eq!((&*releases.of_server(), &*releases.label_of("api", 2)), ("", "7"));
        assert_eq!((&*releases.label_of("default", 1), releases.all_serving().len()), ("1.0", 2));
    }

    #[test]
    fn many_reloads_keep_memory_bounded_and_serving_release() {
        let releases = Releases::default();
        releases.begin(release("api", 1, "first"));
        for generation in 1..=2 * KNOWN_MAX as u64 {
            releases.begin(release("", generation, &generation.to_string()));
        }
        assert_eq!(releases.known().len(), KNOWN_MAX);
        assert_eq!(&*releases.serving("api"), "first");
    }
}
