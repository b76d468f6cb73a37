//! The two servers that are asked the same: one runs scripts, the other as the application says.

use crate::trial::server::Server;
use anyhow::Result;
use samovar_wire::ImageStatus;
use std::ffi::OsString;

/// Of each server: requests come one by one, but an application may ask itself something.
pub(super) const WORKERS_MAX: usize = 2;

/// Both servers; stopped when dropped.
pub(super) struct Pair {
    pub(super) script: Server,
    pub(super) booted: Server,
}

impl Pair {
    pub(super) fn start(flags: &[OsString], workers: usize) -> Result<Pair> {
        let workers = workers.min(WORKERS_MAX);
        let start = |name: &str, scripts: bool| {
            let more = format!("--whole-scripts={scripts}");
            Server::start(&format!("compare-{name}"), flags, workers, &[more.into()])
        };
        // One after the other: the first fills the application's caches.
        Ok(Pair { script: start("script", true)?, booted: start("booted", false)? })
    }

    pub(super) fn image(&self) -> Result<Option<ImageStatus>> {
        Ok(self.booted.status()?.image)
    }
}
