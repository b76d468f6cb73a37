//! `/queues`: queues of jobs.

use super::picker::Picker;
use super::view::{Shown, View};
use crate::format;
use crate::frame::{nothing, part};
use crate::query::link;
use crate::queue_periods::{QueueHistory, QueueSum};
use crate::range::{Period, Resolved};
use maud::{Markup, html};
use samovar_wire::QueueStatus;

/// Maximum number of rows.
const ROWS_MAX: usize = 1_000;

pub(super) fn show(view: &View) -> Shown {
    let history = view.queue_history();
    let main = html! {
        h1 { "Queues" }
        p.faint { "Jobs of each " code { "[[queue]]" } " at this moment, and in the range." }
        (part("table", "", &table(history.queues())))
        @if !history.queues().is_empty() {
            @let resolved = view.resolve(&view.range);
            (picker("/queues", view, &resolved, &history))
            (part("range-table", "", &in_range(&history, &resolved)))
        }
    };
    Shown::new("Queues", main)
}

/// Returns the picker of a page with figures of queues.
pub(super) fn picker(
    path: &'static str,
    view: &View,
    resolved: &Resolved,
    history: &QueueHistory,
) -> Markup {
    let missing = history.missing(resolved.period);
    Picker { path, range: &view.range, resolved, missing: &missing, compares: true }.show(view)
}

/// A figure of a queue in a period.
pub(super) type Count = fn(&QueueSum) -> u64;

/// Figures of a queue in a period: name and value.
pub(super) const SUMS: [(&str, Count); 5] = [
    ("Pushed", |sum| sum.pushed),
    ("Succeeded", |sum| sum.done),
    ("Failed runs", |sum| sum.failed),
    ("Retried", |sum| sum.retried),
    ("Died", |sum| sum.died),
];

fn in_range(history: &QueueHistory, resolved: &Resolved) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Queue" }
                @for (name, _) in SUMS { th.number scope="col" { (name) } }
                th.number scope="col" { "Most ready" }
                th.number scope="col" { "Oldest" }
            } }
            tbody { @for queue in history.queues().iter().take(ROWS_MAX) {
                @let (sum, before) = history.sums(&queue.name, resolved);
                tr {
                    th.name scope="row" { a href=(address(&queue.name)) { (queue.name) } }
                    @for (name, of) in SUMS {
                        @let is_bad = name == "Died" && sum.as_ref().is_some_and(|s| of(s) > 0);
                        td.number.bad[is_bad] {
                            (changed(sum.as_ref(), before.as_ref(), of, resolved))
                        }
                    }
                    td.number { @if let Some(sum) = &sum { (format::count(sum.ready)) } }
                    td.number { @if let Some(sum) = &sum { (span(sum.oldest_ms)) } }
                }
            } }
        } }
    }
}

/// Returns a count; below it the rates of both periods, if there is another one.
fn changed(
    sum: Option<&QueueSum>,
    before: Option<&QueueSum>,
    of: Count,
    resolved: &Resolved,
) -> Markup {
    let Some(sum) = sum else { return html! { "–" } };
    let other = resolved.against.as_ref().ok().copied().flatten();
    html! {
        (format::count(of(sum)))
        @if let (Some(before), Some(other)) = (before, other) {
            br;
            small.faint {
                (per_minute(of(sum), resolved.period)) ", before " (per_minute(of(before), other))
            }
        }
    }
}

/// Returns a rate such as `12/min`.
pub(super) fn per_minute(count: u64, period: Period) -> String {
    format!("{}/min", format::digits(count as f64 * 60.0 / period.seconds() as f64))
}

/// Returns a time such as `3 s`.
pub(super) fn span(ms: u64) -> String {
    if ms == 0 { "–".to_owned() } else { format::span(ms / 1_000) }
}

/// Returns the address of the page of a queue.
pub(super) fn address(name: &str) -> String {
    link("/queue", &[("name", name)])
}

fn table(queues: &[QueueStatus]) -> Markup {
    if queues.is_empty() {
        return nothing("No queues. Add [[queue]] to the settings.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Queue" }
                        th.number scope="col" { "Ready" }
                        th.number scope="col" { "Oldest" }
                        th.number scope="col" { "Delayed" }
                        th.number scope="col" { "Running" }
                        th.number scope="col" { "Dead" }
                    }
                }
                tbody {
                    @for queue in queues.iter().take(ROWS_MAX) {
                        tr {
                            th.name scope="row" {
                                a href=(address(&queue.name)) { (queue.name) }
                                @if queue.paused { " " span.tag { "paused" } }
                            }
                            td.number { (format::count(queue.ready as u64)) }
                            td.number.bad[is_late(queue)] { (age(queue)) }
                            td.number { (format::count(queue.delayed as u64)) }
                            td.number { (format::count(queue.running as u64)) }
                            td.number.bad[queue.dead > 0] { (format::count(queue.dead)) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the oldest ready job is older than the queue's limit.
pub(super) fn is_late(queue: &QueueStatus) -> bool {
    queue.oldest_max_ms > 0 && queue.oldest_ms > queue.oldest_max_ms
}

/// Returns the time for which the oldest ready job is ready.
pub(super) fn age(queue: &QueueStatus) -> String {
    match queue.ready {
        0 => "–".to_owned(),
        _ => format::span(queue.oldest_ms / 1_000),
    }
}
