//! Statements of a route or of one request: SQL, HTTP requests, commands of Redis.

use crate::chart::bar;
use crate::format;
use crate::frame::{breakable, nothing};
use maud::{Markup, html};
use samovar_insight::{REPEATS_MIN, RecentStatement, RouteFigures, StatementKind};

/// Maximum number of displayed statements.
const SHOWN_MAX: usize = 30;

/// One statement, per request.
struct Row {
    kind: StatementKind,
    text: String,
    place: Option<String>,
    calls: f64,
    ns: f64,
    /// Share of the requests' time, 0 to 1 or above: tasks may wait at the same time.
    share: f64,
    rows: f64,
    /// Number of executions in one request from its place, if it is repeated there.
    repeats: Option<u32>,
}

/// Returns the statements of a route.
pub(super) fn of_route(route: &RouteFigures) -> Markup {
    let requests = route.costs.requests.max(1) as f64;
    let whole = route.costs.wall.sum_ns().max(1) as f64;
    let rows = route.statements().into_iter().map(|s| Row {
        kind: s.kind,
        place: s.place(),
        calls: s.calls as f64 / requests,
        ns: s.ns as f64 / requests,
        share: s.ns as f64 / whole,
        rows: s.rows as f64 / requests,
        repeats: (s.repeating > 0).then_some(s.repeats_max),
        text: s.text.to_string(),
    });
    table(&rows.collect::<Vec<_>>(), "per request")
}

/// Returns the statements of one request.
pub(super) fn of_request(statements: &[RecentStatement], wall_ns: u64) -> Markup {
    let rows = statements.iter().map(|s| Row {
        kind: s.kind,
        text: s.text.to_string(),
        place: (!s.file.is_empty()).then(|| format!("{}:{}", s.file, s.line)),
        calls: s.calls.into(),
        ns: s.ns as f64,
        share: s.ns as f64 / wall_ns.max(1) as f64,
        rows: s.rows as f64,
        repeats: (s.place_calls >= REPEATS_MIN).then_some(s.place_calls),
    });
    table(&rows.collect::<Vec<_>>(), "")
}

fn table(all: &[Row], per: &str) -> Markup {
    if all.is_empty() {
        return nothing("No statements: no SQL, no HTTP requests, no commands of Redis.");
    }
    let most = all.iter().map(|row| row.ns).fold(0.0, f64::max);
    html! {
        div.scroll tabindex="0" {
            table.compact {
                thead {
                    tr {
                        th scope="col" { "Statement and its place in PHP" }
                        th.number scope="col" { "Calls " (per) }
                        th.number scope="col" { "Time " (per) }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Share" }
                        th.number scope="col" { "Rows " (per) }
                    }
                }
                tbody { @for row in all.iter().take(SHOWN_MAX) { (one(row, most)) } }
            }
        }
        @if all.len() > SHOWN_MAX {
            p.faint.small { (all.len() - SHOWN_MAX) " more statements took less time." }
        }
        p.faint.small {
            "The time is that of the calls in PHP. It includes the wait for the server, and not "
            "the time in which single rows are fetched."
        }
    }
}

fn one(row: &Row, most: f64) -> Markup {
    html! {
        tr {
            td.name {
                @if row.kind != StatementKind::Sql { span.tag { (row.kind.name()) } " " }
                code { (row.text) }
                @if let Some(repeats) = row.repeats {
                    br;
                    b.bad { "N+1: " (repeats) " × in one request" }
                    @if let Some(place) = &row.place { ", from " span.small { (breakable(place)) } }
                } @else if let Some(place) = &row.place {
                    br;
                    span.faint.small { (breakable(place)) }
                }
            }
            td.number data-of="calls" { (format::digits(row.calls)) }
            td.number { (format::time(row.ns as u64)) }
            td.bars { (bar("c-wait", row.ns, most)) }
            td.number { (format::percent(row.share, 1.0)) }
            @if row.rows > 0.0 {
                td.number data-of="rows" { (format::digits(row.rows)) }
            } @else {
                td.number {}
            }
        }
    }
}
