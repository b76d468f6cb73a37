//! `/errors`: exceptions and fatal errors, grouped by class and place, and one group with its
//! requests (`/errors?group=`).

use super::picker::Picker;
use super::tables;
use super::view::{NOT_MEASURED, Shown, View};
use crate::format;
use crate::frame::{moment, nothing, part, route_link, tile};
use crate::query::link;
use crate::range::Span;
use maud::{Markup, html};
use samovar_insight::{ErrorGroup, ErrorKind, RecordedError};
use std::sync::Arc;

/// Maximum number of displayed groups.
const GROUPS_MAX: usize = 100;
/// Time in seconds for which a group is marked as new.
const NEW_S: u64 = 900;

pub(super) fn show(view: &View) -> Shown {
    let Some(insight) = &view.sources.insight else {
        return Shown::new("Errors", html! { h1 { "Errors" } (nothing(NOT_MEASURED)) });
    };
    if let Some(id) = view.query.get("group") {
        let id = u64::from_str_radix(id.trim(), 16).ok();
        let found = id.and_then(|id| insight.figures().errors().group_of(id).cloned());
        return found.map_or_else(
            || {
                let why = "The server has not seen this error since its start, or newer errors \
                           have replaced it.";
                Shown::not_found("No such error", why)
            },
            |group| one(&group),
        );
    }
    let range = view.range_or(Span::Start);
    let resolved = view.resolve(&range);
    let period = resolved.period;
    let (groups, evicted) = {
        let figures = insight.figures();
        let all = figures.errors().latest().into_iter();
        let is_start = range.span == Span::Start;
        let inside = all
            .filter(|group| is_start || group.last_at >= period.from && group.first_at < period.to);
        (inside.cloned().collect::<Vec<ErrorGroup>>(), figures.errors().evicted())
    };
    let main = html! {
        h1 { "Errors" }
        p.faint {
            "Exceptions and fatal errors that were seen in the range, grouped by class and place. "
            "The counts are since the start. Secret "
            "values in messages are redacted. The application can add handled exceptions with "
            code { "Samovar\\report_exception()" } "."
        }
        (Picker {
            path: "/errors",
            range: &range,
            resolved: &resolved,
            missing: "",
            compares: false,
        }.show(view))
        (part("table", "", &table(&groups, view.now)))
        @if groups.len() > GROUPS_MAX {
            p.faint { "And " (format::count((groups.len() - GROUPS_MAX) as u64)) " more groups." }
        }
        @if evicted > 0 {
            p.faint { (format::count(evicted)) " groups were replaced by newer ones." }
        }
    };
    Shown::new("Errors", main)
}

/// Returns the fate of an error, for people.
fn outcome(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Fatal => "fatal error",
        ErrorKind::Uncaught => "not caught",
        ErrorKind::Rendered => "caught, status 5xx",
        ErrorKind::Reported => "reported by the application",
        ErrorKind::Previous => "previous exception",
    }
}

fn address(group: &ErrorGroup) -> String {
    link("/errors", &[("group", &format!("{:016x}", group.id))])
}

fn table(groups: &[ErrorGroup], now: u64) -> Markup {
    if groups.is_empty() {
        return nothing("No errors in this range.");
    }
    html! {
        div.scroll tabindex="0" {
            table.compact {
                thead {
                    tr {
                        th scope="col" { "Error" }
                        th scope="col" { "Outcome" }
                        th.number scope="col" { "Count" }
                        th scope="col" { "First seen" }
                        th scope="col" { "Last seen" }
                        th scope="col" { "Route" }
                    }
                }
                tbody {
                    @for group in groups.iter().take(GROUPS_MAX) {
                        @let error = &group.latest;
                        tr {
                            th.name scope="row" {
                                a href=(address(group)) { (error.class) }
                                @if group.first_at + NEW_S > now { " " span.tag { "new" } }
                                br;
                                (tables::shortened(&error.message)) br;
                                small.faint { (error.place()) }
                            }
                            td { (outcome(error.kind)) }
                            td.number data-of="times" { (format::count(group.count)) }
                            td data-of="(first)" {
                                (moment(group.first_at)) (release(&group.first_release))
                            }
                            td data-of="(last)" {
                                (moment(group.last_at)) (release(&group.last_release))
                            }
                            td { (routes_in_short(group)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the route with most of the errors, and the number of the others.
fn routes_in_short(group: &ErrorGroup) -> Markup {
    let most = group.routes().max_by_key(|(_, count)| *count);
    let more = group.routes().count().saturating_sub(1);
    html! {
        @if let Some((route, _)) = most { (route_link(route)) }
        @if more > 0 { " and " (more) " more" }
    }
}

fn one(group: &ErrorGroup) -> Shown {
    let error = &group.latest;
    let mut routes: Vec<_> = group.routes().collect();
    routes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let requests: Vec<_> = group.requests().map(Arc::clone).collect();
    let main = html! {
        h1.name { (error.class) }
        p.name { (error.message) }
        p { (outcome(error.kind)) " at " code.name { (error.place()) } }
        dl.tiles {
            (tile("Count", &format::count(group.count), "since the start"))
            (seen("First seen", group.first_at, group.first_generation, &group.first_release))
            (seen("Last seen", group.last_at, group.last_generation, &group.last_release))
        }
        (part("trace", "Stack of the latest", &trace(error)))
        (part("routes", "Routes", &html! {
            div.scroll tabindex="0" { table {
                thead { tr { th scope="col" { "Route" } th.number scope="col" { "Errors" } } }
                tbody { @for (route, count) in routes { tr {
                    td { (route_link(route)) }
                    td.number { (format::count(count)) }
                } } }
            } }
        }))
        (part("requests", "Latest requests", &tables::requests(&requests, true)))
        p.more { a href="/errors" { "All errors" } }
    };
    Shown::new(error.class.to_string(), main)
}

fn seen(name: &str, at: u64, generation: u32, release: &str) -> Markup {
    let by = match release {
        "" => format!("generation {generation}"),
        label => format!("release {label}, generation {generation}"),
    };
    tile(name, &format::moment(at), &by)
}

/// Returns the label of a release below a time.
fn release(label: &str) -> Markup {
    html! { @if !label.is_empty() { br; small.faint.name { "release " (label) } } }
}

/// Returns class, message, place, stack and previous exceptions as text.
pub(super) fn trace(error: &RecordedError) -> Markup {
    html! { pre { code { (error.trace()) } } }
}

/// Returns the errors of one request.
pub(super) fn of_request(errors: &[RecordedError]) -> Markup {
    html! {
        @for error in errors {
            p { b.name { (error.class) } ": " (outcome(error.kind)) }
            (trace(error))
        }
        p.more { a href="/errors" { "All errors" } }
    }
}
