//! `/route?name=`: one route: durations, waits, and individual requests to look at.

use super::view::{NOT_MEASURED, Shown, View};
use super::{history, statements, tables};
use crate::chart::{Part, bar, histogram, parts};
use crate::format;
use crate::frame::{named, nothing, part, tile};
use crate::query::link;
use maud::{Markup, html};
use samovar_insight::store::EventKind;
use samovar_insight::{Costs, End, RecentRequest, RouteFigures};
use std::sync::Arc;

/// Maximum number of displayed requests.
const REQUESTS_MAX: usize = 10;
/// Period in seconds in which the last reload is searched.
const RELOAD_BACK_S: u64 = 7 * 86_400;

pub(super) fn show(view: &View) -> Shown {
    let name = view.query.get("name").unwrap_or_default();
    let Some(insight) = &view.sources.insight else {
        return Shown::not_found("Route", NOT_MEASURED);
    };
    let (route, kept): (RouteFigures, Vec<Arc<RecentRequest>>) = {
        let figures = insight.figures();
        let Some(route) = figures.route(&name).filter(|route| route.costs.requests > 0) else {
            return Shown::not_found(
                "No such route",
                "No requests for this route since the start.",
            );
        };
        let of_route = figures.kept().iter().filter(|kept| *kept.route == *name);
        (route.clone(), of_route.take(REQUESTS_MAX).cloned().collect())
    };
    let costs = &route.costs;
    let main = html! {
        h1.name { (named(&name)) }
        p {
            a href=(link("/profile", &[("route", &name)])) { "Profile by function" } " · "
            a href=(link("/history", &[("route", &name)])) { "History" } " · "
            "Since the start. " (since_reload(view))
        }
        (part("tiles", "", &tiles(costs)))
        div.columns {
            (part("histogram", "", &histogram("Request duration", &costs.wall)))
            (part("split", "", &split(costs, route.cpu_delay_ns)))
        }
        (part("percentiles", "Percentiles", &percentiles(costs)))
        @if let Some(charts) = history::latest(view, &name) {
            (part("history", "The last 6 hours", &charts))
        }
        (part("statements", "Statements", &statements::of_route(&route)))
        (part("waits", "Waits", &waits(&route)))
        (part("slow", "Slow and failed requests", &tables::requests(&kept, false)))
        (part("timers", "Timers", &timers(&route)))
        div.columns {
            (part("tags", "Tags", &tags(&route)))
            (part("ends", "Requests by outcome", &ends(costs)))
        }
    };
    Shown::new(name, main)
}

fn since_reload(view: &View) -> String {
    let events = view.sources.events(view.now.saturating_sub(RELOAD_BACK_S), view.now + 1);
    let last = events.iter().rev().find(|event| event.kind == EventKind::Reload);
    last.map_or_else(String::new, |event| {
        format!("The last reload was {} ago.", format::span(view.now.saturating_sub(event.at)))
    })
}

fn tiles(costs: &Costs) -> Markup {
    let errors = format::percent(costs.errors() as f64, costs.requests as f64);
    let q = |q| format::time(costs.wall.quantile_ns(q));
    let per = |sum: u64| sum / costs.requests.max(1);
    html! {
        dl.tiles {
            (tile("Calls", &format::count(costs.requests), ""))
            (tile("Errors", &errors, &format::count(costs.errors())))
            (tile("p50", &q(0.5), ""))
            (tile("p95", &q(0.95), ""))
            (tile("p99", &q(0.99), ""))
            (tile("CPU", &format::time(per(costs.cpu.sum_ns())), "mean"))
            (tile("Total CPU", &format::time(costs.cpu.sum_ns()), ""))
            (tile("PHP memory", &format::bytes(costs.peak_bytes_max), "maximum peak"))
            (tile("Sent", &format::bytes(per(costs.bytes_out)), "mean"))
        }
    }
}

fn percentiles(costs: &Costs) -> Markup {
    let all = [
        ("total time", &costs.wall),
        ("in the queue", &costs.queue),
        ("CPU, including rollback", &costs.cpu),
        ("waiting in PHP", &costs.waiting),
    ];
    html! {
        div.scroll tabindex="0" { table {
            thead {
                tr {
                    th scope="col" { "Per request" }
                    @for name in ["p50", "p95", "p99", "maximum"] {
                        th.number scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for (name, times) in all {
                    tr {
                        th scope="row" { (name) }
                        @for q in [0.5, 0.95, 0.99] {
                            td.number { (format::time(times.quantile_ns(q))) }
                        }
                        td.number { (format::time(times.max_ns())) }
                    }
                }
            }
        } }
    }
}

/// Returns the shares of the mean request's time.
fn split(costs: &Costs, cpu_delay_ns: u64) -> Markup {
    let per = |sum: u64| sum as f64 / costs.requests.max(1) as f64;
    let php = costs.cpu.sum_ns().saturating_sub(costs.rollback_ns);
    let known = php + costs.waiting_ns;
    let rest = costs.run_ns.saturating_sub(known);
    let cpu_delay = cpu_delay_ns.min(rest);
    let all = [
        ("in the queue", "c-queue", costs.queue.sum_ns()),
        ("CPU in PHP", "c-php", php),
        ("waiting in PHP", "c-wait", costs.waiting_ns),
        ("waiting for a CPU", "c-queue", cpu_delay),
        ("other time in the worker", "c-rest", rest - cpu_delay),
        ("rollback", "c-roll", costs.rollback_ns),
    ];
    let part = |(name, class, sum): (&str, &'static str, u64)| Part {
        name: name.to_owned(),
        class,
        value: sum as f64,
        said: format::time(per(sum) as u64),
    };
    html! {
        figure.chart {
            figcaption { h3 { "Time per request, by part" } p { "Mean values." } }
            (parts("Time per request, by part", &all.map(part)))
            dl.facts {
                dt { "Page faults" } dd { (format::digits(per(costs.faults_minor))) " per request, "
                    (format::digits(per(costs.faults_major))) " with disk access" }
                dt { "Context switches" }
                dd { (format::digits(per(costs.switches_voluntary))) " voluntary, "
                    (format::digits(per(costs.switches_involuntary))) " involuntary per request" }
                dt { "Pages rolled back" }
                dd { (format::digits(per(costs.rollback_pages))) " per request" }
                dt { "Retries" } dd { (format::count(costs.retries)) ", because workers died" }
            }
            p.faint.small {
                "A rollback prepares the worker for the next request. The client does not wait for "
                "it."
            }
        }
    }
}

fn waits(route: &RouteFigures) -> Markup {
    let owned =
        route.waits().map(|(kind, peer, w)| (kind.to_owned(), peer.to_owned(), w.times, w.ns));
    tables::waits(&mut owned.collect::<Vec<_>>(), route.costs.requests)
}

fn timers(route: &RouteFigures) -> Markup {
    let mut all: Vec<_> = route.timers().collect();
    if all.is_empty() {
        return nothing("The application starts no timers in this route.");
    }
    all.sort_by_key(|(_, timer)| std::cmp::Reverse(timer.wall_ns));
    let most = all.first().map_or(0, |(_, timer)| timer.wall_ns) as f64;
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Tags" }
                        th.number scope="col" { "Wall" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "CPU" }
                        th.number scope="col" { "Hits" }
                        th.number scope="col" { "Per hit" }
                        th.number scope="col" { "Requests" }
                    }
                }
                tbody {
                    @for (tags, timer) in &all {
                        tr {
                            td.name { (tables::tags(tags)) }
                            td.number { (format::time(timer.wall_ns)) }
                            td.bars { (bar("c-timer", timer.wall_ns as f64, most)) }
                            @let cpu_ns = timer.user_ns.saturating_add(timer.system_ns);
                            td.number { (format::time(cpu_ns)) }
                            td.number { (format::count(timer.hits)) }
                            td.number { (format::time(timer.wall_ns / timer.hits.max(1))) }
                            td.number { (format::count(timer.requests)) }
                        }
                    }
                }
            }
        }
    }
}

fn tags(route: &RouteFigures) -> Markup {
    let mut all: Vec<_> = route.tags().collect();
    if all.is_empty() {
        return nothing("Requests of this route have no tags.");
    }
    all.sort_by_key(|(.., requests)| std::cmp::Reverse(*requests));
    html! {
        div.scroll { table {
            thead {
                tr {
                    th scope="col" { "Tag" } th scope="col" { "Value" }
                    th.number scope="col" { "Requests" }
                }
            }
            tbody {
                @for (name, value, requests) in all {
                    tr { td { (name) } td.name { (value) } td.number { (format::count(requests)) } }
                }
            }
        } }
    }
}

fn ends(costs: &Costs) -> Markup {
    let ends = End::ALL.into_iter().zip(costs.by_end).filter(|(_, n)| *n > 0);
    let classes = costs.by_class.iter().enumerate().filter(|(_, n)| **n > 0);
    html! {
        div.card { dl.facts {
            @for (end, n) in ends {
                dt { (end.name().replace('_', " ")) } dd { (format::count(n)) }
            }
            @for (class, n) in classes {
                dt { "Status " @if class == 0 { "above 599" } @else { (class) "xx" } }
                dd { (format::count(*n)) }
            }
        } }
    }
}
