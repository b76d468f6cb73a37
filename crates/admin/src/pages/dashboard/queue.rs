//! `/queue?name=`: figures of a queue, its failures by class, and its dead jobs.

use super::queues::{self, Count, SUMS, age, per_minute};
use super::tables;
use super::view::{Shown, View};
use crate::chart::{Layer, Lines, empty};
use crate::format;
use crate::frame::{breakable, moment, nothing, part, tile};
use crate::query::link;
use crate::queue_periods::{QueueHistory, QueueSum};
use crate::range::Period;
use maud::{Markup, html};
use samovar_insight::store::Event;
use samovar_wire::{DeadJob, QueueResponse, QueueStatus};
use std::cmp::Reverse;

/// Maximum number of dead jobs on a page.
const JOBS_MAX: usize = 20;
/// Maximum length of a displayed error or payload.
const TEXT_MAX: usize = 2_000;

pub(super) fn show(view: &View) -> Shown {
    let name = view.query.get("name").unwrap_or_default();
    let history = view.queue_history();
    let Some(queue) = history.queues().iter().find(|queue| queue.name == name) else {
        return Shown::not_found("No such queue", "The settings have no queue with this name.");
    };
    let after = view.query.get("after").and_then(|after| after.parse().ok()).unwrap_or(0);
    let dead = view.sources.host.dead_jobs(&queue.name, after, JOBS_MAX);
    let main = html! {
        h1.name { (queue.name) @if queue.paused { " " span.tag { "paused" } } }
        (tiles(queue))
        (over_time(view, &history, queue))
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
            (tile("Dead", &format::count(queue.dead), "jobs"))
        }
    }
}

/// Returns the figures of the range, and charts of them.
fn over_time(view: &View, history: &QueueHistory, queue: &QueueStatus) -> Markup {
    let resolved = view.resolve(&view.range);
    let (sum, before) = history.sums(&queue.name, &resolved);
    let other = resolved.against.as_ref().ok().copied().flatten();
    let note = |of: Count| match (&before, other) {
        (Some(before), Some(other)) => format!("before: {}", per_minute(of(before), other)),
        _ => String::new(),
    };
    let rate = |of: Count| {
        sum.as_ref().map_or("–".to_owned(), |sum| per_minute(of(sum), resolved.period))
    };
    let period = resolved.period;
    let events = view.sources.events(period.from, period.to);
    html! {
        (queues::picker("/queue", view, &resolved, history))
        dl.tiles {
            @for (name, of) in SUMS {
                @let count = sum.as_ref().map_or("–".to_owned(), |sum| format::count(of(sum)));
                (tile(name, &count, &[rate(of), note(of)].join(" ")))
            }
        }
        (part("charts", "", &charts(history, queue, period, &events)))
    }
}

fn charts(history: &QueueHistory, queue: &QueueStatus, period: Period, events: &[Event]) -> Markup {
    let (from, step, pieces) = history.timeline(&queue.name, period);
    let layer = |name, class, value: &dyn Fn(&QueueSum) -> f64| Layer {
        name,
        class,
        values: pieces.iter().map(|piece| piece.as_ref().map(value)).collect(),
    };
    let minutes = step as f64 / 60.0;
    let per = move |of: Count| move |sum: &QueueSum| of(sum) as f64 / minutes;
    let jobs = vec![
        layer("pushed", "c-req", &per(|sum| sum.pushed)),
        layer("succeeded", "c-roll", &per(|sum| sum.done)),
        layer("failed runs", "c-error", &per(|sum| sum.failed)),
    ];
    let ready = vec![layer("ready", "c-queue", &|sum| sum.ready as f64)];
    let oldest = vec![layer("oldest", "c-wait", &|sum| sum.oldest_ms as f64)];
    let draw = |title, layers: Vec<Layer>, unit: fn(f64) -> String| {
        if layers.iter().all(|layer| layer.values.iter().flatten().all(|value| *value == 0.0)) {
            return empty(title, "No data in this range.");
        }
        Lines { title, note: "", from, step, layers, is_stacked: false, unit, events }.show()
    };
    html! {
        div.charts {
            (draw("Jobs per minute", jobs, format::digits))
            (draw("Ready jobs, maximum", ready, format::digits))
            (draw("Age of the oldest ready job, maximum", oldest, |ms| {
                format::time((ms * 1e6) as u64)
            }))
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
