//! The flags of `samovar spy`.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::time::Duration;

const HERTZ: u32 = 99;
const HERTZ_MAX: u32 = 1000;
const DURATION: Duration = Duration::from_secs(10);
/// A day: who wants more wants a file for each.
const DURATION_SECONDS_MAX: f64 = 86_400.0;
/// How long a table is sampled for that nobody watches.
const PLAIN_TOP: Duration = Duration::from_secs(3);

/// What is said to somebody who names no process.
pub(crate) const WHOM_HINT: &str =
    "samovar spy PID, or samovar spy --all for those of this machine";

/// What a flag takes, by the name that clap has for it.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "<PID|--all>" | "[PID]..." => "it takes the number of a process, as ps shows it",
        "--duration <TIME>" => "it takes a time up to 24h, such as `30s`, `500ms` or `2m`",
        "--hertz <N>" => "it takes a whole number from 1 to 1000",
        "--format <FORMAT>" => "it takes svg, pprof, speedscope or collapsed",
        _ => return None,
    })
}

const HELP: &str = "\
Reads PHP processes of any kind from outside: php-fpm, the command line, Apache, FrankenPHP, Samovar.
They need no extension, no setting and no restart, and notice nothing. PHP 8.1 to 8.5.

In a terminal it shows a table of functions, drawn again each second; --stack prints the stacks of
this moment; --format records for --duration and writes what others read:
  svg         a flame graph for a browser: click to zoom, search
  pprof       for go tool pprof and what speaks its language (gzipped)
  speedscope  JSON for https://www.speedscope.app
  collapsed   lines outer;inner 12, for scripts

Time is the wall clock's: a function that waits counts, with what it waits for on top of it.
Another user's processes need root (or CAP_SYS_PTRACE).

Examples:
  samovar spy 4711 --stack            what is this process doing, and what does it wait for?
  sudo samovar spy --all              which functions does this machine spend its time in?
  samovar spy 4711 --duration 30s --format svg -o flames.svg

Exit codes: 0 done, 1 some or all processes could not be read, 2 wrong flags.";

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct SpyOptions {
    pub(super) whom: Whom,
    pub(super) task: Task,
    pub(super) hertz: u32,
    /// `None`: as long as somebody watches.
    pub(super) duration: Option<Duration>,
    pub(super) output: Option<PathBuf>,
    pub(super) json: bool,
}

/// Whose stacks.
#[derive(Debug)]
pub(super) enum Whom {
    These(Vec<u32>),
    All,
}

/// What is done with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Stacks,
    Top,
    Record(Format),
}

/// What a recording is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Pprof,
    Speedscope,
    Collapsed,
}

impl SpyOptions {
    /// How long a recording takes.
    pub(super) fn duration_or_default(&self) -> Duration {
        self.duration.unwrap_or(if self.task == Task::Top { PLAIN_TOP } else { DURATION })
    }
}

/// The command.
pub(crate) fn command() -> Command {
    Command::new("spy")
        .about("Says what any PHP process of this machine does: stacks, top, flame graphs")
        .after_help(HELP)
        .arg(
            Arg::new("pid")
                .value_name("PID")
                .num_args(1..)
                .value_parser(value_parser!(u32).range(1..))
                .help("The processes to look at"),
        )
        .arg(flag("all", "All PHP processes of the machine, those that come later, too"))
        .group(ArgGroup::new("whom").args(["pid", "all"]).required(true))
        .arg(flag("stack", "Print the stacks of this moment, and end").conflicts_with("format"))
        .arg(
            value("format", "FORMAT", "Record, and write svg, pprof, speedscope or collapsed")
                .value_parser(["svg", "pprof", "speedscope", "collapsed"]),
        )
        .arg(
            value(
                "output",
                "FILE",
                "Where to; standard output otherwise. Its end tells the format",
            )
            .short('o')
            .value_parser(value_parser!(PathBuf))
            .conflicts_with("stack"),
        )
        .arg(
            value("duration", "TIME", "How long to look, as in 30s [default: 10s]")
                .value_parser(duration)
                .conflicts_with("stack"),
        )
        .arg(
            value("hertz", "N", "How often a second [default: 99]")
                .value_parser(value_parser!(u32).range(1..=i64::from(HERTZ_MAX)))
                .conflicts_with("stack"),
        )
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(name).help(help)
}

fn value(name: &'static str, kind: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
}

/// `30s`, `2m`, `500ms`, or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = number.parse::<f64>().unwrap_or(f64::NAN) * factor;
    let is_right = seconds > 0.0 && seconds <= DURATION_SECONDS_MAX;
    is_right.then(|| Duration::from_secs_f64(seconds)).ok_or_else(String::new)
}

/// What flags mean together.
pub(crate) fn parse(matches: &ArgMatches) -> Result<SpyOptions> {
    let pids: Vec<u32> = matches.get_many("pid").into_iter().flatten().copied().collect();
    let output: Option<PathBuf> = matches.get_one("output").cloned();
    let format = match (matches.get_one::<String>("format"), &output) {
        (Some(name), _) => Some(format_named(name)),
        (None, Some(file)) => Some(format_of_file(file)?),
        (None, None) => None,
    };
    let task = match format {
        _ if matches.get_flag("stack") => Task::Stacks,
        Some(format) => Task::Record(format),
        None => Task::Top,
    };
    Ok(SpyOptions {
        whom: if matches.get_flag("all") { Whom::All } else { Whom::These(pids) },
        task,
        hertz: matches.get_one("hertz").copied().unwrap_or(HERTZ),
        duration: matches.get_one("duration").copied(),
        output,
        json: matches.get_flag("json"),
    })
}

/// The format of that name, which clap has checked.
pub(crate) fn format_named(name: &str) -> Format {
    match name {
        "svg" => Format::Svg,
        "pprof" => Format::Pprof,
        "speedscope" => Format::Speedscope,
        _ => Format::Collapsed,
    }
}

/// The format that the end of a file's name tells.
pub(crate) fn format_of_file(file: &std::path::Path) -> Result<Format> {
    let name = file.to_string_lossy().to_lowercase();
    let ends = |end: &str| name.ends_with(end);
    Ok(match () {
        () if ends(".svg") => Format::Svg,
        () if ends(".pb.gz") || ends(".pprof") => Format::Pprof,
        () if ends(".speedscope.json") || ends(".speedscope") => Format::Speedscope,
        () if ends(".collapsed") || ends(".folded") || ends(".txt") => Format::Collapsed,
        () => bail!(
            "cannot tell the format of `{}` by its name\n\
             hint: say --format svg, pprof, speedscope or collapsed; or end the name with .svg, .pb.gz, \
             .speedscope.json or .collapsed",
            file.display()
        ),
    })
}
