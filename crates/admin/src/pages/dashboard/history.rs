//! `/history`: figures over time, of all routes or one, with their events: requests, errors,
//! latency, CPU, waits, memory.

use super::picker::Picker;
use super::tables;
use super::view::{NOT_MEASURED, Shown, View};
use crate::chart::{Layer, Lines, empty};
use crate::format;
use crate::frame::{nothing, part, route_link};
use crate::periods::{PeriodSums, Timeline};
use crate::query::link;
use crate::range::{Period, Span};
use maud::{Markup, html};
use samovar_insight::WaitKind;
use samovar_insight::store::{Event, RouteMinute};

/// Maximum number of listed routes.
const ROUTES_MAX: usize = 50;
const EVENTS_MAX: usize = 200;
/// Style classes of the kinds of waits with the most time; the others are not drawn.
const WAIT_CLASSES: [&str; 5] = ["c-wait", "c-req", "c-queue", "c-front", "c-roll"];

pub(super) fn show(view: &View) -> Shown {
    let title = "History";
    if view.sources.insight.is_none() {
        return Shown::new(title, html! { h1 { (title) } (nothing(NOT_MEASURED)) });
    }
    let route = view.query.get("route").filter(|route| !route.is_empty());
    let resolved = view.resolve(&view.range);
    let period = resolved.period;
    let timeline = view.sources.timeline(route.as_deref(), period, view.now);
    let events = view.sources.events(period.from, period.to);
    let main = html! {
        h1 { (title) @if let Some(route) = &route { " of " span.name { (route) } } }
        (Picker {
            path: "/history",
            range: &view.range,
            resolved: &resolved,
            missing: &timeline.missing,
            compares: false,
        }.show(view))
        p.choice {
            (earlier_and_later(view, route.as_deref(), period))
            @if let Some(route) = &route { " · " (route_link(route)) }
        }
        (part("charts", "", &charts(&timeline, &events)))
        @if route.is_none() {
            @let sums = view.sources.sums_of(&view.range, period, view.now);
            (part("routes", "Busiest routes in this range", &routes(&sums)))
        } @else {
            (part("waits", "Waits", &waits(&timeline)))
        }
        (part("events", "Events", &tables::events(&events, EVENTS_MAX)))
    };
    Shown::new(title, main)
}

/// Returns links to the periods of equal length before and after this one.
fn earlier_and_later(view: &View, route: Option<&str>, period: Period) -> Markup {
    // The second of the page's time does not belong to the length.
    let length = period.to.min(view.now).saturating_sub(period.from).max(60);
    let shown = |from: u64| {
        let to = Some(from + length).filter(|to| *to < view.now);
        let mut pairs = Span::Custom(from, to).pairs();
        pairs.extend(route.map(|route| ("route", route.to_owned())));
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        link("/history", &pairs)
    };
    html! {
        a href=(shown(period.from.saturating_sub(length))) { "Earlier" } " "
        @if period.to < view.now { a href=(shown(period.to)) { "Later" } " " }
    }
}

fn routes(sums: &PeriodSums) -> Markup {
    let mut busiest: Vec<_> = sums.routes.iter().collect();
    busiest.sort_by(|a, b| b.1.requests.cmp(&a.1.requests).then_with(|| a.0.cmp(b.0)));
    let Some((_, most)) = busiest.first() else {
        return nothing("No requests in this range.");
    };
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Route" }
                        th.number scope="col" { "Requests" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Errors" }
                        th.number scope="col" { "p95" }
                        th.number scope="col" { "Total CPU" }
                        th.number scope="col" { "Memory" }
                    }
                }
                tbody {
                    @for (name, sum) in busiest.iter().take(ROUTES_MAX) {
                        tr {
                            th.name scope="row" {
                                a href=(link("/history", &[("route", name)])) {
                                    (crate::frame::named(name))
                                }
                            }
                            td.number { (format::count(sum.requests)) }
                            td.bars {
                                (crate::chart::bar(
                                    "c-req", sum.requests as f64, most.requests as f64
                                ))
                            }
                            td.number.bad[sum.errors > 0] { (format::count(sum.errors)) }
                            td.number { (format::time(sum.wall.quantile_ns(0.95))) }
                            td.number { (format::time(sum.cpu.sum_ns())) }
                            td.number { (format::bytes(sum.peak_bytes_max)) }
                        }
                    }
                }
            }
        }
    }
}

fn waits(timeline: &Timeline) -> Markup {
    let sum = timeline.sum();
    let of = sum.waits.iter().map(|w| (w.kind.clone(), w.peer.clone(), w.times, w.ns));
    tables::waits(&mut of.collect::<Vec<_>>(), sum.requests)
}

/// Draws the figures of a timeline.
struct Charts<'a> {
    timeline: &'a Timeline,
    events: &'a [Event],
}

/// Returns all charts of a timeline.
pub(super) fn charts(timeline: &Timeline, events: &[Event]) -> Markup {
    let charts = Charts { timeline, events };
    let time = |ns: f64| format::time(ns as u64);
    let failed = charts.rate("failed (5xx)", "c-error", |p| p.errors as f64);
    let other = charts.rate("other responses", "c-req", |p| (p.requests - p.errors) as f64);
    let quantile = |q: f64| move |p: &RouteMinute| p.wall.quantile_ns(q) as f64;
    let latency = vec![
        charts.layer("p99", "c-most", quantile(0.99)),
        charts.layer("p95", "c-wait", quantile(0.95)),
        charts.layer("p50", "c-req", quantile(0.5)),
    ];
    let mean = |of: fn(&RouteMinute) -> u64| {
        move |p: &RouteMinute| of(p) as f64 / p.requests.max(1) as f64
    };
    let split = vec![
        charts.layer("CPU", "c-php", mean(|p| p.cpu.sum_ns())),
        charts.layer("waiting in PHP", "c-wait", mean(|p| p.waiting_ns)),
        charts.layer("in the queue", "c-queue", mean(|p| p.queue_ns)),
    ];
    let cores = vec![charts.rate("cores", "c-php", |p| p.cpu.sum_ns() as f64 / 1e9)];
    let memory = vec![charts.layer("peak", "c-wait", |p| p.peak_bytes_max as f64)];
    html! {
        div.charts {
            (charts.draw("Requests per second", vec![failed.clone(), other], true, format::rate))
            // A few failures are not visible next to many requests, so they have their own chart.
            (charts.draw("Failed requests per second", vec![failed], true, format::rate))
            (charts.draw("Latency", latency, false, time))
            (charts.draw("Mean time per request, by part", split, true, time))
            (charts.draw("CPU of workers, in cores", cores, true, format::digits))
            (charts.draw("Mean wait per request, by kind", charts.waits(), true, time))
            (charts.draw(
                "PHP memory, highest peak", memory, false, |bytes| format::bytes(bytes as u64)
            ))
        }
    }
}

/// Returns the charts of the workers' use.
pub(super) fn of_workers(timeline: &Timeline, events: &[Event]) -> Markup {
    let charts = Charts { timeline, events };
    let time = |ns: f64| format::time(ns as u64);
    let busy = vec![charts.rate("busy workers", "c-req", |p| p.run_ns as f64 / 1e9)];
    let cores = vec![charts.rate("cores", "c-php", |p| p.cpu.sum_ns() as f64 / 1e9)];
    let queue = vec![
        charts.layer("p95", "c-wait", |p| p.queue.quantile_ns(0.95) as f64),
        charts.layer("p50", "c-queue", |p| p.queue.quantile_ns(0.5) as f64),
    ];
    let memory = vec![charts.layer("peak", "c-wait", |p| p.peak_bytes_max as f64)];
    html! {
        div.charts {
            (charts.draw("Busy workers, on average", busy, false, format::digits))
            (charts.draw("CPU of workers, in cores", cores, false, format::digits))
            (charts.draw("Time in the queue", queue, false, time))
            (charts.draw(
                "PHP memory, highest peak", memory, false, |bytes| format::bytes(bytes as u64)
            ))
        }
    }
}

impl Charts<'_> {
    /// Values of the pieces with requests.
    fn layer(
        &self,
        name: &'static str,
        class: &'static str,
        value: impl Fn(&RouteMinute) -> f64,
    ) -> Layer {
        let there = |piece: &RouteMinute| (piece.requests > 0).then(|| value(piece));
        Layer { name, class, values: self.timeline.pieces.iter().map(there).collect() }
    }

    /// Values per second. A piece without requests has the value 0.
    fn rate(
        &self,
        name: &'static str,
        class: &'static str,
        value: impl Fn(&RouteMinute) -> f64,
    ) -> Layer {
        let pieces = self.timeline.pieces.iter().enumerate();
        let values = pieces.map(|(at, piece)| Some(value(piece) / self.timeline.seconds_of(at)));
        Layer { name, class, values: values.collect() }
    }

    fn waits(&self) -> Vec<Layer> {
        let mut sum = RouteMinute::default();
        for piece in &self.timeline.pieces {
            sum.merge_route(piece);
        }
        let known = |name: &str| WaitKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kinds = sum.waits_by_kind().into_iter().filter_map(|(name, _)| known(name));
        let kinds = kinds.map(WaitKind::name).zip(WAIT_CLASSES);
        let of = |piece: &RouteMinute, kind: &str| {
            let ns = piece.waits.iter().filter(|wait| wait.kind == kind).map(|wait| wait.ns);
            ns.sum::<u64>() as f64 / piece.requests.max(1) as f64
        };
        kinds.map(|(kind, class)| self.layer(kind, class, |piece| of(piece, kind))).collect()
    }

    fn draw(
        &self,
        title: &str,
        layers: Vec<Layer>,
        is_stacked: bool,
        unit: fn(f64) -> String,
    ) -> Markup {
        if layers.iter().all(|layer| layer.values.iter().flatten().all(|v| *v == 0.0)) {
            return empty(title, "No data in this range.");
        }
        let (from, step) = (self.timeline.from, self.timeline.step);
        Lines { title, note: "", from, step, layers, is_stacked, unit, events: self.events }.show()
    }
}
