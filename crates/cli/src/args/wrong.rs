//! What is said instead of doing something: help, and what is wrong with a command line.

use crate::{calls, compare, profile, spy, top};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use samovar_config::table::SETTINGS;
use samovar_config::{Problems, names};
use std::process::ExitCode;

/// Nothing is to be done but to say something.
#[derive(Debug)]
pub(crate) enum Early {
    /// `--help`, `--version`, or no command at all.
    Help(clap::Error),
    /// What was typed is wrong: message and hint, line by line.
    Wrong(String),
}

/// Wrong flags or settings.
const EXIT_USAGE: u8 = 2;

impl Early {
    /// Says it, on the stream where it belongs.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Early::Help(help) => {
                // A closed pipe (`samovar --help | head -1`) is no failure.
                let _ = help.print();
                if help.use_stderr() { ExitCode::from(EXIT_USAGE) } else { ExitCode::SUCCESS }
            }
            Early::Wrong(text) => {
                crate::terminal::complain(text);
                ExitCode::from(EXIT_USAGE)
            }
        }
    }
}

impl std::fmt::Display for Early {
    /// Without the program's name, for whoever says it in a sentence.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Early::Help(_) => to.write_str("it was asked for help"),
            Early::Wrong(text) => to.write_str(&text.replace("samovar: ", "")),
        }
    }
}

impl From<Problems> for Early {
    fn from(problems: Problems) -> Early {
        let lines: Vec<_> = problems.iter().map(|problem| format!("samovar: {problem}")).collect();
        Early::Wrong(lines.join("\n"))
    }
}

/// clap's errors in the words of all others: one line that says what is wrong, one hint.
pub(super) fn early(error: clap::Error) -> Early {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let meant = |kind| said(kind).map(|nearest| format!("did you mean `{nearest}`?"));
    let typed = said(ContextKind::InvalidArg).unwrap_or_default();
    let (message, hint) = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return Early::Help(error),
        ErrorKind::UnknownArgument if typed.starts_with('-') => (
            format!("unknown flag `{typed}`"),
            renamed(&typed).or(meant(ContextKind::SuggestedArg)),
        ),
        ErrorKind::UnknownArgument => (format!("`{typed}` is one argument too many"), None),
        ErrorKind::InvalidSubcommand => {
            let typed = said(ContextKind::InvalidSubcommand).unwrap_or_default();
            (format!("unknown command `{typed}`"), meant(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::ValueValidation => {
            let value = said(ContextKind::InvalidValue).unwrap_or_default();
            let hint = match typed.as_str() {
                compare::TIMES => compare::TIMES_HINT,
                top::EVERY_ARGUMENT => top::EVERY_HINT,
                top::TABLE_ARGUMENT => top::TABLE_HINT,
                flag if spy::hint(flag).is_some() => spy::hint(flag).unwrap_or_default(),
                flag if profile::hint(flag).is_some() => profile::hint(flag).unwrap_or_default(),
                flag if calls::hint(flag).is_some() => calls::hint(flag).unwrap_or_default(),
                _ => "it takes a path with its query, such as `/` or `/health?full=1`",
            };
            (format!("`{typed}` cannot be `{value}`"), Some(hint.to_owned()))
        }
        ErrorKind::InvalidValue if spy::hint(&typed).is_some() => {
            let value = said(ContextKind::InvalidValue).unwrap_or_default();
            (format!("`{typed}` cannot be `{value}`"), spy::hint(&typed).map(str::to_owned))
        }
        ErrorKind::InvalidValue => (format!("`{typed}` takes a value"), takes(&typed)),
        ErrorKind::MissingRequiredArgument if typed.contains("PID") => {
            ("which process?".to_owned(), Some(spy::WHOM_HINT.to_owned()))
        }
        _ => (first_line(&error), None),
    };
    let hint =
        hint.unwrap_or_else(|| "samovar --help and samovar serve --help say more".to_owned());
    Early::Wrong(format!("samovar: {message}\nhint: {hint}"))
}

/// What a flag is called that had another name before.
fn renamed(typed: &str) -> Option<String> {
    let today = names::by_former_flag(typed.strip_prefix("--")?)?;
    Some(format!("it is called `--{}` now", today.flag))
}

/// What the flag takes; clap names it as `--workers <N>`.
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
