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
mod pools;
mod profile;
mod queue;
mod queues;
mod request;
mod requests;
mod route;
mod routes;
mod tables;
mod upstreams;
mod view;
mod workers;

use crate::frame;
use crate::query::Query;
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use maud::Markup;
use view::{Shown, View};

struct Page {
    path: &'static str,
    /// Path of the menu's marked entry.
    of: &'static str,
    is_live: bool,
    show: fn(&View) -> Shown,
}

const PAGES: [Page; 15] = [
    Page { path: "/", of: "/", is_live: true, show: overview::show },
    Page { path: "/routes", of: "/routes", is_live: true, show: routes::show },
    Page { path: "/route", of: "/routes", is_live: true, show: route::show },
    Page { path: "/requests", of: "/requests", is_live: true, show: requests::show },
    Page { path: "/request", of: "/requests", is_live: false, show: request::show },
    Page { path: "/errors", of: "/errors", is_live: true, show: errors::show },
    Page { path: "/workers", of: "/workers", is_live: true, show: workers::show },
    Page { path: "/image", of: "/image", is_live: true, show: image::show },
    Page { path: "/boot", of: "/boot", is_live: false, show: boot::show },
    Page { path: "/queues", of: "/queues", is_live: true, show: queues::show },
    Page { path: "/queue", of: "/queues", is_live: false, show: queue::show },
    Page { path: "/consoles", of: "/consoles", is_live: true, show: consoles::show },
    Page { path: "/profile", of: "/profile", is_live: false, show: profile::show },
    Page { path: "/calls", of: "/calls", is_live: false, show: calls::show },
    Page { path: "/history", of: "/history", is_live: false, show: history::show },
];

fn page_of(path: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.path == path)
}

/// Returns whether a page supports live updates.
pub(super) fn is_live(path: &str) -> bool {
    page_of(path).is_some_and(|page| page.is_live)
}

/// Returns the page's main part, for streams.
pub(super) fn main(path: &str, query: &Query, sources: &Sources) -> Option<Markup> {
    let view = View { sources, query, now: samovar_insight::now() };
    page_of(path).map(|page| (page.show)(&view).main)
}

pub(super) fn respond(path: &str, query: &Query, sources: &Sources) -> AdminResponse {
    let Some(page) = page_of(path) else { return response::not_found() };
    let view = View { sources, query, now: samovar_insight::now() };
    let shown = (page.show)(&view);
    let address = match query.text() {
        "" => path.to_owned(),
        text => format!("{path}?{text}"),
    };
    let around = frame::Around {
        title: &shown.title,
        path: page.of,
        address: &address,
        is_live: page.is_live,
        now: view.now,
    };
    response::html(shown.status, frame::text(&around, &shown.main))
}

#[cfg(test)]
mod tests;
