//! `samovar upgrade`: makes the running server start another one in its place, and prints the
//! result.

use crate::control::client::{self, printable};
use crate::terminal;
use anyhow::{Context, Result, bail};
use samovar_wire::{Request, UpgradeOptions, UpgradeResponse};
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of the command. The server's own limit, `timeouts.boot` and some seconds, is not known
/// here.
const UPGRADE_LIMIT: Duration = Duration::from_mins(15);

/// Upgrades; returns when the new server has taken over.
pub(crate) fn run(control: Option<PathBuf>, binary: Option<PathBuf>) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    let what = "cannot resolve the path of the binary";
    let binary = binary.map(|file| std::path::absolute(file).context(what)).transpose()?;
    let options = UpgradeOptions { binary };
    let line = client::ask(&path, &Request::Upgrade(options), UPGRADE_LIMIT)?;
    let response: UpgradeResponse = client::understand(&line)?;
    if let Some(why) = response.error {
        bail!("the upgrade failed, the running server keeps serving: {}", printable(&why));
    }
    if response.pid == 0 {
        bail!(
            "the server does not support this command\nhint: see its version in `samovar status`"
        );
    }
    let seconds = Duration::from_millis(response.milliseconds).as_secs_f64();
    let version = printable(&response.version);
    terminal::print(&format!(
        "process {} (samovar {version}) serves after {seconds:.2} s\n",
        response.pid
    ))
}
