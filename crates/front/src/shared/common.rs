//! State that the front's threads share for one pool, protected by locks and atomics. Contains
//! nothing that every request uses.
//!
//! With one thread it is used as well; then no thread ever waits for a lock.

use crate::exchange::deaths::Deaths;
use crate::runtime::counters::Counters;
use crate::runtime::development::Development;
use crate::runtime::job_intake::IntakeCell;
use crate::runtime::recordings::Recordings;
use crate::runtime::rejection::Rejection;
use crate::runtime::tokens::Tokens;
use crate::runtime::upstream_failure::UpstreamFailure;
use crate::upstream::AllPlaces;
use samovar_log::Throttle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Common {
    /// Counters of each thread.
    counters: Vec<Arc<Counters>>,
    /// Pages in which workers died.
    deaths: Mutex<Deaths>,
    /// Tokens of requests whose call graph is to be recorded.
    pub(crate) tokens: Tokens,
    /// Whether a page or file was ever served successfully.
    has_served: AtomicBool,
    /// Number of connections to the php-fpm servers of some locations.
    pub(crate) upstreams: Arc<AllPlaces>,
    pub(crate) warnings: Warnings,
    /// Present in development mode only.
    pub(crate) development: Option<Arc<Development>>,
    /// Receiver of the requests of an `[[intake]]`.
    pub(crate) intake: IntakeCell,
    /// Recorded requests of all pools.
    pub(crate) recordings: Arc<Recordings>,
}

/// One throttle per kind of warning, for warnings that have no throttle elsewhere in the front.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    pub(crate) accept: Throttle,
    pub(crate) connections: Throttle,
    /// Idle connections that were closed to make room.
    pub(crate) reclaimed: Throttle,
    /// Unfinished connections that were closed to make room.
    pub(crate) unfinished: Throttle,
    /// Rejected requests, by reason.
    pub(crate) shed: [Throttle; Rejection::ALL.len()],
    pub(crate) client_connections: Throttle,
    pub(crate) died: Throttle,
    pub(crate) retried: Throttle,
    pub(crate) no_index: Throttle,
    pub(crate) sendfile: Throttle,
    pub(crate) fastcgi: Throttle,
    /// FastCGI requests for scripts that do not exist.
    pub(crate) no_script: Throttle,
    /// Failures of a location's php-fpm, by kind.
    pub(crate) pass: [Throttle; UpstreamFailure::ALL.len()],
}

impl Common {
    /// Creates the state for the threads with these counters.
    pub(crate) fn of(
        counters: Vec<Arc<Counters>>,
        upstreams: Arc<AllPlaces>,
        (development, intake): (Option<Arc<Development>>, IntakeCell),
        recordings: Arc<Recordings>,
    ) -> Common {
        Common { counters, upstreams, development, intake, recordings, ..Common::default() }
    }

    /// Used when a worker has died.
    pub(crate) fn deaths(&self) -> MutexGuard<'_, Deaths> {
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// Writes only once, so the cache line stays shared by all processors.
    pub(super) fn note_served(&self) {
        if !self.has_served() {
            self.has_served.store(true, Ordering::Relaxed);
        }
    }

    /// Number of requests of all threads.
    pub(crate) fn requests(&self) -> u64 {
        self.counters.iter().map(|counters| counters.pool.requests_total.get()).sum()
    }
}
