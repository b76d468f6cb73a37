//! `/routes`: all routes in a table, sorted by the selected column.

use super::picker::Picker;
use super::view::{NOT_MEASURED, Shown, View};
use crate::chart::bar;
use crate::comparisons::{Change, RelativeChange, ShareChange};
use crate::format;
use crate::frame::{nothing, part, route_link};
use crate::periods::PeriodSums;
use crate::query::link;
use maud::{Markup, html};
use samovar_insight::store::RouteSum;
use std::cmp::Ordering;

/// Number of routes per page.
const ROWS_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Route,
    Calls,
    Errors,
    Cpu,
    P50,
    P95,
    P99,
    Queue,
    Waits,
    Memory,
    P95Change,
    CpuChange,
    ErrorsChange,
}

/// (column, key in links, heading, description).
const COLUMNS: [(Column, &str, &str, &str); 13] = [
    (Column::Route, "route", "Route", "name set by the application, otherwise the path"),
    (Column::Calls, "calls", "Calls", "requests that ended in the range"),
    (Column::Errors, "errors", "Errors", "responses with a status of 500 or above"),
    (Column::Cpu, "cpu", "Total CPU", "in workers, including rollbacks"),
    (Column::P50, "p50", "p50", "50 % of the requests took at most this time"),
    (Column::P95, "p95", "p95", "95 % of the requests took at most this time"),
    (Column::P99, "p99", "p99", "99 % of the requests took at most this time"),
    (Column::Queue, "queue", "Queue", "mean time until a worker took the request"),
    (Column::Waits, "waits", "Waits", "mean time PHP waited"),
    (Column::Memory, "memory", "Memory", "highest peak of PHP's memory"),
    (Column::P95Change, "p95change", "p95 change", "compared with the other period"),
    (Column::CpuChange, "cpuchange", "CPU change", "per request, compared with the other period"),
    (Column::ErrorsChange, "errorschange", "Errors change", "of the share of failed requests"),
];

struct Row {
    name: String,
    calls: u64,
    errors: u64,
    cpu_ns: u64,
    p50: u64,
    p95: u64,
    p99: u64,
    queue_ns: u64,
    waits_ns: u64,
    memory_bytes: u64,
    change: Change,
}

impl Row {
    fn new(name: &str, costs: &RouteSum, change: Change) -> Row {
        let mean = |sum: u64| sum / costs.requests.max(1);
        Row {
            name: name.to_owned(),
            calls: costs.requests,
            errors: costs.errors,
            cpu_ns: costs.cpu.sum_ns(),
            p50: costs.wall.quantile_ns(0.5),
            p95: costs.wall.quantile_ns(0.95),
            p99: costs.wall.quantile_ns(0.99),
            queue_ns: mean(costs.queue_ns),
            waits_ns: mean(costs.waiting_ns),
            memory_bytes: costs.peak_bytes_max,
            change,
        }
    }

    /// Largest first; missing values last.
    fn compare(&self, other: &Row, by: Column) -> Ordering {
        let by_name = || self.name.cmp(&other.name);
        let known = |of: Option<RelativeChange>| of.map_or(f64::NEG_INFINITY, |of| of.value);
        let number = |row: &Row| match by {
            Column::Calls => row.calls,
            Column::Errors => row.errors,
            Column::P50 => row.p50,
            Column::P95 => row.p95,
            Column::P99 => row.p99,
            Column::Queue => row.queue_ns,
            Column::Waits => row.waits_ns,
            Column::Memory => row.memory_bytes,
            _ => row.cpu_ns,
        };
        let ordering = match by {
            Column::Route => by_name(),
            Column::P95Change => known(other.change.p95).total_cmp(&known(self.change.p95)),
            Column::CpuChange => known(other.change.cpu).total_cmp(&known(self.change.cpu)),
            Column::ErrorsChange => {
                let known = |of: Option<ShareChange>| of.map_or(f64::NEG_INFINITY, |of| of.value);
                known(other.change.errors).total_cmp(&known(self.change.errors))
            }
            _ => number(other).cmp(&number(self)),
        };
        ordering.then_with(by_name)
    }
}

/// Selection of the page.
struct Asked {
    sort: (Column, &'static str),
    is_reversed: bool,
    find: String,
    first: usize,
}

impl Asked {
    fn of(view: &View) -> Asked {
        let get = |name| view.query.get(name).unwrap_or_default();
        let key = get("sort");
        let known = COLUMNS.iter().find(|(_, known, ..)| *known == key);
        let (column, key, ..) = known.unwrap_or(&COLUMNS[3]);
        Asked {
            sort: (*column, key),
            is_reversed: get("order") == "up",
            find: get("find"),
            first: get("skip").parse().unwrap_or(0),
        }
    }

    /// Returns a link to the same table with these values replaced.
    fn link(&self, pairs: &[(&str, &str)]) -> String {
        let order = if self.is_reversed { "up" } else { "" };
        let own = [("sort", self.sort.1), ("order", order), ("find", self.find.as_str())];
        let changed = |name: &str| pairs.iter().any(|(other, _)| *other == name);
        let kept = own.into_iter().filter(|(name, value)| !changed(name) && !value.is_empty());
        let all: Vec<_> =
            kept.chain(pairs.iter().copied().filter(|(_, v)| !v.is_empty())).collect();
        link("/routes", &all)
    }
}

pub(super) fn show(view: &View) -> Shown {
    let Some(insight) = &view.sources.insight else {
        return Shown::new("Routes", html! { h1 { "Routes" } (nothing(NOT_MEASURED)) });
    };
    let asked = Asked::of(view);
    let resolved = view.resolve(&view.range);
    let sums = view.sources.sums_of(&view.range, resolved.period, view.now);
    let other = resolved.against.clone().ok().flatten();
    let other = other.map(|period| view.sources.sums(period, view.now));
    let change = |name: &str, sum: &RouteSum| {
        let then = other.as_ref().and_then(|other| other.routes.get(name));
        then.map_or_else(Change::default, |then| Change::of(sum, then))
    };
    let rows = sums.routes.iter().filter(|(name, _)| name.contains(&asked.find));
    let mut rows: Vec<_> = rows.map(|(name, sum)| Row::new(name, sum, change(name, sum))).collect();
    let beyond = insight.figures().routes_used().1;
    let is_full = insight.figures().routes_are_full(view.now);
    rows.sort_by(|a, b| a.compare(b, asked.sort.0));
    if asked.is_reversed {
        rows.reverse();
    }
    let main = html! {
        h1 { "Routes" }
        form.filter action="/routes" {
            input type="hidden" name="sort" value=(asked.sort.1);
            label { "Name contains " input type="search" name="find" value=(asked.find); }
            button { "Show" }
        }
        (Picker {
            path: "/routes",
            range: &view.range,
            resolved: &resolved,
            missing: missing(&sums.missing, other.as_deref()),
            compares: true,
        }.show(view))
        (part("table", "", &table(&rows, &asked)))
        @if is_full {
            p.bad {
                "The table of routes is full: further routes are counted in (other). Raise "
                "insight.routes_max, or name routes with Samovar\\route()."
            }
        }
        @if beyond > 0 {
            p.faint {
                (format::count(beyond))
                " requests had a route beyond insight.routes_max; they are counted in (other)."
            }
        }
    };
    Shown::new("Routes", main)
}

fn table(rows: &[Row], asked: &Asked) -> Markup {
    if rows.is_empty() {
        return nothing(if asked.find.is_empty() {
            "No requests in this range."
        } else {
            "No matching route."
        });
    }
    let most_cpu = rows.iter().map(|row| row.cpu_ns).max().unwrap_or(0) as f64;
    let shown = rows.iter().skip(asked.first).take(ROWS_MAX);
    html! {
        div.scroll tabindex="0" {
            table.wide {
                thead { tr { @for column in &COLUMNS { (heading(column, asked)) } } }
                tbody {
                    @for row in shown {
                        tr {
                            th scope="row" { (route_link(&row.name)) }
                            td.number { (format::count(row.calls)) }
                            td.number.bad[row.errors > 0] { (format::count(row.errors)) }
                            td.number {
                                (format::time(row.cpu_ns))
                                (bar("c-php", row.cpu_ns as f64, most_cpu))
                            }
                            @for ns in [row.p50, row.p95, row.p99, row.queue_ns, row.waits_ns] {
                                td.number { (format::time(ns)) }
                            }
                            td.number { (format::bytes(row.memory_bytes)) }
                            (change(row.change.p95))
                            (change(row.change.cpu))
                            (share_change(row.change.errors))
                        }
                    }
                }
            }
        }
        @if rows.len() > ROWS_MAX || asked.first > 0 {
            p.more {
                (asked.first + 1) " to " (rows.len().min(asked.first + ROWS_MAX))
                " of " (rows.len()) ". "
                @if asked.first > 0 {
                    @let from = asked.first.saturating_sub(ROWS_MAX).to_string();
                    a href=(asked.link(&[("skip", &from)])) { "Previous" } " "
                }
                @if rows.len() > asked.first + ROWS_MAX {
                    @let next = (asked.first + ROWS_MAX).to_string();
                    a href=(asked.link(&[("skip", &next)])) { "Next" }
                }
            }
        }
    }
}

/// Returns the reason why a part of one of the two periods is missing.
pub(super) fn missing<'a>(now: &'a str, other: Option<&'a PeriodSums>) -> &'a str {
    if now.is_empty() { other.map_or("", |other| other.missing.as_str()) } else { now }
}

fn heading(column: &(Column, &'static str, &str, &str), asked: &Asked) -> Markup {
    let (column, key, name, says) = *column;
    let is_sorted = column == asked.sort.0;
    let order = if is_sorted && !asked.is_reversed { "up" } else { "" };
    // Names are sorted ascending by default, figures descending.
    let goes_up = asked.is_reversed != (column == Column::Route);
    html! {
        th scope="col" title=(says) class=(if column == Column::Route { "" } else { "number" })
            aria-sort=[is_sorted.then_some(if goes_up { "ascending" } else { "descending" })] {
            a href=(asked.link(&[("sort", key), ("order", order)])) {
                (name)
                @if is_sorted { span aria-hidden="true" { (if goes_up { " ▲" } else { " ▼" }) } }
            }
        }
    }
}

/// Returns a cell with a change, its sign and its interval. A change that is too large to be chance
/// has a colour: slower or more expensive, or the opposite.
pub(super) fn change(of: Option<RelativeChange>) -> Markup {
    match of {
        None => html! { td.number.faint { "–" } },
        Some(change) => {
            cell([change.value, change.low, change.high], change.is_significant(), signed)
        }
    }
}

/// Like [`change`], for a share: in points of a hundred.
pub(super) fn share_change(of: Option<ShareChange>) -> Markup {
    match of {
        None => html! { td.number.faint { "–" } },
        // Without a failure in either period there is nothing to read.
        Some(change) if change.value == 0.0 && !change.is_significant() => {
            html! { td.number.faint { "0" } }
        }
        Some(change) => {
            cell([change.value, change.low, change.high], change.is_significant(), points)
        }
    }
}

fn cell([value, low, high]: [f64; 3], is_real: bool, shown: fn(f64) -> String) -> Markup {
    let interval = format!("{} to {}", shown(low), shown(high));
    let more = value > 0.0;
    html! {
        td.number.bad[is_real && more].good[is_real && !more]
            title=(format!("with a probability of 95 %: {interval}")) {
            (shown(value)) " " span.faint.small { (interval) }
        }
    }
}

fn signed(change: f64) -> String {
    let text = format!("{:+.0} %", change * 100.0);
    text.replace('-', "−").replace("+0 %", "0 %").replace("−0 %", "0 %")
}

fn points(change: f64) -> String {
    let text = format!("{:+.1} points", change * 100.0);
    text.replace('-', "−").replace("+0.0", "0").replace("−0.0", "0")
}

#[cfg(test)]
mod tests {
    use super::{RelativeChange, change};

    #[test]
    fn change_is_formatted_with_its_sign() {
        let of = |value, low, high| Some(RelativeChange { value, low, high });
        for (of, expected) in [
            (None, ["<td class=\"number faint\">–</td>"; 2]),
            (
                of(0.5, 0.2, 0.8),
                ["class=\"number bad\"", ">+50 % <span class=\"faint small\">+20 % to +80 %"],
            ),
            (of(-0.25, -0.5, -0.01), ["class=\"number good\"", ">−25 % "]),
            (of(0.5, -0.1, 1.1), ["class=\"number\"", "−10 % to +110 %"]),
            (of(0.05, 0.04, 0.06), ["class=\"number\"", ">+5 % "]),
            (of(-0.001, -0.01, 0.01), ["class=\"number\"", ">0 % "]),
        ] {
            let shown = change(of).into_string();
            assert!(expected.iter().all(|part| shown.contains(part)), "{shown}: {expected:?}");
        }
    }
}
