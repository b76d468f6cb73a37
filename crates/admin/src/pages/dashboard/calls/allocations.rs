//! Allocated memory of a route's traced requests: a flame graph and a table.

use crate::chart::{Flames, flames};
use crate::format::{self, short};
use crate::frame::{nothing, part};
use maud::{Markup, html};
use samovar_profile::calls::Selected;
use samovar_spy::profile::svg::Measure;
use samovar_spy::profile::{Profile, Share};

/// Maximum number of functions in the table.
const ROWS_MAX: usize = 40;

pub(super) fn show(selected: &Selected) -> Markup {
    let stacks = &selected.graph.allocations;
    let profile = selected.graph.allocation_profile();
    if stacks.requests == 0 || profile.is_empty() {
        return nothing("No allocation of this route was sampled on that day.");
    }
    let bytes = profile.total().wall_ns;
    let title = format!(
        "{} allocated per request, from {} traced requests",
        format::bytes(bytes / stacks.requests),
        format::count(stacks.requests),
    );
    let drawn = Flames { profile: &profile, before: None, measure: Measure::Bytes, title: &title };
    html! {
        (flames(&drawn))
        (part("allocations", "Functions by allocated memory", &table(&profile, stacks.requests)))
        p.faint.small {
            "Memory counts when it is allocated, freed or not. Tracing workers sample every "
            (format::bytes(stacks.sample_bytes)) " on average; the figures are estimates."
        }
        script src="/assets/flame.js" defer {}
        script src="/assets/flame_page.js" defer {}
    }
}

fn table(profile: &Profile, requests: u64) -> Markup {
    let all = profile.total().wall_ns.max(1) as f64;
    let shares = profile.shares_by_bytes();
    let percent = |bytes: u64| format::percent(bytes as f64, all);
    let row = |share: &Share| {
        let (function, own, with) = (&share.function, share.own, share.total);
        html! {
            tr {
                th.name scope="row" { (short(&function.full_name())) }
                td.number { (percent(own.wall_ns)) }
                td.number { (percent(with.wall_ns)) }
                td.number { (format::bytes(own.wall_ns / requests)) }
                td.number { (format::bytes(with.wall_ns / requests)) }
                td.number { (format::count(own.samples / requests)) }
                td.name.faint {
                    @if !function.is_internal() { (short(&function.file)) ":" (function.line) }
                }
            }
        }
    };
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                th.number scope="col" { "Self" }
                th.number scope="col" { "Total" }
                th.number scope="col" { "Self per request" }
                th.number scope="col" { "… with callees" }
                th.number scope="col" { "Allocations" }
                th scope="col" { "Location" }
            } }
            tbody { @for share in shares.iter().take(ROWS_MAX) { (row(share)) } }
        } }
        @if shares.len() > ROWS_MAX {
            p.faint {
                "… and " (format::count((shares.len() - ROWS_MAX) as u64)) " more functions."
            }
        }
    }
}
