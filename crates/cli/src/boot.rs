//! `samovar boot`: what the running server's boot went to, and what its requests still load.
//!
//! It asks the control socket; `show.rs` is the answer for people.

mod show;

use crate::control::client::{self, understand};
use crate::terminal;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_profile::loads::Explained;
use samovar_wire::{BootAnswer, Request};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const ANSWER_LIMIT: Duration = Duration::from_secs(15);

const HELP: &str = "\
Says what the latest boot of a running server went to: its parts, folders and files with their time and
memory, without and with what they include; and what requests still load below the checkpoint, with the
lines to be added so that the boot does it once.

Examples:
  samovar boot                what is dear
  samovar boot --all          each file
  samovar boot --pool export  of another pool
  samovar boot --json         all of it, for programs

Exit codes: 0 done, 1 there is nothing to be shown, 2 wrong flags.";

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct BootOptions {
    /// The server's socket; `None`: discover it.
    control: Option<PathBuf>,
    pool: Option<String>,
    all: bool,
    json: bool,
}

/// The command.
pub(crate) fn command() -> Command {
    let all = Arg::new("all").long("all").action(ArgAction::SetTrue).overrides_with("all");
    Command::new("boot")
        .about("Says what the running server's boot went to, and what requests still load")
        .after_help(HELP)
        .arg(all.help("Each folder and file, not the dearest alone"))
}

/// What flags mean.
pub(crate) fn parse(matches: &ArgMatches, control: Option<PathBuf>) -> BootOptions {
    let (all, json) = (matches.get_flag("all"), matches.get_flag("json"));
    BootOptions { control, pool: matches.get_one("pool").cloned(), all, json }
}

pub(crate) fn run(asked: &BootOptions) -> Result<ExitCode> {
    let path = asked.control.clone().map_or_else(samovar_config::discover_control, Ok)?;
    let question = Request::Boot { pool: asked.pool.clone() };
    let answer: BootAnswer = understand(&client::ask(&path, &question, ANSWER_LIMIT)?)?;
    if let Some(why) = answer.error {
        bail!("{}", client::printable(&why));
    }
    let why = "the answer is no boot\nhint: is `samovar` of another version than the server?";
    let explained: Explained = serde_json::from_value(answer.explained.clone()).context(why)?;
    if asked.json {
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        terminal::print(&text)?;
    } else {
        let mut text = show::text(&explained, answer.image_ms, asked.all);
        if !answer.pool.is_empty() {
            text.insert_str(0, &format!("pool {}\n", answer.pool));
        }
        terminal::print(&client::printable(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}
