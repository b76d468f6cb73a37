//! `/plan`: the load that this machine carries, and the date on which it is reached.

use super::view::{Shown, View};
use crate::chart::{Layer, Lines, empty};
use crate::format;
use crate::frame::{nothing, part};
use crate::planner::Planned;
use crate::query::link;
use maud::{Markup, html};
use samovar_plan::{Plan, Problem, RouteCost, answer, details, rate};

const DAY_S: u64 = 86_400;
/// Maximum number of days on the chart.
const DAYS_MAX: i64 = 1_200;
/// A capacity above this many times the load is not drawn: it would flatten everything.
const DRAWN_UP_TO: f64 = 4.0;
/// Maximum number of listed routes.
const ROUTES_MAX: usize = 20;

pub(super) fn show(view: &View) -> Shown {
    let main = match view.sources.plan(view.now) {
        Planned::Computing => html! {
            h1 { "Capacity plan" }
            (nothing("Reading the history. This page shows the plan when it is complete."))
        },
        Planned::Done { plan: Err(problem), .. } => html! {
            h1 { "No capacity plan" }
            (reason(&problem))
        },
        Planned::Done { at, plan: Ok(plan) } => html! {
            h1 { (answer(&plan)) }
            p.faint {
                "Computed at " (format::moment(at)) " from the history. "
                code { "samovar plan" } " answers further questions, such as lost machines or a \
                route with more requests."
            }
            (part("peaks", "", &html! { div.charts { (peaks(&plan)) } }))
            (part("details", "Details", &lines(&plan)))
            (part("routes", "CPU time by route", &routes(&plan)))
        },
    };
    Shown::new("Plan", main)
}

fn reason(problem: &Problem) -> Markup {
    html! {
        p.bad { (crate::health::capitalised(problem.message())) "." }
        p { (crate::health::capitalised(problem.hint())) "." }
    }
}

fn lines(plan: &Plan) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                tbody {
                    // Routes have a table of their own.
                    @for (name, text) in details(plan).iter().filter(|(name, _)| name != "route") {
                        tr { th scope="row" { (name) } td.name { (text) } }
                    }
                }
            }
        }
    }
}

fn routes(plan: &Plan) -> Markup {
    let mut costs: Vec<&RouteCost> =
        plan.machines.iter().flat_map(|machine| &machine.routes).collect();
    costs.sort_by(|a, b| b.cpu_share.total_cmp(&a.cpu_share));
    if costs.is_empty() {
        return nothing("The history has no routes.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Route" }
                        th.number scope="col" { "Share of the CPU" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "CPU per request" }
                    }
                }
                tbody {
                    @for cost in costs.into_iter().take(ROUTES_MAX) {
                        tr {
                            th.name scope="row" {
                                a href=(link("/history", &[("route", &cost.name)])) {
                                    (crate::frame::named(&cost.name))
                                }
                            }
                            td.number { (format::percent(cost.cpu_share, 1.0)) }
                            td.bars { (crate::chart::bar("c-php", cost.cpu_share, 1.0)) }
                            td.number { (format::time((cost.seconds * 1e9) as u64)) }
                        }
                    }
                }
            }
        }
    }
}

/// Draws the peaks of past days, and the forecast with its band.
fn peaks(plan: &Plan) -> Markup {
    let title = "Highest five minutes of each day, in requests per second";
    let future = plan.trend.as_ref().map_or(&[][..], |trend| &trend.future);
    let days = || plan.peaks.iter().map(|peak| peak.day).chain(future.iter().map(|one| one.day));
    let (Some(first), Some(last)) = (days().min(), days().max()) else {
        return empty(title, "No whole day in the history.");
    };
    let first = first.max(last - DAYS_MAX + 1);
    let past = |day: i64| plan.peaks.iter().find(|peak| peak.day == day).map(|peak| peak.rate);
    // The forecast has one point for several days.
    let begins = future.first().map(|one| one.day);
    let ahead = |day: i64| {
        let is_ahead = begins.is_some_and(|begin| day >= begin);
        future.iter().rfind(|one| one.day <= day).filter(|_| is_ahead)
    };
    let highest = plan.peaks.iter().map(|peak| peak.rate);
    let highest = highest.chain(future.iter().map(|one| one.high)).fold(0.0, f64::max);
    let layer = |name, class, value: &dyn Fn(i64) -> Option<f64>| Layer {
        name,
        class,
        values: (first..=last).map(value).collect(),
    };
    let mut layers = vec![layer("peak", "c-req", &past)];
    if !future.is_empty() {
        layers.push(layer("forecast", "c-wait", &|day| ahead(day).map(|one| one.rate)));
        layers.push(layer("low", "c-queue", &|day| ahead(day).map(|one| one.low)));
        layers.push(layer("high", "c-queue", &|day| ahead(day).map(|one| one.high)));
    }
    let capacity = plan.today.capacity;
    let note = if capacity <= DRAWN_UP_TO * highest {
        layers.push(layer("capacity", "c-error", &|_| Some(capacity)));
        String::new()
    } else {
        format!("The capacity, {} requests/s, is above the chart.", rate(capacity))
    };
    let from = u64::try_from(first).unwrap_or(0) * DAY_S;
    let (step, unit) = (DAY_S, format::rate as fn(f64) -> String);
    Lines { title, note: &note, from, step, layers, is_stacked: false, unit, events: &[] }.show()
}
