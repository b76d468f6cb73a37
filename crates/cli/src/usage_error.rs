//! Output for a command line that runs no command: help, and errors.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use samovar_config::table::SETTINGS;
use samovar_config::{Problems, names};
use std::process::ExitCode;

/// The command line runs no command.
#[derive(Debug)]
pub(crate) enum Early {
    /// `--help`, `--version`, or no command at all.
    Help(clap::Error),
    /// The command line is wrong: message and hint, line by line.
    Wrong(String),
}

/// clap's name of the flag that selects one of several servers, and the values that it takes.
const LISTEN: &str = "--listen <PORT>";
const LISTEN_HINT: &str = "it takes a port such as `8080`, or an address with a port";

/// Exit code for wrong flags or settings.
const EXIT_USAGE: u8 = 2;

impl Early {
    /// Prints the text to the right stream.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Early::Help(help) => {
                // A closed pipe (`samovar --help | head -1`) is not an error.
                let _ = help.print();
                if help.use_stderr() { ExitCode::from(EXIT_USAGE) } else { ExitCode::SUCCESS }
            }
            Early::Wrong(text) => {
                samovar_server::terminal::complain(text);
                ExitCode::from(EXIT_USAGE)
            }
        }
    }
}

impl std::fmt::Display for Early {
    /// Writes the text without the program's name, for use within a sentence.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Early::Help(_) => to.write_str("the command line asks for help"),
            Early::Wrong(text) => to.write_str(&text.replace("samovar: ", "")),
        }
    }
}

impl From<anyhow::Error> for Early {
    fn from(error: anyhow::Error) -> Early {
        // Hints follow all causes.
        Early::Wrong(format!("samovar: {}", samovar_server::terminal::words(&error)))
    }
}

impl From<Problems> for Early {
    fn from(problems: Problems) -> Early {
        let lines: Vec<_> = problems.iter().map(|problem| format!("samovar: {problem}")).collect();
        Early::Wrong(lines.join("\n"))
    }
}

/// Converts clap's errors to the form of all others: one line with the error, one hint. `hint`
/// returns the values that a flag takes, by clap's name of the flag.
pub(crate) fn early(error: clap::Error, hint: impl Fn(&str) -> Option<&'static str>) -> Early {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let all = |kind| {
        let texts = match error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        texts.into_iter().map(|text| format!("`{text}`")).collect::<Vec<_>>()
    };
    // The last one of several is the nearest.
    let nearest = |kind| match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.last().cloned(),
        _ => said(kind),
    };
    let meant = |kind| nearest(kind).map(|nearest| format!("did you mean `{nearest}`?"));
    let typed = said(ContextKind::InvalidArg).unwrap_or_default();
    // Commands such as `samovar test` run another command.
    let other = || other_command(&error.to_string());
    let (message, hint) = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return Early::Help(error),
        ErrorKind::UnknownArgument if typed.starts_with('-') => (
            format!("unknown flag `{typed}`"),
            renamed(&typed).or(match (meant(ContextKind::SuggestedArg), other()) {
                (Some(meant), Some(other)) => Some(format!("{meant} Or: {other}")),
                (meant, other) => meant.or(other),
            }),
        ),
        ErrorKind::UnknownArgument => (format!("unexpected argument `{typed}`"), other()),
        ErrorKind::InvalidSubcommand => {
            let typed = said(ContextKind::InvalidSubcommand).unwrap_or_default();
            (format!("unknown command `{typed}`"), meant(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::ValueValidation => {
            let value = said(ContextKind::InvalidValue).unwrap_or_default();
            let hint = hint(&typed).or((typed == LISTEN).then_some(LISTEN_HINT));
            (format!("`{typed}` cannot be `{value}`"), hint.map(str::to_owned))
        }
        ErrorKind::InvalidValue if hint(&typed).is_some() => {
            let value = said(ContextKind::InvalidValue).unwrap_or_default();
            (format!("`{typed}` cannot be `{value}`"), hint(&typed).map(str::to_owned))
        }
        ErrorKind::InvalidValue => (format!("`{typed}` takes a value"), takes(&typed)),
        // Only spy has a required argument with a hint: a process.
        ErrorKind::MissingRequiredArgument if typed.contains("PID") => (
            "no process given".to_owned(),
            Some("pass a PID, or --all for all PHP processes of this machine".to_owned()),
        ),
        ErrorKind::MissingRequiredArgument => {
            let missing = all(ContextKind::InvalidArg);
            let hint = "give it; the command with --help shows an example";
            (format!("missing: {}", missing.join(", ")), Some(hint.to_owned()))
        }
        ErrorKind::ArgumentConflict => {
            let others = all(ContextKind::PriorArg);
            let hint = "leave out one of them";
            let message = format!("`{typed}` cannot be used with {}", others.join(", "));
            (message, Some(hint.to_owned()))
        }
        _ => (first_line(&error), None),
    };
    let hint = hint.unwrap_or_else(|| "see samovar --help and samovar serve --help".to_owned());
    Early::Wrong(format!("samovar: {message}\nhint: {hint}"))
}

/// Returns a hint for a command that runs another command, from clap's text about an error.
fn other_command(text: &str) -> Option<String> {
    let usage = text.split_once("Usage: ")?.1.lines().next()?;
    let name = usage.split(' ').nth(1).filter(|_| usage.contains("[-- "))?;
    Some(format!(
        "another command and its words follow `--`; samovar {name} --help shows an example"
    ))
}

/// Returns a hint with the current name of a renamed flag.
fn renamed(typed: &str) -> Option<String> {
    let today = names::by_former_flag(typed.strip_prefix("--")?)?;
    Some(format!("use the new name `--{}`", today.flag))
}

/// Returns the values that the flag takes; clap names the flag as `--workers <N>`.
fn takes(typed: &str) -> Option<String> {
    let flag = typed.strip_prefix("--")?.split_once(' ')?.0;
    let setting = SETTINGS.iter().find(|setting| setting.flag == flag)?;
    Some(format!("`--{flag}` takes {}", setting.kind.allowed()))
}

fn first_line(error: &clap::Error) -> String {
    let rendered = error.to_string();
    let line = rendered.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}
