//! Command line → the command to run. The flags of `serve` derive from the table of settings.

mod command;
mod help;
#[cfg(test)]
mod tests;
mod usage_error;

use crate::commands::routes::RoutesOptions;
use crate::top::TopOptions;
use crate::{boot, calls, companion, compare, leaks, profile, spy};
use clap::ArgMatches;
use command::command;
use samovar_config::names;
use samovar_config::table::SETTINGS;
use samovar_config::{Problems, Settings, Sources};
use samovar_wire::ReloadOptions;
use std::ffi::OsString;
use std::path::PathBuf;
use usage_error::{Early, early};

/// Command that the user requested.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// Runs the server.
    Serve {
        /// Current settings.
        settings: Box<Settings>,
        /// Sources of the settings; a reload reads them again.
        sources: Box<Sources>,
    },
    /// Checks whether a server would start.
    Check {
        /// Sources of the settings. The command resolves them itself, so that it can report the
        /// mistakes.
        sources: Box<Sources>,
        /// Whether the output is JSON.
        json: bool,
    },
    /// Shows the rules that apply to a path.
    Routes {
        /// Settings with the rules.
        settings: Box<Settings>,
        /// The path and the options.
        asked: RoutesOptions,
    },
    /// Compares the application as whole scripts and as configured.
    Compare(Box<compare::CompareOptions>),
    /// Sends requests to the application and reports data that they leave in the process.
    Leaks(Box<leaks::LeaksOptions>),
    /// Shows the stacks of PHP processes, of any server.
    Spy(Box<spy::SpyOptions>),
    /// Shows profiles of a running server's workers.
    Profile(Box<profile::ProfileOptions>),
    /// Shows call graphs of a running server's traced requests.
    Calls(Box<calls::CallsOptions>),
    /// Shows the cost of a running server's boot.
    Boot(boot::BootOptions),
    /// Shows the state of a running server.
    Status {
        /// Whether the output is JSON.
        json: bool,
        /// Socket of the server, from flag, environment or file; `None`: discover it.
        control: Option<PathBuf>,
    },
    /// Shows the activity of a running server, repeatedly.
    Top(TopOptions),
    /// Reloads a running server: boots its application again.
    Reload {
        /// Socket of the server; `None`: discover it.
        control: Option<PathBuf>,
        /// Options of the reload.
        options: ReloadOptions,
    },
    /// Replaces a running server by a new process.
    Upgrade {
        /// Socket of the server; `None`: discover it.
        control: Option<PathBuf>,
        /// Binary of the new server; `None`: the path that the running server was started with.
        binary: Option<PathBuf>,
    },
    /// Drains a running server and ends it.
    Stop {
        /// Socket of the server; `None`: discover it.
        control: Option<PathBuf>,
    },
}

/// Parses this process's command line, environment and file.
pub(crate) fn parse() -> Result<Invocation, Early> {
    let sources = Sources::of_process().map_err(|error| {
        let hint = "start samovar in a folder that exists and that you can read";
        Early::Wrong(format!(
            "samovar: cannot determine the working directory: {error}\nhint: {hint}"
        ))
    })?;
    parse_from(std::env::args_os(), sources)
}

/// Parses `argv`, the program's name included, and resolves the settings with the other `sources`.
fn parse_from(
    argv: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    sources: Sources,
) -> Result<Invocation, Early> {
    let matches = command().try_get_matches_from(argv).map_err(early)?;
    match matches.subcommand() {
        Some(("serve", matches)) => {
            let sources = serve_sources(matches, sources);
            let mut settings = Box::new(sources.resolve()?);
            if let Some(of) = matches.get_one(companion::FLAG) {
                let heap_walk = matches.get_one(companion::HEAP_WALK_FLAG);
                companion::become_one(&mut settings, *of, heap_walk);
            }
            Ok(Invocation::Serve { settings, sources: Box::new(sources) })
        }
        Some(("check", matches)) => Ok(Invocation::Check {
            sources: Box::new(serve_sources(matches, sources)),
            json: matches.get_flag("json"),
        }),
        Some(("routes", matches)) => {
            let settings = Box::new(serve_sources(matches, sources).resolve()?);
            let url = matches.get_one::<String>("url").cloned().unwrap_or_default();
            let asked = RoutesOptions { url, json: matches.get_flag("json") };
            Ok(Invocation::Routes { settings, asked })
        }
        Some(("compare", matches)) => {
            let settings = serve_sources(matches, sources).resolve()?;
            let asked = compare::parse(matches, &settings)
                .map_err(|e| Early::Wrong(format!("samovar: {e:#}")))?;
            Ok(Invocation::Compare(Box::new(asked)))
        }
        Some(("leaks", matches)) => {
            let settings = serve_sources(matches, sources).resolve()?;
            let asked = leaks::parse(matches, settings)
                .map_err(|e| Early::Wrong(format!("samovar: {e:#}")))?;
            Ok(Invocation::Leaks(Box::new(asked)))
        }
        Some(("spy", matches)) => {
            let asked = spy::parse(matches).map_err(|e| Early::Wrong(format!("samovar: {e:#}")))?;
            Ok(Invocation::Spy(Box::new(asked)))
        }
        Some(("profile", matches)) => {
            let asked = profile::parse(matches, control(matches, sources)?)
                .map_err(|e| Early::Wrong(format!("samovar: {e:#}")))?;
            Ok(Invocation::Profile(Box::new(asked)))
        }
        Some(("calls", matches)) => {
            let asked = calls::parse(matches, control(matches, sources)?)
                .map_err(|e| Early::Wrong(format!("samovar: {e:#}")))?;
            Ok(Invocation::Calls(Box::new(asked)))
        }
        Some(("boot", matches)) => {
            Ok(Invocation::Boot(boot::parse(matches, control(matches, sources)?)))
        }
        Some(("status", matches)) => Ok(Invocation::Status {
            json: matches.get_flag("json"),
            control: control(matches, sources)?,
        }),
        Some(("top", matches)) => Ok(Invocation::Top(TopOptions {
            json: matches.get_flag("json"),
            every: matches.get_one("every").copied().unwrap_or(command::TOP_EVERY),
            first: matches.get_one("table").copied().unwrap_or_default(),
            control: control(matches, sources)?,
        })),
        Some(("reload", matches)) => Ok(Invocation::Reload {
            options: ReloadOptions {
                force: matches.get_flag("force"),
                probe: matches.get_one::<String>("probe").cloned(),
                pool: matches.get_one::<String>("pool").cloned(),
            },
            control: control(matches, sources)?,
        }),
        Some(("upgrade", matches)) => Ok(Invocation::Upgrade {
            control: control(matches, sources)?,
            binary: matches.get_one("binary").cloned(),
        }),
        Some(("stop", matches)) => Ok(Invocation::Stop { control: control(matches, sources)? }),
        _ => unreachable!("clap refuses other commands"),
    }
}

fn serve_sources(matches: &ArgMatches, mut sources: Sources) -> Sources {
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

fn control(matches: &ArgMatches, mut sources: Sources) -> Result<Option<PathBuf>, Problems> {
    for value in matches.get_many::<String>("control").into_iter().flatten() {
        sources = sources.flag(names::by_flag("control"), value);
    }
    sources.control()
}
