//! Flags of `samovar spy`.

use anyhow::{Result, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use samovar_spy::{PEEKS_MAX, Pattern, Peek, Sample};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const HERTZ: u32 = 99;
/// Growth of the heap counts for the stack that is seen next, so samples of it are more frequent.
const HERTZ_OF_MEMORY: u32 = 500;
const HERTZ_MAX: u32 = 1000;
const DURATION: Duration = Duration::from_secs(10);
/// Maximum duration: a day. Longer recordings need several files.
const DURATION_SECONDS_MAX: f64 = 86_400.0;
/// Sampling time for a table that is printed only once.
const PLAIN_TOP: Duration = Duration::from_secs(3);

/// Returns the values that a flag takes, by clap's name of the flag.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "<PID|--all|--match <TEXT>|PROGRAM>" | "[PID]..." => {
            "it takes a process id, as shown by ps"
        }
        "--duration <TIME>" => "it takes a time up to 24h, such as `30s`, `500ms` or `2m`",
        "--hertz <N>" => "it takes a whole number from 1 to 1000",
        "--peek-var <VAR@FUNCTION>" => {
            "it takes a variable and a function, such as `total@App\\Shop::total` or \
             `options.limit@import`"
        }
        "--peek-global <NAME>" => {
            "it takes a global variable or an entry of a global array, such as `tenant` or \
             `server.REQUEST_URI`"
        }
        "--format <FORMAT>" => "it takes svg, pprof, speedscope, collapsed or callgrind",
        _ => return None,
    })
}

const HELP: &str = "\
Reads the stacks of PHP processes from outside: php-fpm, the command line, Apache, FrankenPHP,
Samovar. The processes need no extension, no setting and no restart, and are not stopped.
PHP 8.1 to 8.5.

In a terminal the command shows a table of functions and updates it each second. --stack prints the
current stacks. --format records for --duration and writes a file:
  svg         a flame graph for a browser: click to zoom, search
  pprof       for go tool pprof and compatible tools (gzipped)
  speedscope  JSON for https://www.speedscope.app
  collapsed   lines outer;inner 12, for scripts
  callgrind   for KCachegrind, with lines

--function selects stacks by their functions: `--function curl_exec`, `--function 'App\\Shop::*'`.
--lines splits functions into their executed lines, in tables and flame graphs.

--peek-var and --peek-global show values of variables with each stack: VAR@FUNCTION for variables of
running functions, NAME for global ones, `server.REQUEST_URI` and the like for entries of $_SERVER,
$_GET, $_POST, $_COOKIE, $_ENV, $_FILES, $_REQUEST and $_SESSION. `options.limit@import` is an entry
of an array. Numbers and texts (128 bytes) are shown, of arrays their number of entries, of objects
their class. Values with secret names (insight.redact, and its default words) are not read. In
tables and recordings, each value is a box around the stacks with it.

--memory shows memory instead of time: the bytes by which PHP's heap has grown between two samples
of a request count for the second one's stack. Memory that is freed between two samples is not seen,
unless it makes a new peak. For each allocation, use `samovar calls --memory`.

Time is wall-clock time: a function that waits counts, with the wait on top of its stack.
Processes of another user need root (or CAP_SYS_PTRACE).

Examples:
  samovar spy 4711 --stack            show the stack of a process, and its current wait
  sudo samovar spy --all              show the functions that all PHP processes run
  samovar spy 4711 --duration 30s --format svg -o flames.svg
  samovar spy --match 'php-fpm: pool shop' --function PDO
  samovar spy --all --stack --peek-global server.REQUEST_URI
  samovar spy 4711 --peek-var 'tenant@App\\Shop::*' -o tenants.svg
  samovar spy 4711 --memory -o growth.svg
  samovar spy -o flames.svg -- php import.php     run a program and record it until it ends

Exit codes: 0 done, 1 some or all processes could not be read, 2 wrong flags; that of the program
if one was run and failed.";

/// Options of the command.
#[derive(Debug)]
pub(crate) struct SpyOptions {
    pub(super) whom: SpyTarget,
    pub(super) task: Task,
    pub(super) hertz: u32,
    /// `None`: until the user ends the command.
    pub(super) duration: Option<Duration>,
    pub(super) output: Option<PathBuf>,
    pub(super) json: bool,
    /// Selects stacks by their functions.
    pub(super) function: Option<Pattern>,
    /// Whether each executed line counts as a function.
    pub(super) lines: bool,
    /// Whether growth of the heap is shown instead of time.
    pub(super) memory: bool,
    /// Variables that are shown with each stack.
    pub(super) peeks: Vec<Peek>,
    /// Words of `insight.redact`.
    pub(super) redact: Vec<String>,
}

/// Processes to sample.
#[derive(Debug)]
pub(super) enum SpyTarget {
    These(Vec<u32>),
    /// Processes whose command line contains this text.
    Matching(String),
    /// This program, which is run.
    Child(Vec<OsString>),
    All,
}

/// Mode of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Stacks,
    Top,
    Record(Format),
}

/// Format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Pprof,
    Speedscope,
    Collapsed,
    Callgrind,
}

impl SpyOptions {
    /// Whether the stack has a function that is wanted.
    pub(super) fn wants(&self, sample: &Sample) -> bool {
        self.function.as_ref().is_none_or(|function| function.is_in(&sample.stack))
    }

    /// Returns the duration of a recording.
    pub(super) fn duration_or_default(&self) -> Duration {
        self.duration.unwrap_or(match (&self.whom, self.task) {
            (SpyTarget::Child(_), _) => Duration::from_secs_f64(DURATION_SECONDS_MAX),
            (_, Task::Top) => PLAIN_TOP,
            _ => DURATION,
        })
    }
}

/// Returns the command's definition.
pub(crate) fn command() -> Command {
    Command::new("spy")
        .about(
            "Shows the functions that PHP processes of this machine run: stacks, table, flame \
                graphs",
        )
        .after_help(HELP)
        .arg(
            Arg::new("pid")
                .value_name("PID")
                .num_args(1..)
                .value_parser(value_parser!(u32).range(1..))
                .help("Process ids"),
        )
        .arg(flag("all", "All PHP processes of the machine, including those that start later"))
        .arg(
            value("match", "TEXT", "PHP processes whose command line contains this text")
                .value_parser(NonEmptyStringValueParser::new()),
        )
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .num_args(1..)
                .last(true)
                .value_parser(value_parser!(OsString))
                .help("Program to run and watch, with its arguments"),
        )
        .group(ArgGroup::new("whom").args(["pid", "all", "match", "program"]).required(true))
        .arg(value("function", "NAME", "Only stacks with this function; `*` is any text"))
        .arg(flag("lines", "Split functions into their executed lines").conflicts_with("stack"))
        .arg(flag("memory", "Show growth of PHP's heap instead of time").conflicts_with("stack"))
        .arg(
            repeated(
                "peek-var",
                "VAR@FUNCTION",
                "Show a variable of a running function (repeatable)",
            )
            .value_parser(|text: &str| Peek::variable(text).ok_or_else(String::new)),
        )
        .arg(
            repeated("peek-global", "NAME", "Show a global variable, or server.NAME (repeatable)")
                .value_parser(|text: &str| Peek::global(text).ok_or_else(String::new)),
        )
        .arg(flag("stack", "Print the current stacks and exit").conflicts_with("format"))
        .arg(
            value(
                "format",
                "FORMAT",
                "Record, and write svg, pprof, speedscope, collapsed or callgrind",
            )
            .value_parser(["svg", "pprof", "speedscope", "collapsed", "callgrind"]),
        )
        .arg(
            value(
                "output",
                "FILE",
                "Output file; its extension selects the format [default: standard output]",
            )
            .short('o')
            .value_parser(value_parser!(PathBuf))
            .conflicts_with("stack"),
        )
        .arg(
            value("duration", "TIME", "Duration of the recording, such as 30s [default: 10s]")
                .value_parser(duration)
                .conflicts_with("stack"),
        )
        .arg(
            value("hertz", "N", "Samples per second [default: 99]")
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

fn repeated(name: &'static str, kind: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(kind).action(ArgAction::Append).help(help)
}

/// Parses `30s`, `2m`, `500ms`, or seconds.
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

/// Converts the flags to options.
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
    let program: Vec<OsString> =
        matches.get_many("program").into_iter().flatten().cloned().collect();
    let whom = match matches.get_one::<String>("match") {
        _ if !program.is_empty() => SpyTarget::Child(program),
        Some(text) => SpyTarget::Matching(text.clone()),
        None if matches.get_flag("all") => SpyTarget::All,
        None => SpyTarget::These(pids),
    };
    if matches!((&whom, task), (SpyTarget::Child(_), Task::Stacks)) {
        bail!(
            "--stack shows the current stacks, but the program has not begun\n\
             hint: leave out --stack, or pass --format collapsed -o FILE"
        );
    }
    if matches!((&whom, task, &output), (SpyTarget::Child(_), Task::Record(_), None)) {
        bail!(
            "the recording would be mixed with the output of the program\n\
             hint: pass the name of a file with -o"
        );
    }
    let peeks: Vec<Peek> = ["peek-var", "peek-global"]
        .into_iter()
        .flat_map(|flag| matches.get_many(flag).into_iter().flatten().cloned())
        .collect();
    if peeks.len() > PEEKS_MAX {
        bail!(
            "{} variables were given with --peek-var and --peek-global\n\
             hint: give at most {PEEKS_MAX}",
            peeks.len()
        );
    }
    let memory = matches.get_flag("memory");
    let hertz = if memory { HERTZ_OF_MEMORY } else { HERTZ };
    Ok(SpyOptions {
        whom,
        task,
        hertz: matches.get_one("hertz").copied().unwrap_or(hertz),
        memory,
        peeks,
        redact: Vec::new(),
        duration: matches.get_one("duration").copied(),
        output,
        json: matches.get_flag("json"),
        function: matches.get_one::<String>("function").map(|text| Pattern::new(text)),
        lines: matches.get_flag("lines"),
    })
}

/// Returns the format with this name, which clap has validated.
pub(crate) fn format_named(name: &str) -> Format {
    match name {
        "svg" => Format::Svg,
        "pprof" => Format::Pprof,
        "speedscope" => Format::Speedscope,
        "callgrind" => Format::Callgrind,
        _ => Format::Collapsed,
    }
}

/// Returns the format for the extension of a file's name.
pub(crate) fn format_of_file(file: &std::path::Path) -> Result<Format> {
    let name = file.to_string_lossy().to_lowercase();
    let ends = |end: &str| name.ends_with(end);
    Ok(match () {
        () if ends(".svg") => Format::Svg,
        () if ends(".pb.gz") || ends(".pprof") => Format::Pprof,
        () if ends(".speedscope.json") || ends(".speedscope") => Format::Speedscope,
        () if ends(".callgrind") || name.contains("callgrind.out") => Format::Callgrind,
        () if ends(".collapsed") || ends(".folded") || ends(".txt") => Format::Collapsed,
        () => bail!(
            "cannot infer the format from the file name `{}`\nhint: pass --format svg, pprof, \
             speedscope, collapsed or callgrind; or use the extension .svg, .pb.gz, \
             .speedscope.json, .collapsed or .callgrind",
            file.display()
        ),
    })
}
