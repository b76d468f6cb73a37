//! `/schedules`: commands and jobs that run at certain times.

use super::queues;
use super::view::{Shown, View};
use crate::format;
use crate::frame::{nothing, part};
use maud::{Markup, html};
use samovar_wire::ScheduleStatus;

/// Maximum number of rows.
const ROWS_MAX: usize = 1_000;

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let main = html! {
        h1 { "Schedules" }
        p.faint {
            "Each " code { "[[schedule]]" } ", with its last run on any server. The totals count "
            "from the start. " code { "samovar schedule show NAME" } " prints the whole output."
        }
        (part("table", "", &table(&status.schedules, view.now.saturating_mul(1_000))))
    };
    Shown::new("Schedules", main)
}

fn table(schedules: &[ScheduleStatus], now_ms: u64) -> Markup {
    if schedules.is_empty() {
        return nothing("No schedules. Add [[schedule]] to the settings.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Schedule" }
                        th scope="col" { "Times" }
                        th scope="col" { "Work" }
                        th.number scope="col" { "Next run" }
                        th.number scope="col" { "Last run" }
                        th.number scope="col" { "Took" }
                        th scope="col" { "Result" }
                        th scope="col" { "Output" }
                        th.number scope="col" { "Succeeded" }
                        th.number scope="col" { "Other results" }
                        th.number scope="col" { "Skipped" }
                    }
                }
                tbody {
                    @for one in schedules.iter().take(ROWS_MAX) {
                        (row(one, now_ms))
                    }
                }
            }
        }
    }
}

fn row(one: &ScheduleStatus, now_ms: u64) -> Markup {
    let runs = &one.runs;
    let others = runs.failed + runs.timed_out + runs.stopped + runs.not_started + runs.interrupted;
    html! {
        tr {
            th.name scope="row" {
                (one.name)
                @if one.state != "waiting" { " " span.tag { (one.state) } }
            }
            td { code { (one.times) } @if !one.timezone.is_empty() { " " (one.timezone) } }
            td.name { (work(one)) }
            td.number title=(one.next) { (next(one, now_ms)) }
            td.number { (last(one, now_ms)) }
            td.number { (took(one)) }
            td.bad[is_bad(one)] { (result(one)) }
            td.name { (one.output) }
            td.number { (format::count(runs.succeeded)) }
            td.number.bad[others > 0] { (format::count(others)) }
            td.number { (format::count(runs.skipped)) }
        }
    }
}

/// Links a queue.
fn work(one: &ScheduleStatus) -> Markup {
    if let Some(queue) = one.work.strip_prefix("queue ") {
        return html! { "queue " a href=(queues::address(queue)) { (queue) } };
    }
    html! { code { (one.work) } }
}

fn next(one: &ScheduleStatus, now_ms: u64) -> String {
    match one.next_ms {
        0 => "–".to_owned(),
        next_ms => format!("in {}", format::span(next_ms.saturating_sub(now_ms) / 1_000)),
    }
}

fn last(one: &ScheduleStatus, now_ms: u64) -> String {
    match one.started_ms {
        0 => "never".to_owned(),
        started_ms => format!("{} ago", format::span(now_ms.saturating_sub(started_ms) / 1_000)),
    }
}

fn took(one: &ScheduleStatus) -> String {
    let milliseconds = |ms: u64| format::time(ms.saturating_mul(1_000_000));
    match &*one.state {
        "running" => format!("{} so far", milliseconds(one.running_ms)),
        _ if one.result.is_empty() => "–".to_owned(),
        _ => milliseconds(one.duration_ms),
    }
}

fn is_bad(one: &ScheduleStatus) -> bool {
    !matches!(&*one.result, "" | "succeeded")
}

fn result(one: &ScheduleStatus) -> String {
    let result = one.result.replace('_', " ");
    if one.detail.is_empty() { result } else { format!("{result}: {}", one.detail) }
}
