//! `samovar reload`: makes the running server boot its application again, and prints the result.

use super::canary;
use crate::arguments::{control, control_arguments, pool_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{
    CanaryAction, CanaryAssignment, CanaryQuestion, CanaryResponse, PoolReloaded, ReloadOptions,
    ReloadResponse, Request,
};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
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
    /// Set: boot a canary.
    canary: Option<Box<CanaryQuestion>>,
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
        .args(takeover_arguments())
        .arg(
            Arg::new("release")
                .long("release")
                .value_name("LABEL")
                .overrides_with("release")
                .value_parser(release)
                .help(
                    "Label of the release, such as a version, instead of the one in the settings",
                ),
        )
        .args(canary_arguments())
}

/// Returns the flags about the conditions of a takeover.
pub(crate) fn takeover_arguments() -> [Arg; 2] {
    [
        Arg::new("probe")
            .long("probe")
            .value_name("TARGET")
            .overrides_with("probe")
            .value_parser(probe)
            .help(
                "Request that the new workers must serve without an error, instead of reload_probe",
            ),
        Arg::new("force")
            .long("force")
            .action(ArgAction::SetTrue)
            .overrides_with("force")
            .help("Take over even if the probe fails or the front controller is gone"),
    ]
}

pub(crate) fn canary_arguments() -> [Arg; 4] {
    [
        Arg::new("canary")
            .long("canary")
            .value_name("SHARES")
            .overrides_with("canary")
            .value_parser(shares)
            .help(
                "Serve this share of the visitors first, such as 5%; several shares, such as \
                 1%,5%,25%,100%, follow one another",
            ),
        Arg::new("by")
            .long("by")
            .value_name("KEY")
            .requires("canary")
            .overrides_with("by")
            .default_value(CanaryAssignment::Cookie.name())
            .value_parser(CanaryAssignment::ALL.map(CanaryAssignment::name))
            .help("Assign visitors to the canary by a cookie, by their address, or at random"),
        Arg::new("step")
            .long("step")
            .value_name("TIME")
            .requires("canary")
            .overrides_with("step")
            .default_value("10m")
            .value_parser(step)
            .help("Minimum time of each share"),
        Arg::new("root")
            .long("root")
            .value_name("PATH")
            .requires("canary")
            .overrides_with("root")
            .value_parser(value_parser!(PathBuf))
            .help("Document root of the canary, instead of the one in the settings"),
    ]
}

fn shares(text: &str) -> Result<Vec<u32>, String> {
    text.split(',').map(|share| canary::share(share.trim())).collect()
}

fn step(text: &str) -> Result<Duration, String> {
    samovar_config::duration(text).ok_or_else(|| "it takes a time, such as 10m".to_owned())
}

/// Returns the options of a canary, if the command is to boot one.
pub(crate) fn canary_question(
    matches: &ArgMatches,
    options: &ReloadOptions,
) -> Result<Option<CanaryQuestion>> {
    let Some(shares) = matches.get_one::<Vec<u32>>("canary") else { return Ok(None) };
    let by = matches.get_one::<String>("by").map_or("", String::as_str);
    let by = CanaryAssignment::ALL.into_iter().find(|known| known.name() == by);
    let root = matches.get_one::<PathBuf>("root").map(std::path::absolute);
    Ok(Some(CanaryQuestion {
        action: CanaryAction::Start,
        pool: options.pool.clone(),
        probe: options.probe.clone(),
        force: options.force,
        release: options.release.clone(),
        shares_ppm: shares.clone(),
        step_s: matches.get_one::<Duration>("step").map_or(0, Duration::as_secs),
        by: by.unwrap_or_default(),
        root: root.transpose().context("cannot resolve the path of `--root`")?,
    }))
}

fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--probe <TARGET>" => {
            Some("it takes a path with an optional query, such as `/` or `/health?full=1`")
        }
        "--release <LABEL>" => Some(
            "it takes up to 100 letters, digits, `.`, `_`, `-`, `+`, `/`, `:`, `@`, `~`, a letter \
             or digit first",
        ),
        "--canary <SHARES>" => Some("it takes shares, such as `5%` or `1%,5%,25%,100%`"),
        "--step <TIME>" => Some("it takes a time, such as `10m`"),
        _ => None,
    }
}

/// Parses a target in the form of the setting `reload_probe`.
fn probe(text: &str) -> Result<String, String> {
    let is_target = text.starts_with('/') && !text.contains(|c: char| c <= ' ');
    if is_target { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn release(text: &str) -> Result<String, String> {
    if samovar_config::is_release(text) { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let options = ReloadOptions {
        force: matches.get_flag("force"),
        probe: matches.get_one::<String>("probe").cloned(),
        pool: matches.get_one::<String>("pool").cloned(),
        release: matches.get_one::<String>("release").cloned(),
    };
    let canary = canary_question(matches, &options)?.map(Box::new);
    Ok(Box::new(Reload { control: control(matches, sources)?, options, canary }))
}

/// Boots a canary; returns the line about it when it serves its share.
pub(crate) fn begin_canary(path: &Path, question: &CanaryQuestion) -> Result<String> {
    let request = Request::Canary(Box::new(question.clone()));
    let line = control_client::ask(path, &request, RELOAD_LIMIT)?;
    let response: CanaryResponse = control_client::understand(&line)?;
    if let Some(why) = response.error {
        bail!("the old generation serves all requests: {}", printable(&why));
    }
    let Some(status) = response.canary else {
        bail!(
            "the server does not support this command\n\
                 hint: see its version in `samovar status`"
        );
    };
    Ok(canary::headline(&status.brief()))
}

/// A failed reload.
pub(crate) struct Refused {
    pub(crate) error: anyhow::Error,
    /// Whether some pools took over nevertheless.
    pub(crate) is_partial: bool,
}

/// Reloads; returns the lines about it when the new generation serves.
pub(crate) fn reload(path: &Path, options: &ReloadOptions) -> Result<String, Refused> {
    let whole = |error| Refused { error, is_partial: false };
    let line = control_client::ask(path, &Request::Reload(options.clone()), RELOAD_LIMIT);
    let response: ReloadResponse =
        line.and_then(|line| control_client::understand(&line)).map_err(whole)?;
    let seconds = Duration::from_millis(response.milliseconds).as_secs_f64();
    let serving = serving(&response.pools, seconds);
    if let Some(why) = response.error {
        return Err(Refused {
            error: anyhow::anyhow!(
                "the old generation keeps serving: {}{}",
                printable(&why),
                serving.trim_end()
            ),
            is_partial: !serving.trim().is_empty(),
        });
    }
    // Writing to a string cannot fail.
    let mut text = String::new();
    for key in response.needs_restart {
        let key = printable(&key);
        let _ = writeln!(text, "`{key}` has changed; restart the server to apply it");
    }
    for key in response.needs_all {
        let key = printable(&key);
        let _ = writeln!(
            text,
            "`{key}` has changed for all pools; reload all pools to apply it (`samovar reload`)"
        );
    }
    if response.pools.is_empty() {
        let (number, named) = (response.generation, of_release(&response.release));
        let _ = writeln!(text, "generation {number}{named} serves after {seconds:.2} s");
    } else {
        text += serving.trim_start();
    }
    Ok(text)
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
        let text = match &self.canary {
            Some(question) => begin_canary(&path, question)?,
            None => reload(&path, &self.options).map_err(|refused| refused.error)?,
        };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns `, release 1.2,` for a generation with a label.
fn of_release(label: &str) -> String {
    if label.is_empty() { String::new() } else { format!(", release {},", printable(label)) }
}

/// Returns a line for each pool whose new generation serves, if there are several pools.
fn serving(pools: &[PoolReloaded], seconds: f64) -> String {
    let line = |pool: &PoolReloaded| {
        let (name, generation) = (printable(&pool.name), pool.generation);
        let release = of_release(&pool.release);
        format!("\npool {name}: generation {generation}{release} serves after {seconds:.2} s")
    };
    let lines: String = pools.iter().filter(|pool| pool.error.is_none()).map(line).collect();
    lines + "\n"
}
