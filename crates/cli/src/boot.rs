//! `samovar boot`: cost of the running server's boot, and the files that its requests still load.
//!
//! Queries the control socket; `show.rs` formats the response for people.

mod show;

use crate::arguments::{ONE_POOL, control, control_arguments, json_argument, pool_argument};
use crate::control_client::{self, understand};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::Sources;
use samovar_profile::loads::Explained;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{BootResponse, Request};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const RESPONSE_LIMIT: Duration = Duration::from_secs(15);

const HELP: &str = "\
Shows the cost of the latest boot of a running server: time and memory of its parts, folders and
files, without and with the files they include. Also shows the files that requests still load after
the checkpoint, and the lines to add so that the boot loads them once.

Examples:
  samovar boot                the most expensive folders and files
  samovar boot --all          all folders and files
  samovar boot --pool export  another pool
  samovar boot --json         everything, as JSON

Exit codes: 0 done, 1 nothing to show, 2 wrong flags.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

/// Options of the command.
#[derive(Debug)]
struct BootOptions {
    /// Socket of the server; `None`: discover it.
    control: Option<PathBuf>,
    pool: Option<String>,
    all: bool,
    json: bool,
}

fn define() -> Command {
    let all = Arg::new("all").long("all").action(ArgAction::SetTrue).overrides_with("all");
    Command::new("boot")
        .about(
            "Shows the cost of the running server's boot, and the files that requests still load",
        )
        .after_help(HELP)
        .arg(all.help("List all folders and files, not only the most expensive ones"))
        .arg(pool_argument(ONE_POOL))
        .args(control_arguments())
        .arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let control = control(matches, sources)?;
    let (all, json) = (matches.get_flag("all"), matches.get_flag("json"));
    Ok(Box::new(BootOptions { control, pool: matches.get_one("pool").cloned(), all, json }))
}

impl Run for BootOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &BootOptions) -> Result<ExitCode> {
    let path = control_client::path(asked.control.as_ref())?;
    let question = Request::Boot { pool: asked.pool.clone() };
    let response: BootResponse =
        understand(&control_client::ask(&path, &question, RESPONSE_LIMIT)?)?;
    if let Some(why) = response.error {
        bail!("{}", control_client::printable(&why));
    }
    let why = "the response is not a boot report\nhint: check that `samovar` and the server have \
               the same version";
    let explained: Explained = serde_json::from_value(response.explained.clone()).context(why)?;
    if asked.json {
        let mut text = serde_json::to_string(&response)?;
        text.push('\n');
        terminal::print(&text)?;
    } else {
        let mut text = show::text(&explained, response.image_ms, asked.all);
        text.push_str(&show::findings(&response.findings));
        if !response.pool.is_empty() {
            text.insert_str(0, &format!("pool {}\n", response.pool));
        }
        terminal::print(&control_client::printable(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}
