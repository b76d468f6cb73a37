//! `samovar upgrade`: has the running server start another one in its place, and says what came of it.

use crate::control::client::{self, printable};
use crate::terminal;
use anyhow::{Context, Result, bail};
use samovar_wire::{Request, UpgradeAnswer, UpgradeOptions};
use std::path::PathBuf;
use std::time::Duration;

/// How long the command waits: the server's own limit is `timeouts.boot` and some seconds, which is not known here.
const UPGRADE_LIMIT: Duration = Duration::from_mins(15);

/// Returns when the new server has taken over.
pub(crate) fn run(control: Option<PathBuf>, binary: Option<PathBuf>) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    let what = "cannot tell where that binary is";
    let binary = binary.map(|file| std::path::absolute(file).context(what)).transpose()?;
    let options = UpgradeOptions { binary };
    let line = client::ask(&path, &Request::Upgrade(options), UPGRADE_LIMIT)?;
    let answer: UpgradeAnswer = client::understand(&line)?;
    if let Some(why) = answer.error {
        bail!("the server goes on as it was: {}", printable(&why));
    }
    if answer.pid == 0 {
        bail!("the server does not know this command\nhint: `samovar status` says its version");
    }
    let seconds = Duration::from_millis(answer.milliseconds).as_secs_f64();
    let version = printable(&answer.version);
    terminal::print(&format!(
        "process {} (samovar {version}) serves, after {seconds:.2} s\n",
        answer.pid
    ))
}
