//! `/requests`: slow and failed requests, latest first.

use super::tables;
use super::view::{NOT_MEASURED, Shown, View};
use crate::frame::{nothing, part};
use crate::query::link;
use maud::html;
use samovar_insight::RecentRequest;
use std::sync::Arc;

/// Maximum number of displayed requests.
const REQUESTS_MAX: usize = 100;
/// Number of requests on one page.
const PAGE_ROWS: usize = 50;
/// Length of the searched history in seconds.
const BACK_S: u64 = 86_400;

pub(super) fn show(view: &View) -> Shown {
    let Some(insight) = &view.sources.insight else {
        return Shown::new("Requests", html! { h1 { "Requests" } (nothing(NOT_MEASURED)) });
    };
    let mut kept: Vec<Arc<RecentRequest>> =
        insight.figures().kept().iter().take(REQUESTS_MAX).cloned().collect();
    if kept.len() < REQUESTS_MAX
        && let Some(store) = view.sources.store()
    {
        // Includes requests before the server's start.
        let from = view.now.saturating_sub(BACK_S);
        let stored = store.latest_requests(from, view.now + 1, REQUESTS_MAX as u32);
        let is_new = |one: &RecentRequest| !kept.iter().any(|known| **known == *one);
        let older: Vec<_> = stored.unwrap_or_default().into_iter().filter(is_new).collect();
        kept.extend(older.into_iter().map(Arc::new).take(REQUESTS_MAX - kept.len()));
    }
    kept.sort_by_key(|one| std::cmp::Reverse(one.numbers.began_unix_us));
    let skipped = view.query.get("skip").and_then(|skip| skip.parse().ok()).unwrap_or(0);
    let shown: Vec<_> = kept.iter().skip(skipped).take(PAGE_ROWS).cloned().collect();
    let next = skipped.saturating_add(PAGE_ROWS);
    let main = html! {
        h1 { "Slow and failed requests" }
        p.faint {
            "The last " (REQUESTS_MAX) ". Query strings, cookies and bodies are not recorded."
        }
        (part("table", "", &html! {
            (tables::requests(&shown, true))
            p.more {
                @if skipped > 0 { a href="/requests" { "Latest requests" } " " }
                @if next < kept.len() {
                    @let earlier = link("/requests", &[("skip", &next.to_string())]);
                    a href=(earlier) { "Earlier requests" }
                }
            }
        }))
    };
    Shown::new("Requests", main)
}
