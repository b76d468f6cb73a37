//! How the application of a server runs: booted ahead, or as whole scripts.

use super::server::Server;
use anyhow::Result;
use samovar_wire::{ImageStatus, Status};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// An application whose checkpoint was met by a request only is booted then.
const BOOT_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How the application runs where it may.
pub(crate) enum Model {
    /// In this model.
    Booted(String),
    /// As whole scripts there, too, and why.
    Scripts(String),
}

impl Model {
    /// Waits for an application that was found out about by a request.
    pub(crate) fn wait(server: &Server) -> Result<Model> {
        let begun = Instant::now();
        loop {
            let status = server.status()?;
            let refused = refused(&status).is_some();
            let model = Model::now(server)?;
            if refused || matches!(model, Model::Booted(_)) || begun.elapsed() > BOOT_LIMIT {
                return Ok(model);
            }
            sleep(LOOK_EVERY);
        }
    }

    /// As it is at this moment.
    pub(crate) fn now(server: &Server) -> Result<Model> {
        let status = server.status()?;
        if let Some(worker) = status.workers.iter().find(|worker| worker.model != "script") {
            return Ok(Model::Booted(worker.model.clone()));
        }
        if let Some(image) = refused(&status) {
            return Ok(Model::Scripts(refusal(image)));
        }
        let hint =
            "hint: --checkpoint-after FILE places a checkpoint; see docs/guide/checkpoint-model.md";
        Ok(Model::Scripts(format!(
            "no URL has come to a checkpoint or to Samovar\\serve(), so that each runs as a script\n{hint}"
        )))
    }
}

/// The image of an application, of any pool, that cannot have its checkpoint.
fn refused(status: &Status) -> Option<&ImageStatus> {
    let images = status.applications().into_iter().filter_map(|of| of.image);
    images.into_iter().find(|image| image.mode == "script")
}

fn refusal(image: &ImageStatus) -> String {
    let found = image.findings.iter().filter(|finding| finding.action == "script");
    let findings: Vec<_> =
        found.map(|f| format!("\n  {}: {} {}: {}", f.kind, f.what, f.place, f.advice)).collect();
    format!("the checkpoint cannot be had, so that each runs as a script{}", findings.concat())
}
