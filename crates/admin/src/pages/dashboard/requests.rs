//! `/requests`: slow and failed requests, latest first.

mod filter;

use super::picker::Picker;
use super::tables;
use super::view::{NOT_MEASURED, Shown, View};
use crate::frame::{nothing, part};
use crate::query::link;
use crate::range::Span;
use filter::Filter;
use maud::html;
use samovar_insight::RecentRequest;
use std::sync::Arc;

/// Maximum number of displayed requests.
const REQUESTS_MAX: usize = 100;
/// Maximum number of stored requests that a filter searches.
const SEARCHED_MAX: usize = 2_000;
/// Number of requests on one page.
const PAGE_ROWS: usize = 50;
/// Range without a selection: such requests are rare. The index of a day.
const USUAL: Span = Span::Last(3);

pub(super) fn show(view: &View) -> Shown {
    let Some(insight) = &view.sources.insight else {
        return Shown::new("Requests", html! { h1 { "Requests" } (nothing(NOT_MEASURED)) });
    };
    let range = view.range_or(USUAL);
    let resolved = view.resolve(&range);
    let period = resolved.period;
    let filter = Filter::of(view.query);
    let is_wanted = |kept: &RecentRequest| {
        period.contains(kept.numbers.began_unix_us / 1_000_000) && filter.matches(kept)
    };
    let mut kept = insight.figures().kept().latest(REQUESTS_MAX, is_wanted);
    if kept.len() < REQUESTS_MAX
        && let Some(store) = view.sources.store()
    {
        // Includes requests before the server's start.
        let searched = if filter.is_set() { SEARCHED_MAX } else { REQUESTS_MAX };
        let stored = store.latest_requests(period.from, period.to, searched as u32);
        let is_new =
            |one: &RecentRequest| filter.matches(one) && !kept.iter().any(|known| **known == *one);
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
            "The last " (REQUESTS_MAX) " in the range, slow and failed ones in equal parts if "
            "there are more. Query strings, cookies and bodies are not recorded."
        }
        (Picker {
            path: "/requests",
            range: &range,
            resolved: &resolved,
            missing: "",
            compares: false,
        }.show(view))
        (filter.form())
        (part("table", "", &html! {
            @if shown.is_empty() && filter.is_set() {
                (nothing("No kept request meets these conditions."))
            } @else {
                (tables::requests(&shown, true))
            }
            p.more {
                @let fields: Vec<_> = filter.pairs().collect();
                @if skipped > 0 { a href=(link("/requests", &fields)) { "Latest requests" } " " }
                @if next < kept.len() {
                    @let next = next.to_string();
                    @let earlier = link("/requests", &[&fields[..], &[("skip", &next)]].concat());
                    a href=(earlier) { "Earlier requests" }
                }
            }
        }))
    };
    Shown::new("Requests", main)
}
