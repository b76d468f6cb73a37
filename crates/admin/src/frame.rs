//! Frame around every page of the dashboard.

use crate::format;
use crate::query::link;
use maud::{DOCTYPE, Markup, html};

/// Address and metadata of a page.
pub(crate) struct Around<'a> {
    pub(crate) title: &'a str,
    /// Entries of the menu: path and name.
    pub(crate) menu: &'a [(&'a str, &'a str)],
    /// Path of the marked entry.
    pub(crate) marked: &'a str,
    /// Address of the page, for the link that reloads it.
    pub(crate) address: &'a str,
    pub(crate) is_live: bool,
    pub(crate) now: u64,
}

/// Returns the text of a whole page. Texts of clients and of PHP cannot change the order of the
/// text around them.
pub(crate) fn text(around: &Around, main: &Markup) -> String {
    samovar_log::printable_lines(&page(around, main).into_string()).into_owned()
}

/// Returns a whole page.
fn page(around: &Around, main: &Markup) -> Markup {
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
                a.skip href="#main" { "Skip to content" }
                header {
                    a.brand href="/" {
                        img src="/assets/icon.svg" alt="" width="22" height="22"; "Samovar"
                    }
                    nav aria-label="Pages" {
                        @for (path, name) in around.menu {
                            @let is_marked = *path == around.marked;
                            a href=(path) aria-current=[is_marked.then_some("page")] { (name) }
                        }
                    }
                    form.find action="/request" role="search" {
                        input type="search" name="id" placeholder="Request ID"
                            aria-label="Request ID" required;
                    }
                }
                main #main { (main) }
                footer {
                    span {
                        "As of "
                        time datetime=(datetime(around.now)) { (format::moment(around.now)) }
                        ". All times are UTC. "
                    }
                    a href=(around.address) { "Reload page" }
                    span #live role="status" {}
                }
            }
        }
    }
}

/// Formats a time for HTML's `time` element.
pub(crate) fn datetime(unix: u64) -> String {
    format!("{}T{}Z", format::date(unix), format::clock(unix))
}

/// Returns a time as text, with the full time in its attribute.
pub(crate) fn moment(unix: u64) -> Markup {
    html! { time datetime=(datetime(unix)) { (format::moment(unix)) } }
}

/// Returns a part of a page; a live page replaces it as a unit.
pub(crate) fn part(id: &str, title: &str, inside: &Markup) -> Markup {
    html! {
        section id=(id) data-part {
            @if !title.is_empty() { h2 { (title) } }
            (inside)
        }
    }
}

/// Returns a figure with its name.
pub(crate) fn tile(name: &str, value: &str, note: &str) -> Markup {
    html! {
        div.tile { dt { (name) } dd { (value) @if !note.is_empty() { small { (note) } } } }
    }
}

/// Returns a name from outside, with a placeholder if it is empty.
pub(crate) fn named(name: &str) -> Markup {
    html! {
        @if name.is_empty() { span.faint { "(no name)" } }
        // A link without visible text cannot be clicked.
        @else if name.trim().is_empty() { span.faint { "(" (name.chars().count()) " blanks)" } }
        @else { (breakable(name)) }
    }
}

/// Returns a path or a class name that a narrow column breaks after a separator, not in a word.
pub(crate) fn breakable(name: &str) -> Markup {
    html! {
        @for (at, word) in name.split_inclusive(['/', '\\']).enumerate() {
            @if at > 0 { wbr; }
            (word)
        }
    }
}

/// Returns a link to a route's page.
pub(crate) fn route_link(route: &str) -> Markup {
    html! { a.name href=(link("/route", &[("name", route)])) { (named(route)) } }
}

/// Returns a note in place of a table without rows.
pub(crate) fn nothing(why: &str) -> Markup {
    html! { p.empty { (why) } }
}
