//! Below `/workers`: each php-fpm that runs a location's scripts in their place.

use crate::chart::without_controls;
use crate::frame::moment;
use crate::human;
use maud::{Markup, html};
use samovar_wire::UpstreamStatus;

/// php-fpms that are shown.
const ROWS_MAX: usize = 256;

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
                th.number scope="col" { "Failed" }
                th scope="col" { "What was wrong last" }
                th scope="col" { "When" }
            } }
            tbody { @for one in upstreams.iter().take(ROWS_MAX) {
                tr {
                    @if are_several { td { (one.pool) } }
                    th.name scope="row" { (without_controls(&one.address)) }
                    td.number { (human::count(one.requests_total)) }
                    td.number { @if let Some(mean) = one.mean_seconds() { (human::time((mean * 1e9) as u64)) } }
                    td.number { (human::count(one.connections)) }
                    td.number { (human::count(one.waiting)) }
                    td.number.bad[one.troubles_total() > 0] { (human::count(one.troubles_total())) }
                    @if let Some(last) = &one.last_trouble {
                        td { (without_controls(&last.reason)) @if !last.words.is_empty() { ": " (without_controls(&last.words)) } }
                        td { (moment(last.at)) }
                    } @else { td {} td {} }
                }
            } }
        } }
    }
}
