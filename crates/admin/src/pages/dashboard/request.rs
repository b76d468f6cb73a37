//! `/request?id=`: one request, from its head to its last byte.

use super::view::{NOT_MEASURED, Shown, View};
use super::{errors, statements, tables};
use crate::chart::span_bar;
use crate::format;
use crate::frame::{moment, nothing, part, route_link, tile};
use maud::{Markup, html};
use samovar_insight::{Boot, Model, Numbers, RecentRequest, Scene, SpanKind, TimedSpan};
use std::fmt::Write as _;

/// Maximum number of statements and waits in the timeline.
const SPANS_SHOWN_MAX: usize = 60;

pub(super) fn show(view: &View) -> Shown {
    let id = view.query.get("id").unwrap_or_default();
    let id = id.trim();
    let Some(insight) = &view.sources.insight else {
        return Shown::not_found("Request", NOT_MEASURED);
    };
    let kept = insight.figures().request(id).map(|kept| (**kept).clone());
    let stored = || view.sources.store().and_then(|store| store.request(id).ok().flatten());
    let Some(kept) = kept.or_else(stored) else {
        let why = "Only slow and failed requests, and requests with an error, are recorded. The \
                   oldest are removed when the limit is reached.";
        return Shown::not_found("No such request", why);
    };
    let numbers = &kept.numbers;
    let main = html! {
        h1.name { (kept.method) " " (kept.path) }
        p {
            "Route " (route_link(&kept.route)) " · started "
            (moment(numbers.began_unix_us / 1_000_000))
        }
        (part("tiles", "", &tiles(numbers)))
        @if !kept.errors.is_empty() {
            (part("errors", "Errors", &errors::of_request(&kept.errors)))
        }
        (part("waterfall", "Timeline", &waterfall(&kept)))
        @let of_request = statements::of_request(&kept.statements, numbers.wall_ns);
        (part("statements", "Statements", &of_request))
        @if let Some(place) = &kept.place {
            (part("place", "PHP location of the longest wait", &html! { pre { code { (place) } } }))
        }
        @if let Some(found) = &kept.scene { (part("stack", "Stack", &scene(found))) }
        div.columns {
            (part("timers", "Timers", &timers(&kept)))
            (part("ledger", "Details", &request_accounting(&kept)))
        }
    };
    Shown::new(format!("{} {}", kept.method, tables::shortened(&kept.path)), main)
}

fn tiles(n: &Numbers) -> Markup {
    html! {
        dl.tiles {
            (tile("Status", &n.status.to_string(), &n.end.name().replace('_', " ")))
            (tile("Time", &format::time(n.wall_ns), ""))
            (tile("In the queue", &format::time(n.queue_ns), ""))
            (tile("In a worker", &format::time(n.run_ns), ""))
            (tile("CPU", &format::time(n.cpu_ns), ""))
            (tile("PHP memory", &format::bytes(n.peak_bytes), "peak"))
        }
    }
}

/// A section of the request's time.
struct Stretch {
    name: String,
    class: &'static str,
    from_ns: u64,
    ns: u64,
    /// Whether it is part of PHP's time.
    is_inner: bool,
}

/// Returns the sections: queue, worker, and the known parts of the worker's time. Where the order
/// of waits is not known, they are drawn one after another after PHP's own time.
fn stretches(kept: &RecentRequest) -> Vec<Stretch> {
    let n = &kept.numbers;
    let outer = |name: &str, class, from_ns, ns| Stretch {
        name: name.to_owned(),
        class,
        from_ns,
        ns,
        is_inner: false,
    };
    let begin = n.queue_ns;
    let end = begin.saturating_add(n.run_ns);
    let mut all = Vec::new();
    if n.worker != 0 {
        all.push(outer("in the queue", "c-queue", 0, n.queue_ns));
        let boot = |boot: &Boot| Some((boot.is_of_run(), boot.within(n.queue_ns)?));
        let boots: Vec<_> = kept.boots.iter().filter_map(boot).collect();
        for (_, (from_ns, ns)) in boots.iter().filter(|(is_of_run, _)| !is_of_run) {
            let name = "worker boot".to_owned();
            all.push(Stretch { name, class: "c-roll", from_ns: *from_ns, ns: *ns, is_inner: true });
        }
        all.push(outer("in a worker", "c-wall", begin, n.run_ns));
        for (_, (from_ns, ns)) in boots.iter().filter(|(is_of_run, _)| *is_of_run) {
            let (name, ns) = ("script boot".to_owned(), (*ns).min(n.run_ns));
            all.push(Stretch { name, class: "c-roll", from_ns: *from_ns, ns, is_inner: true });
        }
        let php = n.cpu_ns.saturating_sub(n.rollback_ns).min(n.run_ns);
        let mut at = begin;
        let mut inner = |name: String, class, ns: u64| {
            all.push(Stretch { name, class, from_ns: at, ns, is_inner: true });
            at = at.saturating_add(ns);
        };
        inner("CPU in PHP".to_owned(), "c-php", php);
        let delay_ns = kept.cpu_delay_ns.min(n.run_ns);
        if delay_ns > 0 {
            inner("waiting for a CPU".to_owned(), "c-queue", delay_ns);
        }
        let waits = if kept.timeline.is_empty() { &kept.waits[..] } else { &[] };
        for (kind, peer, times, ns) in waits {
            let times = if *times > 1 { format!(", {times} times") } else { String::new() };
            inner(format!("{} {peer}{times}", kind.name()), "c-wait", *ns);
        }
        all.extend(longest(&kept.timeline).iter().filter_map(|span| timed(kept, span)));
    }
    if n.worker != 0 && end > n.wall_ns {
        all.push(outer("after the response was sent", "c-rest", n.wall_ns, end - n.wall_ns));
    }
    if n.wall_ns > end {
        let name = if n.worker == 0 { "without a worker" } else { "to the client" };
        all.push(outer(name, "c-rest", end, n.wall_ns - end));
    }
    all
}

/// Returns the longest spans in the order of their start.
fn longest(timeline: &[TimedSpan]) -> Vec<TimedSpan> {
    let mut spans = timeline.to_vec();
    spans.sort_by_key(|span| std::cmp::Reverse(span.us));
    spans.truncate(SPANS_SHOWN_MAX);
    spans.sort_by_key(|span| (span.from_us, std::cmp::Reverse(span.us)));
    spans
}

fn timed(kept: &RecentRequest, span: &TimedSpan) -> Option<Stretch> {
    let index = usize::from(span.index);
    let (name, class) = match span.kind {
        SpanKind::Statement => (tables::shortened(&kept.statements.get(index)?.text), "c-timer"),
        SpanKind::Wait => {
            let (kind, peer, ..) = kept.waits.get(index)?;
            (format!("{} {peer}", kind.name()), "c-wait")
        }
    };
    let from_ns = kept.numbers.queue_ns.saturating_add(u64::from(span.from_us) * 1_000);
    // A worker may report any time; a span is a part of the run.
    let end_ns = kept.numbers.queue_ns.saturating_add(kept.numbers.run_ns);
    let ns = (u64::from(span.us) * 1_000).min(end_ns.saturating_sub(from_ns));
    Some(Stretch { name, class, from_ns: from_ns.min(end_ns), ns, is_inner: true })
}

fn row(s: &Stretch, whole: f64) -> Markup {
    let (from, to) = (s.from_ns as f64 / whole, s.from_ns.saturating_add(s.ns) as f64 / whole);
    html! {
        tr {
            th.name.inner[s.is_inner] scope="row" { (s.name) }
            td.number { (format::time(s.ns)) }
            td.bars.long { (span_bar(s.class, from, to)) }
        }
    }
}

fn waterfall(kept: &RecentRequest) -> Markup {
    let all = stretches(kept);
    let longest = all.iter().map(|s| s.from_ns.saturating_add(s.ns)).max().unwrap_or(0);
    let whole = longest.max(kept.numbers.wall_ns).max(1) as f64;
    // Timers are part of PHP's time, so they are drawn below it.
    let inner = all.iter().rposition(|s| s.is_inner).map_or(0, |at| at + 1);
    html! {
        div.scroll tabindex="0" {
            table.waterfall {
                thead {
                    tr {
                        th scope="col" { "Part" }
                        th.number scope="col" { "Time" }
                        th.bars.long scope="col" { "0 to " (format::time(whole as u64)) }
                    }
                }
                tbody {
                    @for s in &all[..inner] { (row(s, whole)) }
                    @for timer in &kept.timers {
                        @let begin = kept.numbers.queue_ns as f64 / whole;
                        tr {
                            th.name.inner scope="row" { "timer " (tables::tags(&timer.tags)) }
                            td.number { (format::time(timer.wall_ns)) }
                            @let end = begin + timer.wall_ns as f64 / whole;
                            td.bars.long { (span_bar("c-timer", begin, end)) }
                        }
                    }
                    @for s in &all[inner..] { (row(s, whole)) }
                }
            }
        }
        p.faint.small {
            "PHP's CPU time is recorded as a sum: its order within the worker's time is not known. "
            "Statements and waits are drawn where they happened; a statement includes its waits. "
            "Timers may overlap all other parts. They are drawn from the start of the worker's "
            "time."
            @if kept.timeline.len() > SPANS_SHOWN_MAX {
                " " (kept.timeline.len() - SPANS_SHOWN_MAX) " shorter statements and waits are not "
                "drawn."
            }
        }
    }
}

fn timers(kept: &RecentRequest) -> Markup {
    if kept.timers.is_empty() {
        return nothing("The application started no timers.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Tags" }
                        th.number scope="col" { "Hits" }
                        th.number scope="col" { "Wall" }
                        th.number scope="col" { "CPU" }
                    }
                }
                tbody {
                    @for timer in &kept.timers {
                        tr {
                            td.name { (tables::tags(&timer.tags)) }
                            td.number { (format::count(timer.hits.into())) }
                            td.number { (format::time(timer.wall_ns)) }
                            td.number { (format::time(timer.cpu_ns)) }
                        }
                    }
                }
            }
        }
    }
}

fn request_accounting(kept: &RecentRequest) -> Markup {
    let n = &kept.numbers;
    let fact = |name: &str, value: String| html! { dt { (name) } dd { (value) } };
    html! {
        div.card { dl.facts {
            dt { "ID" } dd.name { (kept.id) }
            @if !kept.script.is_empty() { dt { "Script" } dd.name { (kept.script) } }
            @if n.model != Model::None { (fact("Model", n.model.name().to_owned())) }
            @if n.worker != 0 {
                (fact("Worker", format!(
                    "process {} in cell {}, generation {}", n.worker, n.cell, n.generation
                )))
            }
            @if !kept.release.is_empty() { dt { "Release" } dd.name { (kept.release) } }
            (fact("Preceding rollback", format!(
                "{}, {} pages", format::time(n.rollback_ns), n.rollback_pages
            )))
            (fact("Page faults", format!(
                "{}, {} with disk access", format::count(n.faults_minor.into()), n.faults_major
            )))
            (fact("Context switches", format!(
                "{} voluntary, {} involuntary", n.switches_voluntary, n.switches_involuntary
            )))
            (fact("Received", format::bytes(n.bytes_in)))
            (fact("Sent", format::bytes(n.bytes_out)))
            (fact("Retries", n.retries.to_string()))
            @if n.trace_id != [0; 16] {
                dt { "Trace" } dd.name { (hex(&n.trace_id)) }
                dt { "Span" } dd.name { (hex(&n.span_id)) }
            }
            @for (name, value) in &kept.tags { dt { "Tag " (name) } dd.name { (value) } }
        } }
    }
}

/// Returns the worker's state at the time the request became slow.
fn scene(scene: &Scene) -> Markup {
    html! {
        p { "When the request became slow: " (scene.blocked) }
        pre { @for (at, call) in scene.calls.iter().enumerate() { "#" (at) " " (call) "\n" } }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
