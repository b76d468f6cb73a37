//! For load balancers and supervisors of containers.

use crate::Sources;
use crate::answer::{self, Answer};
use crate::query::Query;
use http::StatusCode;

/// That this answers is the answer.
pub(super) fn alive() -> Answer {
    answer::text(StatusCode::OK, "alive\n")
}

/// Whether requests should be sent here, and if not, why; `?pool=NAME` asks for one pool's.
pub(super) fn ready(sources: &Sources, query: &Query) -> Answer {
    match sources.host.ready(query.get("pool").as_deref()) {
        Ok(text) => answer::text(StatusCode::OK, format!("{text}\n")),
        Err(why) => answer::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}
