//! What is around every page of the dashboard.

use crate::human;
use crate::query::link;
use maud::{DOCTYPE, Markup, html};

/// (path, name) of the pages that one goes to.
const PAGES: [(&str, &str); 10] = [
    ("/", "Overview"),
    ("/routes", "Routes"),
    ("/requests", "Requests"),
    ("/profile", "Profile"),
    ("/calls", "Calls"),
    ("/workers", "Workers"),
    ("/image", "Image"),
    ("/boot", "Boot"),
    ("/consoles", "Consoles"),
    ("/history", "History"),
];

/// Where a page is, and what is said of it.
pub(crate) struct Around<'a> {
    pub(crate) title: &'a str,
    /// The path of the page that the menu marks.
    pub(crate) path: &'a str,
    /// Its address, to load it again.
    pub(crate) address: &'a str,
    pub(crate) is_live: bool,
    pub(crate) now: u64,
}

/// A whole page.
pub(crate) fn page(around: &Around, main: &Markup) -> Markup {
    let live = link("/live", &[("of", around.address)]);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (around.title) " · Samovar" }
                link rel="stylesheet" href="/assets/style.css";
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                script src="/assets/live.js" defer {}
            }
            body data-live=[around.is_live.then_some(live)] {
                a.skip href="#main" { "To the contents" }
                header {
                    a.brand href="/" { img src="/assets/icon.svg" alt="" width="22" height="22"; "Samovar" }
                    nav aria-label="Pages" {
                        @for (path, name) in PAGES {
                            a href=(path) aria-current=[(path == around.path).then_some("page")] { (name) }
                        }
                    }
                    form.find action="/request" role="search" {
                        input type="search" name="id" placeholder="Request id" aria-label="Request id" required;
                    }
                }
                main #main { (main) }
                footer {
                    span {
                        "As of " time datetime=(datetime(around.now)) { (human::moment(around.now)) }
                        ". All times are UTC. "
                    }
                    a href=(around.address) { "Load again" }
                    span #live role="status" {}
                }
            }
        }
    }
}

/// As HTML's `time` wants it.
pub(crate) fn datetime(unix: u64) -> String {
    format!("{}T{}Z", human::date(unix), human::clock(unix))
}

/// A moment, in full for whoever points at it.
pub(crate) fn moment(unix: u64) -> Markup {
    html! { time datetime=(datetime(unix)) { (human::moment(unix)) } }
}

/// A part of a page, which a live page replaces as one.
pub(crate) fn part(id: &str, title: &str, inside: &Markup) -> Markup {
    html! {
        section id=(id) data-part {
            @if !title.is_empty() { h2 { (title) } }
            (inside)
        }
    }
}

/// A figure with its name.
pub(crate) fn tile(name: &str, value: &str, note: &str) -> Markup {
    html! {
        div.tile { dt { (name) } dd { (value) @if !note.is_empty() { small { (note) } } } }
    }
}

/// A name from outside that may be empty.
pub(crate) fn named(name: &str) -> Markup {
    html! { @if name.is_empty() { span.faint { "(no name)" } } @else { (name) } }
}

/// A link to a route's page.
pub(crate) fn route_link(route: &str) -> Markup {
    html! { a.name href=(link("/route", &[("name", route)])) { (named(route)) } }
}

/// In place of a table without rows.
pub(crate) fn nothing(why: &str) -> Markup {
    html! { p.empty { (why) } }
}
