//! Aggregation thread → receivers of each finished request, and counters of their records' fates.
//!
//! A sink is called on the aggregation thread, while readers of the figures wait. So it queues,
//! sends without blocking, or skips the request. Slow work must run on the sink's own thread.

use crate::aggregate::Aggregate;
use crate::finished::Finished;
use crate::recent_requests::Scene;
use crate::report::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A finished request, its route, and its worker's report, parsed once for all sinks.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Data from the front.
    pub finished: &'a Finished<'a>,
    /// Route, without the limit on the number of routes.
    pub route: &'a str,
    /// Waits, timers, tags; secret values are redacted.
    pub entries: &'a [Entry<'a>],
    /// Time when it was added, in seconds since 1970.
    pub now: u64,
    /// State of the worker at the time the request became slow, if it was sampled.
    pub scene: Option<&'a Scene>,
}

/// A sampler of workers, which is notified of the route of each request.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// A request has ended. Returns the state of its worker at the time it became slow. Called for
    /// each request that is not packed: must not block.
    fn ended(&self, finished: &Finished, route: &str) -> Option<Scene>;

    /// Adds the marks ([`crate::id_mark`]) of the ids that were sampled. [`Witness::saw`] is called
    /// only for these.
    fn looks_for(&self, marks: &mut Vec<u64>) {
        let _ = marks;
    }

    /// A sampled request, identified by its id's mark, has ended. It is also counted in
    /// [`Witness::counted`].
    fn saw(&self, mark: u64, route: &str) {
        let _ = (mark, route);
    }

    /// Requests have ended: (worker, number of requests), without those that had no worker. Called
    /// for many at once.
    fn counted(&self, common: &Finished, by_worker: &[(u32, u64)], route: &str) {
        let _ = (common, by_worker, route);
    }
}

/// A receiver of each single request.
pub trait Sink: Send {
    /// A request has ended. Must not block.
    fn take(&mut self, seen: &Seen);

    /// Returns the minimum wall time, in ns, of ordinary requests that the sink needs: those
    /// without a worker's report that neither failed nor are traced. 0: all; `u64::MAX`: none.
    fn wants_from_ns(&self) -> u64 {
        0
    }

    /// Called about twice a second, with all figures and the number of requests that are in none of
    /// them.
    fn look(&mut self, figures: &Aggregate, lost: u64, now: u64) {
        let _ = (figures, lost, now);
    }

    /// The server stops. May block for a bounded time.
    fn finish(&mut self) {}

    /// Returns the sink's counters.
    fn tally(&self) -> Arc<Tally>;
}

/// Counters of the records of one importer or exporter.
#[derive(Debug)]
pub struct Tally {
    way: &'static str,
    fates: [AtomicU64; Fate::ALL.len()],
}

/// Fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has arrived, as far as is known.
    Passed,
    /// There was no room, or the receiver was away.
    Lost,
    /// It was rejected or invalid.
    Refused,
}

impl Fate {
    /// All fates, in the order of their numbers.
    pub const ALL: [Fate; 3] = [Fate::Passed, Fate::Lost, Fate::Refused];

    /// Returns the name in labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fate::Passed => "passed",
            Fate::Lost => "lost",
            Fate::Refused => "refused",
        }
    }
}

impl Tally {
    /// Creates counters at zero; `way` is the name in labels.
    #[must_use]
    pub fn new(way: &'static str) -> Arc<Tally> {
        Arc::new(Tally { way, fates: Default::default() })
    }

    /// Counts `n` records.
    pub fn add(&self, fate: Fate, n: u64) {
        self.fates[fate as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the number of records with this fate.
    #[must_use]
    pub fn get(&self, fate: Fate) -> u64 {
        self.fates[fate as usize].load(Ordering::Relaxed)
    }

    /// Returns the name in labels.
    #[must_use]
    pub fn way(&self) -> &'static str {
        self.way
    }
}
