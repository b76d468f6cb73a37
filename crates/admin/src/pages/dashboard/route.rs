//! `/route?name=`: one route: durations, waits, and individual requests to look at.

use super::picker::Picker;
use super::view::{NOT_MEASURED, Shown, View};
use super::{history, routes, statements, tables};
use crate::chart::{Part, bar, histogram, parts};
use crate::comparisons::Change;
use crate::format;
use crate::frame::{named, nothing, part, tile};
use crate::query::link;
use crate::range::Span;
use maud::{Markup, html};
use samovar_insight::store::{RouteMinute, RouteSum, StoredTimer};
use samovar_insight::{Costs, End, RecentRequest, RouteFigures};
use std::sync::Arc;

/// Maximum number of displayed requests.
const REQUESTS_MAX: usize = 10;

pub(super) fn show(view: &View) -> Shown {
    let name = view.query.get("name").unwrap_or_default();
    let Some(insight) = &view.sources.insight else {
        return Shown::not_found("Route", NOT_MEASURED);
    };
    let resolved = view.resolve(&view.range);
    let period = resolved.period;
    let (route, kept): (Option<RouteFigures>, Vec<Arc<RecentRequest>>) = {
        let figures = insight.figures();
        let route = figures.route(&name).filter(|route| route.costs.requests > 0);
        let of_route = figures.kept().iter().filter(|kept| {
            *kept.route == *name && period.contains(kept.numbers.began_unix_us / 1_000_000)
        });
        (route.cloned(), of_route.take(REQUESTS_MAX).cloned().collect())
    };
    let timeline = view.sources.timeline(Some(&name), period, view.now);
    let minute = match &route {
        // These figures are complete, however much memory the range would need.
        Some(route) if view.range.span == Span::Start => route.whole(),
        _ => timeline.sum(),
    };
    if route.is_none() && minute.requests == 0 {
        return Shown::not_found(
            "No such route",
            "No requests for this route since the start or in the selected range.",
        );
    }
    // The history does not have it.
    let cpu_delay_ns = route.as_ref().filter(|_| view.range.span == Span::Start);
    let cpu_delay_ns = cpu_delay_ns.map(|route| route.cpu_delay_ns);
    let other = resolved.against.clone().ok().flatten();
    let other = other.map(|other| view.sources.route_in(&name, other, view.now));
    let missing = match &other {
        Some((_, missing)) if timeline.missing.is_empty() => missing,
        _ => &timeline.missing,
    };
    let costs = &Costs::of_minute(&minute);
    let events = view.sources.events(period.from, period.to);
    let main = html! {
        h1.name { (named(&name)) }
        p {
            a href=(link("/profile", &[("route", &name)])) { "Profile by function" } " · "
            a href=(link("/calls", &[("route", &name)])) { "Call graph" } " · "
            a href=(link("/history", &[("route", &name)])) { "History" }
        }
        (Picker {
            path: "/route",
            range: &view.range,
            resolved: &resolved,
            missing,
            compares: true,
        }.show(view))
        (part("tiles", "", &tiles(costs)))
        @if let Some((then, _)) = &other {
            (part("change", "Compared with the other period", &comparison(&minute, then)))
        }
        @if costs.requests == 0 {
            (nothing("No requests in this range."))
        } @else {
            div.columns {
                (part("histogram", "", &histogram("Request duration", &costs.wall)))
                (part("split", "", &split(costs, cpu_delay_ns)))
            }
            (part("percentiles", "Percentiles", &percentiles(costs)))
            (part("history", "Over time", &history::charts(&timeline, &events)))
            (part("waits", "Waits", &waits(&minute)))
        }
        @if let Some(route) = &route {
            (part("statements", "Statements since the start", &statements::of_route(route)))
        }
        (part("slow", "Slow and failed requests", &tables::requests(&kept, false)))
        (part("timers", "Timers", &timers(minute.timers)))
        div.columns {
            @if let Some(route) = &route {
                (part("tags", "Tags since the start", &tags(route)))
            }
            (part("ends", "Requests by outcome", &ends(costs)))
        }
    };
    Shown::new(name, main)
}

/// Returns the sums that are compared.
fn sum(minute: &RouteMinute) -> RouteSum {
    let mut sum = RouteSum::default();
    sum.merge_minute(minute);
    sum
}

/// Returns a table of figures in both periods, with their changes.
fn comparison(now: &RouteMinute, then: &RouteMinute) -> Markup {
    if then.requests == 0 {
        return nothing("No requests in the other period.");
    }
    let change = Change::of(&sum(now), &sum(then));
    let share = |m: &RouteMinute| format::percent(m.errors as f64, m.requests as f64);
    let mean = |sum: u64, m: &RouteMinute| format::time(sum / m.requests.max(1));
    let quantile = |m: &RouteMinute, q| format::time(m.wall.quantile_ns(q));
    let plain = html! { td {} };
    let rows = [
        ("Calls", [now, then].map(|m| format::count(m.requests)), plain.clone()),
        ("Errors", [now, then].map(share), routes::share_change(change.errors)),
        ("p50", [now, then].map(|m| quantile(m, 0.5)), plain.clone()),
        ("p95", [now, then].map(|m| quantile(m, 0.95)), routes::change(change.p95)),
        ("p99", [now, then].map(|m| quantile(m, 0.99)), plain.clone()),
        ("CPU, mean", [now, then].map(|m| mean(m.cpu.sum_ns(), m)), routes::change(change.cpu)),
        ("Waiting, mean", [now, then].map(|m| mean(m.waiting_ns, m)), plain.clone()),
        ("In the queue, mean", [now, then].map(|m| mean(m.queue_ns, m)), plain.clone()),
        ("PHP memory, peak", [now, then].map(|m| format::bytes(m.peak_bytes_max)), plain),
    ];
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Figure" }
                th.number scope="col" { "This range" }
                th.number scope="col" { "Other period" }
                th.number scope="col" { "Change" }
            } }
            tbody { @for (name, [now, then], change) in rows { tr {
                th scope="row" { (name) }
                td.number { (now) }
                td.number { (then) }
                (change)
            } } }
        } }
    }
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
fn split(costs: &Costs, cpu_delay_ns: Option<u64>) -> Markup {
    let per = |sum: u64| sum as f64 / costs.requests.max(1) as f64;
    let php = costs.cpu.sum_ns().saturating_sub(costs.rollback_ns);
    let known = php + costs.waiting_ns;
    let rest = costs.run_ns.saturating_sub(known);
    let cpu_delay = cpu_delay_ns.map(|delay| delay.min(rest));
    let mut all = vec![
        ("in the queue", "c-queue", costs.queue.sum_ns()),
        ("CPU in PHP", "c-php", php),
        ("waiting in PHP", "c-wait", costs.waiting_ns),
    ];
    all.extend(cpu_delay.map(|delay| ("waiting for a CPU", "c-queue", delay)));
    all.push(("other time in the worker", "c-rest", rest - cpu_delay.unwrap_or(0)));
    all.push(("rollback", "c-roll", costs.rollback_ns));
    let part = |(name, class, sum): (&str, &'static str, u64)| Part {
        name: name.to_owned(),
        class,
        value: sum as f64,
        said: format::time(per(sum) as u64),
    };
    html! {
        figure.chart {
            figcaption { h3 { "Time per request, by part" } p { "Mean values." } }
            (parts("Time per request, by part", &all.into_iter().map(part).collect::<Vec<_>>()))
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

fn waits(minute: &RouteMinute) -> Markup {
    let of = minute.waits.iter().map(|w| (w.kind.clone(), w.peer.clone(), w.times, w.ns));
    tables::waits(&mut of.collect::<Vec<_>>(), minute.requests)
}

fn timers(mut all: Vec<StoredTimer>) -> Markup {
    if all.is_empty() {
        return nothing("The application starts no timers in this route.");
    }
    all.sort_by_key(|timer| std::cmp::Reverse(timer.wall_ns));
    let most = all.first().map_or(0, |timer| timer.wall_ns) as f64;
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
                    }
                }
                tbody {
                    @for timer in &all {
                        tr {
                            td.name { (tables::tags(&timer.tags)) }
                            td.number { (format::time(timer.wall_ns)) }
                            td.bars { (bar("c-timer", timer.wall_ns as f64, most)) }
                            td.number { (format::time(timer.cpu_ns)) }
                            td.number { (format::count(timer.hits)) }
                            td.number { (format::time(timer.wall_ns / timer.hits.max(1))) }
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
