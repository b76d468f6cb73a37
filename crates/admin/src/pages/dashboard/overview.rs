//! `/`: health, current activity, and requests or routes to look at.

use super::tables;
use super::view::{NOT_MEASURED, Shown, View};
use crate::chart::{Heat, Layer, Lines, empty};
use crate::figures::{Piece, Pieces};
use crate::format;
use crate::frame::{nothing, part, route_link, tile};
use crate::health::{LinkedProblem, capitalised, troubles};
use maud::{Markup, html};
use samovar_insight::RecentRequest;
use samovar_insight::store::Event;
use samovar_wire::{CapacityStatus, Status, judged};
use std::sync::Arc;

/// Pieces of the last quarter of an hour: (seconds, number).
const QUARTER: (u64, usize) = (10, 90);
/// Pieces of the last day: (seconds, number).
const DAY: (u64, usize) = (600, 144);
/// Number of pieces of `QUARTER` in a minute.
const LAST_MINUTE: usize = 6;
/// Maximum number of displayed routes, requests and events.
const SHOWN_MAX: usize = 6;

/// Data that was read while the figures were locked.
struct Read {
    quarter: Pieces,
    day: Pieces,
    /// Routes with the most CPU time: (name, requests, CPU in ns, p95 in ns).
    routes: Vec<(String, u64, u64, u64)>,
    cpu_ns: u64,
    kept: Vec<Arc<RecentRequest>>,
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
    let found = troubles(view.sources, judged(&status));
    let main = html! {
        (part("well", "", &verdict(&found, &status)))
        (part("tiles", "", &tiles(&status, minute.as_ref())))
        @match &read {
            Some(read) => (measured(view, read)),
            None => (nothing(NOT_MEASURED)),
        }
        (part("capacity", "Capacity", &capacity(&status.capacity)))
        (part("processes", "Workers and memory", &processes(view, &status)))
    };
    let is_healthy = !found.iter().any(|one| one.is_problem);
    let title = if is_healthy { "Healthy" } else { "Problems" };
    Shown::new(title, main)
}

fn verdict(found: &[LinkedProblem], status: &Status) -> Markup {
    let doing = match (status.draining, status.reloading) {
        (true, _) => "draining",
        (false, true) => "reloading",
        (false, false) => "serving",
    };
    let up = format::span(status.uptime_seconds as u64);
    html! {
        @match found.split_first() {
            Some((worst, more)) if worst.is_problem => {
                h1.unwell { a href=(worst.link) { (worst.text) } }
                p { (worst.hint) }
                (list(more))
            },
            _ => { h1.well { "Healthy" } (list(found)) },
        }
        p.faint {
            "Samovar " (status.version) ", " (doing) " on " (status.listen.join(", "))
            ". Up for " (up) ", generation " (status.generation) "."
        }
    }
}

fn list(found: &[LinkedProblem]) -> Markup {
    html! {
        @if !found.is_empty() {
            ul.troubles {
                @for one in found {
                    li { a href=(one.link) { (one.text) } " " span.faint { (one.hint) } }
                }
            }
        }
    }
}

fn tiles(status: &Status, minute: Option<&Piece>) -> Markup {
    let (busy, all) = (status.in_state("busy"), status.serving_workers().count());
    html! {
        dl.tiles {
            @if let Some(minute) = minute {
                @let about = |q| minute.about_ns(q).map_or_else(|| "–".to_owned(), format::time);
                @let share = format::percent(minute.errors as f64, minute.requests as f64);
                (tile("Requests", &format::rate(minute.requests as f64 / 60.0), "last minute"))
                (tile("Errors", &share, &format::count(minute.errors)))
                (tile("p50", &about(0.5), "estimate"))
                (tile("p99", &about(0.99), "estimate"))
            }
            (tile("In flight", &format::count(status.front.pools.in_flight), ""))
            (tile("Queue", &format::count(status.front.pools.queue_depth), "waiting now"))
            (tile("Busy workers", &format!("{busy} of {all}"), &tables::tracing(status)))
            (tile("Connections", &format::count(status.front.server.connections), ""))
        }
    }
}

fn measured(view: &View, read: &Read) -> Markup {
    let events = view.sources.events(read.day.from, view.now + 1);
    if read.day.requests() == 0 && read.quarter.requests() == 0 {
        return part(
            "charts",
            "",
            &nothing("No requests yet. A request appears here within two seconds."),
        );
    }
    html! {
        (part("charts", "The last 15 minutes", &html! { div.charts {
            (requests(&read.quarter, &events))
            (latency(
                "Latency",
                "Requests by duration. A stronger colour means more requests.",
                &read.quarter,
                &events
            ))
            (split(&read.quarter, &events))
            (queue(&read.quarter, &events))
        } }))
        (part("day", "The last day", &html! { div.charts {
            (requests(&read.day, &events))
            (latency("Latency", "Since the start, in steps of ten minutes.", &read.day, &events))
        } }))
        div.columns {
            (part("top", "Routes by CPU time", &top(read)))
            (part("events", "Events", &html! {
                (tables::events(&events, SHOWN_MAX)) p.more { a href="/history" { "History" } }
            }))
        }
        (part("slow", "Slow and failed requests", &html! {
            (tables::requests(&read.kept, true))
            p.more { a href="/requests" { "All recorded requests" } }
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
            layer("other responses", "c-req", |piece| piece.requests - piece.errors),
        ],
        is_stacked: true,
        unit: format::rate,
        events,
    }
    .show()
}

fn latency(title: &str, note: &str, pieces: &Pieces, events: &[Event]) -> Markup {
    if pieces.requests() == 0 {
        return empty(title, "No requests in this period.");
    }
    Heat { title, note, pieces, events }.show()
}

fn split(pieces: &Pieces, events: &[Event]) -> Markup {
    let layer = |name, class, value: fn(&Piece) -> u64| {
        let mean = |p: &Piece| (p.requests > 0).then(|| value(p) as f64 / p.requests as f64);
        Layer { name, class, values: pieces.each(mean) }
    };
    Lines {
        title: "Time per request, by part",
        note: "Mean values.",
        from: pieces.from,
        step: pieces.step,
        layers: vec![
            layer("CPU in PHP", "c-php", Piece::php_ns),
            layer("waiting in PHP", "c-wait", |p| p.waiting_ns),
            layer("in the queue", "c-queue", |p| p.queue_ns),
            layer("rollback", "c-roll", |p| p.rollback_ns),
            layer("CPU of the server process", "c-front", |p| p.front_ns),
        ],
        is_stacked: true,
        unit: |ns| format::time(ns as u64),
        events,
    }
    .show()
}

fn queue(pieces: &Pieces, events: &[Event]) -> Markup {
    let mean = |p: &Piece| (p.requests > 0).then(|| p.queue_ns as f64 / p.requests as f64);
    let most = |p: &Piece| (p.requests > 0).then_some(p.queue_ns_max as f64);
    Lines {
        title: "Time in the queue",
        note: "Time until a worker takes the request.",
        from: pieces.from,
        step: pieces.step,
        layers: vec![
            Layer { name: "maximum", class: "c-most", values: pieces.each(most) },
            Layer { name: "mean", class: "c-queue", values: pieces.each(mean) },
        ],
        is_stacked: false,
        unit: |ns| format::time(ns as u64),
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
                            td.number { (format::percent(*cpu as f64, read.cpu_ns as f64)) }
                            td.bars { (crate::chart::bar("c-php", *cpu as f64, most)) }
                            td.number { (format::count(*requests)) }
                            td.number { (format::time(*p95)) }
                        }
                    }
                }
            }
        }
        p.more { a href="/routes" { "All routes" } }
    }
}

fn capacity(of: &CapacityStatus) -> Markup {
    if of.seconds <= 0.0 {
        return nothing("Not measured yet.");
    }
    let cores = |cores: f64| format!("{cores:.2}");
    html! {
        p { strong { (capitalised(&of.in_words())) } "." }
        dl.tiles {
            (tile("Cores", &format!("{:.1}", of.cores), "affinity and quota"))
            (tile("This server", &cores(of.cores_used), "cores, last minute"))
            (tile("Others", &cores(of.cores_others), "cores, last minute"))
            (tile("Stolen", &cores(of.cores_stolen), "cores, by the hypervisor"))
            (tile("Throttled", &format::percent(of.throttled, 1.0), "of the quota's periods"))
            (tile("Free", &cores(of.cores_free), "cores"))
            @if let Some(us) = of.cpu_us_per_request {
                (tile("CPU per request", &format::time((us * 1e3) as u64), "last five minutes"))
            }
            @if of.worker_bytes > 0 {
                @let free = format!("{} free", format::bytes(of.memory_free_bytes));
                (tile("Memory of a further worker", &format::bytes(of.worker_bytes), &free))
            }
        }
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
                    (tile("Workers' private memory", &format::bytes(memories.workers.own), "total"))
                    @let shared = format::bytes(memories.workers.shared);
                    (tile("Workers' shared memory", &shared, "image, PHP, opcache"))
                    (tile("Server's memory", &format::bytes(memories.server.own), "private"))
                },
                None => {
                    @let resident = format::bytes(status.rss_bytes());
                    (tile("Workers' memory", &resident, "shared pages counted per worker"))
                },
            }
            (tile("Server's CPU", &format::time(cpu_ns(status.cpu_seconds)), "since the start"))
            (tile("Image", &format::bytes(image), "shared by all workers"))
            @let restarts = format::count(status.worker_restarts_total);
            @let counts = &status.front.pools;
            (tile("Workers replaced", &restarts, "since the start"))
            (tile("Requests", &format::count(counts.requests_total), "since the start"))
            (tile("Rejected", &format::count(counts.rejected_total), "503, since the start"))
            (tile("Timed out", &format::count(counts.timeouts_total), "504, since the start"))
        }
    }
}
