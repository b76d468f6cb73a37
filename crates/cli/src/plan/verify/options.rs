//! Flags of `samovar plan verify`.

use crate::arguments::{control_arguments, json_argument};
use crate::plan::options::{
    PlanOptions, path, percent, percent_from, positive, value, zero_or_more,
};
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_load::{CONNECTIONS_MAX, Url};
use samovar_plan::verify::{Bounds, Goal};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Default goal.
const GOAL: (f64, Duration) = (0.99, Duration::from_millis(250));
/// Default share of errors.
const ERRORS: f64 = 0.001;
/// Default growth from one step to the next.
const GROWTH: f64 = 0.25;
/// Default difference between good and bad rate at which the search ends.
const PRECISION: f64 = 0.05;
/// Default tolerance of the comparison.
const TOLERANCE: f64 = 0.1;
/// Default first rate, as a share of the predicted ceiling.
const START_SHARE: f64 = 0.4;
/// Default first rate without a prediction, requests/s.
const START: f64 = 10.0;
/// Default highest rate, as a multiple of the predicted ceiling.
const MAX_FACTOR: f64 = 3.0;
/// Default highest rate without a prediction, requests/s.
const RATE_MAX: f64 = 5_000.0;
/// Default number of connections.
const CONNECTIONS: u32 = 256;
/// Default length of a step: this, or the goal times a factor if that is longer. In a short step, a
/// queue that grows without end stays within the goal.
const STEP_TIME: Duration = Duration::from_secs(10);
const STEP_GOALS: u32 = 40;
const STEP_TIME_MAX: Duration = Duration::from_mins(2);
/// Default length of the whole measurement.
const TIME_LIMIT: Duration = Duration::from_mins(15);
/// Days to look ahead: the ceiling does not depend on it.
const HORIZON: i64 = 1;

const HELP: &str = "\
Sends requests at growing rates until the goal is missed, and compares the highest good rate with
the ceiling that samovar plan predicts from the history. The server that gets the load should be a
second one: its requests are real. Latency counts from the moment at which a request was due.

Requests are recorded ones (samovar record), with secret values replaced, unless --requests names a
file or `history`. A file has one request in each line: `/path`, `HEAD /path`, or a JSON object with
path, method, weight, headers, body and route. Methods other than GET, HEAD and OPTIONS are left
out unless --allow names them.

Examples:
  samovar plan verify --against http://127.0.0.1:9000
  samovar plan verify --against http://10.0.0.7:8080 --goal p99=100ms --mix history
  samovar plan verify --against http://127.0.0.1:9000 --requests targets.txt --store history.sqlite
  samovar plan verify --against http://staging.example --yes-load staging.example --allow POST

Exit codes: 0 both ceilings agree (--tolerance), or the goal is met at a --max-rate that is as
predicted; 1 no ceiling was found, or an error; 2 wrong flags; 3 they differ; 4 measured, but not
predicted; 130 interrupted. See docs/guide/planning.md.";

/// Source of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Recorded,
    History,
    File(PathBuf),
}

/// Shares of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// As in the source.
    Source,
    /// Of each route as in the history.
    History,
}

/// Options of the command.
#[derive(Debug)]
pub(crate) struct VerifyOptions {
    pub(super) control: Option<PathBuf>,
    pub(super) against: Url,
    pub(super) against_control: Option<PathBuf>,
    pub(super) yes_load: Option<String>,
    pub(super) source: Source,
    pub(super) share: Option<Share>,
    pub(super) allow: Vec<String>,
    pub(super) goal: Goal,
    pub(super) tolerance: f64,
    pub(super) precision: f64,
    pub(super) connections: u32,
    pub(super) step_time: Duration,
    pub(super) time_limit: Duration,
    pub(super) json: bool,
    start: Option<f64>,
    growth: f64,
    rate_max: Option<f64>,
    pub(super) store: Option<PathBuf>,
    csv: Option<PathBuf>,
    cores: Option<f64>,
    threads_per_core: Option<f64>,
    workers: Option<f64>,
    others: Option<f64>,
}

/// Returns the values that a flag takes, by clap's name of the flag.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--against <URL>" => "it takes an address without TLS, such as `http://127.0.0.1:9000`",
        "--goal <pN=TIME>" => "it takes a percentile and a time, such as `p99=250ms`",
        "--errors <PERCENT>" => "it takes a percentage from 0 to 50, such as `0.1%`",
        "--step <PERCENT>" | "--precision <PERCENT>" | "--tolerance <PERCENT>" => {
            "it takes a percentage from 1 to 100, such as `10%`"
        }
        "--step-time <TIME>" | "--time-limit <TIME>" => {
            "it takes a time from 1s to 24h, such as `30s`"
        }
        "--allow <METHODS>" => "it takes methods in capital letters, such as `POST,PUT`",
        "--connections <N>" => "it takes a number from 1 to 20000",
        "--start <RATE>" | "--max-rate <RATE>" => {
            "it takes requests per second from 0.001 to 1000000000, such as `50`"
        }
        _ => return None,
    })
}

/// Returns the command's definition.
pub(crate) fn command() -> Command {
    let number = |name, help| value(name, "N", help).value_parser(positive);
    let rate = |name, help| value(name, "RATE", help).value_parser(positive);
    let share = |name, help| value(name, "PERCENT", help).value_parser(percent);
    let time = |name, help| value(name, "TIME", help).value_parser(span);
    Command::new("verify")
        .about("Measures the highest rate of a server, and compares it with the predicted one")
        .after_help(HELP)
        .args(control_arguments())
        .arg(json_argument())
        .arg(
            value("against", "URL", "Address of the server that gets the load")
                .required(true)
                .value_parser(Url::parse),
        )
        .arg(path(value(
            "against-control",
            "SOCKET",
            "Control socket of that server: shows its CPU use, and allows load on it",
        )))
        .arg(value(
            "yes-load",
            "HOST",
            "Allow load on this host, though it is public or serves the visitors",
        ))
        .arg(value("requests", "SOURCE", "`recorded`, `history` or a file [default: recorded]"))
        .arg(
            value("mix", "SHARES", "Shares of the routes: of the source, or of the history")
                .value_parser(["source", "history"]),
        )
        .arg(allow_argument())
        .arg(
            value("goal", "pN=TIME", "Latency of this share of the requests [default: p99=250ms]")
                .value_parser(goal),
        )
        .arg(
            value("errors", "PERCENT", "Highest share of failed requests [default: 0.1%]")
                .value_parser(errors),
        )
        .arg(share("step", "Growth of the rate from step to step [default: 25%]"))
        .arg(share("precision", "Distance of good and missed rate at the end [default: 5%]"))
        .arg(share("tolerance", "Difference up to which both ceilings agree [default: 10%]"))
        .arg(rate("start", "First rate [default: 40 % of the predicted ceiling, or 10]"))
        .arg(rate("max-rate", "Highest rate [default: 3 × the predicted ceiling, or 5000]"))
        .arg(time(
            "step-time",
            "Length of a step, without its warm-up [default: 40 goals, 10s to 2m]",
        ))
        .arg(time("time-limit", "No step begins after this time [default: 15m]"))
        .arg(
            value("connections", "N", "Maximum number of requests in flight [default: 256]")
                .value_parser(value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX))),
        )
        .arg(
            path(value("store", "FILE", "Predict from this history (insight.store)"))
                .conflicts_with("csv"),
        )
        .arg(path(value("csv", "FILE", "Predict from this history as CSV").requires("cores")))
        .arg(number("cores", "Number of cores of the measured server, for --store and --csv"))
        .arg(number("threads-per-core", "Threads per core [default: 1]").requires("cores"))
        .arg(number("workers", "Maximum number of workers"))
        .arg(
            value("others", "N", "Cores that other processes use [default: as now]")
                .value_parser(zero_or_more),
        )
}

/// Returns the flag `--allow`.
pub(crate) fn allow_argument() -> Arg {
    Arg::new("allow")
        .long("allow")
        .value_name("METHODS")
        .action(ArgAction::Append)
        .value_delimiter(',')
        .value_parser(method)
        .help("Also send requests of these methods, which may change data")
}

/// Converts the flags to options.
pub(crate) fn parse(matches: &ArgMatches, control: Option<PathBuf>) -> Result<VerifyOptions> {
    let number = |name: &str| matches.get_one::<f64>(name).copied();
    let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let time = |name: &str, default| matches.get_one(name).copied().unwrap_or(default);
    let share = |name: &str, default| number(name).map_or(default, |percent| percent / 100.0);
    let Some(against) = matches.get_one::<Url>("against").cloned() else {
        bail!("--against is missing\nhint: it takes an address, such as http://127.0.0.1:9000")
    };
    if against.path != "/" {
        bail!(
            "--against has the path `{}`\nhint: give scheme, host and port only; --requests has \
             the paths",
            samovar_log::printable(&against.path)
        );
    }
    let (start, rate_max) = (number("start"), number("max-rate"));
    if let (Some(start), Some(most)) = (start, rate_max)
        && start > most
    {
        bail!("--start {start} is above --max-rate {most}\nhint: lower --start");
    }
    let source = match matches.get_one::<String>("requests").map(String::as_str) {
        None | Some("recorded") => Source::Recorded,
        Some("history") => Source::History,
        Some(file) => Source::File(file.into()),
    };
    let (quantile, latency) = matches.get_one("goal").copied().unwrap_or(GOAL);
    Ok(VerifyOptions {
        control,
        against,
        against_control: file("against-control"),
        yes_load: matches.get_one::<String>("yes-load").cloned(),
        source,
        share: matches.get_one::<String>("mix").map(|name| match name.as_str() {
            "history" => Share::History,
            _ => Share::Source,
        }),
        allow: matches.get_many("allow").into_iter().flatten().cloned().collect(),
        goal: Goal { quantile, latency: latency.as_secs_f64(), errors: share("errors", ERRORS) },
        tolerance: share("tolerance", TOLERANCE),
        connections: matches.get_one("connections").copied().unwrap_or(CONNECTIONS),
        step_time: time("step-time", (latency * STEP_GOALS).clamp(STEP_TIME, STEP_TIME_MAX)),
        time_limit: time("time-limit", TIME_LIMIT),
        json: matches.get_flag("json"),
        start,
        growth: share("step", GROWTH),
        precision: share("precision", PRECISION),
        rate_max,
        store: file("store"),
        csv: file("csv"),
        cores: number("cores"),
        threads_per_core: number("threads-per-core"),
        workers: number("workers"),
        others: number("others"),
    })
}

impl VerifyOptions {
    /// Relative excess of a rate over the ceiling that a step cannot notice: in its time, the queue
    /// grows to the goal only.
    pub(super) fn unnoticed_excess(&self) -> f64 {
        self.goal.latency / self.step_time.as_secs_f64()
    }

    /// Whether history or requests are those of a running server.
    pub(super) fn needs_server(&self) -> bool {
        (self.store.is_none() && self.csv.is_none()) || self.source == Source::Recorded
    }

    /// Options of the plan that predicts.
    pub(super) fn plan(&self) -> PlanOptions {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let model = samovar_plan::Options {
            horizon: HORIZON,
            now: i64::try_from(now).unwrap_or(0),
            ..samovar_plan::Options::default()
        };
        PlanOptions {
            store: self.store.clone(),
            csv: self.csv.clone(),
            cores: self.cores,
            threads_per_core: self.threads_per_core,
            workers: self.workers,
            others: self.others,
            model,
            ..PlanOptions::default()
        }
    }

    /// Bounds of the search, for a predicted ceiling.
    pub(super) fn bounds(&self, predicted: Option<f64>) -> Bounds {
        let rate_max = self.rate_max.unwrap_or_else(|| {
            predicted.map_or(RATE_MAX, |rate| MAX_FACTOR * rate).max(self.start.unwrap_or(0.0))
        });
        let start = predicted.map_or(START, |rate| START_SHARE * rate);
        Bounds {
            start: self.start.unwrap_or(start).min(rate_max),
            growth: 1.0 + self.growth,
            precision: self.precision,
            rate_max,
        }
    }
}

fn method(text: &str) -> Result<String, String> {
    // Methods are tokens (RFC 9110, 9.1), such as M-SEARCH; no known one has small letters.
    let is_letter = |byte: u8| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    let is_method = !text.is_empty() && text.bytes().all(is_letter);
    if is_method { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn span(text: &str) -> Result<Duration, String> {
    const DAY: Duration = Duration::from_hours(24);
    let range = Duration::from_secs(1)..=DAY;
    samovar_config::duration(text).filter(|time| range.contains(time)).ok_or_else(String::new)
}

fn errors(text: &str) -> Result<f64, String> {
    percent_from(text, 0.0..=50.0)
}

/// Parses `p99=250ms` and `p99.9=1s`.
fn goal(text: &str) -> Result<(f64, Duration), String> {
    let parsed = text.split_once('=').and_then(|(share, time)| {
        let percent: f64 = share.strip_prefix('p')?.parse().ok()?;
        let time = samovar_config::duration(time).filter(|time| !time.is_zero())?;
        (50.0..=99.99).contains(&percent).then_some((percent / 100.0, time))
    });
    parsed.ok_or_else(String::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<VerifyOptions> {
        let words = [&["verify"], words].concat();
        parse(&command().try_get_matches_from(words)?, None)
    }

    const AGAINST: [&str; 2] = ["--against", "http://127.0.0.1:9000"];

    fn with(words: &[&str]) -> Result<VerifyOptions> {
        parsed(&[&AGAINST[..], words].concat())
    }

    #[test]
    fn defaults_follow_the_prediction() {
        let options = with(&[]).expect("defaults");
        assert_eq!(options.source, Source::Recorded);
        assert!((options.goal.latency - 0.25).abs() < 1e-9 && options.allow.is_empty());
        let bounds = options.bounds(Some(100.0));
        assert!((bounds.start - 40.0).abs() < 1e-9 && (bounds.rate_max - 300.0).abs() < 1e-9);
        assert!((options.bounds(None).start - START).abs() < 1e-9);
        // A given first rate is never above the highest.
        let high = with(&["--start", "9000"]).expect("allowed");
        assert!((high.bounds(Some(100.0)).rate_max - 9000.0).abs() < 1e-9);
        let low = with(&["--max-rate", "20"]).expect("allowed").bounds(Some(100.0));
        assert!((low.start - 20.0).abs() < 1e-9 && (low.rate_max - 20.0).abs() < 1e-9);
    }

    #[test]
    fn goals_are_a_percentile_and_a_time() {
        assert_eq!(goal("p99=250ms"), Ok((0.99, Duration::from_millis(250))));
        assert_eq!(goal("p50=2s").map(|goal| goal.1), Ok(Duration::from_secs(2)));
        for wrong in ["", "p99", "99=1s", "p99=0", "p100=1s", "p10=1s", "pNaN=1s", "p99=1"] {
            assert!(goal(wrong).is_err(), "{wrong}");
        }
        let options = with(&["--allow", "POST,M-SEARCH", "--errors", "0"]).expect("allowed");
        assert_eq!(options.allow, ["POST", "M-SEARCH"]);
        assert!(options.goal.errors.abs() < 1e-12);
    }

    #[test]
    fn wrong_flags_are_rejected() {
        for words in [
            &["--goal", "fast"][..],
            &["--errors", "90%"],
            &["--errors", "0.1%%%"],
            &["--tolerance", "10%%"],
            &["--max-rate", "1e-20"],
            &["--step", "0"],
            &["--allow", "post"],
            &["--connections", "0"],
            &["--max-rate", "NaN"],
            &["--start", "20", "--max-rate", "10"],
            &["--step-time", "0"],
        ] {
            assert!(with(words).is_err(), "{words:?}");
        }
        assert!(parsed(&[]).is_err(), "--against is required");
        assert!(parsed(&["--against", "https://127.0.0.1"]).is_err());
        assert!(parsed(&["--against", "http://127.0.0.1/path"]).is_err());
    }
}
