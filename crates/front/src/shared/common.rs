//! What the front's threads have in common for one pool, behind locks and atomics: nothing that a request touches on its way.
//!
//! With one thread all of it is here, too, and nobody waits for it.

use crate::exchange::deaths::Deaths;
use crate::runtime::counters::Counters;
use crate::runtime::shed::Shed;
use crate::runtime::tokens::Tokens;
use crate::runtime::trouble::Trouble;
use crate::upstream::AllPlaces;
use samovar_log::Throttle;
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
    pub(crate) warnings: Warnings,
}

/// One throttle per kind of warning that no part of the front has for itself.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    pub(crate) accept: Throttle,
    pub(crate) connections: Throttle,
    /// Idle connections that made room.
    pub(crate) reclaimed: Throttle,
    /// By reason.
    pub(crate) shed: [Throttle; Shed::ALL.len()],
    pub(crate) client_connections: Throttle,
    pub(crate) died: Throttle,
    pub(crate) retried: Throttle,
    pub(crate) no_index: Throttle,
    pub(crate) sendfile: Throttle,
    pub(crate) fastcgi: Throttle,
    /// FastCGI requests for scripts that are not there.
    pub(crate) no_script: Throttle,
    /// Of a location's php-fpm, by what was wrong.
    pub(crate) pass: [Throttle; Trouble::ALL.len()],
}

impl Common {
    /// Of the threads that count so.
    pub(crate) fn of(counters: Vec<Arc<Counters>>, upstreams: Arc<AllPlaces>) -> Common {
        Common { counters, upstreams, ..Common::default() }
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
