//! `samovar completions` and `samovar man`: files about the command line, generated from its
//! definition and from the table of settings.
//!
//! Packages install them. They need the definition of all commands, so `args.rs` passes it.

mod completions;
mod man;
mod roff;

use crate::subcommand::Run;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser};
use samovar_server::{Predecessor, terminal};
use std::process::ExitCode;

const COMPLETIONS: &str = "completions";
const MAN: &str = "man";

const COMPLETIONS_HELP: &str = "\
Prints a completion script: commands, flags, and the values of settings.

Examples:
  samovar completions bash >/etc/bash_completion.d/samovar
  samovar completions zsh >/usr/local/share/zsh/site-functions/_samovar
  samovar completions fish >~/.config/fish/completions/samovar.fish

The Debian package installs all three.";

const MAN_HELP: &str = "\
Prints a manual page in the format of man: samovar(1), or samovar.toml(5).

Examples:
  samovar man | man -l -
  samovar man samovar.toml | man -l -";

/// A generated text.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
}

/// Returns the definitions of these commands.
pub(crate) fn define() -> [Command; 2] {
    let shell = Arg::new("shell").value_name("SHELL").required(true).help("The shell");
    let page = Arg::new("page").value_name("PAGE").default_value("samovar").help("The page");
    [
        Command::new(COMPLETIONS)
            .about("Prints a completion script for bash, zsh or fish")
            .after_help(COMPLETIONS_HELP)
            .arg(shell.value_parser(PossibleValuesParser::new(completions::SHELLS))),
        Command::new(MAN)
            .about("Prints a manual page")
            .after_help(MAN_HELP)
            .arg(page.value_parser(PossibleValuesParser::new(man::PAGES))),
    ]
}

/// Returns the requested document about `all`; `None`: it is another command.
pub(crate) fn document(name: &str, matches: &ArgMatches, all: Command) -> Option<Document> {
    let named = |id: &str| matches.get_one::<String>(id).map(String::as_str).unwrap_or_default();
    let text = match name {
        COMPLETIONS => completions::script(named("shell"), all),
        MAN => man::page(named("page"), &all),
        _ => return None,
    };
    Some(Document { text })
}

/// Returns the values that a flag takes, for the hint of an error.
pub(crate) fn hint(argument: &str) -> Option<&'static str> {
    match argument {
        "<SHELL>" => Some("it takes bash, zsh or fish"),
        "[PAGE]" => Some("it takes samovar or samovar.toml"),
        _ => None,
    }
}

impl Run for Document {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        terminal::print(&self.text)?;
        Ok(ExitCode::SUCCESS)
    }
}
