//! `/image`: the booted application, the cost of rollbacks to it, and findings that prevent its
//! sharing.

use super::pools::Pools;
use super::view::{Shown, View};
use crate::chart::bar;
use crate::format;
use crate::frame::{nothing, part, tile};
use maud::{Markup, html};
use samovar_wire::{ImageStatus as Image, SavingStatus, dear};

/// Maximum number of displayed findings.
const FINDINGS_MAX: usize = 500;

pub(super) fn show(view: &View) -> Shown {
    let status = view.sources.host.status();
    let pools = match Pools::of(view, &status, "Image") {
        Ok(pools) => pools,
        Err(unknown) => return unknown,
    };
    let applications = status.applications();
    let shown = applications.iter().find(|of| of.pool == pools.shown());
    let main = html! {
        h1 { "Image" (pools.title()) }
        (pools.form("/image"))
        @match shown.and_then(|of| of.image) {
            None => (nothing("No checkpoint: each request runs its whole script.")),
            Some(image) => {
                (part("tiles", "", &tiles(image)))
                (part("findings", "Preflight findings", &findings(image)))
                (part("forks", "Fresh forks by reason", &forks(image)))
            }
        }
    };
    Shown::new("Image", main)
}

fn mode(mode: &str) -> &'static str {
    match mode {
        "shared" => "One image, shared by all workers. Workers return to it after each request.",
        "resident" => "One booted application, shared by all workers, never rolled back.",
        "worker" => "Each worker boots the application: a finding prevents sharing the image.",
        "script" => {
            "No image: each request runs the whole script, because a finding prevents rollback."
        }
        _ => "",
    }
}

fn us(us: f64) -> String {
    format::time((us * 1_000.0) as u64)
}

fn tiles(image: &Image) -> Markup {
    html! {
        p { b { (image.mode) } " – " (mode(&image.mode)) }
        @if let Some(advice) = dear(image) {
            p { "The checkpoint saves little: " (advice) "." }
        }
        dl.tiles {
            (tile("Size", &format::bytes(image.bytes), &format!("{} regions", image.regions)))
            (tile("Boot time", &us(image.boot_ms * 1_000.0), ""))
            (tile("Rollbacks", &format::count(image.rollbacks_total), ""))
            (tile("Rollback p50", &us(image.rollback_us_p50), ""))
            (tile("Rollback p99", &us(image.rollback_us_p99), ""))
            (tile("Hot pages", &format::count(image.hot_pages.into()), "maximum per worker"))
            (tile("Page scans", &format::count(image.searches_total), "for written pages"))
            @if let Some(saving) = image.saving {
                (tile("CPU per request", &us(saving.ahead_us), &beside_scripts(&saving)))
            }
            (tile(
                "Connection resets",
                &format::count(image.connection_resets_total),
                "of sessions kept above the checkpoint",
            ))
            (tile("Fresh forks", &format::count(image.refork_total), ""))
        }
    }
}

fn beside_scripts(saving: &SavingStatus) -> String {
    let (script, ratio) = (us(saving.script_us), saving.ratio());
    format!("{ratio:.2} of the {script} for a whole script")
}

fn findings(image: &Image) -> Markup {
    if image.findings.is_empty() {
        return nothing("None: nothing open at the checkpoint prevents sharing or rollback.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Action" }
                        th scope="col" { "Resource" }
                        th scope="col" { "Location" }
                        th scope="col" { "Advice" }
                    }
                }
                tbody {
                    @for finding in image.findings.iter().take(FINDINGS_MAX) {
                        tr {
                            th scope="row" { (finding.kind) }
                            td.bad[finding.action != "note"] { (finding.action) }
                            td.name { (finding.what) }
                            td.name { code { (finding.place) } }
                            td.prose { (finding.advice) }
                        }
                    }
                }
            }
        }
    }
}

fn forks(image: &Image) -> Markup {
    let most = image.refork_reasons.values().max().copied().unwrap_or(0) as f64;
    if most == 0.0 {
        return nothing("No fresh forks.");
    }
    html! {
        div.scroll { table {
            thead {
                tr {
                    th scope="col" { "Reason" } th.number scope="col" { "Count" }
                    th.bars scope="col" aria-hidden="true" {}
                }
            }
            tbody {
                @for (reason, n) in &image.refork_reasons {
                    tr {
                        th scope="row" { (reason) }
                        td.number { (format::count(*n)) }
                        td.bars { (bar("c-roll", *n as f64, most)) }
                    }
                }
            }
        } }
    }
}
