//! `samovar reload`: makes the running server boot its application again, and prints the result.

use crate::control::client::{self, printable};
use crate::terminal;
use anyhow::{Result, bail};
use samovar_wire::{PoolReloaded, ReloadOptions, ReloadResponse, Request};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of the command. The server's own limit, `timeouts.boot`, is not known here.
const RELOAD_LIMIT: Duration = Duration::from_mins(15);

/// Time after which the command prints the reason for the wait.
const SILENCE: Duration = Duration::from_secs(1);

/// Reloads; returns when the new generation serves.
pub(crate) fn run(control: Option<PathBuf>, options: ReloadOptions) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    if std::io::stderr().is_terminal() {
        std::thread::spawn(|| {
            std::thread::sleep(SILENCE);
            terminal::complain(
                "samovar: the application is booting; the old generation keeps serving …",
            );
        });
    }
    let line = client::ask(&path, &Request::Reload(options), RELOAD_LIMIT)?;
    let response: ReloadResponse = client::understand(&line)?;
    let seconds = Duration::from_millis(response.milliseconds).as_secs_f64();
    let serving = serving(&response.pools, seconds);
    if let Some(why) = response.error {
        bail!("the old generation keeps serving: {}{}", printable(&why), serving.trim_end());
    }
    for key in response.needs_restart {
        let key = printable(&key);
        terminal::print(&format!("`{key}` has changed; restart the server to apply it\n"))?;
    }
    for key in response.needs_all {
        let key = printable(&key);
        terminal::print(&format!(
            "`{key}` has changed for all pools; reload all pools to apply it (`samovar reload`)\n"
        ))?;
    }
    if !response.pools.is_empty() {
        return terminal::print(serving.trim_start());
    }
    terminal::print(&format!("generation {} serves after {seconds:.2} s\n", response.generation))
}

/// Returns a line for each pool whose new generation serves, if there are several pools.
fn serving(pools: &[PoolReloaded], seconds: f64) -> String {
    let line = |pool: &PoolReloaded| {
        let (name, generation) = (printable(&pool.name), pool.generation);
        format!("\npool {name}: generation {generation} serves after {seconds:.2} s")
    };
    let lines: String = pools.iter().filter(|pool| pool.error.is_none()).map(line).collect();
    lines + "\n"
}
