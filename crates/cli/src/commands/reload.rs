//! `samovar reload`: makes the running server boot its application again, and prints the result.

use crate::arguments::{control, control_arguments, pool_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{PoolReloaded, ReloadOptions, ReloadResponse, Request};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Timeout of the command. The server's own limit, `timeouts.boot`, is not known here.
const RELOAD_LIMIT: Duration = Duration::from_mins(15);

/// Time after which the command prints the reason for the wait.
const SILENCE: Duration = Duration::from_secs(1);

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

const HELP: &str = "\
Reads the settings and php.ini again, and resolves links in the path of the application again.
The old generation keeps serving, and the command fails with exit code 1, if:
  - the settings are invalid, or the application does not boot
  - the front controller is gone, or no longer calls Samovar\\checkpoint() or Samovar\\serve()
  - the probe gets a server error that the old generation did not give
--force takes over if the application boots at all. See docs/guide/deploy.md.";

#[derive(Debug)]
struct Reload {
    control: Option<PathBuf>,
    options: ReloadOptions,
}

fn define() -> Command {
    Command::new("reload")
        .about(
            "Boots the application again; the old generation serves until the new one has booted",
        )
        .after_help(HELP)
        .args(control_arguments())
        .arg(pool_argument(
            "Only this pool; `default` is the pool of the settings outside of [[pool]]",
        ))
        .arg(
            Arg::new("probe")
                .long("probe")
                .value_name("TARGET")
                .overrides_with("probe")
                .value_parser(probe)
                .help(
                    "Request that the new workers must serve without an error, instead of \
                     reload_probe",
                ),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .overrides_with("force")
                .help("Take over even if the probe fails or the front controller is gone"),
        )
}

fn hint(flag: &str) -> Option<&'static str> {
    (flag == "--probe <TARGET>")
        .then_some("it takes a path with an optional query, such as `/` or `/health?full=1`")
}

/// Parses a target in the form of the setting `reload_probe`.
fn probe(text: &str) -> Result<String, String> {
    let is_target = text.starts_with('/') && !text.contains(|c: char| c <= ' ');
    if is_target { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let options = ReloadOptions {
        force: matches.get_flag("force"),
        probe: matches.get_one::<String>("probe").cloned(),
        pool: matches.get_one::<String>("pool").cloned(),
    };
    Ok(Box::new(Reload { control: control(matches, sources)?, options }))
}

impl Run for Reload {
    /// Reloads; returns when the new generation serves.
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        if std::io::stderr().is_terminal() {
            std::thread::spawn(|| {
                std::thread::sleep(SILENCE);
                terminal::complain(
                    "samovar: the application is booting; the old generation keeps serving …",
                );
            });
        }
        let line =
            control_client::ask(&path, &Request::Reload(self.options.clone()), RELOAD_LIMIT)?;
        let response: ReloadResponse = control_client::understand(&line)?;
        let seconds = Duration::from_millis(response.milliseconds).as_secs_f64();
        let serving = serving(&response.pools, seconds);
        if let Some(why) = response.error {
            bail!("the old generation keeps serving: {}{}", printable(&why), serving.trim_end());
        }
        for key in response.needs_restart {
            let key = printable(&key);
            terminal::print(&format!("`{key}` has changed; restart the server to apply it\n"))?;
        }
        for key in response.needs_all {
            let key = printable(&key);
            terminal::print(&format!(
                "`{key}` has changed for all pools; reload all pools to apply it \
                 (`samovar reload`)\n"
            ))?;
        }
        if !response.pools.is_empty() {
            terminal::print(serving.trim_start())?;
            return Ok(ExitCode::SUCCESS);
        }
        terminal::print(&format!(
            "generation {} serves after {seconds:.2} s\n",
            response.generation
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a line for each pool whose new generation serves, if there are several pools.
fn serving(pools: &[PoolReloaded], seconds: f64) -> String {
    let line = |pool: &PoolReloaded| {
        let (name, generation) = (printable(&pool.name), pool.generation);
        format!("\npool {name}: generation {generation} serves after {seconds:.2} s")
    };
    let lines: String = pools.iter().filter(|pool| pool.error.is_none()).map(line).collect();
    lines + "\n"
}
