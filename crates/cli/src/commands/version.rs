//! `samovar version`: the same as `samovar --version`.

use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::Result;
use clap::{ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

#[derive(Debug)]
struct Version;

fn define() -> Command {
    Command::new("version").about("Prints the version, as samovar --version does")
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn prepare(_: &ArgMatches, _: Sources) -> Prepared {
    Ok(Box::new(Version))
}

impl Run for Version {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        terminal::print(concat!("samovar ", env!("CARGO_PKG_VERSION"), "\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
