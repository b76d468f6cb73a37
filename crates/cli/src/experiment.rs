//! `samovar try`: measures the effect of one change, with the requests of the user, and without
//! touching the running server.
//!
//! | file | content |
//! |---|---|
//! | `experiment/change.rs` | words of the command line → flags of the server with the change |
//! | `experiment/requests.rs` | requests, and the order in which they are sent |
//! | `experiment/round.rs` | one round with two servers |
//! | `experiment/log.rs` | CPU time and route of each request, from a server's log |
//! | `experiment/responses.rs` | comparison of the responses |
//!
//! The statistics are in crates/plan (`experiment`), the servers in `trial`.

mod change;
mod log;
mod requests;
mod responses;
mod round;

use crate::arguments::{json_argument, settings, with_settings};
use crate::control_client::printable;
use crate::plan::verify::allow_argument;
use crate::plan::verify::targets::Requests;
use crate::replay::compare::Mask;
use crate::replay::{mask_argument, masks};
use crate::subcommand::{Prepared, Run, Subcommand};
use crate::trial::progress::Progress;
use crate::trial::{server, targets};
use crate::usage_error::Early;
use anyhow::Result;
use change::Changes;
use clap::{Arg, ArgMatches, Command, value_parser};
use requests::Source;
use round::Rounds;
use samovar_config::{Sources, names};
use samovar_plan::experiment::{Experiment, Found, Outcome};
use samovar_server::{Predecessor, companion, terminal};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Default time limit.
const TIME: Duration = Duration::from_mins(1);
/// Default half of the interval at which the experiment ends, in percent.
const PRECISION: f64 = 1.0;
/// Default maximum number of requests to both servers.
const REQUESTS: u64 = 200_000;
const REQUESTS_MAX: u64 = 100_000_000;
/// Number of rounds in the time limit.
const ROUNDS: u32 = 20;
/// Maximum number of rounds.
const ROUNDS_MAX: usize = 1_000;
/// Minimum number of rounds for a result.
const ROUNDS_MIN: usize = 3;
/// Multiple of the time limit after which the experiment ends without a result.
const PATIENCE: u32 = 10;
/// Length of the measurement of a round.
const MEASURE_MIN: Duration = Duration::from_millis(700);
const MEASURE_MAX: Duration = Duration::from_secs(15);
/// Exit code: the change makes something worse.
const EXIT_WORSE: u8 = 1;
/// Exit code: there is no result.
const EXIT_NO_RESULT: u8 = 2;

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

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

/// Options of the command.
#[derive(Debug)]
struct TryOptions {
    changes: Changes,
    flags_before: Vec<OsString>,
    flags_after: Vec<OsString>,
    /// Whether both servers have the same settings.
    is_same: bool,
    source: Source,
    /// Socket of the running server; `None`: discover it.
    control: Option<PathBuf>,
    allowed: Vec<String>,
    masks: Vec<Mask>,
    time: Duration,
    /// Half of the interval, as a fraction.
    precision: f64,
    requests_max: u64,
    workers: usize,
    json: bool,
}

fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--time <TIME>" => "it takes a time from 1s to 24h, such as `2m`",
        "--precision <PERCENT>" => "it takes a percentage from 0.3 to 100, such as `0.5%`",
        "--max-requests <N>" => "it takes a whole number from 100 to 100000000",
        _ => return None,
    })
}

fn define() -> Command {
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

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
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
    Ok(Box::new(TryOptions {
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
    }))
}

impl Run for TryOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let found = match experiment(self) {
            Ok(found) => found,
            Err(error) => {
                terminal::complain(&format!("samovar: {}", terminal::words(&error)));
                return Ok(ExitCode::from(EXIT_NO_RESULT));
            }
        };
        let text = if self.json {
            samovar_log::printable_json(serde_json::to_string(&found)?) + "\n"
        } else {
            printable(&found.text())
        };
        terminal::print(&text)?;
        Ok(match found.outcome {
            Outcome::NoDifference | Outcome::Better => ExitCode::SUCCESS,
            Outcome::Worse => ExitCode::from(EXIT_WORSE),
            Outcome::TooFewRounds => ExitCode::from(EXIT_NO_RESULT),
        })
    }
}

fn experiment(asked: &TryOptions) -> Result<Found> {
    let begun = Instant::now();
    let requests = requests::collect(&asked.source, asked.control.as_ref(), &asked.allowed)?;
    let mut rounds = Rounds::new(asked, &requests);
    let mut experiment = Experiment::default();
    let mut progress = Progress::new();
    let ended = loop {
        let elapsed = begun.elapsed();
        progress.say(|| state(&experiment, elapsed, asked.time));
        let others = elapsed.saturating_sub(rounds.measured);
        let measured = rounds.run(length(asked.time, others, experiment.rounds()))?;
        experiment.add(&measured);
        if rounds.has_failed() {
            break "failing requests";
        }
        if experiment.is_precise(asked.precision) {
            break "--precision";
        }
        if rounds.sent >= asked.requests_max {
            break "--max-requests";
        }
        let is_enough = experiment.rounds() >= ROUNDS_MIN;
        let elapsed = begun.elapsed();
        // A further round would end after the limit.
        let next = elapsed / u32::try_from(experiment.rounds()).unwrap_or(1);
        let is_late = elapsed + next / 2 >= asked.time && is_enough;
        if is_late || elapsed >= asked.time * PATIENCE || experiment.rounds() >= ROUNDS_MAX {
            break "--time";
        }
    };
    Ok(found(asked, &requests, &rounds, &experiment, ended, begun.elapsed()))
}

/// Returns the length of the next measurement: a share of the time limit, without the time that the
/// rest of a round takes. `others` is that time of all rounds so far.
fn length(limit: Duration, others: Duration, rounds: usize) -> Duration {
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    match others.checked_div(rounds) {
        None => MEASURE_MIN,
        Some(start) => (limit / ROUNDS).saturating_sub(start).clamp(MEASURE_MIN, MEASURE_MAX),
    }
}

fn state(experiment: &Experiment, elapsed: Duration, limit: Duration) -> String {
    let subjects = experiment.subjects();
    let half = subjects.first().and_then(|all| all.cpu_us.difference).map(|found| found.half());
    let so_far = half.map_or(String::new(), |half| format!(", ± {:.1} % so far", 100.0 * half));
    let (round, elapsed) = (experiment.rounds() + 1, elapsed.as_secs());
    format!("round {round}{so_far}, {elapsed} s of at most about {} s", limit.as_secs())
}

fn found(
    asked: &TryOptions,
    requests: &Requests,
    rounds: &Rounds,
    experiment: &Experiment,
    ended: &'static str,
    elapsed: Duration,
) -> Found {
    let (boot_ms, worker_bytes) = experiment.boot_and_memory();
    let mut notes = requests.notes.clone();
    notes.extend(rounds.notes.iter().cloned());
    if asked.is_same {
        notes.push("the settings are the same with the change: it is already made".to_owned());
    }
    if let Some(error) = rounds.responses.error() {
        notes.push(format!("first failure with the change: {error}"));
    }
    Found {
        change: asked.changes.words.join(" "),
        outcome: Outcome::TooFewRounds,
        subjects: experiment.subjects(),
        boot_ms,
        worker_bytes,
        rounds: experiment.rounds(),
        seconds: elapsed.as_secs_f64(),
        ended,
        source: requests.words.clone(),
        left_out: requests.left_out(),
        answers: rounds.responses.answers(|at| rounds.name(at)),
        notes,
    }
    .concluded()
}

#[cfg(test)]
mod tests;
