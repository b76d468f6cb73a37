//! Health checks for load balancers and container supervisors.

use crate::query::Query;
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use http::StatusCode;

/// Liveness: any response means that the process is alive.
pub(super) fn alive() -> AdminResponse {
    response::text(StatusCode::OK, "alive\n")
}

/// Readiness: whether requests should be sent to this server, and if not, the reason. `?pool=NAME`
/// selects one pool.
pub(super) fn ready(sources: &Sources, query: &Query) -> AdminResponse {
    match sources.host.ready(query.get("pool").as_deref()) {
        Ok(text) => response::text(StatusCode::OK, format!("{text}\n")),
        Err(why) => response::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}
