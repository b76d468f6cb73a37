//! thread → elsewhere: what each finished request is handed to beside the figures, and how it fares there.
//!
//! A sink is called on the thread that adds up, while readers of the figures wait: it queues, sends without waiting, or
//! leaves out. Whatever may take time is a thread of the sink's own.

use crate::aggregate::Aggregate;
use crate::finished::Finished;
use crate::kept::Scene;
use crate::report::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A finished request, its route, and what its worker has said of it: read once for all.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What the front knows.
    pub finished: &'a Finished<'a>,
    /// Its route, uncapped.
    pub route: &'a str,
    /// Waits, timers, tags; values of secret names are blotted out.
    pub entries: &'a [Entry<'a>],
    /// When it was added up, seconds since 1970.
    pub now: u64,
    /// What its worker was at when it became slow, if somebody has looked.
    pub scene: Option<&'a Scene>,
}

/// Somebody who has looked at workers from outside while they ran requests, and is told which route each was.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// A request has ended; what its worker was at when it became slow. Called for each: it must not wait.
    fn ended(&self, finished: &Finished, route: &str) -> Option<Scene>;

    /// The marks ([`crate::id_mark`]) of ids that it has seen running: who else has ended need not be named to it.
    fn looks_for(&self, marks: &mut Vec<u64>) {
        let _ = marks;
    }

    /// One that it has seen, by the mark of its id, has ended; it is among those of [`Witness::counted`].
    fn saw(&self, mark: u64, route: &str) {
        let _ = (mark, route);
    }

    /// Requests have ended: (worker, how many), those without a worker left out. Called for many at once.
    fn counted(&self, common: &Finished, by_worker: &[(u32, u64)], route: &str) {
        let _ = (common, by_worker, route);
    }
}

/// Somebody who wants each request.
pub trait Sink: Send {
    /// A request has ended. Must not wait.
    fn take(&mut self, seen: &Seen);

    /// The wall time from which on it wants a request of which nothing else is special, ns: no worker has said anything of it,
    /// and it is neither failed nor traced. 0: all; `u64::MAX`: none.
    fn wants_from_ns(&self) -> u64 {
        0
    }

    /// Time has passed: called about twice a second, with all figures and the number of requests that are in none.
    fn look(&mut self, figures: &Aggregate, lost: u64, now: u64) {
        let _ = (figures, lost, now);
    }

    /// The server ends. May wait for a bounded time.
    fn finish(&mut self) {}

    /// How it fares.
    fn tally(&self) -> Arc<Tally>;
}

/// What became of the records of one way in or out.
#[derive(Debug)]
pub struct Tally {
    way: &'static str,
    fates: [AtomicU64; Fate::ALL.len()],
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has arrived, as far as one can know.
    Passed,
    /// There was no room, or nobody to take it.
    Lost,
    /// It was not wanted, or made no sense.
    Refused,
}

impl Fate {
    /// In the order of their numbers.
    pub const ALL: [Fate; 3] = [Fate::Passed, Fate::Lost, Fate::Refused];

    /// Its name in labels.
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
    /// Nothing yet; `way` is its name in labels.
    #[must_use]
    pub fn new(way: &'static str) -> Arc<Tally> {
        Arc::new(Tally { way, fates: Default::default() })
    }

    /// `n` more of them fared so.
    pub fn add(&self, fate: Fate, n: u64) {
        self.fates[fate as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// How many fared so.
    #[must_use]
    pub fn get(&self, fate: Fate) -> u64 {
        self.fates[fate as usize].load(Ordering::Relaxed)
    }

    /// Its name in labels.
    #[must_use]
    pub fn way(&self) -> &'static str {
        self.way
    }
}
