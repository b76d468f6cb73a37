//! `/`: health, current activity, and requests or routes to look at.

use super::picker::Picker;
use super::view::{NOT_MEASURED, Shown, View};
use super::{routes as routes_page, tables};
use crate::chart::{Heat, Layer, Lines, empty};
use crate::comparisons::Change;
use crate::figures::{Piece, Pieces};
use crate::format;
use crate::frame::{nothing, part, route_link, tile};
use crate::health::{LinkedProblem, capitalised, troubles};
use crate::periods::PeriodSums;
use crate::planner::Planned;
use crate::range::Span;
use maud::{Markup, html};
use samovar_insight::RecentRequest;
use samovar_insight::store::{Event, RouteSum};
use samovar_wire::{CapacityStatus, Status, judged};
use std::sync::Arc;

/// Pieces of the last quarter of an hour: (seconds, number).
const QUARTER: (u64, usize) = (10, 90);
/// Number of pieces of `QUARTER` in a minute.
const LAST_MINUTE: usize = 6;
/// Maximum number of displayed routes, requests and events.
const SHOWN_MAX: usize = 6;

/// Data that was read while the figures were locked.
struct Read {
    quarter: Pieces,
    kept: Vec<Arc<RecentRequest>>,
}

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let read = view.sources.insight.as_ref().map(|insight| {
        let figures = insight.figures();
        Read {
            quarter: Pieces::of(figures.seconds(), view.now, QUARTER.0, QUARTER.1),
            kept: figures.kept().latest(SHOWN_MAX, |_| true),
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
        (part("capacity", "Capacity", &capacity(view, &status)))
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
            ". Up for " (up) ", generation " (status.generation)
            @if !status.release.is_empty() { ", release " (status.release) } ". "
            code { "samovar doctor" } " makes further checks."
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
    let range = &view.range;
    let resolved = view.resolve(range);
    let period = resolved.period;
    let sums = view.sources.sums_of(range, period, view.now);
    let other = resolved.against.clone().ok().flatten();
    let other = other.map(|period| view.sources.sums(period, view.now));
    let picker = Picker {
        path: "/",
        range,
        resolved: &resolved,
        missing: routes_page::missing(&sums.missing, other.as_deref()),
        compares: true,
    };
    let events = view.sources.events(period.from, period.to);
    // The last quarter of an hour is drawn from figures by the second.
    let pieces = match range.span {
        Span::Last(0) => read.quarter.clone(),
        _ => view.sources.timeline(None, period, view.now).brief(),
    };
    html! {
        (picker.show(view))
        @if sums.routes.is_empty() && pieces.requests() == 0 {
            (part("charts", "", &nothing(
                "No requests in this range. A request appears here within two seconds."
            )))
        } @else {
            (part("sums", "", &totals(&sums.total(), other.as_deref())))
            (part("charts", "", &html! { div.charts {
                (requests(&pieces, &events))
                (latency(
                    "Latency",
                    "Requests by duration. A stronger colour means more requests.",
                    &pieces,
                    &events
                ))
                (split(&pieces, &events))
                (queue(&pieces, &events))
            } }))
            div.columns {
                (part("top", "Routes by CPU time", &top(&sums, other.as_deref())))
                (part("events", "Events", &html! {
                    (tables::events(&events, SHOWN_MAX)) p.more { a href="/history" { "History" } }
                }))
            }
        }
        (part("slow", "Slow and failed requests", &html! {
            (tables::requests(&read.kept, true))
            p.more { a href="/requests" { "All recorded requests" } }
        }))
    }
}

/// Returns the figures of all routes in the range, and in the period to compare with.
fn totals(now: &RouteSum, other: Option<&PeriodSums>) -> Markup {
    let then = other.map(PeriodSums::total).filter(|then| then.requests > 0);
    let note = |text: &dyn Fn(&RouteSum) -> String| {
        then.as_ref().map_or_else(String::new, |then| format!("before: {}", text(then)))
    };
    let both = |text: &dyn Fn(&RouteSum) -> String| (text(now), note(text));
    let share = |of: &RouteSum| format::percent(of.errors as f64, of.requests as f64);
    let quantile = |q: f64| move |of: &RouteSum| format::time(of.wall.quantile_ns(q));
    let figures = [
        ("Requests", both(&|of| format::count(of.requests))),
        ("Errors", both(&share)),
        ("p50", both(&quantile(0.5))),
        ("p95", both(&quantile(0.95))),
        ("p99", both(&quantile(0.99))),
        ("CPU, mean", both(&|of| format::time(of.cpu.sum_ns() / of.requests.max(1)))),
        ("Waiting, mean", both(&|of| format::time(of.waiting_ns / of.requests.max(1)))),
        ("PHP memory, peak", both(&|of| format::bytes(of.peak_bytes_max))),
    ];
    html! {
        dl.tiles { @for (name, (value, note)) in &figures { (tile(name, value, note)) } }
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
    let has_front = pieces.all.iter().any(|piece| piece.front_ns > 0);
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
        ]
        .into_iter()
        // Only the last minutes have this figure.
        .chain(has_front.then(|| layer("CPU of the server process", "c-front", |p| p.front_ns)))
        .collect(),
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

fn top(sums: &PeriodSums, other: Option<&PeriodSums>) -> Markup {
    let mut routes: Vec<_> = sums.routes.iter().collect();
    routes.sort_by(|a, b| b.1.cpu.sum_ns().cmp(&a.1.cpu.sum_ns()).then_with(|| a.0.cmp(b.0)));
    let most = routes.first().map_or(0, |(_, sum)| sum.cpu.sum_ns()) as f64;
    let all: u64 = routes.iter().map(|(_, sum)| sum.cpu.sum_ns()).sum();
    let change = |name: &str, now: &RouteSum| {
        let then = other.and_then(|other| other.routes.get(name));
        then.and_then(|then| Change::of(now, then).p95)
    };
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
                        @if other.is_some() { th.number scope="col" { "p95 change" } }
                    }
                }
                tbody {
                    @for (name, sum) in routes.iter().take(SHOWN_MAX) {
                        @let cpu = sum.cpu.sum_ns() as f64;
                        tr {
                            td { (route_link(name)) }
                            td.number { (format::percent(cpu, all as f64)) }
                            td.bars { (crate::chart::bar("c-php", cpu, most)) }
                            td.number { (format::count(sum.requests)) }
                            td.number { (format::time(sum.wall.quantile_ns(0.95))) }
                            @if other.is_some() { (routes_page::change(change(name, sum))) }
                        }
                    }
                }
            }
        }
        p.more { a href="/routes" { "All routes" } }
    }
}

fn capacity(view: &View, status: &Status) -> Markup {
    html! {
        (measured_capacity(&status.capacity))
        // A server without a history on disk has no plan.
        @if !status.history_file.is_empty() {
            @if let Planned::Done { plan: Ok(plan), .. } = view.sources.plan(view.now) {
                p { a href="/plan" { (samovar_plan::answer(&plan)) } }
            }
        }
    }
}

fn measured_capacity(of: &CapacityStatus) -> Markup {
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
