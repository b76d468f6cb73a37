//! `samovar rollback`: serves the release before, or a named one.

use super::options::{self, SiteOptions};
use super::report::{begins, conclude, say};
use super::server::Running;
use crate::arguments::{control, control_arguments, pool_argument};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::Result;
use clap::{Arg, ArgMatches, Command};
use samovar_config::Sources;
use samovar_deploy::Name;
use samovar_server::Predecessor;
use samovar_wire::ReloadOptions;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
Examples:
  samovar rollback --folder /srv/shop                    serve the release before
  samovar rollback 20261129T011530Z --folder /srv/shop   serve this one
  samovar rollback --folder /srv/shop --host web1 --host web2

The release takes over if it boots; no probe and no comparison can refuse it. See
docs/guide/releases.md.";

#[derive(Debug)]
struct Rollback {
    place: SiteOptions,
    control: Option<PathBuf>,
    pool: Option<String>,
    to: Option<Name>,
    words: Vec<String>,
}

fn define() -> Command {
    Command::new("rollback")
        .about("Serves the release that served before the current one")
        .after_help(HELP)
        .arg(
            Arg::new("release")
                .value_name("RELEASE")
                .value_parser(|text: &str| text.parse::<Name>())
                .help("Name of a release, as in samovar releases"),
        )
        .args(options::arguments())
        .args(options::remote_arguments())
        .args(control_arguments())
        .arg(pool_argument("Reload only this pool"))
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(Rollback {
        place: SiteOptions::of(matches),
        control: control(matches, sources)?,
        pool: matches.get_one::<String>("pool").cloned(),
        to: matches.get_one::<Name>("release").cloned(),
        words: options::words(matches, &define()),
    }))
}

impl Run for Rollback {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        if let Some(hosts) = &self.place.hosts {
            let mut words = self.place.command("rollback");
            words.extend(self.to.iter().map(|name| name.as_str().to_owned()));
            words.extend(self.words.iter().cloned());
            let outcome = samovar_deploy::rollback_on(hosts, &words, &mut begins);
            return conclude(&outcome, "the older release", false);
        }
        let site = self.place.site()?;
        let pool = self.pool.clone();
        let options = ReloadOptions { force: true, pool, ..ReloadOptions::default() };
        let running =
            self.place.reloads.then(|| Running::new(self.control.as_ref(), options, None));
        let running = running.transpose()?;
        let server = running.as_ref().map(|running| running as &dyn samovar_deploy::Server);
        let name = samovar_deploy::rollback(&site, self.to.as_ref(), server, &mut say)?;
        say(&format!("the release {} serves", name.as_str()));
        Ok(ExitCode::SUCCESS)
    }
}
