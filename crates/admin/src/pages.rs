//! Maps paths to pages.

mod api;
pub(crate) mod dashboard;
mod health;
mod metrics;

use crate::Sources;
use crate::query::Query;
use crate::response::{self, AdminResponse};
use http::{HeaderMap, StatusCode};

/// Returns whether a path needs the token. A load balancer has none, and its pages reveal nothing.
pub(crate) fn needs_token(path: &str) -> bool {
    !matches!(path, "/health" | "/ready")
}

/// Returns the pages that need no slow reads. They are rendered without the reader thread, so other
/// requests do not delay them.
pub(crate) fn at_once(
    headers: &HeaderMap,
    (path, query): (&str, &Query),
    sources: &Sources,
) -> Option<AdminResponse> {
    let asset =
        |content_type, text: &'static str| response::of_type(StatusCode::OK, content_type, text);
    Some(match path {
        "/metrics" => metrics::page(headers, sources),
        "/health" => health::alive(),
        "/ready" => health::ready(sources, query),
        "/assets/style.css" => asset(response::CSS, include_str!("assets/style.css")),
        "/assets/live.js" => asset(response::SCRIPT, include_str!("assets/live.js")),
        "/assets/flame.js" => asset(response::SCRIPT, include_str!("assets/flame.js")),
        "/assets/icon.svg" => asset(response::SVG, include_str!("assets/icon.svg")),
        _ => return None,
    })
}

/// Returns all other pages.
pub(crate) fn made(path: &str, query: &Query, sources: &Sources) -> AdminResponse {
    match path.strip_prefix("/api/") {
        Some(rest) => api::respond(rest, sources),
        None => dashboard::respond(path, query, sources),
    }
}
