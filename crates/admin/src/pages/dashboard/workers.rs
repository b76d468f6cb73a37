//! `/workers`: the worker processes.

use super::history;
use super::picker::Picker;
use super::tables::{self, state_class};
use super::upstreams;
use super::view::{NOT_MEASURED, Shown, View};
use crate::chart::bar;
use crate::format;
use crate::frame::{moment, nothing, part, tile};
use maud::{Markup, html};
use samovar_insight::store::{Event, EventKind};
use samovar_wire::{GrowthStatus, Status};

/// Maximum number of displayed workers.
const ROWS_MAX: usize = 1_000;
/// Maximum number of displayed events, the latest ones.
const EVENTS_MAX: usize = 100;

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let main = html! {
        h1 { "Workers" }
        p.faint { "The figures and the table are those of now. The charts are those of the range." }
        (part("tiles", "", &tiles(&status)))
        @if !status.growth.is_empty() {
            (part("growth", "Growth", &growth(&status.growth, !status.pools.is_empty())))
        }
        (part("table", "", &table(&status)))
        @if !status.upstreams.is_empty() {
            @let upstreams = upstreams::table(&status.upstreams, !status.pools.is_empty());
            (part("upstreams", "php-fpm", &upstreams))
        }
        (over_time(view))
    };
    Shown::new("Workers", main)
}

/// Returns the use of the workers in the range, and the events of workers in it.
fn over_time(view: &View) -> Markup {
    if view.sources.insight.is_none() {
        return nothing(NOT_MEASURED);
    }
    let resolved = view.resolve(&view.range);
    let period = resolved.period;
    let timeline = view.sources.timeline(None, period, view.now);
    let events = view.sources.events(period.from, period.to);
    let is_of_workers = |event: &Event| {
        !matches!(event.kind, EventKind::Config | EventKind::Limit | EventKind::Unknown)
    };
    let events: Vec<_> = events.into_iter().filter(is_of_workers).collect();
    html! {
        h2 { "Over time" }
        (Picker {
            path: "/workers",
            range: &view.range,
            resolved: &resolved,
            missing: &timeline.missing,
            compares: false,
        }.show(view))
        (part("charts", "", &history::of_workers(&timeline, &events)))
        (part("events", "Events", &tables::events(&events, EVENTS_MAX)))
    }
}

fn tiles(status: &Status) -> Markup {
    html! {
        (tables::by_state(status))
        dl.tiles {
            @let workers = format::count(status.serving_workers().count() as u64);
            (tile("Workers", &workers, &tables::tracing(status)))
            (tile("In flight", &format::count(status.front.pools.in_flight), "requests"))
            (tile("Queue", &format::count(status.front.pools.queue_depth), "requests"))
            (tile("Memory", &format::bytes(status.rss_bytes()), "shared pages counted per worker"))
            (tile("Replaced", &format::count(status.worker_restarts_total), "since the start"))
            @let retries = format::count(status.front.pools.retries_total);
            (tile("Retries", &retries, "because workers died"))
        }
    }
}

/// Returns a list such as `App\Registry::$items`: +1 element per request since generation 7, 212 B
/// each.
fn growth(all: &[GrowthStatus], are_several: bool) -> Markup {
    html! {
        p {
            "Resources that grow with each request in resident workers. Memory growth is limited "
            "by " code { "limits.growth_bytes_max" } "."
        }
        div.scroll tabindex="0" { table {
            thead { tr {
                @if are_several { th scope="col" { "Pool" } }
                th scope="col" { "Resource" }
                th.number scope="col" { "Per request" }
                th.number scope="col" { "Size of one" }
                th scope="col" { "Declared or opened in" }
                th.number scope="col" { "Generation" }
                th.number scope="col" { "Workers" }
                th scope="col" { "Since" }
                th scope="col" { "Last seen" }
            } }
            tbody { @for it in all {
                tr {
                    @if are_several { td { (it.pool) } }
                    th.name scope="row" { (&it.name) }
                    td.number { "+" (per_request(it)) " " (&it.unit) }
                    td.number { @if it.bytes_each > 0 { (format::bytes(it.bytes_each)) } }
                    td.name { (&it.place) }
                    td.number { (it.generation) }
                    td.number { (format::count(it.workers)) }
                    td { (moment(it.since)) }
                    td { (moment(it.at)) }
                }
            } }
        } }
    }
}

/// Formats growth per request: `1`, `0.25`.
fn per_request(it: &GrowthStatus) -> String {
    let each = it.grown as f64 / it.requests.max(1) as f64;
    let text = if each < 10.0 { format!("{each:.2}") } else { format!("{each:.0}") };
    if text.contains('.') {
        text.trim_end_matches(['0']).trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn table(status: &Status) -> Markup {
    if status.workers.is_empty() {
        return nothing("No workers.");
    }
    let most = |of: fn(&samovar_wire::WorkerStatus) -> u64| {
        status.workers.iter().map(of).max().unwrap_or(0) as f64
    };
    let are_several = !status.pools.is_empty();
    let (most_requests, most_memory) = (most(|w| w.requests), most(|w| w.rss_bytes));
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th.number scope="col" { "Process" }
                        @if are_several { th scope="col" { "Pool" } }
                        th.number scope="col" { "Cell" }
                        th scope="col" { "State" }
                        th scope="col" { "Model" }
                        th.number scope="col" { "Requests" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Rollbacks" }
                        th.number scope="col" { "Hot pages" }
                        th.number scope="col" { "Memory" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Age" }
                        th.number scope="col" { "Generation" }
                    }
                }
                tbody {
                    @for worker in status.workers.iter().take(ROWS_MAX) {
                        tr {
                            th.number scope="row" { (worker.pid) }
                            @if are_several { td { (worker.pool) } }
                            td.number { (worker.cell) }
                            td { i class={ "dot " (state_class(&worker.state)) } {} (worker.state) }
                            td { (worker.model) @if worker.tracing { ", tracing" } }
                            td.number { (format::count(worker.requests)) }
                            td.bars { (bar("c-req", worker.requests as f64, most_requests)) }
                            td.number { (format::count(worker.rollbacks)) }
                            td.number { (format::count(worker.hot_pages.into())) }
                            td.number { (format::bytes(worker.rss_bytes)) }
                            td.bars { (bar("c-wall", worker.rss_bytes as f64, most_memory)) }
                            td.number { (format::span(worker.age_seconds as u64)) }
                            td.number { (worker.generation) }
                        }
                    }
                }
            }
        }
    }
}
