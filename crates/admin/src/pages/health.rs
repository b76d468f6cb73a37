//! For load balancers and supervisors of containers.

use crate::Sources;
use crate::answer::{self, Answer};
use http::StatusCode;

/// That this answers is the answer.
pub(super) fn alive() -> Answer {
    answer::text(StatusCode::OK, "alive\n")
}

/// Whether requests should be sent here, and if not, why.
pub(super) fn ready(sources: &Sources) -> Answer {
    match sources.host.ready() {
        Ok(()) => answer::text(StatusCode::OK, "ready\n"),
        Err(why) => answer::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}
