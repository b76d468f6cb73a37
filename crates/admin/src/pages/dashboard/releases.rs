//! `/releases`: the canary against the serving generation, and the releases of the past.

use super::view::{Shown, View};
use crate::format;
use crate::frame::{nothing, part, route_link, tile};
use crate::known_releases::Label;
use crate::query::link;
use maud::{Markup, html};
use samovar_wire::{CanaryError, CanaryRoute, CanaryState, CanaryStatus};

/// Maximum number of listed releases, the last ones.
const RELEASES_MAX: usize = 100;
/// Maximum number of listed routes and of errors of a canary.
const ROUTES_MAX: usize = 50;
const ERRORS_MAX: usize = 20;
/// Parts per million of a share.
const PPM: f64 = 1e6;

/// A figure of a canary's routes: its heading, the values of the serving generation and of the
/// canary, and their format.
type Figure = (&'static str, fn(&CanaryRoute) -> [f64; 2], fn(f64) -> String);

const FIGURES: [Figure; 6] = [
    ("CPU", |route| route.cpu_ns, |ns| format::time(ns as u64)),
    ("Latency", |route| route.latency_ns, |ns| format::time(ns as u64)),
    ("Memory", |route| route.memory_bytes, |bytes| format::bytes(bytes as u64)),
    ("5xx", |route| route.failure, |share| format::percent(share, 1.0)),
    ("4xx", |route| route.rejection, |share| format::percent(share, 1.0)),
    ("Fatal", |route| route.fatal, |share| format::percent(share, 1.0)),
];

pub(super) fn show(view: &View) -> Shown {
    let main = html! {
        h1 { "Releases" }
        (part("canary", "Canary", &canary(view.sources.host.canary().as_ref(), view.now)))
        (part("releases", "Releases", &releases(view)))
    };
    Shown::new("Releases", main)
}

fn canary(canary: Option<&CanaryStatus>, now: u64) -> Markup {
    let Some(canary) = canary else {
        return html! {
            p.empty {
                "No canary since the start of the server. "
                code { "samovar reload --canary 5%" }
                " lets a new release serve a part of the visitors first."
            }
        };
    };
    let evidence = match &*canary.evidence_figure {
        "" => "none".to_owned(),
        figure if canary.evidence_route.is_empty() => format!("{figure}, all routes"),
        figure => format!("{figure}, {}", canary.evidence_route),
    };
    html! {
        p {
            strong.bad[is_refused(canary.state)] {
                "Generation " (canary.generation)
                @if !canary.release.is_empty() { ", release " (canary.release) }
                @if !canary.pool.is_empty() { " of pool " (canary.pool) }
                ": " (canary.state.name())
                @if canary.state == CanaryState::Running {
                    " for " (format::span(canary.age_s)) ", serves "
                    (share(canary.share_ppm)) " of the visitors"
                } @else if canary.ended_unix_s > 0 {
                    " " (format::span(now.saturating_sub(canary.ended_unix_s))) " ago"
                }
                "."
            }
            @if !canary.reason.is_empty() { " Reason: " (canary.reason) "." }
        }
        dl.tiles {
            @let by = format!("of the visitors, by {}", canary.by.name());
            (tile("Share", &share(canary.share_ppm), &by))
            (tile("Canary", &format::count(canary.requests[1]), "requests"))
            (tile("Serving", &format::count(canary.requests[0]), "requests"))
            (tile("Evidence against it", &format::percent(canary.evidence, 1.0), &evidence))
            @if canary.state == CanaryState::Running && !canary.next_ppm.is_empty() {
                @let next: Vec<String> = canary.next_ppm.iter().map(|one| share(*one)).collect();
                @let after = format!("each after {} at least", format::span(canary.step_s));
                (tile("Next", &next.join(", "), &after))
            }
        }
        (routes(&canary.routes))
        (errors(&canary.new_errors))
        @if canary.state == CanaryState::Running {
            p.faint {
                code { "samovar canary promote" } " lets it take over, "
                code { "samovar canary abort" } " ends it."
            }
        }
    }
}

/// Whether the canary was found to be worse.
fn is_refused(state: CanaryState) -> bool {
    matches!(state, CanaryState::Aborting | CanaryState::Aborted)
}

fn share(ppm: u32) -> String {
    format::percent(f64::from(ppm), PPM)
}

fn routes(routes: &[CanaryRoute]) -> Markup {
    if routes.is_empty() {
        return nothing("No requests of the canary yet.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                caption { "Serving generation → canary" }
                thead {
                    tr {
                        th scope="col" { "Route" }
                        th.number scope="col" { "Requests" }
                        @for (name, ..) in FIGURES { th.number scope="col" { (name) } }
                    }
                }
                tbody {
                    @for route in routes.iter().take(ROUTES_MAX) {
                        tr {
                            th.name scope="row" {
                                @if route.route.is_empty() { "all routes" }
                                @else { (route_link(&route.route)) }
                            }
                            td.number {
                                (format::count(route.requests[0])) " → "
                                (format::count(route.requests[1]))
                            }
                            @for (_, values, shown) in FIGURES {
                                @let [old, new] = values(route);
                                td.number { (shown(old)) " → " (shown(new)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn errors(errors: &[CanaryError]) -> Markup {
    html! {
        @for error in errors.iter().take(ERRORS_MAX) {
            h3 {
                "New error on " (route_link(&error.route)) ", "
                (format::count(error.count[1])) " times"
            }
            pre { (error.trace) }
        }
    }
}

fn releases(view: &View) -> Markup {
    let known = &view.known().releases;
    if known.is_empty() {
        return nothing("No release yet: the application has not been booted.");
    }
    let has_pools = known.iter().any(|one| !one.pool.is_empty());
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Release" }
                        @if has_pools { th scope="col" { "Pool" } }
                        th scope="col" { "Since" }
                        th scope="col" { "Until" }
                        th.number scope="col" { "Served for" }
                        th scope="col" { "Figures" }
                    }
                }
                tbody {
                    @for one in known.iter().rev().take(RELEASES_MAX) {
                        @let label = Label::new(&one.label);
                        @let until = one.to.unwrap_or(view.now);
                        tr {
                            th.name scope="row" {
                                @if label.is_some() { (one.label) } @else { (one.text) }
                            }
                            @if has_pools { td { (one.pool) } }
                            td { (format::moment(one.from)) }
                            td {
                                @match one.to {
                                    Some(to) => (format::moment(to)),
                                    None => strong { "serves" },
                                }
                            }
                            td.number { (format::span(until.saturating_sub(one.from))) }
                            td {
                                @if one.is_momentary() {
                                    span.faint { "served for less than a second" }
                                } @else {
                                    // A label names the last release that has it.
                                    @let label = label.filter(|label| {
                                        view.known().named(label) == Some(one)
                                    });
                                    (figures(label.as_ref(), one.from, one.to))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a link to the routes of a release, compared with the time before it.
fn figures(label: Option<&Label>, from: u64, to: Option<u64>) -> Markup {
    let address = if let Some(label) = label {
        let range = format!("release:{}", label.text());
        link("/routes", &[("range", &range), ("compare", "previous")])
    } else {
        let (from, to) = (from.to_string(), to.map(|to| to.to_string()));
        let mut pairs = vec![("from", &*from)];
        pairs.extend(to.as_deref().map(|to| ("to", to)));
        pairs.push(("compare", "previous"));
        link("/routes", &pairs)
    };
    html! { a href=(address) { "routes" } }
}
