//! Statements of one route: SQL, HTTP requests and commands of Redis, with their costs and the
//! position in PHP that repeats them.

use crate::bounded_map::OTHER;
use crate::report::{Statement, StatementKind};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of separate statements of one route.
pub(crate) const STATEMENTS_MAX: usize = 64;
/// Minimum number of executions of one statement from one position in a request that count as
/// repeated: a query per row of another query ("N+1").
pub const REPEATS_MIN: u32 = 10;
/// Divisor of [`STATEMENTS_MAX`] for the statements that are evicted at once.
const EVICTED_PART: usize = 8;
/// Number of executions of statements without room after which the cheapest ones are evicted, even
/// for a statement that takes less time. Invented statements must not keep the thread busy.
const EVICTION_PAUSE: u64 = 1_000;

/// Sums of one statement. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementFigures {
    /// Its language.
    pub kind: StatementKind,
    /// Text without literals; [`OTHER`] for all statements beyond the limit.
    pub text: Arc<str>,
    /// Number of executions.
    pub calls: u64,
    /// Number of requests that executed it.
    pub requests: u64,
    /// Highest number of executions in one request.
    pub calls_max: u32,
    /// Number of requests that repeated it from one position at least [`REPEATS_MIN`] times.
    pub repeating: u64,
    /// Highest number of executions in one request from one position.
    pub repeats_max: u32,
    /// Total time.
    pub ns: u64,
    /// Rows read or changed, as far as they are known.
    pub rows: u64,
    /// File of the position with the most executions in one request; empty without one.
    pub file: Box<str>,
    /// Line of this position.
    pub line: u32,
}

impl StatementFigures {
    fn add(&mut self, s: &Statement) {
        self.calls += u64::from(s.calls);
        self.requests += 1;
        self.calls_max = self.calls_max.max(s.calls);
        self.repeating += u64::from(s.place_calls >= REPEATS_MIN);
        self.ns = self.ns.saturating_add(s.ns);
        self.rows = self.rows.saturating_add(s.rows);
        if s.place_calls > self.repeats_max {
            self.repeats_max = s.place_calls;
            if *self.file != *s.file {
                self.file = s.file.into();
            }
            self.line = s.line;
        }
    }

    fn merge(&mut self, other: &StatementFigures) {
        self.calls += other.calls;
        self.requests += other.requests;
        self.calls_max = self.calls_max.max(other.calls_max);
        self.repeating += other.repeating;
        self.ns = self.ns.saturating_add(other.ns);
        self.rows = self.rows.saturating_add(other.rows);
        if other.repeats_max > self.repeats_max {
            self.repeats_max = other.repeats_max;
            self.file.clone_from(&other.file);
            self.line = other.line;
        }
    }

    /// Returns the place of the statement, such as `src/ProductList.php:40`; `None` without one.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        (!self.file.is_empty()).then(|| format!("{}:{}", self.file, self.line))
    }
}

/// The statements of a route, up to a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statements {
    /// Indices by text, for each kind.
    places: [HashMap<Arc<str>, usize, RandomState>; StatementKind::ALL.len()],
    all: Vec<StatementFigures>,
    other: StatementFigures,
    /// Executions without room since the last eviction.
    rejected: u64,
}

impl Statements {
    pub(crate) fn add(&mut self, statement: &Statement) {
        let (calls, ns) = (statement.calls.into(), statement.ns);
        self.entry(statement.kind, statement.text, calls, ns).add(statement);
    }

    /// Adds all statements of another route.
    pub(crate) fn absorb(&mut self, evicted: &Statements) {
        for figures in &evicted.all {
            self.entry(figures.kind, &figures.text, 0, figures.ns).merge(figures);
        }
        self.other.merge(&evicted.other);
    }

    /// Returns the figures of a statement to which this number of executions will be added.
    fn entry(
        &mut self,
        kind: StatementKind,
        text: &str,
        calls: u64,
        ns: u64,
    ) -> &mut StatementFigures {
        if let Some(place) = self.places[kind as usize].get(text) {
            return &mut self.all[*place];
        }
        if text == OTHER {
            return &mut self.other;
        }
        if self.all.len() == STATEMENTS_MAX {
            self.rejected = self.rejected.saturating_add(calls);
            let cheapest = self.all.iter().map(|figures| figures.ns).min().unwrap_or_default();
            if self.rejected >= EVICTION_PAUSE {
                self.evict(STATEMENTS_MAX / EVICTED_PART);
            } else if ns > cheapest {
                self.evict(1);
            } else {
                return &mut self.other;
            }
        }
        let text: Arc<str> = text.into();
        self.places[kind as usize].insert(Arc::clone(&text), self.all.len());
        self.all.push(StatementFigures { kind, text, ..StatementFigures::default() });
        self.all.last_mut().expect("one was pushed")
    }

    /// Adds the statements with the lowest time to the others.
    fn evict(&mut self, many: usize) {
        self.rejected = 0;
        self.all.sort_by_key(|figures| std::cmp::Reverse(figures.ns));
        for cheap in self.all.split_off(self.all.len().saturating_sub(many)) {
            self.other.merge(&cheap);
        }
        self.places.iter_mut().for_each(HashMap::clear);
        for (place, figures) in self.all.iter().enumerate() {
            self.places[figures.kind as usize].insert(Arc::clone(&figures.text), place);
        }
    }

    /// Returns the statements that requests repeat, those with the highest time first, at most
    /// `most`.
    pub(crate) fn repeated(&self, most: usize) -> Vec<StatementFigures> {
        let mut found: Vec<_> = self.all.iter().filter(|figures| figures.repeating > 0).collect();
        found.sort_by_key(|figures| std::cmp::Reverse(figures.ns));
        found.into_iter().take(most).cloned().collect()
    }

    /// Returns the statements, those with the highest time first, and [`OTHER`] last.
    pub(crate) fn dearest(&self) -> Vec<StatementFigures> {
        let mut all = self.all.clone();
        all.sort_by_key(|figures| std::cmp::Reverse(figures.ns));
        if self.other.calls > 0 {
            all.push(StatementFigures { text: OTHER.into(), ..self.other.clone() });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{EVICTION_PAUSE, REPEATS_MIN, STATEMENTS_MAX, Statements};
    use crate::bounded_map::OTHER;
    use crate::report::{Statement, StatementKind};

    fn statement(text: &str, calls: u32, ns: u64) -> Statement<'_> {
        Statement {
            kind: StatementKind::Sql,
            text,
            calls,
            ns,
            rows: 3,
            place_calls: calls,
            file: "/srv/list.php",
            line: calls,
        }
    }

    #[test]
    fn executions_are_added_up_by_text() {
        let mut all = Statements::default();
        all.add(&statement("SELECT ?", REPEATS_MIN - 1, 5));
        all.add(&statement("SELECT ?", REPEATS_MIN + 5, 6));
        all.add(&statement("SELECT ?", REPEATS_MIN, 6));
        all.add(&Statement { kind: StatementKind::Redis, ..statement("SELECT ?", 1, 50) });
        let found = all.dearest();
        assert_eq!((found.len(), found[0].kind), (2, StatementKind::Redis), "dearest first");
        let sql = &found[1];
        let calls = u64::from(3 * REPEATS_MIN + 4);
        assert_eq!((sql.calls, sql.requests, sql.ns, sql.rows), (calls, 3, 17, 9));
        assert_eq!((sql.calls_max, sql.repeats_max, sql.repeating), (15, 15, 2));
        assert_eq!(sql.place().as_deref(), Some("/srv/list.php:15"));
        all.add(&statement("once", 1, 900));
        let repeated = all.repeated(1);
        assert_eq!((repeated.len(), &repeated[0]), (1, sql), "only repeated ones");
    }

    #[test]
    fn statements_beyond_limit_replace_the_cheapest() {
        let mut all = Statements::default();
        let texts: Vec<_> = (0..STATEMENTS_MAX).map(|n| format!("SELECT a{n}")).collect();
        for (n, text) in texts.iter().enumerate() {
            all.add(&statement(text, 1, 100 + n as u64));
        }
        all.add(&statement("late", 1, 1));
        let found = all.dearest();
        assert_eq!((found.len(), &*found[STATEMENTS_MAX].text), (STATEMENTS_MAX + 1, OTHER));
        all.add(&statement("later", EVICTION_PAUSE as u32, 500));
        let found = all.dearest();
        assert_eq!(&*found[0].text, "later");
        assert!(!found.iter().any(|s| *s.text == *"SELECT a0"), "it was the cheapest");
        let calls: u64 = found.iter().map(|s| s.calls).sum();
        assert_eq!(calls, STATEMENTS_MAX as u64 + 1 + EVICTION_PAUSE);
    }

    #[test]
    fn statements_of_an_evicted_route_are_kept() {
        let (mut all, mut evicted) = (Statements::default(), Statements::default());
        all.add(&statement("a", 1, 1));
        evicted.add(&statement("a", 2, 2));
        evicted.add(&statement(OTHER, 4, 4));
        all.absorb(&evicted);
        let found: Vec<_> = all.dearest().iter().map(|s| (s.text.to_string(), s.calls)).collect();
        assert_eq!(found, [("a".to_owned(), 3), (OTHER.to_owned(), 4)]);
    }
}
