//! Reasons why a response is missing or incomplete.

use samovar_ring::{Death, Hostile, Overrun};

/// Reason why a submitted request gets no (further) response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No worker took it in time.
    QueueTimeout,
    /// The worker sent no byte in time, or exceeded the time limit of the whole request.
    Overrun(Overrun),
    /// The worker died; the value says how.
    Orphaned(Death),
    /// The worker wrote invalid data, or finished without a response.
    Broken(&'static str),
    /// The worker reported that the response is incomplete.
    Aborted,
    /// The response is shorter than its declared length.
    Short,
    /// The request body was not received completely, or was too large.
    Body(BodyFailure),
    /// A part of the response that was written to the spill file cannot be read back.
    Disk,
}

/// Failure of a request body that was forwarded while it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFailure {
    /// Longer than the limit.
    TooLarge,
    /// The client stopped sending.
    Timeout,
    /// The client disconnected, or violated the protocol.
    Incomplete,
}

impl Lost {
    /// Advice for the operator about a response that broke off.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Lost::Short => {
                "the script sent fewer bytes than its `Content-Length` header declares; look for \
                 an early end of the script, or for output that is changed after the header is set"
            }
            Lost::Aborted => {
                "PHP ended before its response was complete; see the messages of this request in \
                 the log"
            }
            Lost::QueueTimeout | Lost::Overrun(_) => "see the overrun diagnosis in the log",
            Lost::Orphaned(_) | Lost::Broken(_) => "see the worker's end in the log",
            Lost::Body(_) => "the client did not send its whole request",
            Lost::Disk => "check the disk of `temp_dir`",
        }
    }
}

impl From<Hostile> for Lost {
    fn from(hostile: Hostile) -> Lost {
        Lost::Broken(hostile.what)
    }
}
