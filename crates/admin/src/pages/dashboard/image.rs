//! `/image`: the booted application, what returning to it costs, and what stands against it.

use super::pools::Pools;
use super::{Shown, View};
use crate::chart::bar;
use crate::frame::{nothing, part, tile};
use crate::human;
use maud::{Markup, html};
use samovar_wire::{ImageStatus as Image, SavingStatus, dear};

/// Findings that are shown.
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
            None => (nothing("No application is booted ahead: each request runs its whole script.")),
            Some(image) => {
                (part("tiles", "", &tiles(image)))
                (part("findings", "Findings at the boot", &findings(image)))
                (part("forks", "Why workers made room for a fresh fork", &forks(image)))
            }
        }
    };
    Shown::new("Image", main)
}

fn mode(mode: &str) -> &'static str {
    match mode {
        "shared" => "One image, shared by all workers, who return to it after each request.",
        "resident" => "One boot, shared by all workers, never rolled back.",
        "worker" => "Each worker boots by itself: a finding stands against sharing.",
        "script" => {
            "No image: each request runs the whole script, because a finding stands against rolling back."
        }
        _ => "",
    }
}

fn us(us: f64) -> String {
    human::time((us * 1_000.0) as u64)
}

fn tiles(image: &Image) -> Markup {
    html! {
        p { b { (image.mode) } " – " (mode(&image.mode)) }
        @if let Some(advice) = dear(image) {
            p { "Booting ahead saves little: " (advice) "." }
        }
        dl.tiles {
            (tile("Size", &human::bytes(image.bytes), &format!("{} regions", image.regions)))
            (tile("Booted in", &us(image.boot_ms * 1_000.0), ""))
            (tile("Rollbacks", &human::count(image.rollbacks_total), ""))
            (tile("Rollback p50", &us(image.rollback_us_p50), ""))
            (tile("Rollback p99", &us(image.rollback_us_p99), ""))
            (tile("Hot pages", &human::count(image.hot_pages.into()), "of the worker with most"))
            (tile("Searches", &human::count(image.searches_total), "for written pages"))
            @if let Some(saving) = image.saving {
                (tile("CPU per request", &us(saving.ahead_us), &beside_scripts(&saving)))
            }
            (tile("Fresh forks", &human::count(image.refork_total), ""))
        }
    }
}

fn beside_scripts(saving: &SavingStatus) -> String {
    let (script, ratio) = (us(saving.script_us), saving.ratio());
    format!("{ratio:.2} of the {script} of a script")
}

fn findings(image: &Image) -> Markup {
    if image.findings.is_empty() {
        return nothing("None: nothing was open at the checkpoint that stands against it.");
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Therefore" }
                        th scope="col" { "What" }
                        th scope="col" { "Where" }
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
        return nothing("None had to.");
    }
    html! {
        div.scroll { table {
            thead {
                tr { th scope="col" { "Reason" } th.number scope="col" { "Times" } th.bars scope="col" aria-hidden="true" {} }
            }
            tbody {
                @for (reason, n) in &image.refork_reasons {
                    tr {
                        th scope="row" { (reason) }
                        td.number { (human::count(*n)) }
                        td.bars { (bar("c-roll", *n as f64, most)) }
                    }
                }
            }
        } }
    }
}
