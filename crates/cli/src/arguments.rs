//! Arguments that several commands take: the settings, `--json`, `--control`, `--pool`.

use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::setting::{Preset, Setting};
use samovar_config::table::SETTINGS;
use samovar_config::{Problems, Sources, names};
use std::path::PathBuf;

/// Adds `--config` and the flags of all settings.
pub(crate) fn with_settings(command: Command) -> Command {
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
        .args(SETTINGS.iter().map(argument))
}

/// Adds the settings of the flags to the other sources.
pub(crate) fn settings(matches: &ArgMatches, mut sources: Sources) -> Sources {
    if let Some(file) = matches.get_many::<PathBuf>("config").and_then(Iterator::last) {
        sources = sources.config(file);
    }
    for setting in SETTINGS {
        for value in matches.get_many::<String>(setting.flag).into_iter().flatten() {
            sources = sources.flag(setting, value);
        }
    }
    sources
}

pub(crate) fn json_argument() -> Arg {
    let argument = Arg::new("json").long("json").action(ArgAction::SetTrue);
    argument.overrides_with("json").help("Print JSON")
}

/// Returns the flags that select one of several servers.
pub(crate) fn control_arguments() -> [Arg; 2] {
    let listen = Arg::new("server")
        .long("listen")
        .value_name("PORT")
        .conflicts_with("control")
        .overrides_with("server")
        .value_parser(port)
        .help("Port of the server's first address, if several servers run");
    [argument(names::by_flag("control")).help_heading(None), listen]
}

/// Parses a port, alone or in an address: `8080`, `:8080`, `127.0.0.1:8080`.
fn port(text: &str) -> Result<u16, String> {
    let port = text.rsplit_once(':').map_or(text, |(_, port)| port);
    port.parse().map_err(|_| "no port".to_owned())
}

/// Returns the control socket of flag, environment or file; `None`: discover it.
pub(crate) fn control(
    matches: &ArgMatches,
    mut sources: Sources,
) -> Result<Option<PathBuf>, Problems> {
    if let Some(port) = matches.get_one::<u16>("server") {
        return Ok(Some(samovar_config::discover_control_of(*port)?));
    }
    for value in matches.get_many::<String>("control").into_iter().flatten() {
        sources = sources.flag(names::by_flag("control"), value);
    }
    sources.control()
}

/// Help of `--pool` for commands that show one pool.
pub(crate) const ONE_POOL: &str = "Name of the pool, as in samovar status [default: default]";

/// Flag that selects one of several pools.
pub(crate) fn pool_argument(help: &'static str) -> Arg {
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

/// Returns the argument of a setting. clap gets no defaults: they are applied when the sources are
/// merged.
fn argument(setting: &'static Setting) -> Arg {
    let argument = Arg::new(setting.flag)
        .value_name(setting.value)
        .action(if setting.positional { ArgAction::Set } else { ArgAction::Append })
        .help(short_help(setting))
        .long_help(long_help(setting))
        .help_heading((!setting.positional).then(|| setting.group.title()));
    let argument = if setting.bare {
        argument.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        argument
    };
    match setting.short {
        _ if setting.positional => argument,
        Some(short) => argument.long(setting.flag).short(short),
        None => argument.long(setting.flag),
    }
}

fn short_help(setting: &Setting) -> String {
    let default = match setting.default {
        Preset::Text(text) => format!(" [default: {text}]"),
        Preset::Derived(how) if setting.positional => format!(" [default: {}]", plain(how)),
        Preset::Derived(_) => String::new(),
    };
    format!("{}{default}", setting.doc)
}

fn long_help(setting: &Setting) -> String {
    let (Preset::Text(default) | Preset::Derived(default)) = setting.default;
    let sentences = format!("{}. {}", setting.doc, setting.long);
    let takes = setting.kind.allowed();
    let facts = format!("Takes {takes}.\nDefault: {default}");
    let names = format!("Environment: {}. File: {}.", setting.env(), setting.key);
    plain(&format!("{}\n\n{facts}\n{names}", sentences.trim_end()))
}

/// Removes backticks: they are for the manual, and only distract in a terminal.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
