//! `samovar reload`: has the running server boot the application anew, and says what came of it.

use crate::control::client::{self, printable};
use crate::terminal;
use anyhow::{Result, bail};
use samovar_wire::{PoolReloaded, ReloadAnswer, ReloadOptions, Request};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// How long the command waits: the server's own limit is `timeouts.boot`, which is not known here.
const RELOAD_LIMIT: Duration = Duration::from_mins(15);

/// A person who waits for longer is told for what.
const SILENCE: Duration = Duration::from_secs(1);

/// Returns when the new generation serves.
pub(crate) fn run(control: Option<PathBuf>, options: ReloadOptions) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    if std::io::stderr().is_terminal() {
        std::thread::spawn(|| {
            std::thread::sleep(SILENCE);
            terminal::complain(
                "samovar: the application boots; the old generation answers meanwhile …",
            );
        });
    }
    let line = client::ask(&path, &Request::Reload(options), RELOAD_LIMIT)?;
    let answer: ReloadAnswer = client::understand(&line)?;
    let seconds = Duration::from_millis(answer.milliseconds).as_secs_f64();
    let serving = serving(&answer.pools, seconds);
    if let Some(why) = answer.error {
        bail!("the old generation goes on: {}{}", printable(&why), serving.trim_end());
    }
    for key in answer.needs_restart {
        let key = printable(&key);
        terminal::print(&format!(
            "`{key}` has changed; that takes effect when the server is restarted\n"
        ))?;
    }
    for key in answer.needs_all {
        let key = printable(&key);
        terminal::print(&format!(
            "`{key}` has changed for all pools; that takes effect when all are reloaded (`samovar reload`)\n"
        ))?;
    }
    if !answer.pools.is_empty() {
        return terminal::print(serving.trim_start());
    }
    terminal::print(&format!("generation {} serves, after {seconds:.2} s\n", answer.generation))
}

/// A line for each of several pools whose new generation serves.
fn serving(pools: &[PoolReloaded], seconds: f64) -> String {
    let line = |pool: &PoolReloaded| {
        let (name, generation) = (printable(&pool.name), pool.generation);
        format!("\npool {name}: generation {generation} serves, after {seconds:.2} s")
    };
    let lines: String = pools.iter().filter(|pool| pool.error.is_none()).map(line).collect();
    lines + "\n"
}
