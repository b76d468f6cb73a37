//! `/queue?name=`: figures of a queue, its failures by class, and its dead jobs.

use super::queues::age;
use super::tables;
use super::view::{Shown, View};
use crate::format;
use crate::frame::{breakable, moment, nothing, part, tile};
use crate::query::link;
use maud::{Markup, html};
use samovar_wire::{DeadJob, QueueResponse, QueueStatus};
use std::cmp::Reverse;

/// Maximum number of dead jobs on a page.
const JOBS_MAX: usize = 20;
/// Maximum length of a displayed error or payload.
const TEXT_MAX: usize = 2_000;

pub(super) fn show(view: &View) -> Shown {
    let name = view.query.get("name").unwrap_or_default();
    let status = view.sources.host.status();
    let Some(queue) = status.queues.iter().find(|queue| queue.name == name) else {
        return Shown::not_found("No such queue", "The settings have no queue with this name.");
    };
    let after = view.query.get("after").and_then(|after| after.parse().ok()).unwrap_or(0);
    let dead = view.sources.host.dead_jobs(&queue.name, after, JOBS_MAX);
    let main = html! {
        h1.name { (queue.name) @if queue.paused { " " span.tag { "paused" } } }
        (tiles(queue))
        (part("failures", "Failed runs by class", &failures(queue)))
        (part("dead", "Dead jobs", &jobs(queue, &dead)))
        p.more { a href="/queues" { "All queues" } }
    };
    Shown::new(queue.name.clone(), main)
}

fn tiles(queue: &QueueStatus) -> Markup {
    let count = |of: usize| format::count(of as u64);
    html! {
        dl.tiles {
            (tile("Ready", &count(queue.ready), "jobs"))
            (tile("Oldest ready", &age(queue), ""))
            (tile("Delayed", &count(queue.delayed), "jobs"))
            (tile("Running", &count(queue.running), "jobs"))
            (tile("Pushed", &format::count(queue.pushed_total), "since the start"))
            (tile("Succeeded", &format::count(queue.done_total), "since the start"))
            (tile("Retried", &format::count(queue.retried_total), "since the start"))
            (tile("Dead", &format::count(queue.dead), "jobs"))
        }
    }
}

fn failures(queue: &QueueStatus) -> Markup {
    if queue.failures.is_empty() {
        return nothing("No failed runs since the start.");
    }
    let mut all: Vec<_> = queue.failures.iter().collect();
    all.sort_by_key(|(_, number)| Reverse(**number));
    html! {
        div.scroll tabindex="0" { table {
            thead { tr { th scope="col" { "Class" } th.number scope="col" { "Runs" } } }
            tbody { @for (class, number) in all { tr {
                th.name scope="row" { (breakable(class)) }
                td.number { (format::count(*number)) }
            } } }
        } }
    }
}

fn jobs(queue: &QueueStatus, dead: &QueueResponse) -> Markup {
    if let Some(why) = &dead.error {
        return nothing(why);
    }
    if dead.jobs.is_empty() {
        return nothing("No dead jobs.");
    }
    let next = dead.next.to_string();
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th.number scope="col" { "Job" }
                th scope="col" { "Error" }
                th.number scope="col" { "Runs" }
                th scope="col" { "Pushed" }
                th scope="col" { "Died" }
            } }
            tbody { @for job in &dead.jobs { (row(job)) } }
        } }
        @if dead.next > 0 {
            p.more {
                a href=(link("/queue", &[("name", &queue.name), ("after", &next)])) {
                    "Further dead jobs"
                }
            }
        }
        p.faint {
            code { "samovar queue retry " (queue.name) } " runs them again, "
            code { "samovar queue forget " (queue.name) } " removes them."
        }
    }
}

fn row(job: &DeadJob) -> Markup {
    let message = job.error.lines().next().unwrap_or_default();
    html! {
        tr {
            th.number scope="row" { (job.id) }
            td.name {
                (breakable(&job.class)) br;
                (tables::shortened(message)) br;
                @if !job.place.is_empty() { small.faint { (breakable(&job.place)) } br; }
                @if let Some(key) = &job.key { small.faint { "key " (key) } br; }
                @if let Some(trace) = job.traceparent.split('-').nth(1) {
                    small.faint { "trace " (trace) } br;
                }
                details {
                    summary { "Error and payload" }
                    pre { (beginning(&job.error)) }
                    pre { (beginning(&job.payload)) }
                }
            }
            td.number { (job.attempts) }
            td { (moment(job.pushed_ms / 1_000)) }
            td { (moment(job.died_ms / 1_000)) }
        }
    }
}

/// Returns the beginning of a text, cut at a character boundary.
fn beginning(text: &str) -> String {
    match text.floor_char_boundary(TEXT_MAX) {
        end if end == text.len() => text.to_owned(),
        end => format!("{}… ({} bytes)", &text[..end], text.len()),
    }
}
