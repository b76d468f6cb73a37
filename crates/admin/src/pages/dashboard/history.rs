//! `/history`: the last hours or days by minute, of all routes or one, with their events.

use super::tables;
use super::view::{Shown, View};
use crate::chart::{Layer, Lines, empty};
use crate::format;
use crate::frame::{nothing, part, route_link};
use crate::query::link;
use maud::{Markup, html};
use samovar_insight::Histogram;
use samovar_insight::store::{Event, RouteMinute, Store, StoreError};

/// Selectable spans: hours, seconds per piece, name.
const SPANS: [(u64, u64, &str); 4] =
    [(1, 60, "1 hour"), (6, 300, "6 hours"), (24, 600, "1 day"), (168, 3_600, "7 days")];
const SPAN_AT_FIRST: (u64, u64, &str) = SPANS[2];
const HOUR_S: u64 = 3_600;
/// Maximum number of listed routes.
const ROUTES_MAX: u32 = 50;
const EVENTS_MAX: usize = 200;
/// Maximum number of peers over several days; the peers of a minute are bounded anyway.
const PEERS_MAX: usize = 64;

/// Selection of the page.
struct Asked {
    route: Option<String>,
    hours: u64,
    step: u64,
    from: u64,
    to: u64,
    is_latest: bool,
}

impl Asked {
    fn of(view: &View) -> Asked {
        let number = |name| view.query.get(name).and_then(|n| n.parse::<u64>().ok());
        let hours = number("hours").unwrap_or(SPAN_AT_FIRST.0);
        let span = SPANS.into_iter().find(|(known, ..)| *known == hours);
        let (hours, step, _) = span.unwrap_or(SPAN_AT_FIRST);
        let end = number("to").filter(|to| *to < view.now);
        let to = last_minute(end.unwrap_or(view.now));
        let from = to.saturating_sub(hours * HOUR_S);
        let route = view.query.get("route").filter(|route| !route.is_empty());
        Asked { route, hours, step, from, to, is_latest: end.is_none() }
    }

    fn pieces(&self) -> usize {
        ((self.to - self.from) / self.step) as usize
    }

    fn place(&self, at: u64) -> usize {
        (at.saturating_sub(self.from) / self.step) as usize
    }

    fn link(&self, hours: u64, to: Option<u64>) -> String {
        let (hours, to) = (hours.to_string(), to.map(|to| to.to_string()).unwrap_or_default());
        let route = self.route.as_deref().unwrap_or_default();
        let pairs = [("hours", hours.as_str()), ("to", to.as_str()), ("route", route)];
        let said: Vec<_> = pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        link("/history", &said)
    }
}

/// Returns the end of the last complete minute, so that each piece before it is complete.
fn last_minute(at: u64) -> u64 {
    at - at % 60
}

pub(super) fn show(view: &View) -> Shown {
    let asked = Asked::of(view);
    let title = "History";
    let Some(store) = view.sources.store() else {
        let main =
            html! { h1 { (title) } (nothing("No history: it is disabled, or cannot be read.")) };
        return Shown::new(title, main);
    };
    // The latest events are included although their minute is not complete.
    let until = if asked.is_latest { view.now + 1 } else { asked.to };
    let events = view.sources.events(asked.from, until);
    let charts = match &asked.route {
        Some(route) => of_route(&store, route, &asked, &events),
        None => of_all(&store, &asked, &events),
    };
    let main = html! {
        h1 { (title) @if let Some(route) = &asked.route { " of " span.name { (route) } } }
        (choice(&asked))
        @match charts {
            Ok(charts) => (charts),
            Err(error) => p.unwell { (error) },
        }
        (part("events", "Events", &tables::events(&events, EVENTS_MAX)))
    };
    Shown::new(title, main)
}

fn choice(asked: &Asked) -> Markup {
    let span = asked.to - asked.from;
    let to = (!asked.is_latest).then_some(asked.to);
    html! {
        p.choice {
            @for (hours, _, name) in SPANS {
                a href=(asked.link(hours, to))
                    aria-current=[(hours == asked.hours).then_some("true")] {
                    (name)
                }
                " "
            }
            a href=(asked.link(asked.hours, Some(asked.from))) { "Earlier" } " "
            @if !asked.is_latest {
                a href=(asked.link(asked.hours, Some(asked.to + span))) { "Later" } " "
            }
            span.faint { (format::moment(asked.from)) " to " (format::moment(asked.to)) " UTC" }
            @if let Some(route) = &asked.route { " · " (route_link(route)) }
        }
    }
}

fn chart(
    title: &str,
    asked: &Asked,
    layers: Vec<Layer>,
    unit: fn(f64) -> String,
    events: &[Event],
) -> Markup {
    if layers.iter().all(|layer| layer.values.iter().flatten().all(|v| *v == 0.0)) {
        return empty(title, "No data in this period.");
    }
    let is_stacked = title != "Latency";
    let (from, step) = (asked.from, asked.step);
    Lines { title, note: "", from, step, layers, is_stacked, unit, events }.show()
}

fn rates(requests: &[u64], errors: &[u64], step: u64) -> Vec<Layer> {
    let rate = |n: u64| Some(n as f64 / step as f64);
    let responded = requests.iter().zip(errors).map(|(all, bad)| rate(all.saturating_sub(*bad)));
    vec![
        Layer {
            name: "failed (5xx)",
            class: "c-error",
            values: errors.iter().map(|n| rate(*n)).collect(),
        },
        Layer { name: "other responses", class: "c-req", values: responded.collect() },
    ]
}

fn of_all(store: &Store, asked: &Asked, events: &[Event]) -> Result<Markup, StoreError> {
    let (mut requests, mut errors) = (vec![0; asked.pieces()], vec![0; asked.pieces()]);
    for minute in store.totals(asked.from, asked.to)? {
        let at = asked.place(minute.at);
        if let (Some(requests), Some(errors)) = (requests.get_mut(at), errors.get_mut(at)) {
            *requests += minute.requests;
            *errors += minute.errors;
        }
    }
    let busiest = store.busiest(asked.from, asked.to, ROUTES_MAX)?;
    let layers = rates(&requests, &errors, asked.step);
    // A few failures are not visible next to many requests, so they have their own chart.
    let failed = layers[..1].to_vec();
    Ok(html! {
        (part("charts", "", &html! { div.charts {
            (chart("Requests per second", asked, layers, format::rate, events))
            (chart("Failed requests per second", asked, failed, format::rate, events))
        } }))
        (part("routes", "Busiest routes in this period", &routes(&busiest, asked)))
    })
}

fn routes(busiest: &[(String, u64, u64)], asked: &Asked) -> Markup {
    if busiest.is_empty() {
        return nothing("No requests in this period.");
    }
    let hours = asked.hours.to_string();
    let to = asked.to.to_string();
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Route" }
                        th.number scope="col" { "Requests" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Errors" }
                    }
                }
                tbody {
                    @for (name, requests, errors) in busiest {
                        tr {
                            th.name scope="row" {
                                a href=(link(
                                    "/history", &[("hours", &hours), ("to", &to), ("route", name)]
                                )) {
                                    (crate::frame::named(name))
                                }
                            }
                            td.number { (format::count(*requests)) }
                            td.bars {
                                (crate::chart::bar("c-req", *requests as f64, busiest[0].1 as f64))
                            }
                            td.number.bad[*errors > 0] { (format::count(*errors)) }
                        }
                    }
                }
            }
        }
    }
}

/// One piece of a route's time.
#[derive(Clone, Default)]
struct Piece {
    requests: u64,
    errors: u64,
    wall: Histogram,
    cpu_ns: u64,
    waiting_ns: u64,
    queue_ns: u64,
}

impl Piece {
    fn add(&mut self, minute: &RouteMinute) {
        self.requests += minute.requests;
        self.errors += minute.errors;
        self.wall.merge(&minute.wall);
        self.cpu_ns = self.cpu_ns.saturating_add(minute.cpu.sum_ns());
        self.waiting_ns = self.waiting_ns.saturating_add(minute.waiting_ns);
        self.queue_ns = self.queue_ns.saturating_add(minute.queue_ns);
    }
}

fn of_route(
    store: &Store,
    route: &str,
    asked: &Asked,
    events: &[Event],
) -> Result<Markup, StoreError> {
    let mut pieces = vec![Piece::default(); asked.pieces()];
    let mut waits: Vec<(String, String, u64, u64)> = Vec::new();
    for (at, minute) in store.minutes_of(route, asked.from, asked.to)? {
        if let Some(piece) = pieces.get_mut(asked.place(at)) {
            piece.add(&minute);
        }
        for wait in &minute.waits {
            let is_same = |known: &&mut (String, String, u64, u64)| {
                known.0 == wait.kind && known.1 == wait.peer
            };
            if let Some((.., times, ns)) = waits.iter_mut().find(is_same) {
                *times += wait.times;
                *ns = ns.saturating_add(wait.ns);
            } else if waits.len() < PEERS_MAX {
                waits.push((wait.kind.clone(), wait.peer.clone(), wait.times, wait.ns));
            }
        }
    }
    Ok(html! {
        (part("charts", "", &charts(&pieces, asked, events)))
        (part("waits", "Waits", &{
            let all = pieces.iter().map(|piece| piece.requests).sum();
            tables::waits(&mut waits, all)
        }))
    })
}

/// Returns a route's last hours, for the route's page; `None` without a history of them.
pub(super) fn latest(view: &View, route: &str) -> Option<Markup> {
    let (hours, step, _) = SPANS[1];
    let to = last_minute(view.now);
    let from = to.saturating_sub(hours * HOUR_S);
    let route = Some(route.to_owned());
    let asked = Asked { route, hours, step, from, to, is_latest: true };
    let minutes = view.sources.store()?.minutes_of(asked.route.as_deref()?, from, to).ok()?;
    let mut pieces = vec![Piece::default(); asked.pieces()];
    for (at, minute) in minutes {
        if let Some(piece) = pieces.get_mut(asked.place(at)) {
            piece.add(&minute);
        }
    }
    let is_there = pieces.iter().any(|piece| piece.requests > 0);
    is_there.then(|| charts(&pieces, &asked, &view.sources.events(from, to)))
}

fn charts(pieces: &[Piece], asked: &Asked, events: &[Event]) -> Markup {
    let time = |ns: f64| format::time(ns as u64);
    let layer = |name, class, value: &dyn Fn(&Piece) -> f64| {
        let there = |piece: &Piece| (piece.requests > 0).then(|| value(piece));
        Layer { name, class, values: pieces.iter().map(there).collect() }
    };
    let mean = |of: fn(&Piece) -> u64| move |p: &Piece| of(p) as f64 / p.requests as f64;
    let requests: Vec<_> = pieces.iter().map(|piece| piece.requests).collect();
    let errors: Vec<_> = pieces.iter().map(|piece| piece.errors).collect();
    let quantile = |q: f64| move |p: &Piece| p.wall.quantile_ns(q) as f64;
    let latency = vec![
        layer("p99", "c-most", &quantile(0.99)),
        layer("p95", "c-wait", &quantile(0.95)),
        layer("p50", "c-req", &quantile(0.5)),
    ];
    let costs = vec![
        layer("CPU", "c-php", &mean(|p| p.cpu_ns)),
        layer("waiting in PHP", "c-wait", &mean(|p| p.waiting_ns)),
        layer("in the queue", "c-queue", &mean(|p| p.queue_ns)),
    ];
    html! {
        div.charts {
            (chart("Latency", asked, latency, time, events))
            (chart("Mean time per request, by part", asked, costs, time, events))
            (chart(
                "Requests per second", asked, rates(&requests, &errors, asked.step), format::rate,
                events
            ))
        }
    }
}
