//! Execution model of a server's application: booted, or whole scripts.

use super::server::Server;
use anyhow::Result;
use samovar_wire::{ImageStatus, Status};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Timeout for the boot of an application whose checkpoint is found only by a request.
const BOOT_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Execution model of the application.
pub(crate) enum Model {
    /// Booted, in this model.
    Booted(String),
    /// Whole scripts, for this reason.
    Scripts(String),
}

impl Model {
    /// Waits for the boot of an application whose checkpoint is found by a request.
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

    /// Returns the current model.
    pub(crate) fn now(server: &Server) -> Result<Model> {
        let status = server.status()?;
        if let Some(worker) = status.workers.iter().find(|worker| worker.model != "script") {
            return Ok(Model::Booted(worker.model.clone()));
        }
        if let Some(image) = refused(&status) {
            return Ok(Model::Scripts(refusal(image)));
        }
        let hint = "hint: set a checkpoint with --checkpoint-after FILE; see \
                    docs/guide/checkpoint-model.md";
        Ok(Model::Scripts(format!(
            "no URL reached a checkpoint or Samovar\\serve(), so each request runs as a \
             script\n{hint}"
        )))
    }
}

/// Returns the image of an application, of any pool, that cannot have its checkpoint.
fn refused(status: &Status) -> Option<&ImageStatus> {
    let images = status.applications().into_iter().filter_map(|of| of.image);
    images.into_iter().find(|image| image.mode == "script")
}

fn refusal(image: &ImageStatus) -> String {
    let found = image.findings.iter().filter(|finding| finding.action == "script");
    let findings: Vec<_> =
        found.map(|f| format!("\n  {}: {} {}: {}", f.kind, f.what, f.place, f.advice)).collect();
    format!("the checkpoint is not possible, so each request runs as a script{}", findings.concat())
}

/// Waits until an application whose checkpoint is found by a request is booted, and no worker of
/// another model is left. An application without a checkpoint has no image.
pub(crate) fn settle(server: &Server) -> Result<()> {
    let begun = Instant::now();
    loop {
        let status = server.status()?;
        let is_settled = match &status.image {
            Some(image) if image.mode != "script" => {
                status.workers.iter().all(|worker| worker.model != "script")
            }
            _ => true,
        };
        if is_settled || begun.elapsed() > BOOT_LIMIT {
            return Ok(());
        }
        sleep(LOOK_EVERY);
    }
}
