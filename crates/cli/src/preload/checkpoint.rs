//! `samovar preload --checkpoint`: the best file for `checkpoint_after` and a list of warm-up
//! requests, tried and measured.

use super::collect::Collected;
use super::measured::Measured;
use super::report::toml;
use super::trial::Trial;
use crate::control_client::printable;
use crate::includes::warmup_line;
use crate::trial::model::Model;
use crate::trial::progress::Progress;
use crate::trial::targets::Target;
use anyhow::Result;
use samovar_profile::loads::{Candidate, SharedStart};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;

/// Kind of the finding that a boot reads data of a request. A later checkpoint has it, too.
const REQUEST: &str = "request";

/// Advice for a checkpoint.
#[derive(Debug, Default, Serialize)]
pub(super) struct Advice {
    requests: u64,
    routes: usize,
    shared: Option<SharedStart>,
    warmup: Vec<String>,
    /// Value of `checkpoint_after`; empty: none is advised.
    file: String,
    /// Reason why no checkpoint is possible, or none can be advised.
    refused: Option<String>,
    measured: Option<Measured>,
}

impl Advice {
    pub(super) fn of(
        collected: &Collected,
        trial: &Trial<'_>,
        measurement: (&[Target], u32),
        progress: &mut Progress,
    ) -> Result<Advice> {
        let mut advice = Advice {
            requests: collected.requests,
            routes: collected.routes,
            shared: collected.shared.clone(),
            warmup: collected.warmup.clone(),
            ..Advice::default()
        };
        let Some(shared) = &collected.shared else {
            advice.refuse(
                "only one route ran scripts, so no common start is known\nhint: pass several \
                 --urls",
            );
            return Ok(advice);
        };
        advice.refuse(
            "no included file ends before the routes differ\nhint: call Samovar\\checkpoint() in \
             the application; see docs/guide/checkpoint-model.md",
        );
        for (n, Candidate { file, .. }) in shared.candidates.iter().enumerate() {
            progress.say(|| format!("trial of checkpoint {}", n + 1));
            let server = trial.with(&advice.flags(file))?;
            if let Model::Scripts(why) = Model::wait(&server)? {
                advice.refuse(&why);
                continue;
            }
            let findings = server.status()?.image.map(|image| image.findings).unwrap_or_default();
            if let Some(it) = findings.iter().find(|finding| finding.kind == REQUEST) {
                advice.refuse(&format!("after `{file}`: {} ({})", it.what, it.place));
                continue;
            }
            let measured = trial.measure(&server, measurement, progress)?;
            (advice.file, advice.refused) = (file.clone(), None);
            advice.measured = Some(measured);
            break;
        }
        Ok(advice)
    }

    fn refuse(&mut self, why: &str) {
        self.refused = Some(why.to_owned());
    }

    fn flags(&self, file: &str) -> Vec<OsString> {
        let file = format!("--checkpoint-after={file}");
        let warmup = self.warmup.iter().map(|path| format!("--warmup={path}"));
        std::iter::once(file).chain(warmup).map(OsString::from).collect()
    }

    pub(super) fn is_advised(&self) -> bool {
        self.measured.is_some()
    }

    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        if let Some(shared) = &self.shared {
            let SharedStart { routes, files_shared, files_min, .. } = shared;
            let _ = writeln!(
                out,
                "the scripts of {routes} routes begin with the same {files_shared} files, of at \
                 least {files_min}"
            );
        }
        if let Some(why) = &self.refused {
            let _ = writeln!(out, "no checkpoint is advised: {why}");
        }
        if let Some(measured) = &self.measured {
            for line in measured.lines() {
                let _ = writeln!(out, "{line}");
            }
            if measured.is_clear_gain() {
                let _ = writeln!(
                    out,
                    "\nadd to samovar.toml, and compare the responses with `samovar compare`:"
                );
                let _ = writeln!(out, "checkpoint_after = {}", toml(&self.file));
                if !self.warmup.is_empty() {
                    let _ = writeln!(out, "{}", warmup_line(&self.warmup));
                }
            } else {
                out.push_str("\nthe checkpoint saves no CPU time that this measurement can show\n");
            }
        }
        printable(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_settings_or_reason() {
        let mut advice = Advice { warmup: vec!["/a".into()], ..Advice::default() };
        assert_eq!(advice.flags("/i.php"), ["--checkpoint-after=/i.php", "--warmup=/a"]);
        advice.file = "/srv/boot.php".into();
        advice.refused = Some("why".into());
        assert!(advice.text().ends_with("no checkpoint is advised: why\n"));
        advice.refused = None;
        let gain = super::super::gain::Gain { percent: 5.0, ..Default::default() };
        advice.measured = Some(Measured { gain: Some(gain), ..Measured::default() });
        let said = advice.text();
        assert!(
            said.ends_with(":\ncheckpoint_after = \"/srv/boot.php\"\nwarmup = [\"/a\"]\n"),
            "{said}"
        );
    }
}
