//! What the front's threads have in common for one pool, behind locks and atomics: nothing that a request touches on its way.
//!
//! With one thread all of it is here, too, and nobody waits for it.

use crate::exchange::deaths::Deaths;
use crate::runtime::counters::Counters;
use crate::runtime::tokens::Tokens;
use crate::upstream::AllPlaces;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Common {
    /// Of each thread.
    counters: Vec<Arc<Counters>>,
    /// Which pages workers died of.
    deaths: Mutex<Deaths>,
    /// Whose call graph is taken down next.
    pub(crate) tokens: Tokens,
    /// A page or file was answered successfully, ever.
    has_served: AtomicBool,
    /// How many connections there are to those who run scripts of some locations.
    pub(crate) upstreams: Arc<AllPlaces>,
}

impl Common {
    /// Of the threads that count so.
    pub(crate) fn of(counters: Vec<Arc<Counters>>) -> Common {
        Common { counters, ..Common::default() }
    }

    /// Asked when a worker has died.
    pub(crate) fn deaths(&self) -> MutexGuard<'_, Deaths> {
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// Written once: the line that it is on stays in all caches.
    pub(super) fn note_served(&self) {
        if !self.has_served() {
            self.has_served.store(true, Ordering::Relaxed);
        }
    }

    /// Requests of all threads.
    pub(crate) fn requests(&self) -> u64 {
        self.counters.iter().map(|counters| counters.requests.get()).sum()
    }
}
