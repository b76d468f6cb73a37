//! `samovar plan verify`: the highest rate that a server carries, measured, compared with the one
//! that the plan predicts.
//!
//! `options` are the flags, `destination` decides which servers may get load and `servers` finds
//! those of this machine, `recorded`, `targets` and `mix` collect the requests, `steps` sends them
//! at growing rates. The search and the judgment
//! of a step are in crates/plan, the client in crates/load.

mod destination;
pub(crate) mod mix;
mod options;
pub(crate) mod recorded;
mod servers;
mod steps;
pub(crate) mod targets;

use self::options::{Share, Source, VerifyOptions};
use super::options::PlanOptions;
use super::sources;
use crate::control_client::{self, printable, understand};
use crate::subcommand::Run;
use anyhow::{Context, Result, anyhow, bail};
use destination::Known;
pub(crate) use options::allow_argument;
pub(super) use options::{command, hint, parse};
use samovar_load::Mix;
use samovar_plan::Input;
use samovar_plan::verify::{Outcome, Prediction, Verification};
use samovar_server::{Predecessor, terminal};
use samovar_wire::{Request, Status};
use servers::{Running, is_same_file};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use targets::Requests;

/// Seed of the drawn requests: two runs send the same.
const SEED: u64 = 1;
/// Exit code: the measured ceiling differs from the predicted one.
const EXIT_DIFFERS: u8 = 3;
/// Exit code: a ceiling was measured, but none is predicted.
const EXIT_NOT_PREDICTED: u8 = 4;
/// Exit code: Ctrl-C, as shells report it.
const EXIT_INTERRUPTED: u8 = 130;

impl Run for VerifyOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let found = servers::find();
        let server = self.server(&found);
        if self.control.is_some() && self.needs_server() {
            // Another running server is no substitute for the one that was named.
            server.as_ref().map_err(|error| anyhow!("{}", terminal::words(error)))?;
        }
        let second = self.second()?;
        let known = self.known(server.as_ref().ok(), found);
        destination::check(&self.against, self.yes_load.as_deref(), &known)?;
        let server = server.map(|one| one.control);
        let control = self.control.clone().or_else(|| server.as_ref().ok().cloned());
        let plan = PlanOptions { control, ..self.plan() };
        let inputs = sources::inputs(&plan);
        let mut requests = self.requests(server, inputs.as_ref())?;
        requests.notes.extend(second.and_then(|one| destination::elsewhere(&one, &self.against)));
        let predicted = inputs.and_then(|inputs| {
            let found = samovar_plan::plan(&inputs, &plan.model)?;
            Prediction::of(&found).context("the plan has no ceiling")
        });
        let (predicted, not_predicted) = match predicted {
            Ok(prediction) => (Some(prediction), String::new()),
            Err(error) => (None, terminal::words(&error)),
        };
        let found = self.measure(&requests, predicted, not_predicted)?;
        let text = if self.json {
            serde_json::to_string(&found)? + "\n"
        } else {
            printable(&found.text())
        };
        terminal::print(&text)?;
        if !self.json {
            for hint in steps::hints(&found) {
                terminal::complain(&format!("hint: {}", printable(hint)));
            }
        }
        Ok(code(found.outcome))
    }
}

impl VerifyOptions {
    /// The server with history and recordings. A given one is protected from load, needed or not.
    fn server(&self, found: &[Running]) -> Result<Running> {
        if self.control.is_none() && !self.needs_server() {
            bail!("no server is asked");
        }
        let second = self.against_control.as_deref().filter(|_| self.control.is_none());
        match second.and_then(|second| servers::only_other(found, second)) {
            Some(path) => running(path),
            None => running(control_client::path(self.control.as_ref())?),
        }
    }

    /// The server that gets the load, if its control socket is given.
    fn second(&self) -> Result<Option<Running>> {
        let asked = |path: &PathBuf| running(path.clone()).context("--against-control");
        self.against_control.as_ref().map(asked).transpose()
    }

    /// All servers of this machine that can be found.
    fn known(&self, server: Option<&Running>, found: Vec<Running>) -> Known<'_> {
        let mut known = Known { second: self.against_control.as_deref(), ..Known::default() };
        known.planned.extend(server.cloned());
        let history = self.store.as_deref();
        let is_planned = |one: &Running| {
            let is_used = |file: &Path| {
                !one.history.as_os_str().is_empty() && is_same_file(&one.history, file)
            };
            server.is_some_and(|server| {
                is_same_file(&server.control, &one.control) || is_used(&server.history)
            }) || history.is_some_and(is_used)
        };
        for one in found {
            if is_planned(&one) { &mut known.planned } else { &mut known.others }.push(one);
        }
        known
    }

    fn requests(
        &self,
        control: Result<PathBuf>,
        inputs: Result<&Vec<Input>, &anyhow::Error>,
    ) -> Result<Requests> {
        let routes = || -> Result<_> {
            let inputs = inputs.map_err(|error| {
                anyhow!("{}", terminal::words(error)).context("no history for the share of routes")
            })?;
            Ok(inputs.first().map(|input| &input.history.routes[..]).unwrap_or_default())
        };
        let mut requests = match &self.source {
            Source::Recorded => recorded::collect(&control?)?,
            Source::History => mix::of_history(routes()?),
            Source::File(path) => targets::read(path)?,
        };
        requests.leave_out_unsafe(&self.allow);
        if self.share == Some(Share::History) && self.source != Source::History {
            mix::weigh(&mut requests, routes()?);
        }
        requests.must_have_targets()?;
        Ok(requests)
    }

    fn measure(
        &self,
        requests: &Requests,
        predicted: Option<Prediction>,
        not_predicted: String,
    ) -> Result<Verification> {
        let mix = Mix::new(&requests.targets(), &self.against.authority, SEED)
            .map_err(|error| anyhow!("cannot send these requests: {error}"))?;
        let bounds = self.bounds(predicted.as_ref().map(|one| one.rate));
        let (steps, measured) = steps::search(self, mix, bounds)?;
        let mut notes = requests.notes.clone();
        let excess = self.unnoticed_excess();
        if excess > self.precision {
            notes.push(format!(
                "the steps are short for this goal: the ceiling can be up to {:.0} % too high",
                100.0 * excess
            ));
        }
        let (other, count) = steps
            .iter()
            .map(|step| (step.measured.other_status, step.measured.responses))
            .fold((0.0, 0.0), |sum, (share, count)| {
                #[allow(clippy::cast_precision_loss)] // Far below 2^52.
                let count = count as f64;
                (sum.0 + share * count, sum.1 + count)
            });
        if other > 0.0 && count > 0.0 {
            let percent = 100.0 * other / count;
            notes.push(format!(
                "{percent:.1} % of the responses have another status than the recorded one"
            ));
        }
        Ok(Verification {
            against: format!("http://{}", self.against.authority),
            goal: self.goal,
            requests: requests.words.clone(),
            left_out: requests.left_out(),
            steps,
            measured,
            predicted,
            not_predicted,
            tolerance: self.tolerance,
            difference: None,
            outcome: Outcome::NotMeasured,
            notes,
        }
        .compared())
    }
}

/// Asks a server for its status.
fn running(control: PathBuf) -> Result<Running> {
    let line = control_client::ask(&control, &Request::Status, control_client::RESPONSE_LIMIT)?;
    let status: Status = understand(&line)?;
    Ok(Running::new(control, &status))
}

fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Agrees => ExitCode::SUCCESS,
        Outcome::NotMeasured => ExitCode::FAILURE,
        Outcome::Differs => ExitCode::from(EXIT_DIFFERS),
        Outcome::NotPredicted => ExitCode::from(EXIT_NOT_PREDICTED),
        Outcome::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
    }
}
