//! `samovar upgrade`: makes the running server start another one in its place, and prints the
//! result.

use crate::arguments::{control, control_arguments};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{Request, UpgradeOptions, UpgradeResponse};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Timeout of the command. The server's own limit, `timeouts.boot` and some seconds, is not known
/// here.
const UPGRADE_LIMIT: Duration = Duration::from_mins(15);

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
The running server starts the new one with its own arguments and passes its listeners to it. It
keeps serving until the new server has booted, then finishes its pending requests and exits.
If the new server does not start, nothing changes, and this command prints the reason and exits
with 1. See docs/guide/deploy.md.";

#[derive(Debug)]
struct Upgrade {
    control: Option<PathBuf>,
    /// Binary of the new server; `None`: the path that the running server was started with.
    binary: Option<PathBuf>,
}

fn define() -> Command {
    Command::new("upgrade")
        .about("Replaces the running server with another one, without losing requests")
        .after_help(HELP)
        .args(control_arguments())
        .arg(
            Arg::new("binary")
                .long("binary")
                .value_name("PATH")
                .overrides_with("binary")
                .value_parser(value_parser!(PathBuf))
                .help("Binary to start, instead of the one that the server was started from"),
        )
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let binary = matches.get_one("binary").cloned();
    Ok(Box::new(Upgrade { control: control(matches, sources)?, binary }))
}

impl Run for Upgrade {
    /// Upgrades; returns when the new server has taken over.
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let what = "cannot resolve the path of the binary";
        let binary =
            self.binary.as_ref().map(|file| std::path::absolute(file).context(what)).transpose()?;
        let options = UpgradeOptions { binary };
        let line = control_client::ask(&path, &Request::Upgrade(options), UPGRADE_LIMIT)?;
        let response: UpgradeResponse = control_client::understand(&line)?;
        if let Some(why) = response.error {
            bail!("the upgrade failed, the running server keeps serving: {}", printable(&why));
        }
        if response.pid == 0 {
            bail!(
                "the server does not support this command\n\
                 hint: see its version in `samovar status`"
            );
        }
        let seconds = Duration::from_millis(response.milliseconds).as_secs_f64();
        let version = printable(&response.version);
        terminal::print(&format!(
            "process {} (samovar {version}) serves after {seconds:.2} s\n",
            response.pid
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
