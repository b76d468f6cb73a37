//! Aggregation thread → receivers of each finished request, and counters of their records' fates.
//!
//! A sink is called on the aggregation thread, while readers of the figures wait. So it queues,
//! sends without blocking, or skips the request. Slow work must run on the sink's own thread.

use crate::aggregate::Aggregate;
use crate::observation::Seen;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
