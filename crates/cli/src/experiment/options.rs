//! Flags and words of the command.

use super::change::Changes;
use super::requests::Source;
use crate::arguments::{json_argument, settings, with_settings};
use crate::plan::verify::allow_argument;
use crate::replay::compare::Mask;
use crate::replay::{mask_argument, masks};
use crate::trial::{server, targets};
use crate::usage_error::Early;
use clap::{Arg, ArgMatches, Command, value_parser};
use samovar_config::{Sources, names};
use samovar_server::companion;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Default time limit.
const TIME: Duration = Duration::from_mins(1);
/// Default half of the interval at which the experiment ends, in percent.
const PRECISION: f64 = 1.0;
/// Default maximum number of requests to both servers.
const REQUESTS: u64 = 200_000;
const REQUESTS_MAX: u64 = 100_000_000;
const HELP: &str = "\
Shows the effect of one change on your own requests, before you make it. Two private servers on
127.0.0.1 run the application: one with the settings as they are, one with the change. Both get the
same requests in turn. The running server is not touched, but the requests really run, with your
database and files. Methods other than GET, HEAD and OPTIONS are left out unless --allow names them.

A change is a setting of samovar.toml or a directive of php.ini, with its new value. `root=PATH`
tries another release, `php_binary=8.4` another PHP, `config=FILE` another settings file. Several
changes are tried as one. Flags are for both servers.

Without --urls and --requests, the requests are those that the running server has recorded (samovar
record), else the routes of its history.

Each round starts both servers again, in changing order, and sends blocks of requests in the order
A B B A. The result has CPU time and response time per route. Its intervals (Student's, over the
rounds) are right for all routes together with a probability of 99 %. Only a difference whose
interval excludes 0 counts as faster or slower. Responses are compared, except text that also
varies without the change.

Examples:
  samovar try opcache.jit=tracing opcache.jit_buffer_size=64M
  samovar try opcache.preload=preload.php --urls / /about '/search?q=tea'
  samovar try root=../next/public --requests recorded --time 3m
  samovar try checkpoint_after=vendor/autoload.php public/index.php --urls urls.txt --json

Exit codes: 0 not worse, 1 slower, or responses differ, 2 wrong flags or settings, or no result.
See docs/guide/try.md.";

/// Options of the command.
#[derive(Debug)]
pub(super) struct TryOptions {
    pub(super) changes: Changes,
    pub(super) flags_before: Vec<OsString>,
    pub(super) flags_after: Vec<OsString>,
    /// Whether both servers have the same settings.
    pub(super) is_same: bool,
    pub(super) source: Source,
    /// Socket of the running server; `None`: discover it.
    pub(super) control: Option<PathBuf>,
    pub(super) allowed: Vec<String>,
    pub(super) masks: Vec<Mask>,
    pub(super) time: Duration,
    /// Half of the interval, as a fraction.
    pub(super) precision: f64,
    pub(super) requests_max: u64,
    pub(super) workers: usize,
    pub(super) json: bool,
}

/// Returns the values that a flag takes, by clap's name of the flag.
pub(super) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--time <TIME>" => "it takes a time from 1s to 24h, such as `2m`",
        "--precision <PERCENT>" => "it takes a percentage from 0.3 to 100, such as `0.5%`",
        "--max-requests <N>" => "it takes a whole number from 100 to 100000000",
        _ => return None,
    })
}

/// Returns the definition of the command.
pub(super) fn define() -> Command {
    let value = |name: &'static str, kind, help: &'static str| {
        Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
    };
    let command = Command::new("try")
        .about("Measures the gain of a changed setting, on your own requests")
        .after_help(HELP)
        .arg(
            targets::argument()
                .help("Paths that begin with /, http:// addresses, or files with a list of them"),
        )
        .arg(
            value("requests", "SOURCE", "Instead: `recorded`, `history`, or a file of requests")
                .conflicts_with("urls"),
        )
        .arg(allow_argument())
        .arg(mask_argument())
        .arg(value("time", "TIME", "End after about this time [default: 1m]").value_parser(time))
        .arg(
            value("precision", "PERCENT", "End if the intervals are as narrow [default: ±1%]")
                .value_parser(percent),
        )
        .arg(
            value("max-requests", "N", "End after this number of requests [default: 200000]")
                .value_parser(value_parser!(u64).range(100..=REQUESTS_MAX)),
        );
    with_settings(command).arg(json_argument()).mut_arg("root", |root| {
        root.value_name("SETTING=VALUE")
            .num_args(1..)
            .required(true)
            .help("The change; also the folder or .php file to serve, for both servers")
            .long_help("The change; also the folder or .php file to serve, for both servers.")
    })
}

fn time(text: &str) -> Result<Duration, String> {
    const RANGE: std::ops::RangeInclusive<Duration> =
        Duration::from_secs(1)..=Duration::from_hours(24);
    samovar_config::duration(text).filter(|time| RANGE.contains(time)).ok_or_else(String::new)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_start_matches('±').trim_end_matches('%').trim().parse().ok();
    number.filter(|number| (0.3..=100.0).contains(number)).ok_or_else(String::new)
}

/// Converts the flags to options.
pub(super) fn parse(matches: &ArgMatches, sources: Sources) -> Result<TryOptions, Early> {
    let mut matches = matches.clone();
    // The words share the place of the only positional setting.
    let words: Vec<String> = matches.remove_many("root").into_iter().flatten().collect();
    let wrong = |text: String| Early::Wrong(format!("samovar: {text}"));
    let changes = Changes::parse(&words).map_err(wrong)?;
    let flags = server::flags(&matches);
    let (flags_before, flags_after) = (changes.flags_before(&flags), changes.flags(&flags));
    let sources = settings(&matches, sources);
    let control = sources.control()?;
    let before = match &changes.root {
        Some(root) => sources.clone().flag(names::by_flag("root"), root),
        None => sources,
    };
    let mut after = before.clone();
    if let Some(file) = &changes.config {
        after = after.config(file);
    }
    for (flag, value) in &changes.settings {
        after = after.flag(names::by_flag(flag), value);
    }
    for (name, value) in &changes.directives {
        after = after.flag(names::by_flag("php"), format!("{name}={value}"));
    }
    let (mut before, mut after) = (before.resolve()?, after.resolve()?);
    for settings in [&mut before, &mut after] {
        companion::isolate(settings);
    }
    let source = match matches.get_one::<String>("requests").map(String::as_str) {
        Some("recorded") => Source::Recorded,
        Some("history") => Source::History,
        Some(file) => Source::File(file.into()),
        None if matches.contains_id("urls") => Source::Urls(targets::typed(&matches)?),
        None => Source::Any,
    };
    Ok(TryOptions {
        is_same: before == after,
        changes,
        flags_before,
        flags_after,
        source,
        control,
        allowed: matches.get_many("allow").into_iter().flatten().cloned().collect(),
        masks: masks(&matches)?,
        time: matches.get_one("time").copied().unwrap_or(TIME),
        precision: matches.get_one("precision").copied().unwrap_or(PRECISION) / 100.0,
        requests_max: matches.get_one("max-requests").copied().unwrap_or(REQUESTS),
        workers: before.workers.max,
        json: matches.get_flag("json"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_a_percentage() {
        assert_eq!(percent("±0.5%"), Ok(0.5));
        for wrong in ["", "0", "x", "NaN", "200%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
