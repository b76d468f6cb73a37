//! Maps paths to pages.

mod api;
mod dashboard;
mod health;
mod metrics;

use crate::live::Live;
use crate::query::Query;
use crate::reader::Reader;
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use http::{HeaderMap, StatusCode};
use samovar_spy::profile::svg::FLAME_SCRIPT;
use tokio::sync::OwnedSemaphorePermit;

/// Returns whether a path is a health check of a load balancer.
pub(crate) fn is_health(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// Returns whether a path needs the token. A load balancer has none, and its pages reveal nothing.
pub(crate) fn needs_token(path: &str) -> bool {
    !is_health(path)
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
        "/assets/flame.js" => asset(response::SCRIPT, FLAME_SCRIPT),
        "/assets/flame_page.js" => asset(response::SCRIPT, include_str!("assets/flame_page.js")),
        "/assets/icon.svg" => asset(response::SVG, include_str!("assets/icon.svg")),
        _ => return None,
    })
}

/// Returns all other pages.
pub(crate) fn made(path: &str, query: &Query, sources: &Sources) -> AdminResponse {
    match path.strip_prefix("/api/") {
        Some(rest) => api::respond(rest, query, sources),
        None => dashboard::respond(path, query, sources),
    }
}

/// Returns a stream of the page `of` (for example `/routes?sort=p99`), or an error if the page is
/// not a live one.
pub(crate) fn live(of: &str, reader: Reader, permit: OwnedSemaphorePermit) -> AdminResponse {
    let (path, query) = of.split_once('?').unwrap_or((of, ""));
    if !dashboard::is_live(path) {
        return response::not_found();
    }
    response::live(Live::new((path, Query::new(query)), dashboard::main, reader, permit))
}
