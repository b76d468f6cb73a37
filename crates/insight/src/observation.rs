//! One finished request as the aggregate passes it on: to sinks (`sink.rs`), and to the sampler of
//! the workers.

use crate::finished::Finished;
use crate::recent_requests::Scene;
use crate::report::Entry;

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
