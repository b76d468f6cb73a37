//! `samovar serve`: runs the server of crates/server.

use crate::arguments::{settings, with_settings};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use crate::usage_error::Early;
use anyhow::Result;
use clap::{ArgMatches, Command};
use samovar_config::{Settings, Sources};
use samovar_server::{Predecessor, companion};
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const SHORT_HELP: &str =
    "--help explains each setting; `samovar.toml` and SAMOVAR_... variables set them too.";

const HELP: &str = "\
Each setting can be given on the command line, in the environment or in the file, in this order of
precedence. The file is samovar.toml in the working directory, if it exists; --config or
SAMOVAR_CONFIG selects another one.

Examples:
  samovar serve
      Serves public/ if that folder exists, else the working directory.
  samovar serve public/index.php
      Serves public/; index.php serves all paths without a file.
  samovar serve --listen 127.0.0.1:0
      Listens on a free port; the log line `listening on` shows it.
  samovar serve --php-binary 8.2 -d memory_limit=256M -d opcache.validate_timestamps=0
      Runs samovar-php8.2 with two directives that override php.ini.
  samovar serve --listen :80 --trusted-proxies 10.0.0.0/8 --access-log - --access-log-format json
      Runs behind a load balancer, with a log line for each request on stdout.

SIGTERM and SIGINT, like samovar stop, let requests in flight finish (--drain-timeout). SIGUSR2
reloads, SIGRTMIN upgrades, SIGUSR1 opens the logs again.
Exit codes: 0 stopped by request, 1 failed, 2 wrong flags or settings.";

/// The server to run.
#[derive(Debug)]
pub(crate) struct Serve {
    /// Current settings.
    pub(crate) settings: Settings,
    /// Sources of the settings; a reload reads them again.
    sources: Sources,
}

fn define() -> Command {
    let command = Command::new("serve").about("Serves a PHP application");
    with_settings(command.after_help(SHORT_HELP).after_long_help(HELP)).args(companion::arguments())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(parse(matches, sources)?))
}

/// Resolves the settings of all sources.
pub(crate) fn parse(matches: &ArgMatches, sources: Sources) -> Result<Serve, Early> {
    let sources = settings(matches, sources);
    let mut settings = sources.resolve()?;
    if let Some(of) = matches.get_one(companion::FLAG) {
        let heap_walk = matches.get_one(companion::HEAP_WALK_FLAG);
        companion::set_loads_every(matches.get_one(companion::LOADS_EVERY_FLAG).copied());
        companion::become_one(&mut settings, *of, heap_walk);
        if matches.get_flag(companion::REQUESTS_FLAG) {
            companion::write_requests(&mut settings);
        }
    }
    Ok(Serve { settings, sources })
}

impl Run for Serve {
    fn run(&self, predecessor: Option<&Predecessor>) -> Result<ExitCode> {
        samovar_server::run(self.settings.clone(), self.sources.clone(), predecessor)
    }
}
