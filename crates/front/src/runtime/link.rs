//! front → supervisor: what the front has to say, without knowing what a process is.

use samovar_ring::{Incarnation, Lane, Overrun, Run};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something only the supervisor can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEvent {
    /// The time of this request is over: its worker is to look into its slot, where it is told to end the script. Its client
    /// has been answered, or is gone.
    Overrun {
        /// Which run of which worker.
        run: Run,
        /// Which time.
        overrun: Overrun,
        /// Method and target.
        request: String,
        /// The request's id.
        id: String,
        /// For how long a worker had it, as far as sweeps have seen.
        ran: Duration,
    },
    /// This worker must die: its client has been answered, its slot comes back by the repair.
    KillWorker {
        /// Which life of which worker.
        incarnation: Incarnation,
        /// What it did, or did not.
        reason: KillReason,
    },
    /// Requests wait in this lane. Sent at most every [`SWEEP`](crate::SWEEP) while they come.
    LaneNeeded(Lane),
}

/// Why a worker must die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// The time of its request was over, and the script has not ended although it was told to. It may do so yet: then the
    /// run is over, and the worker is to live.
    Overrun(Run, Overrun),
    /// It wrote what no worker writes into the ring.
    BrokenRing,
}

/// How the front speaks to the supervisor. Called on the front's threads: it must not block.
pub type SupervisorLink = Box<dyn Fn(FrontEvent) + Send + Sync>;

/// The link as the front's threads keep it.
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
