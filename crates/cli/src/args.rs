//! argv → what to do. The flags of `serve` derive from the table of settings.

mod command;
mod help;
#[cfg(test)]
mod tests;
mod wrong;

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
use wrong::{Early, early};

/// What the user asked for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// Run the server.
    Serve {
        /// The settings as they are now.
        settings: Box<Settings>,
        /// To be looked at again by a reload.
        sources: Box<Sources>,
    },
    /// Say whether a server would start.
    Check {
        /// What was typed, resolved by the command itself: it reports the mistakes.
        sources: Box<Sources>,
        /// Answer in JSON.
        json: bool,
    },
    /// Say which rules a path meets.
    Routes {
        /// The rules.
        settings: Box<Settings>,
        /// The path.
        asked: RoutesOptions,
    },
    /// Ask the application as scripts and as it says, and compare.
    Compare(Box<compare::CompareOptions>),
    /// Ask the application, and say what its requests leave behind.
    Leaks(Box<leaks::LeaksOptions>),
    /// Say what PHP processes do, whoever started them.
    Spy(Box<spy::SpyOptions>),
    /// Ask a running server what its workers did.
    Profile(Box<profile::ProfileOptions>),
    /// Say what traced requests of a running server have called.
    Calls(Box<calls::CallsOptions>),
    /// Say what the boot of a running server went to.
    Boot(boot::BootOptions),
    /// Ask a running server how it is.
    Status {
        /// Answer in JSON.
        json: bool,
        /// Its socket, from flag, environment or file; `None`: discover it.
        control: Option<PathBuf>,
    },
    /// Show what a running server does, again and again.
    Top(TopOptions),
    /// Ask a running server to boot the application anew.
    Reload {
        /// Its socket; `None`: discover it.
        control: Option<PathBuf>,
        /// How it is to go about it.
        options: ReloadOptions,
    },
    /// Ask a running server to have another one take its place.
    Upgrade {
        /// Its socket; `None`: discover it.
        control: Option<PathBuf>,
        /// The new one's binary; `None`: as it was started.
        binary: Option<PathBuf>,
    },
    /// Ask a running server to drain and end.
    Stop {
        /// Its socket; `None`: discover it.
        control: Option<PathBuf>,
    },
}

/// What this process was asked for, by command line, environment and file.
pub(crate) fn parse() -> Result<Invocation, Early> {
    let sources = Sources::of_process().map_err(|error| {
        let hint = "start samovar in a folder that exists and that you may read";
        Early::Wrong(format!("samovar: cannot tell the working directory: {error}\nhint: {hint}"))
    })?;
    parse_from(std::env::args_os(), sources)
}

/// Reads `argv`, the program's name included, and resolves it with the other `sources`.
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
                let census = matches.get_one(companion::CENSUS_FLAG);
                companion::become_one(&mut settings, *of, census);
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
