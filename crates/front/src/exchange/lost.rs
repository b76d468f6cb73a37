//! Why an answer does not come, or not to its end.

use samovar_ring::{Death, Hostile, Overrun};

/// Why a submitted request gets no (further) answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No worker took it in time.
    QueueTimeout,
    /// The worker gave no byte in time, or took too long for the whole.
    Overrun(Overrun),
    /// The worker died, in that way.
    Orphaned(Death),
    /// The worker wrote nonsense, or ended without an answer.
    Broken(&'static str),
    /// The worker said that the answer is incomplete.
    Aborted,
    /// The answer is shorter than the length it declared.
    Short,
    /// The request's body did not come as promised.
    Body(BodyFailure),
    /// A part of the answer that waited on the disk cannot be had back.
    Disk,
}

/// What was wrong with a request body that was passed on as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFailure {
    /// Longer than the limit.
    TooLarge,
    /// The client stopped sending.
    Timeout,
    /// The client went away, or broke the protocol.
    Incomplete,
}

impl From<Hostile> for Lost {
    fn from(hostile: Hostile) -> Lost {
        Lost::Broken(hostile.what)
    }
}
