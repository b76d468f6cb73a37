//! `/consoles`: console workers, such as queue consumers.

use super::tables::state_class;
use super::view::{Shown, View};
use crate::format;
use crate::frame::{nothing, part};
use maud::{Markup, html};
use samovar_wire::Status;

/// Maximum number of rows.
const ROWS_MAX: usize = 1_000;

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let main = html! { h1 { "Console workers" } (part("table", "", &table(&status))) };
    Shown::new("Console workers", main)
}

fn table(status: &Status) -> Markup {
    if status.consoles.is_empty() {
        return nothing(
            "No console workers. Add [[console]] to the settings, or [[pool.console]] for a pool.",
        );
    }
    let are_several = !status.pools.is_empty();
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        @if are_several { th scope="col" { "Pool" } }
                        th scope="col" { "Name" }
                        th.number scope="col" { "Process" }
                        th scope="col" { "State" }
                        th.number scope="col" { "Restarts" }
                        th.number scope="col" { "Memory" }
                        th.number scope="col" { "Age" }
                    }
                }
                tbody {
                    @for console in status.consoles.iter().take(ROWS_MAX) {
                        tr {
                            @if are_several { td { (console.pool) } }
                            th.name scope="row" { (console.name) }
                            td.number { @if console.pid == 0 { "–" } @else { (console.pid) } }
                            td {
                                i class={ "dot " (state_class(&console.state)) } {} (console.state)
                            }
                            td.number.bad[console.restarts > 0] {
                                (format::count(console.restarts))
                            }
                            td.number { (format::bytes(console.rss_bytes)) }
                            td.number { (format::span(console.age_seconds as u64)) }
                        }
                    }
                }
            }
        }
    }
}
