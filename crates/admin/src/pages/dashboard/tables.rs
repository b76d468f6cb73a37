//! Tables used by several pages.

use crate::chart::{Part, bar, event_class, parts};
use crate::format;
use crate::frame::{breakable, moment, nothing, route_link};
use crate::query::link;
use maud::{Markup, html};
use samovar_insight::RecentRequest;
use samovar_insight::store::Event;
use samovar_wire::Status;
use std::sync::Arc;

/// Maximum displayed bytes of a path; the request's page shows all of it.
const PATH_SHOWN_MAX: usize = 120;

/// Returns a table of slow and failed requests.
pub(super) fn requests(of: &[Arc<RecentRequest>], has_route: bool) -> Markup {
    if of.is_empty() {
        return nothing("No slow or failed requests yet.");
    }
    let most = of.iter().map(|kept| kept.numbers.wall_ns).max().unwrap_or(0) as f64;
    html! {
        div.scroll tabindex="0" {
            table.requests {
                thead {
                    tr {
                        th scope="col" { "Start" }
                        th scope="col" { "Request" }
                        @if has_route { th scope="col" { "Route" } }
                        th.number scope="col" { "Status" }
                        th.number scope="col" { "Time" }
                        th.bars scope="col" aria-hidden="true" {}
                        th scope="col" { "Longest wait" }
                    }
                }
                tbody {
                    @for kept in of {
                        @let numbers = &kept.numbers;
                        tr {
                            td { (moment(numbers.began_unix_us / 1_000_000)) }
                            td.name.request {
                                a href=(link("/request", &[("id", &kept.id)])) {
                                    (kept.method) " " (breakable(&shortened(&kept.path)))
                                }
                            }
                            @if has_route { td.route { (route_link(&kept.route)) } }
                            td.number.bad[numbers.status >= 500] { (numbers.status) }
                            td.number { (format::time(numbers.wall_ns)) }
                            td.bars { (bar("c-wall", numbers.wall_ns as f64, most)) }
                            td.name.wait {
                                @if let Some((kind, peer, ns)) = longest_wait(kept) {
                                    (kind) " " (peer) " " span.faint { (format::time(ns)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the longest wait as kind, peer and time: in the queue for a worker, or in PHP.
fn longest_wait(kept: &RecentRequest) -> Option<(&str, &str, u64)> {
    let in_php = kept.waits.iter().map(|(kind, peer, _, ns)| (kind.name(), peer.as_ref(), *ns));
    let in_queue = ("queue", "for a worker", kept.numbers.queue_ns);
    in_php.chain([in_queue]).max_by_key(|(.., ns)| *ns).filter(|(.., ns)| *ns > 0)
}

/// Returns the beginning of a text, cut at a character boundary.
pub(super) fn shortened(text: &str) -> String {
    match text.floor_char_boundary(PATH_SHOWN_MAX) {
        end if end == text.len() => text.to_owned(),
        end => format!("{}…", &text[..end]),
    }
}

/// Returns a list of events, latest first.
pub(super) fn events(of: &[Event], most: usize) -> Markup {
    if of.is_empty() {
        return nothing("No events: no start, reload, crash or limit in this period.");
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

/// Returns a table of waits by peer: (kind, peer, times, ns), for this number of requests.
pub(super) fn waits(of: &mut [(String, String, u64, u64)], requests: u64) -> Markup {
    if of.is_empty() {
        return nothing("No waits.");
    }
    of.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    let most = of.first().map_or(0, |(.., ns)| *ns) as f64;
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Peer" }
                        th.number scope="col" { "Total" }
                        th.bars scope="col" aria-hidden="true" {}
                        th.number scope="col" { "Count" }
                        @if requests > 1 { th.number scope="col" { "Per request" } }
                    }
                }
                tbody {
                    @for (kind, peer, times, ns) in of {
                        tr {
                            td { (kind) }
                            td.name { (peer) }
                            td.number { (format::time(*ns)) }
                            td.bars { (bar("c-wait", *ns as f64, most)) }
                            td.number { (format::count(*times)) }
                            @if requests > 1 { td.number { (format::time(*ns / requests)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the tags of a timer.
pub(super) fn tags<N: AsRef<str>, V: AsRef<str>>(of: &[(N, V)]) -> Markup {
    html! {
        @if of.is_empty() { span.faint { "(other)" } }
        @for (name, value) in of {
            span.tag { (name.as_ref()) " = " b { (value.as_ref()) } } " "
        }
    }
}

/// Returns the style class of a worker's state; an unknown state of another version has no special
/// colour.
pub(super) fn state_class(state: &str) -> &'static str {
    match state {
        "idle" | "waiting" => "c-idle",
        "busy" | "running" => "c-php",
        "booting" | "starting" => "c-wait",
        "held" | "leaving" => "c-roll",
        _ => "c-rest",
    }
}

/// Returns a note such as `and 1 tracing worker`; empty if there is none.
pub(super) fn tracing(status: &Status) -> String {
    match status.tracing_workers() {
        0 => String::new(),
        1 => "and 1 tracing worker".to_owned(),
        n => format!("and {n} tracing workers"),
    }
}

/// Returns the number of workers in each state.
pub(super) fn by_state(status: &Status) -> Markup {
    let each: Vec<_> = status.by_state().into_iter().map(part).collect();
    if each.is_empty() {
        return nothing("No workers.");
    }
    parts("Workers by state", &each)
}

fn part((state, n): (&str, u64)) -> Part {
    let (name, class) = (state.to_owned(), state_class(state));
    Part { name, class, value: n as f64, said: format::count(n) }
}

#[cfg(test)]
mod tests {
    use super::longest_wait;
    use samovar_insight::{Finished, RecentRequest, WaitKind};

    #[test]
    fn queue_counts_as_wait() {
        let mut kept = RecentRequest::new(&Finished::default(), "r", &[]);
        assert_eq!(longest_wait(&kept), None);
        kept.waits = vec![(WaitKind::Tcp, "10.0.0.1:80".into(), 1, 69_000_000)];
        assert_eq!(longest_wait(&kept), Some(("tcp", "10.0.0.1:80", 69_000_000)));
        kept.numbers.queue_ns = 890_000_000;
        assert_eq!(longest_wait(&kept), Some(("queue", "for a worker", 890_000_000)));
    }
}
