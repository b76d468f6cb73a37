//! Tables that several pages have.

use crate::chart::{Part, bar, event_class, parts};
use crate::frame::{moment, nothing, route_link};
use crate::human;
use crate::query::link;
use maud::{Markup, html};
use samovar_insight::Kept;
use samovar_insight::store::Event;
use samovar_wire::Status;
use std::sync::Arc;

/// Bytes of a path that are shown; the whole is on the request's page.
const PATH_SHOWN_MAX: usize = 120;

/// Slow and failed requests.
pub(super) fn requests(of: &[Arc<Kept>], has_route: bool) -> Markup {
    if of.is_empty() {
        return nothing("No slow and no failed requests yet.");
    }
    let most = of.iter().map(|kept| kept.numbers.wall_ns).max().unwrap_or(0) as f64;
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Began" }
                        th scope="col" { "Request" }
                        @if has_route { th scope="col" { "Route" } }
                        th.number scope="col" { "Status" }
                        th.number scope="col" { "Time" }
                        th.bars scope="col" aria-hidden="true" {}
                        th scope="col" { "Waited longest for" }
                    }
                }
                tbody {
                    @for kept in of {
                        @let numbers = &kept.numbers;
                        tr {
                            td { (moment(numbers.began_unix_us / 1_000_000)) }
                            td.name {
                                a href=(link("/request", &[("id", &kept.id)])) {
                                    (kept.method) " " (shortened(&kept.path))
                                }
                            }
                            @if has_route { td { (route_link(&kept.route)) } }
                            td.number.bad[numbers.status >= 500] { (numbers.status) }
                            td.number { (human::time(numbers.wall_ns)) }
                            td.bars { (bar("c-wall", numbers.wall_ns as f64, most)) }
                            td.name {
                                @if let Some((kind, peer, _, ns)) = kept.waits.first() {
                                    (kind.name()) " " (peer) " " span.faint { (human::time(*ns)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The beginning of a text, in whole characters.
pub(super) fn shortened(text: &str) -> String {
    match text.floor_char_boundary(PATH_SHOWN_MAX) {
        end if end == text.len() => text.to_owned(),
        end => format!("{}…", &text[..end]),
    }
}

/// What happened, the latest first.
pub(super) fn events(of: &[Event], most: usize) -> Markup {
    if of.is_empty() {
        return nothing("Nothing happened: no start, reload, crash or limit in this time.");
    }
    html! {
        ol.events {
            @for event in of.iter().rev().take(most) {
                li {
                    (moment(event.at)) " "
                    b class=(event_class(event)) { (event.kind.name().replace('_', " ")) } " "
                    span { (event.text) }
                }
            }
        }
    }
}

/// Time spent waiting, by peer: (kind, peer, times, ns), and how many requests there were.
pub(super) fn waits(of: &mut [(String, String, u64, u64)], requests: u64) -> Markup {
    if of.is_empty() {
        return nothing("It waited for nothing.");
    }
    of.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    let most = of.first().map_or(0, |(.., ns)| *ns) as f64;
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Whom for" }
                        th.number scope="col" { "Together" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Times" }
                        @if requests > 1 { th.number scope="col" { "Per request" } }
                    }
                }
                tbody {
                    @for (kind, peer, times, ns) in of {
                        tr {
                            td { (kind) }
                            td.name { (peer) }
                            td.number { (human::time(*ns)) }
                            td.bars { (bar("c-wait", *ns as f64, most)) }
                            td.number { (human::count(*times)) }
                            @if requests > 1 { td.number { (human::time(*ns / requests)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The tags of a timer.
pub(super) fn tags<N: AsRef<str>, V: AsRef<str>>(of: &[(N, V)]) -> Markup {
    html! {
        @if of.is_empty() { span.faint { "(other)" } }
        @for (name, value) in of {
            span.tag { (name.as_ref()) " = " b { (value.as_ref()) } } " "
        }
    }
}

/// A state's colour; a state that another version knows has none of its own.
pub(super) fn state_class(state: &str) -> &'static str {
    match state {
        "idle" | "waiting" => "c-idle",
        "busy" | "running" => "c-php",
        "booting" | "starting" => "c-wait",
        "held" | "leaving" => "c-roll",
        _ => "c-rest",
    }
}

/// How many workers are in which state.
pub(super) fn by_state(status: &Status) -> Markup {
    let each: Vec<_> = status.by_state().into_iter().map(part).collect();
    if each.is_empty() {
        return nothing("There are no workers.");
    }
    parts("Workers by state", &each)
}

fn part((state, n): (&str, u64)) -> Part {
    let (name, class) = (state.to_owned(), state_class(state));
    Part { name, class, value: n as f64, said: human::count(n) }
}
