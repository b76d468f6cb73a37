//! `samovar releases`: lists the releases of a folder.

use super::options::{self, SiteOptions};
use crate::arguments::json_argument;
use crate::control_client::printable;
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::Result;
use clap::{ArgMatches, Command};
use samovar_config::Sources;
use samovar_deploy::{Release, Verdict};
use samovar_server::{Predecessor, terminal};
use std::fmt::Write as _;
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

#[derive(Debug)]
struct Releases {
    place: SiteOptions,
    json: bool,
}

fn define() -> Command {
    Command::new("releases")
        .about("Lists the releases of samovar deploy, the newest first")
        .args(options::arguments())
        .arg(json_argument())
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    Ok(Box::new(Releases { place: SiteOptions::of(matches), json: matches.get_flag("json") }))
}

impl Run for Releases {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let releases = self.place.site()?.list()?;
        let text =
            if self.json { serde_json::to_string(&releases)? + "\n" } else { table(&releases) };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(releases: &[Release]) -> String {
    if releases.is_empty() {
        return "no releases\n".to_owned();
    }
    let width = releases.iter().map(|release| release.name.len()).max().unwrap_or(0).max(7);
    let mut text = format!("{:width$}  {:20}  STATE\n", "RELEASE", "DEPLOYED");
    for release in releases {
        let state = match release.verdict {
            _ if release.is_current => "current",
            Verdict::Served => "served",
            Verdict::Failed => "failed",
            Verdict::Unpacked => "unpacked",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:width$}  {:20}  {state}",
            printable(&release.name),
            samovar_deploy::time(release.deployed_at)
        );
    }
    text
}
