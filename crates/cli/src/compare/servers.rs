//! The two servers that receive the same requests: one runs whole scripts, the other one runs the
//! application as configured.

use crate::trial::server::Server;
use anyhow::Result;
use samovar_wire::ImageStatus;
use std::ffi::OsString;

/// Maximum number of workers of each server. Requests are sent one at a time, but an application
/// may send a request to itself.
pub(super) const WORKERS_MAX: usize = 2;

/// Both servers; dropping stops them.
pub(super) struct Pair {
    pub(super) script: Server,
    pub(super) booted: Server,
}

impl Pair {
    pub(super) fn start(flags: &[OsString], workers: usize) -> Result<Pair> {
        let workers = workers.min(WORKERS_MAX);
        let start = |name: &str, scripts: bool| {
            let more = format!("--disable-checkpoint={scripts}");
            Server::start(&format!("compare-{name}"), flags, workers, &[more.into()])
        };
        // Started one after the other: the first one fills the application's caches.
        Ok(Pair { script: start("script", true)?, booted: start("booted", false)? })
    }

    pub(super) fn image(&self) -> Result<Option<ImageStatus>> {
        Ok(self.booted.status()?.image)
    }
}
