//! `samovar try`: measures the effect of one change, with the requests of the user, and without
//! touching the running server.
//!
//! | file | content |
//! |---|---|
//! | `experiment/change.rs` | words of the command line → flags of the server with the change |
//! | `experiment/options.rs` | flags and words of the command |
//! | `experiment/requests.rs` | requests, and the order in which they are sent |
//! | `experiment/round.rs` | one round with two servers |
//! | `experiment/log.rs` | CPU time and route of each request, from a server's log |
//! | `experiment/responses.rs` | comparison of the responses |
//!
//! The statistics are in crates/plan (`experiment`), the servers in `trial`.

mod change;
mod log;
mod options;
mod requests;
mod responses;
mod round;

use crate::control_client::printable;
use crate::plan::verify::targets::Requests;
use crate::subcommand::{Prepared, Run, Subcommand};
use crate::trial::progress::Progress;
use anyhow::Result;
use clap::ArgMatches;
use options::TryOptions;
use round::Rounds;
use samovar_config::Sources;
use samovar_plan::experiment::{Experiment, Found, Outcome};
use samovar_server::{Predecessor, terminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

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

pub(crate) const SUBCOMMAND: Subcommand =
    Subcommand { define: options::define, prepare, hint: options::hint };

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(options::parse(matches, sources)?))
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
