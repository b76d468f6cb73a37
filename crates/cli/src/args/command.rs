//! The commands and their flags, as clap definitions.

use super::help;
use crate::top::{EVERY, EVERY_HINT, Kind, TABLE_HINT};
use crate::{boot, calls, companion, compare, leaks, profile, spy};
use clap::{Arg, ArgAction, Command};
use samovar_config::names;
use samovar_config::table::SETTINGS;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn command() -> Command {
    Command::new("samovar")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An application server for PHP")
        .after_help(help::SAMOVAR)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve())
        .subcommand(check())
        .subcommand(routes())
        .subcommand(with_settings(compare::command()).arg(json_argument()))
        .subcommand(with_settings(leaks::command()).arg(json_argument()))
        .subcommand(spy::command().arg(json_argument()))
        .subcommand(
            profile::command()
                .arg(of_pool(profile::OF_POOL))
                .arg(control_argument())
                .arg(json_argument()),
        )
        .subcommand(
            calls::command().arg(of_pool(OF_POOL)).arg(control_argument()).arg(json_argument()),
        )
        .subcommand(
            boot::command().arg(of_pool(OF_POOL)).arg(control_argument()).arg(json_argument()),
        )
        .subcommand(
            Command::new("status")
                .about("Shows the state of the running server")
                .arg(control_argument())
                .arg(json_argument()),
        )
        .subcommand(top())
        .subcommand(
            Command::new("reload")
                .about(
                    "Boots the application again; the old generation serves until the new one has \
                     booted",
                )
                .after_help(help::RELOAD)
                .arg(control_argument())
                .arg(of_pool(
                    "Only this pool; `default` is the pool of the settings outside of \
                              [[pool]]",
                ))
                .arg(
                    Arg::new("probe")
                        .long("probe")
                        .value_name("TARGET")
                        .overrides_with("probe")
                        .value_parser(probe)
                        .help(
                            "Request that the new workers must serve without an error, instead \
                               of reload_probe",
                        ),
                )
                .arg(
                    Arg::new("force")
                        .long("force")
                        .action(ArgAction::SetTrue)
                        .overrides_with("force")
                        .help("Take over even if the probe fails or the front controller is gone"),
                ),
        )
        .subcommand(
            Command::new("upgrade")
                .about("Replaces the running server with another one, without losing requests")
                .after_help(help::UPGRADE)
                .arg(control_argument())
                .arg(
                    Arg::new("binary")
                        .long("binary")
                        .value_name("PATH")
                        .overrides_with("binary")
                        .value_parser(clap::value_parser!(PathBuf))
                        .help(
                            "Binary to start, instead of the one that the server was started \
                               from",
                        ),
                ),
        )
        .subcommand(
            Command::new("stop")
                .about("Stops the running server after its pending requests have finished")
                .arg(control_argument()),
        )
}

/// Default interval between two samples of `top`.
pub(super) const TOP_EVERY: Duration = Duration::from_secs(2);

fn top() -> Command {
    Command::new("top")
        .about("Shows live tables of the running server: routes, workers, waits")
        .after_help(help::TOP)
        .arg(control_argument())
        .arg(json_argument())
        .arg(
            Arg::new("every")
                .long("every")
                .value_name("TIME")
                .overrides_with("every")
                .value_parser(every)
                .help("Interval between two samples [default: 2s]"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("TABLE")
                .overrides_with("table")
                .value_parser(table)
                .help("First table: routes, workers or waits [default: routes]"),
        )
}

fn every(text: &str) -> Result<Duration, String> {
    let (min, max) = EVERY;
    let span = samovar_config::duration(text).filter(|span| (min..=max).contains(span));
    span.ok_or_else(|| EVERY_HINT.to_owned())
}

fn table(text: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| TABLE_HINT.to_owned())
}

fn serve() -> Command {
    let command = Command::new("serve").about("Serves a PHP application");
    with_settings(command.after_help(help::SERVE_SHORT).after_long_help(help::SERVE))
        .args(companion::arguments())
}

fn check() -> Command {
    let command =
        Command::new("check").about("Checks whether a server would start; starts nothing");
    with_settings(command.after_help(help::CHECK)).arg(json_argument())
}

fn routes() -> Command {
    let url = Arg::new("url").value_name("URL").required(true);
    let command = Command::new("routes")
        .about("Shows the rules that match a path, and the response; starts nothing")
        .arg(url.help("A path such as /a/b, or a URL (only its host and path are used)"));
    with_settings(command.after_help(help::ROUTES)).arg(json_argument())
}

fn with_settings(command: Command) -> Command {
    command
        .arg(
            Arg::new("config")
                .long("config")
                .short('c')
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .action(ArgAction::Append)
                .help("Read settings from this file instead of samovar.toml"),
        )
        .args(SETTINGS.iter().map(help::argument))
}

fn json_argument() -> Arg {
    let argument = Arg::new("json").long("json").action(ArgAction::SetTrue);
    argument.overrides_with("json").help("Print JSON")
}

const OF_POOL: &str = "Name of the pool, as in samovar status [default: default]";

/// Flag that selects one of several pools.
fn of_pool(help: &'static str) -> Arg {
    let argument = Arg::new("pool").long("pool").value_name("NAME").overrides_with("pool");
    argument.value_parser(pool).help(help)
}

/// Parses the name of a `[[pool]]`.
fn pool(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("the name of a pool consists of letters, digits, `-`, `_` and `.`".to_owned())
    }
}

/// Parses a target in the form of the setting `reload_probe`.
fn probe(text: &str) -> Result<String, String> {
    let is_target = text.starts_with('/') && !text.contains(|c: char| c <= ' ');
    if is_target { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn control_argument() -> Arg {
    help::argument(names::by_flag("control")).help_heading(None)
}
