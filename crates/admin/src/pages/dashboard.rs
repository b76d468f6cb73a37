//! The dashboard: pages for people.
//!
//! Each page is a function of the query and of [`Sources`]. Names from outside (routes, paths,
//! peers, tags, ids) are only used as text, or encoded in a link's query: maud escapes all text,
//! and no code here bypasses that.

mod boot;
mod calls;
mod consoles;
mod errors;
mod history;
mod image;
mod overview;
mod picker;
mod plan;
mod pools;
mod profile;
mod queue;
mod queues;
mod releases;
mod request;
mod requests;
mod route;
mod routes;
mod schedules;
mod statements;
mod tables;
mod upstreams;
mod view;
mod workers;

use crate::frame;
use crate::query::Query;
use crate::range::{InvalidRange, Known, Range};
use crate::range_links;
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use http::StatusCode;
use maud::html;
use view::{Shown, View};

struct Page {
    path: &'static str,
    entry: Entry,
    is_live: bool,
    show: fn(&View) -> Shown,
}

/// Place of a page in the menu.
enum Entry {
    /// The page is an entry of this name.
    Named(&'static str),
    /// The page has no entry; the entry with this path is marked.
    Below(&'static str),
}

use Entry::{Below, Named};

/// All pages. Those with a name are in the menu, in this order.
const PAGES: [Page; 18] = [
    Page { path: "/", entry: Named("Overview"), is_live: true, show: overview::show },
    Page { path: "/routes", entry: Named("Routes"), is_live: true, show: routes::show },
    Page { path: "/route", entry: Below("/routes"), is_live: true, show: route::show },
    Page { path: "/requests", entry: Named("Requests"), is_live: true, show: requests::show },
    Page { path: "/request", entry: Below("/requests"), is_live: false, show: request::show },
    Page { path: "/errors", entry: Named("Errors"), is_live: true, show: errors::show },
    Page { path: "/profile", entry: Named("Profile"), is_live: false, show: profile::show },
    Page { path: "/calls", entry: Named("Calls"), is_live: false, show: calls::show },
    Page { path: "/workers", entry: Named("Workers"), is_live: true, show: workers::show },
    Page { path: "/releases", entry: Named("Releases"), is_live: true, show: releases::show },
    Page { path: "/image", entry: Named("Image"), is_live: true, show: image::show },
    Page { path: "/boot", entry: Named("Boot"), is_live: false, show: boot::show },
    Page { path: "/queues", entry: Named("Queues"), is_live: true, show: queues::show },
    Page { path: "/queue", entry: Below("/queues"), is_live: false, show: queue::show },
    Page { path: "/schedules", entry: Named("Schedules"), is_live: true, show: schedules::show },
    Page { path: "/consoles", entry: Named("Consoles"), is_live: true, show: consoles::show },
    Page { path: "/history", entry: Named("History"), is_live: false, show: history::show },
    Page { path: "/plan", entry: Named("Plan"), is_live: true, show: plan::show },
];

/// Returns the entries of the menu: path and name.
fn menu() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().filter_map(|page| match page.entry {
        Named(name) => Some((page.path, name)),
        Below(_) => None,
    })
}

fn page_of(path: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.path == path)
}

/// Returns whether a page supports live updates.
pub(super) fn is_live(path: &str) -> bool {
    page_of(path).is_some_and(|page| page.is_live)
}

/// Returns the page's main part, for streams.
pub(super) fn main(path: &str, query: &Query, sources: &Sources) -> Option<String> {
    let now = samovar_insight::now();
    let range = sources.range(query, now).ok()?;
    let view = View::new(sources, query, now, range);
    let main = page_of(path).map(|page| (page.show)(&view).main.into_string())?;
    Some(range_links::keep(&main, &range.pairs(), is_page))
}

pub(super) fn respond(path: &str, query: &Query, sources: &Sources) -> AdminResponse {
    let Some(page) = page_of(path) else { return response::not_found() };
    let now = samovar_insight::now();
    let (shown, range) = match sources.range(query, now) {
        Ok(range) => ((page.show)(&View::new(sources, query, now, range)), range),
        Err(invalid) => (refused(path, query, &invalid), Range::default()),
    };
    let address = match query.text() {
        "" => path.to_owned(),
        text => format!("{path}?{text}"),
    };
    let text = page.text(&shown, &address, now);
    response::html(shown.status, range_links::keep(&text, &range.pairs(), is_page))
}

fn is_page(path: &str) -> bool {
    page_of(path).is_some()
}

/// Returns the page for a query without a valid range.
fn refused(path: &str, query: &Query, invalid: &InvalidRange) -> Shown {
    let picker = picker::links(path, query, &Range::default(), &Known::default());
    let InvalidRange { what, hint } = invalid;
    let main = html! {
        h1 { "Invalid time range" }
        p.bad { (picker::sentence(what)) }
        p { (picker::sentence(hint)) }
        (picker)
    };
    Shown { title: "Invalid time range".to_owned(), main, status: StatusCode::BAD_REQUEST }
}

impl Page {
    /// Returns the whole page.
    fn text(&self, shown: &Shown, address: &str, now: u64) -> String {
        let around = frame::Around {
            title: &shown.title,
            menu: &menu().collect::<Vec<_>>(),
            marked: match self.entry {
                Named(_) => self.path,
                Below(path) => path,
            },
            address,
            is_live: self.is_live && shown.status == StatusCode::OK,
            now,
        };
        frame::text(&around, &shown.main)
    }
}

#[cfg(test)]
mod tests;
