//! `samovar check`: checks whether a server would start. crates/server does it, with the code that
//! starts a server.

use crate::arguments::{json_argument, settings, with_settings};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::Result;
use clap::{ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::{Predecessor, check};
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
Accepts the flags of samovar serve, and checks files with the rights that the server would have.
Exit codes: 0 a server would start, 1 it would not, 2 wrong flags or settings.";

#[derive(Debug)]
struct Check {
    /// Sources of the settings. The check resolves them itself, so that it can report the mistakes.
    sources: Sources,
    json: bool,
}

fn define() -> Command {
    let command =
        Command::new("check").about("Checks whether a server would start; starts nothing");
    with_settings(command.after_help(HELP)).arg(json_argument())
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let json = matches.get_flag("json");
    Ok(Box::new(Check { sources: settings(matches, sources), json }))
}

impl Run for Check {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        Ok(check::run(&self.sources, self.json))
    }
}
