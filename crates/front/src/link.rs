//! front → supervisor: what the front has to say, without knowing what a process is.

use samovar_ring::{Incarnation, Lane};

/// Something only the supervisor can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontEvent {
    /// This worker must die: its client has been answered, its slot comes back by the repair.
    KillWorker {
        /// Which life of which worker.
        incarnation: Incarnation,
        /// Why.
        reason: KillReason,
    },
    /// Requests wait in this lane. Sent at most every [`SWEEP`](crate::SWEEP) while they come.
    LaneNeeded(Lane),
}

/// Why a worker must die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// It gave no byte for `timeouts.answer`.
    AnswerTimeout,
    /// It wrote what no worker writes into the ring.
    BrokenRing,
}

/// How the front speaks to the supervisor. Called on the front's thread: it must not block.
pub type SupervisorLink = Box<dyn Fn(FrontEvent) + Send>;
