//! argv → what to do. The flags of `serve` derive from the table of settings.

mod help;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::names;
use samovar_config::table::SETTINGS;
use samovar_config::{Problems, Settings, Sources};

/// What the user asked for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// Run the server.
    Serve {
        /// As they are now.
        settings: Box<Settings>,
        /// To be looked at again by a reload.
        sources: Box<Sources>,
    },
    /// Ask a running server how it is.
    Status {
        /// Answer in JSON.
        json: bool,
        /// Its socket, from flag, environment or file; `None`: discover it.
        control: Option<PathBuf>,
    },
    /// Ask a running server to boot the application anew.
    Reload {
        /// Its socket, as above.
        control: Option<PathBuf>,
    },
    /// Ask a running server to drain and end.
    Stop {
        /// Its socket, as above.
        control: Option<PathBuf>,
    },
}

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
                eprintln!("{text}");
                ExitCode::from(EXIT_USAGE)
            }
        }
    }
}

impl From<Problems> for Early {
    fn from(problems: Problems) -> Early {
        let lines: Vec<_> = problems.iter().map(|problem| format!("samovar: {problem}")).collect();
        Early::Wrong(lines.join("\n"))
    }
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
            let settings = Box::new(sources.resolve()?);
            Ok(Invocation::Serve { settings, sources: Box::new(sources) })
        }
        Some(("status", matches)) => Ok(Invocation::Status {
            json: matches.get_flag("json"),
            control: control(matches, sources)?,
        }),
        Some(("reload", matches)) => Ok(Invocation::Reload { control: control(matches, sources)? }),
        Some(("stop", matches)) => Ok(Invocation::Stop { control: control(matches, sources)? }),
        _ => unreachable!("clap refuses other commands"),
    }
}

fn command() -> Command {
    Command::new("samovar")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An application server for PHP")
        .after_help(help::SAMOVAR)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve())
        .subcommand(
            Command::new("status")
                .about("Says what the running server does")
                .arg(control_argument())
                .arg(
                    Arg::new("json")
                        .long("json")
                        .action(ArgAction::SetTrue)
                        .overrides_with("json")
                        .help("Answer in JSON"),
                ),
        )
        .subcommand(
            Command::new("reload")
                .about(
                    "Boots the application anew; the running one answers until the new one is up",
                )
                .after_help(help::RELOAD)
                .arg(control_argument()),
        )
        .subcommand(
            Command::new("stop")
                .about("Lets the running server finish what it has begun, then ends it")
                .arg(control_argument()),
        )
}

fn serve() -> Command {
    Command::new("serve")
        .about("Serves a PHP application")
        .after_help(help::SERVE_SHORT)
        .after_long_help(help::SERVE)
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

fn control_argument() -> Arg {
    help::argument(names::by_flag("control")).help_heading(None)
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

/// clap's errors in the words of all others: one line that says what is wrong, one hint.
fn early(error: clap::Error) -> Early {
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
        ErrorKind::UnknownArgument if typed.starts_with('-') => {
            (format!("unknown flag `{typed}`"), meant(ContextKind::SuggestedArg))
        }
        ErrorKind::UnknownArgument => (format!("`{typed}` is one argument too many"), None),
        ErrorKind::InvalidSubcommand => {
            let typed = said(ContextKind::InvalidSubcommand).unwrap_or_default();
            (format!("unknown command `{typed}`"), meant(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::InvalidValue => (format!("`{typed}` takes a value"), takes(&typed)),
        _ => (first_line(&error), None),
    };
    let hint =
        hint.unwrap_or_else(|| "samovar --help and samovar serve --help say more".to_owned());
    Early::Wrong(format!("samovar: {message}\nhint: {hint}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const ROOT: &str = env!("CARGO_MANIFEST_DIR");

    fn parse_line(line: &str) -> Result<Invocation, Early> {
        parse_from(line.split_whitespace(), Sources::new(ROOT))
    }

    fn serve_line(line: &str) -> Settings {
        match parse_line(line) {
            Ok(Invocation::Serve { settings, .. }) => *settings,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn wrong(line: &str) -> String {
        match parse_line(line) {
            Err(Early::Wrong(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn help_text(line: &str) -> String {
        match parse_line(line) {
            Err(Early::Help(help)) => help.to_string(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_commands_are_sound() {
        command().debug_assert();
    }

    #[test]
    fn serve_takes_a_path_and_every_setting() {
        let settings = serve_line(
            "samovar serve src -l :80 --listen [::1]:81,a:82 -w 3 -d a=b,c -d x=1 --access-log - \
             --static-files false --idle-timeout 5s --php 8.2",
        );
        assert_eq!(settings.root, Path::new(ROOT).join("src"));
        let listen: Vec<_> = settings.listen.iter().map(ToString::to_string).collect();
        assert_eq!(listen, ["0.0.0.0:80", "[::1]:81", "a:82"]);
        assert_eq!((settings.workers, settings.static_files), (3, false));
        assert_eq!(settings.define["a"], "b,c");
        assert_eq!(settings.define["x"], "1");
        assert_eq!(settings.timeouts.idle.as_secs(), 5);
    }

    #[test]
    fn the_last_of_a_repeated_flag_holds() {
        assert_eq!(serve_line("samovar serve -w 3 --workers 4").workers, 4);
    }

    #[test]
    fn status_reload_and_stop() {
        let check = |line: &str, expected: &str| {
            assert_eq!(format!("{:?}", parse_line(line).unwrap()), expected);
        };
        check("samovar status", "Status { json: false, control: None }");
        check(
            "samovar status --json --json --control /a.sock",
            "Status { json: true, control: Some(\"/a.sock\") }",
        );
        check("samovar reload --control /a", "Reload { control: Some(\"/a\") }");
        check("samovar stop", "Stop { control: None }");
        check("samovar stop --control=/a --control=/b", "Stop { control: Some(\"/b\") }");
        let sources = Sources::new(ROOT).envs([("SAMOVAR_CONTROL", "/c.sock")]);
        let stop = parse_from(["samovar", "stop"], sources).unwrap();
        assert_eq!(format!("{stop:?}"), "Stop { control: Some(\"/c.sock\") }");
    }

    #[test]
    fn wrong_lines() {
        let check = |line: &str, message: &str, hint: &str| {
            assert_eq!(wrong(line), format!("samovar: {message}\nhint: {hint}"), "{line}");
        };
        let more = "samovar --help and samovar serve --help say more";
        check("samovar serve --worker 1", "unknown flag `--worker`", "did you mean `--workers`?");
        check("samovar serve --qqq", "unknown flag `--qqq`", more);
        check("samovar srve", "unknown command `srve`", "did you mean `serve`?");
        check("samovar qqq", "unknown command `qqq`", more);
        check(
            "samovar serve -w",
            "`--workers <N>` takes a value",
            "`--workers` takes `auto` or a whole number from 1 to 256",
        );
        check("samovar serve --config", "`--config <FILE>` takes a value", more);
        check("samovar stop now", "`now` is one argument too many", more);
        check(
            "samovar serve --workers none",
            "`--workers none` is not allowed",
            "`--workers` takes `auto` or a whole number from 1 to 256",
        );
        check(
            "samovar serve nowhere",
            "`nowhere` does not exist",
            "name the folder to serve, or a `.php` file in it that answers",
        );
    }

    #[test]
    fn all_problems_are_told() {
        let text = wrong("samovar serve --workers 0 --log-level loud");
        assert_eq!(text.lines().filter(|line| line.starts_with("samovar: ")).count(), 2, "{text}");
    }

    #[test]
    fn two_paths_are_one_too_many() {
        assert_eq!(
            wrong("samovar serve src tests").lines().next(),
            Some("samovar: `tests` is one argument too many"),
        );
    }

    #[test]
    fn help_names_every_setting() {
        let (short, long) = (help_text("samovar serve -h"), help_text("samovar serve --help"));
        for setting in SETTINGS {
            let flag = if setting.positional {
                format!("[{}]", setting.value)
            } else {
                format!("--{} <{}>", setting.flag, setting.value)
            };
            assert!(short.contains(&flag), "{flag} in -h");
            assert!(long.contains(&flag), "{flag} in --help");
            assert!(long.contains(&setting.env()), "{flag}: the variable in --help");
        }
        assert!(help_text("samovar").contains("Examples:"));
        assert!(help_text("samovar --version").starts_with("samovar "));
    }
}
