//! `/queues`: queues of jobs.

use super::view::{Shown, View};
use crate::format;
use crate::frame::{nothing, part};
use crate::query::link;
use maud::{Markup, html};
use samovar_wire::QueueStatus;

/// Maximum number of rows.
const ROWS_MAX: usize = 1_000;

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let main = html! {
        h1 { "Queues" }
        p.faint {
            "Jobs of each " code { "[[queue]]" } " at this moment. The totals count from the start."
        }
        (part("table", "", &table(&status.queues)))
    };
    Shown::new("Queues", main)
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
                        th.number scope="col" { "Pushed" }
                        th.number scope="col" { "Succeeded" }
                        th.number scope="col" { "Failed runs" }
                        th.number scope="col" { "Retried" }
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
                            td.number { (format::count(queue.pushed_total)) }
                            td.number { (format::count(queue.done_total)) }
                            td.number { (format::count(queue.failed_total)) }
                            td.number { (format::count(queue.retried_total)) }
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
