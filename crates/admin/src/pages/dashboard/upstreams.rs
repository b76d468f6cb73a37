//! Below `/workers`: each php-fpm that runs a location's scripts in their place, and the addresses of its name.

use crate::chart::without_controls;
use crate::frame::moment;
use crate::human;
use maud::{Markup, html};
use samovar_wire::{UpstreamStatus, UpstreamTally};

/// php-fpms that are shown.
const ROWS_MAX: usize = 256;
/// Addresses of each.
const ADDRESSES_MAX: usize = 32;

/// A row for each.
pub(super) fn table(upstreams: &[UpstreamStatus], are_several: bool) -> Markup {
    html! {
        p { "Whom " code { "fastcgi_pass" } " names, and who was asked within the last hour." }
        div.scroll tabindex="0" { table {
            thead { tr {
                @if are_several { th scope="col" { "Pool" } }
                th scope="col" { "Address" }
                th.number scope="col" { "Requests" }
                th.number scope="col" { "Head after" }
                th.number scope="col" { "Connections" }
                th.number scope="col" { "Waiting" }
                th.number scope="col" { "Queue" }
                th.number scope="col" { "Failed" }
                th scope="col" { "What was wrong last" }
                th scope="col" { "When" }
            } }
            tbody { @for one in upstreams.iter().take(ROWS_MAX) { (rows(one, are_several)) } }
        } }
    }
}

/// That of a php-fpm, and those of its addresses.
fn rows(one: &UpstreamStatus, are_several: bool) -> Markup {
    html! {
        tr {
            @if are_several { td { (one.pool) } }
            th.name scope="row" { (without_controls(&one.address)) }
            (answers(&one.tally))
            td.number { (of(one.connections, one.connections_max)) }
            td.number { (human::count(one.waiting)) }
            td.number { (of(one.queued, one.queue_max)) }
            (troubles(&one.tally))
        }
        @for at in one.addresses.iter().take(ADDRESSES_MAX) { tr {
            @if are_several { td {} }
            th.name scope="row" { "– " (without_controls(&at.address)) }
            (answers(&at.tally))
            td.number { (human::count(at.connections)) }
            td {} td {}
            (troubles(&at.tally))
        } }
    }
}

/// What is used, and what there is.
fn of(used: u64, max: u64) -> String {
    format!("{} of {}", human::count(used), human::count(max))
}

fn answers(of: &UpstreamTally) -> Markup {
    html! {
        td.number { (human::count(of.requests_total)) }
        td.number { @if let Some(mean) = of.mean_seconds() { (human::time((mean * 1e9) as u64)) } }
    }
}

fn troubles(of: &UpstreamTally) -> Markup {
    html! {
        td.number.bad[of.troubles_total() > 0] { (human::count(of.troubles_total())) }
        @if let Some(last) = &of.last_trouble {
            td.name { (without_controls(&last.reason)) @if !last.words.is_empty() { ": " (without_controls(&last.words)) } }
            td { (moment(last.at)) }
        } @else { td {} td {} }
    }
}
