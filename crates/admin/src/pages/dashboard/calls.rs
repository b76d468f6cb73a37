//! `/calls`: call graph of a route's traced requests on a day, and its growth; one function with
//! its callers and callees. Sort orders are links, so no script is needed. `allocations.rs` shows
//! the allocated memory.

// The casts are of means of times.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod allocations;

use super::pools::{KEY, Pools};
use super::view::{Shown, View};
use crate::format::{self, short};
use crate::frame::{nothing, part};
use crate::query::link;
use maud::{Markup, html};
use samovar_profile::calls::table::{Neighbour, Order, Row, neighbours, rows};
use samovar_profile::calls::{Function, Selected};

/// Maximum number of functions in the table.
const ROWS_MAX: usize = 100;
/// Maximum number of callers, and of callees, of a function.
const NEIGHBOURS_MAX: usize = 50;
const DAY_S: u64 = 86_400;
const TITLE: &str = "Calls";
const NONE: &str =
    "No requests are traced: profile.trace is 0 in the settings, and profile.trace_key is not set.";

pub(super) fn show(view: &View) -> Shown {
    let pools = match Pools::of(view, &view.sources.host.status(), TITLE) {
        Ok(pools) => pools,
        Err(unknown) => return unknown,
    };
    let text = |name| view.query.get(name).filter(|text| !text.is_empty());
    let of_listed = |name| text(name).filter(|_| !pools.has_changed(false));
    let day = of_listed("day").and_then(|day| day.parse::<u64>().ok());
    let route = of_listed("route");
    let selected = match view.sources.host.calls(pools.chosen(), day, route.as_deref()) {
        Some(Ok(selected)) => selected,
        none => {
            let why = none.and_then(Result::err).unwrap_or_else(|| NONE.to_owned());
            let main = html! {
                h1 { (TITLE) (pools.title()) }
                (pools.form("/calls"))
                @for line in why.lines() { (nothing(line)) }
            };
            return Shown::new(TITLE, main);
        }
    };
    // The full name of a route of another pool selects that pool.
    let pools = pools.showing(&selected.pool);
    let order = text("by").and_then(|name| Order::of(&name)).unwrap_or_default();
    let function = text("function");
    let of_memory = text("show").is_some_and(|show| show == "memory");
    let main = html! {
        h1 {
            (TITLE)
            @if !selected.route.is_empty() { " of " span.name { (selected.route) } }
            (pools.title())
        }
        @if selected.days.is_empty() {
            (pools.form("/calls"))
            (nothing("No request has been traced yet."))
        } @else {
            (choice(&selected, &pools, of_memory))
            (views(&selected, of_memory))
            @match &function {
                _ if of_memory => (allocations::show(&selected)),
                None => (table(&selected, order)),
                Some(name) => (one(&selected, name)),
            }
        }
    };
    Shown::new(TITLE, main)
}

fn choice(selected: &Selected, pools: &Pools, of_memory: bool) -> Markup {
    let is_listed = selected.routes.iter().any(|(name, _)| *name == selected.route);
    html! {
        form.ask action="/calls" {
            (pools.control(None))
            @if of_memory { input type="hidden" name="show" value="memory"; }
            label { "Route " select name="route" {
                @if !is_listed { option value=(selected.route) selected { (selected.route) } }
                @for (name, requests) in &selected.routes {
                    option value=(name) selected[*name == selected.route] {
                        (name) " (" (format::count(*requests)) ")"
                    }
                }
            } }
            label { "Day " select name="day" {
                @for day in &selected.days {
                    option value=(day) selected[*day == selected.day] {
                        (format::date(day * DAY_S))
                    }
                }
            } }
            button { "Show" }
        }
    }
}

/// Links between time and memory.
fn views(selected: &Selected, of_memory: bool) -> Markup {
    html! {
        p {
            @if of_memory { a href=(address(selected, ("by", "own"))) { "Calls and time" } }
            @else { b { "Calls and time" } }
            " · "
            @if of_memory { b { "Allocated memory" } }
            @else { a href=(address(selected, ("show", "memory"))) { "Allocated memory" } }
        }
    }
}

fn address(selected: &Selected, more: (&str, &str)) -> String {
    let day = selected.day.to_string();
    let whole = [(KEY, &*selected.pool), ("route", &selected.route), ("day", &day), more];
    let is_one = selected.pool.is_empty();
    link("/calls", &whole[usize::from(is_one)..])
}

fn time(ns: f64) -> String {
    format::time(ns.max(0.0) as u64)
}

fn bytes(of: f64) -> String {
    let sign = if of < 0.0 { "−" } else { "" };
    format!("{sign}{}", format::bytes(of.abs() as u64))
}

fn growth(of: Option<f64>) -> Markup {
    let Some(more) = of else { return html! {} };
    let class = if more > 0.0 { "bad" } else { "good" };
    // A change of less than 0.1 µs is not significant.
    if more.abs() < 100.0 {
        return html! { "0" };
    }
    let sign = if more < 0.0 { "−" } else { "+" };
    html! { span class=(class) { (sign) (time(more.abs())) } }
}

fn said(selected: &Selected) -> String {
    let before = match selected.before.requests {
        0 => "none in the week before: no comparison possible.".to_owned(),
        n => format!("{} in the week before.", format::count(n)),
    };
    format!(
        "{} requests traced on {}, {before}",
        format::count(selected.graph.requests),
        format::date(selected.day * DAY_S)
    )
}

fn table(selected: &Selected, order: Order) -> Markup {
    let graph = &selected.graph;
    if graph.requests == 0 {
        return nothing("No request of this route was traced on that day.");
    }
    let all = rows(graph, &selected.before, order);
    let heads = [
        (Order::Calls, "Calls"),
        (Order::Own, "Self"),
        (Order::Cpu, "Self CPU"),
        (Order::Total, "Total"),
        (Order::Slowest, "p50 / p95"),
        (Order::Memory, "Memory"),
        (Order::Growth, "Change in a week"),
    ];
    let name_of = |wanted| {
        let found = Order::ALL.iter().find(|(order, _)| *order == wanted);
        found.map_or("", |(_, name)| name)
    };
    let row = |row: &Row<'_>| {
        html! {
            tr {
                th.name scope="row" {
                    a href=(address(selected, ("function", &row.function.name))) {
                        (short(&row.function.name))
                    }
                }
                td.number { (format::digits(row.calls)) }
                td.number { (time(row.own)) }
                td.number { (time(row.cpu)) }
                td.number { (time(row.total)) }
                td.number {
                    (format::time(row.percentiles[0])) " / " (format::time(row.percentiles[1]))
                }
                td.number { (bytes(row.memory)) }
                td.number { (growth(row.growth)) }
            }
        }
    };
    let inside = html! {
        p { (said(selected)) " All figures are per request." }
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                @for (by, name) in heads {
                    th.number scope="col" aria-sort=[(by == order).then_some("descending")] {
                        a href=(address(selected, ("by", name_of(by)))) {
                            (name) @if by == order { " ▼" }
                        }
                    }
                }
            } }
            tbody { @for of in all.iter().take(ROWS_MAX) { (row(of)) } }
        } }
        @if all.len() > ROWS_MAX {
            p.faint { "… and " (format::count((all.len() - ROWS_MAX) as u64)) " more functions." }
        }
        @if graph.lost > 0 {
            p.faint {
                (format::count(graph.lost))
                " functions or edges exceeded the limit and are counted as (other)."
            }
        }
        p.faint.small {
            "The overhead of the tracer ("
            @for (at, cost) in graph.costs.iter().enumerate() { @if at > 0 { ", " } (cost) " ns" }
            " for a call of a PHP function, and of a built-in function) is measured at its start, "
            "and is not included in these times."
        }
    };
    part("functions", "Functions", &inside)
}

fn one(selected: &Selected, name: &str) -> Markup {
    let Some([above, below]) = neighbours(&selected.graph, name) else {
        return nothing("No traced request of that day called this function.");
    };
    let place = selected.graph.function(name).map(|(_, function)| place(function));
    html! {
        h2.name { (short(name)) }
        p.name.faint { (place.unwrap_or_default()) }
        p { a href=(address(selected, ("by", "own"))) { "All functions" } }
        (part("callers", "Called by", &sides(selected, &above)))
        (part("callees", "Calls", &sides(selected, &below)))
    }
}

fn place(function: &Function) -> String {
    match &*function.file {
        "" => "built-in".to_owned(),
        file => format!("{}:{}", short(file), function.line),
    }
}

fn sides(selected: &Selected, all: &[Neighbour<'_>]) -> Markup {
    if all.is_empty() {
        return nothing("None.");
    }
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                th.number scope="col" { "Calls" }
                th.number scope="col" { "Time" }
                th.number scope="col" { "CPU time" }
            } }
            tbody { @for (function, calls, wall, cpu) in all.iter().take(NEIGHBOURS_MAX) {
                tr {
                    th.name scope="row" {
                        a href=(address(selected, ("function", &function.name))) {
                            (short(&function.name))
                        }
                    }
                    td.number { (format::digits(*calls)) }
                    td.number { (time(*wall)) }
                    td.number { (time(*cpu)) }
                }
            } }
        } }
    }
}
