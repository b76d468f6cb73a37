//! Part of `/workers`: each php-fpm that runs scripts of a location, and the addresses of its host
//! name.

use crate::format;
use crate::frame::moment;
use maud::{Markup, html};
use samovar_wire::{UpstreamStatus, UpstreamTally};

/// Maximum number of displayed php-fpm servers.
const ROWS_MAX: usize = 256;
/// Maximum number of addresses of each.
const ADDRESSES_MAX: usize = 32;

/// Returns a table with a row for each.
pub(super) fn table(upstreams: &[UpstreamStatus], are_several: bool) -> Markup {
    html! {
        p {
            "Servers named in " code { "fastcgi_pass" }
            ", and other servers used within the last hour."
        }
        div.scroll tabindex="0" { table {
            thead { tr {
                @if are_several { th scope="col" { "Pool" } }
                th scope="col" { "Address" }
                th.number scope="col" { "Requests" }
                th.number scope="col" { "Time to response head" }
                th.number scope="col" { "Connections" }
                th.number scope="col" { "Waiting" }
                th.number scope="col" { "Queue" }
                th.number scope="col" { "Failed" }
                th scope="col" { "Last error" }
                th scope="col" { "Time" }
            } }
            tbody { @for one in upstreams.iter().take(ROWS_MAX) { (rows(one, are_several)) } }
        } }
    }
}

/// Returns the row of a php-fpm and those of its addresses.
fn rows(one: &UpstreamStatus, are_several: bool) -> Markup {
    html! {
        tr {
            @if are_several { td { (one.pool) } }
            th.name scope="row" { (&one.address) }
            (responses(&one.tally))
            td.number { (of(one.connections, one.connections_max)) }
            td.number { (format::count(one.waiting)) }
            td.number { (of(one.queued, one.queue_max)) }
            (troubles(&one.tally))
        }
        @for at in one.addresses.iter().take(ADDRESSES_MAX) { tr {
            @if are_several { td {} }
            th.name scope="row" { "– " (&at.address) }
            (responses(&at.tally))
            td.number { (format::count(at.connections)) }
            td {} td {}
            (troubles(&at.tally))
        } }
    }
}

/// Returns the number in use and the maximum.
fn of(used: u64, max: u64) -> String {
    format!("{} of {}", format::count(used), format::count(max))
}

fn responses(of: &UpstreamTally) -> Markup {
    html! {
        td.number { (format::count(of.requests_total)) }
        td.number { @if let Some(mean) = of.mean_seconds() { (format::time((mean * 1e9) as u64)) } }
    }
}

fn troubles(of: &UpstreamTally) -> Markup {
    html! {
        td.number.bad[of.errors_total() > 0] { (format::count(of.errors_total())) }
        @if let Some(last) = &of.last_trouble {
            td.name {
                (&last.reason)
                @if !last.words.is_empty() { ": " (&last.words) }
            }
            td { (moment(last.at)) }
        } @else { td {} td {} }
    }
}
