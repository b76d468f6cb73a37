//! The booted application.

use super::figures::{percent, share, time};
use crate::check::{Check, Checked, Group};
use crate::facts::{Facts, Missing, REQUESTS_MIN};
use crate::finding::Findings;
use samovar_wire::{ImageStatus, SAVES_MAX, dear};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "checkpoint-early",
        group: Group::Boot,
        finds: "files that requests load after the checkpoint",
        why: "the boot would load them once",
        run: checkpoint_early,
    },
    Check {
        code: "boot-gain",
        group: Group::Boot,
        finds: "a booted application that saves little CPU time",
        why: "whole scripts are simpler",
        run: boot_gain,
    },
    Check {
        code: "fresh-forks",
        group: Group::Boot,
        finds: "workers that are often replaced by a fresh fork",
        why: "a fork costs more than a rollback",
        run: fresh_forks,
    },
    Check {
        code: "boot-findings",
        group: Group::Boot,
        finds: "objects that prevent a shared boot or a rollback",
        why: "the server uses a slower way",
        run: boot_findings,
    },
];

/// Share of requests that load files.
const LOADING_MIN: f64 = 0.2;
/// Mean CPU time of loads per request in ns, below which it is not a finding.
const LOADS_NS_MIN: f64 = 20_000.0;
/// Share of requests that end their worker.
const FORKS_SHARE_MIN: f64 = 0.1;

const NOT_BOOTED: Missing = "no application is booted ahead of requests";

fn checkpoint_early(facts: &Facts, out: &mut Findings) -> Checked {
    facts.status()?;
    let mut result = if facts.boots.is_empty() { Err(NOT_BOOTED) } else { Ok(()) };
    for boot in &facts.boots {
        if boot.requests < REQUESTS_MIN {
            result = Err("too few requests since the boot");
            continue;
        }
        let (part, mean_ns) =
            (share(boot.loading, boot.requests), share(boot.cpu_ns, boot.requests));
        if part < LOADING_MIN || mean_ns < LOADS_NS_MIN {
            continue;
        }
        let hint = if boot.setting.is_empty() {
            "place the checkpoint later, or warm up; `samovar boot` lists the files".to_owned()
        } else {
            format!("set `{}`; `samovar boot` lists the files", boot.setting)
        };
        out.warning("requests load files that the boot could load once", hint)
            .value(format!("in {} of the requests", percent(part)))
            .place(&*boot.file)
            .pool(&boot.pool)
            .gain(format!("{} of CPU time per request", time(mean_ns)));
    }
    result
}

/// Calls a function for each pool with a booted application.
fn each_image(facts: &Facts, mut check: impl FnMut(&str, &ImageStatus) -> Checked) -> Checked {
    let mut result = Err(NOT_BOOTED);
    for application in facts.status()?.applications() {
        if let Some(image) = application.image {
            let checked = check(application.pool, image);
            result = if result == Err(NOT_BOOTED) { checked } else { checked.and(result) };
        }
    }
    result
}

fn boot_gain(facts: &Facts, out: &mut Findings) -> Checked {
    each_image(facts, |pool, image| {
        if let Some(advice) = dear(image) {
            let found = out.warning("the booted application saves little CPU time", advice);
            found.pool(pool);
            if let Some(saving) = image.saving.filter(|saving| saving.ratio() > SAVES_MAX) {
                let (own, whole) = (saving.ahead_us * 1e3, saving.script_us * 1e3);
                found.value(format!("{} instead of {} per request", time(own), time(whole)));
            }
            return Ok(());
        }
        image.saving.map(|_| ()).ok_or("too few requests ran as whole scripts to compare")
    })
}

fn fresh_forks(facts: &Facts, out: &mut Findings) -> Checked {
    each_image(facts, |pool, image| {
        let all = image.rollbacks_total.saturating_add(image.refork_total);
        if all < REQUESTS_MIN {
            return Err("too few requests since the boot");
        }
        let part = share(image.refork_total, all);
        if part >= FORKS_SHARE_MIN {
            let reasons = image.refork_reasons.iter().max_by_key(|(_, count)| **count);
            let reason = reasons.map_or("unknown", |(reason, _)| reason.as_str());
            let text = "many requests end their worker, which a fresh fork replaces";
            let hint = format!("`samovar explain {reason}` describes the reason");
            out.warning(text, hint)
                .value(format!("{} of the requests, mostly {reason}", percent(part)))
                .pool(pool);
        }
        Ok(())
    })
}

fn boot_findings(facts: &Facts, out: &mut Findings) -> Checked {
    each_image(facts, |pool, image| {
        for found in &image.findings {
            let text = format!("preflight finding: {}", found.what);
            let advice = if found.advice.is_empty() {
                format!("`samovar explain {}` describes it", found.kind)
            } else {
                found.advice.clone()
            };
            let finding = if found.action == "note" {
                out.note(text, advice)
            } else {
                out.warning(text, advice)
            };
            finding.place(&*found.place).pool(pool);
        }
        Ok(())
    })
}
