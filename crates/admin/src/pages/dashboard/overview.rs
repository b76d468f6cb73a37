//! `/`: is it well, what goes on, and what is worth a look.

use super::{NOT_MEASURED, Shown, View, tables};
use crate::chart::{Heat, Layer, Lines, empty};
use crate::figures::{Piece, Pieces};
use crate::frame::{nothing, part, route_link, tile};
use crate::human;
use crate::well::{Trouble, troubles};
use maud::{Markup, html};
use samovar_insight::Kept;
use samovar_insight::store::Event;
use samovar_wire::Status;
use std::sync::Arc;

/// Pieces of the last quarter of an hour.
const QUARTER: (u64, usize) = (10, 90);
/// Pieces of the last day.
const DAY: (u64, usize) = (600, 144);
/// Pieces of `QUARTER` that are the last minute.
const LAST_MINUTE: usize = 6;
/// Routes, requests and events that are shown.
const SHOWN_MAX: usize = 6;

/// What was read while the figures were held still.
struct Read {
    quarter: Pieces,
    day: Pieces,
    /// (name, requests, CPU in ns, p95 in ns) of those that take most CPU.
    routes: Vec<(String, u64, u64, u64)>,
    cpu_ns: u64,
    kept: Vec<Arc<Kept>>,
}

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let read = view.sources.insight.as_ref().map(|insight| {
        let figures = insight.figures();
        let mut routes: Vec<_> = figures.routes().collect();
        routes.sort_by_key(|(_, route)| std::cmp::Reverse(route.costs.cpu.sum_ns()));
        let brief = |(name, route): (&str, &samovar_insight::RouteFigures)| {
            let costs = &route.costs;
            let p95 = costs.wall.quantile_ns(0.95);
            (name.to_owned(), costs.requests, costs.cpu.sum_ns(), p95)
        };
        Read {
            quarter: Pieces::of(figures.seconds(), view.now, QUARTER.0, QUARTER.1),
            day: Pieces::of(figures.minutes(), view.now, DAY.0, DAY.1),
            routes: routes.into_iter().take(SHOWN_MAX).map(brief).collect(),
            cpu_ns: figures.total().cpu.sum_ns(),
            kept: figures.kept().iter().take(SHOWN_MAX).cloned().collect(),
        }
    });
    let minute = read.as_ref().map(|read| read.quarter.last(LAST_MINUTE));
    let found = troubles(view.sources, &status, minute.as_ref(), view.now);
    let main = html! {
        (part("well", "", &verdict(&found, &status)))
        (part("tiles", "", &tiles(&status, minute.as_ref())))
        @match &read {
            Some(read) => (measured(view, read)),
            None => (nothing(NOT_MEASURED)),
        }
        (part("processes", "Workers and memory", &processes(view, &status)))
    };
    let title = if found.is_empty() { "Well" } else { "Not well" };
    Shown::new(title, main)
}

fn verdict(found: &[Trouble], status: &Status) -> Markup {
    let doing = match (status.draining, status.reloading) {
        (true, _) => "it is draining",
        (false, true) => "it serves, and reloads",
        (false, false) => "it serves",
    };
    let up = human::span(status.uptime_seconds as u64);
    html! {
        @match found.split_first() {
            None => h1.well { "It is well" },
            Some((worst, more)) => {
                h1.unwell { a href=(worst.link) { (worst.text) } }
                @if !more.is_empty() {
                    ul.troubles { @for trouble in more { li { a href=(trouble.link) { (trouble.text) } } } }
                }
            }
        }
        p.faint {
            "Samovar " (status.version) ", " (doing) " on " (status.listen.join(", "))
            ". Up for " (up) ", generation " (status.generation) "."
        }
    }
}

fn tiles(status: &Status, minute: Option<&Piece>) -> Markup {
    let (busy, all) = (status.in_state("busy"), status.workers.len());
    html! {
        dl.tiles {
            @if let Some(minute) = minute {
                @let about = |q| minute.about_ns(q).map_or_else(|| "–".to_owned(), human::time);
                @let share = human::percent(minute.errors as f64, minute.requests as f64);
                (tile("Requests", &human::rate(minute.requests as f64 / 60.0), "last minute"))
                (tile("Errors", &share, &human::count(minute.errors)))
                (tile("Half within", &about(0.5), "about"))
                (tile("99 % within", &about(0.99), "about"))
            }
            (tile("In flight", &human::count(status.front.in_flight), ""))
            (tile("Queue", &human::count(status.front.queue_depth), "waiting now"))
            (tile("Busy workers", &format!("{busy} of {all}"), ""))
            (tile("Connections", &human::count(status.front.connections), ""))
        }
    }
}

fn measured(view: &View, read: &Read) -> Markup {
    let events = view.sources.events(read.day.from, view.now + 1);
    if read.day.requests() == 0 && read.quarter.requests() == 0 {
        return part(
            "charts",
            "",
            &nothing("No requests yet. Send one, and it is here within two seconds."),
        );
    }
    html! {
        (part("charts", "The last 15 minutes", &html! { div.charts {
            (requests(&read.quarter, &events))
            (latency("Latency", "How many requests took how long: the stronger the colour, the more.", &read.quarter, &events))
            (split(&read.quarter, &events))
            (queue(&read.quarter, &events))
        } }))
        (part("day", "The last day", &html! { div.charts {
            (requests(&read.day, &events))
            (latency("Latency", "Since the start, in pieces of ten minutes.", &read.day, &events))
        } }))
        div.columns {
            (part("top", "Routes that take most CPU", &top(read)))
            (part("events", "Events", &html! {
                (tables::events(&events, SHOWN_MAX)) p.more { a href="/history" { "History" } }
            }))
        }
        (part("slow", "Slow and failed requests", &html! {
            (tables::requests(&read.kept, true)) p.more { a href="/requests" { "All that are kept" } }
        }))
    }
}

fn requests(pieces: &Pieces, events: &[Event]) -> Markup {
    let step = pieces.step as f64;
    let layer = |name, class, value: fn(&Piece) -> u64| Layer {
        name,
        class,
        values: pieces.each(|piece| Some(value(piece) as f64 / step)),
    };
    Lines {
        title: "Requests per second",
        note: "",
        from: pieces.from,
        step: pieces.step,
        layers: vec![
            layer("failed (5xx)", "c-error", |piece| piece.errors),
            layer("answered", "c-req", |piece| piece.requests - piece.errors),
        ],
        is_stacked: true,
        unit: human::rate,
        events,
    }
    .show()
}

fn latency(title: &str, note: &str, pieces: &Pieces, events: &[Event]) -> Markup {
    if pieces.requests() == 0 {
        return empty(title, "No requests in this time.");
    }
    Heat { title, note, pieces, events }.show()
}

fn split(pieces: &Pieces, events: &[Event]) -> Markup {
    let layer = |name, class, value: fn(&Piece) -> u64| {
        let mean = |p: &Piece| (p.requests > 0).then(|| value(p) as f64 / p.requests as f64);
        Layer { name, class, values: pieces.each(mean) }
    };
    Lines {
        title: "Where a request's time goes",
        note: "Mean per request.",
        from: pieces.from,
        step: pieces.step,
        layers: vec![
            layer("CPU in PHP", "c-php", Piece::php_ns),
            layer("waiting in PHP", "c-wait", |p| p.waiting_ns),
            layer("in the queue", "c-queue", |p| p.queue_ns),
            layer("rollback", "c-roll", |p| p.rollback_ns),
            layer("CPU of the server itself", "c-front", |p| p.front_ns),
        ],
        is_stacked: true,
        unit: |ns| human::time(ns as u64),
        events,
    }
    .show()
}

fn queue(pieces: &Pieces, events: &[Event]) -> Markup {
    let mean = |p: &Piece| (p.requests > 0).then(|| p.queue_ns as f64 / p.requests as f64);
    let most = |p: &Piece| (p.requests > 0).then_some(p.queue_ns_max as f64);
    Lines {
        title: "Time in the queue",
        note: "Until a worker takes a request.",
        from: pieces.from,
        step: pieces.step,
        layers: vec![
            Layer { name: "longest", class: "c-most", values: pieces.each(most) },
            Layer { name: "mean", class: "c-queue", values: pieces.each(mean) },
        ],
        is_stacked: false,
        unit: |ns| human::time(ns as u64),
        events,
    }
    .show()
}

fn top(read: &Read) -> Markup {
    let most = read.routes.first().map_or(0, |(_, _, cpu, _)| *cpu) as f64;
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Route" }
                        th.number scope="col" { "Share of CPU" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Calls" }
                        th.number scope="col" { "p95" }
                    }
                }
                tbody {
                    @for (name, requests, cpu, p95) in &read.routes {
                        tr {
                            td { (route_link(name)) }
                            td.number { (human::percent(*cpu as f64, read.cpu_ns as f64)) }
                            td.bars { (crate::chart::bar("c-php", *cpu as f64, most)) }
                            td.number { (human::count(*requests)) }
                            td.number { (human::time(*p95)) }
                        }
                    }
                }
            }
        }
        p.more { a href="/routes" { "All routes" } }
    }
}

fn cpu_ns(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}

fn processes(view: &View, status: &Status) -> Markup {
    let memories = view.sources.kernel.memories();
    let images = status.applications().into_iter().filter_map(|of| of.image);
    let image = images.map(|image| image.bytes).sum();
    html! {
        (tables::by_state(status))
        dl.tiles {
            @match memories {
                Some(memories) => {
                    (tile("Workers' own memory", &human::bytes(memories.workers.own), "together"))
                    (tile("Workers share", &human::bytes(memories.workers.shared), "image, PHP, opcache"))
                    (tile("Server's memory", &human::bytes(memories.server.own), "own"))
                },
                None => (tile("Workers' memory", &human::bytes(status.rss_bytes()), "shared pages counted for each")),
            }
            (tile("Server's CPU", &human::time(cpu_ns(status.cpu_seconds)), "since the start"))
            (tile("Image", &human::bytes(image), "shared by all workers"))
            (tile("Workers replaced", &human::count(status.worker_restarts_total), "since the start"))
            (tile("Requests", &human::count(status.front.requests_total), "since the start"))
            (tile("Refused", &human::count(status.front.rejected_total), "503, since the start"))
            (tile("Timed out", &human::count(status.front.timeouts_total), "504, since the start"))
        }
    }
}
