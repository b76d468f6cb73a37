//! A command of `samovar`: its definition for clap, and its run. Each command declares one in a
//! file of its own; `args.rs` lists them.

use crate::usage_error::Early;
use anyhow::Result;
use clap::{ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::Predecessor;
use std::fmt::Debug;
use std::process::ExitCode;

/// A run, or the error of a wrong command line.
pub(crate) type Prepared = Result<Box<dyn Run>, Early>;

/// Declaration of a command.
pub(crate) struct Subcommand {
    /// Returns the definition for clap: name, help, flags.
    pub(crate) define: fn() -> Command,
    /// Converts the flags to a run. `Sources` are the environment and the file.
    pub(crate) prepare: fn(&ArgMatches, Sources) -> Prepared,
    /// Returns the values that a flag takes, by clap's name of the flag: the hint of an error.
    pub(crate) hint: fn(&str) -> Option<&'static str>,
}

/// Run of a command with its options.
pub(crate) trait Run: Debug {
    /// Runs the command to its end. `predecessor` is the server that a new server replaces.
    fn run(&self, predecessor: Option<&Predecessor>) -> Result<ExitCode>;
}

/// For commands whose flags need no hint.
pub(crate) fn no_hint(_: &str) -> Option<&'static str> {
    None
}
