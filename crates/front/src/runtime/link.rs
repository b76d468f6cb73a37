//! front → supervisor: events that the front reports. The front does not know processes.

use samovar_ring::{Incarnation, Lane, Overrun, Run};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An event that only the supervisor can handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEvent {
    /// The time limit of this request is exceeded: its worker must check its slot, which requests
    /// the end of the script. Its client has got a response, or has disconnected.
    Overrun {
        /// Worker and run of the request.
        run: Run,
        /// The exceeded limit.
        overrun: Overrun,
        /// Method and target.
        request: String,
        /// The request's id.
        id: String,
        /// Time that a worker had the request, measured by sweeps.
        ran: Duration,
        /// Time that the script has to end before its worker is killed.
        grace: Duration,
    },
    /// This worker must be killed. Its client has got a response; its slot is freed by the repair.
    KillWorker {
        /// The worker's incarnation.
        incarnation: Incarnation,
        /// Reason for the kill.
        reason: KillReason,
    },
    /// Requests wait in this lane. Sent at most once per [`SWEEP`](crate::SWEEP) while requests
    /// arrive.
    LaneNeeded(Lane),
}

/// Reason why a worker must be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// The request's time limit was exceeded, and the script did not end when requested. It may
    /// still end: then the run is over, and the worker must not be killed.
    Overrun(Run, Overrun),
    /// It wrote invalid data into the ring.
    BrokenRing,
}

/// Callback that passes an event to the supervisor. Called on the front's threads, so it must not
/// block.
pub type SupervisorLink = Box<dyn Fn(FrontEvent) + Send + Sync>;

/// The link, shared by the front's threads.
#[derive(Clone)]
pub(crate) struct Link(Arc<SupervisorLink>);

impl From<SupervisorLink> for Link {
    fn from(link: SupervisorLink) -> Link {
        Link(Arc::new(link))
    }
}

impl Link {
    /// Passes an event on to the supervisor.
    pub(crate) fn tell(&self, event: FrontEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}
