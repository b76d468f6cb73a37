//! The commands and their flags, as clap takes them.

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
        .subcommand(profile::command().arg(of_pool(profile::OF_POOL)).arg(control_argument()).arg(json_argument()))
        .subcommand(calls::command().arg(of_pool(OF_POOL)).arg(control_argument()).arg(json_argument()))
        .subcommand(boot::command().arg(of_pool(OF_POOL)).arg(control_argument()).arg(json_argument()))
        .subcommand(
            Command::new("status")
                .about("Says what the running server does")
                .arg(control_argument())
                .arg(json_argument()),
        )
        .subcommand(top())
        .subcommand(
            Command::new("reload")
                .about(
                    "Boots the application anew; the running one answers until the new one is up",
                )
                .after_help(help::RELOAD)
                .arg(control_argument())
                .arg(of_pool("This pool alone; `default` is that of the settings outside of [[pool]]"))
                .arg(
                    Arg::new("probe")
                        .long("probe")
                        .value_name("TARGET")
                        .overrides_with("probe")
                        .value_parser(probe)
                        .help("What the new workers must answer, instead of reload_probe"),
                )
                .arg(
                    Arg::new("force")
                        .long("force")
                        .action(ArgAction::SetTrue)
                        .overrides_with("force")
                        .help("Let the new application take over whatever it answers"),
                ),
        )
        .subcommand(
            Command::new("upgrade")
                .about("Has another server take the running one's place, without a lost request")
                .after_help(help::UPGRADE)
                .arg(control_argument())
                .arg(
                    Arg::new("binary")
                        .long("binary")
                        .value_name("PATH")
                        .overrides_with("binary")
                        .value_parser(clap::value_parser!(PathBuf))
                        .help("The binary to start, instead of the one that the server was started as"),
                ),
        )
        .subcommand(
            Command::new("stop")
                .about("Lets the running server finish what it has begun, then ends it")
                .arg(control_argument()),
        )
}

/// From one look to the next, unless somebody says otherwise.
pub(super) const TOP_EVERY: Duration = Duration::from_secs(2);

fn top() -> Command {
    Command::new("top")
        .about("Shows what the running server does: routes, workers, waits")
        .after_help(help::TOP)
        .arg(control_argument())
        .arg(json_argument())
        .arg(
            Arg::new("every")
                .long("every")
                .value_name("TIME")
                .overrides_with("every")
                .value_parser(every)
                .help("Time from one look to the next [default: 2s]"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("TABLE")
                .overrides_with("table")
                .value_parser(table)
                .help("What is shown first: routes, workers or waits [default: routes]"),
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
    let command = Command::new("check").about("Says whether a server would start; starts none");
    with_settings(command.after_help(help::CHECK)).arg(json_argument())
}

fn routes() -> Command {
    let url = Arg::new("url").value_name("URL").required(true);
    let command = Command::new("routes")
        .about("Says which rules a path meets and what is answered; starts nothing")
        .arg(url.help("A path such as /a/b, or a URL of which host and path count"));
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
    argument.overrides_with("json").help("Answer in JSON")
}

const OF_POOL: &str = "Of this pool, by its name in samovar status [default: default]";

/// One pool of several.
fn of_pool(help: &'static str) -> Arg {
    let argument = Arg::new("pool").long("pool").value_name("NAME").overrides_with("pool");
    argument.value_parser(pool).help(help)
}

/// As a `[[pool]]` is called.
fn pool(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("a pool's name has letters, digits, `-`, `_` and `.`".to_owned())
    }
}

/// As the setting `reload_probe` takes it.
fn probe(text: &str) -> Result<String, String> {
    let is_target = text.starts_with('/') && !text.contains(|c: char| c <= ' ');
    if is_target { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn control_argument() -> Arg {
    help::argument(names::by_flag("control")).help_heading(None)
}
