//! Which path is which page.

mod api;
pub(crate) mod dashboard;
mod health;
mod metrics;

use crate::Sources;
use crate::answer::{self, Answer};
use crate::query::Query;
use http::{HeaderMap, StatusCode};

/// A load balancer has no token, and learns nothing here.
pub(crate) fn needs_token(path: &str) -> bool {
    !matches!(path, "/health" | "/ready")
}

/// What reads nothing that takes time: it is answered whatever else is asked for.
pub(crate) fn at_once(
    headers: &HeaderMap,
    (path, query): (&str, &Query),
    sources: &Sources,
) -> Option<Answer> {
    let asset =
        |content_type, text: &'static str| answer::of_type(StatusCode::OK, content_type, text);
    Some(match path {
        "/metrics" => metrics::page(headers, sources),
        "/health" => health::alive(),
        "/ready" => health::ready(sources, query),
        "/assets/style.css" => asset(answer::CSS, include_str!("assets/style.css")),
        "/assets/live.js" => asset(answer::SCRIPT, include_str!("assets/live.js")),
        "/assets/flame.js" => asset(answer::SCRIPT, include_str!("assets/flame.js")),
        "/assets/icon.svg" => asset(answer::SVG, include_str!("assets/icon.svg")),
        _ => return None,
    })
}

/// All other pages.
pub(crate) fn made(path: &str, query: &Query, sources: &Sources) -> Answer {
    match path.strip_prefix("/api/") {
        Some(rest) => api::answer(rest, sources),
        None => dashboard::answer(path, query, sources),
    }
}
