//! `samovar plan`: the load that machines carry, and the date on which it is reached. Reads
//! history; changes nothing. The model is in crates/plan.

mod calibrate;
mod options;
mod sources;
mod text_file;
pub(crate) mod verify;

use crate::arguments::{control, control_arguments, json_argument};
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use options::PlanOptions;
use samovar_config::Sources;
use samovar_plan::RouteTotal;
use samovar_server::{Predecessor, terminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

/// Returns the routes in the history of a running server (`None`: discover it).
pub(crate) fn routes_of(control: Option<PathBuf>) -> Result<Vec<RouteTotal>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let model =
        samovar_plan::Options { now: i64::try_from(now).unwrap_or(0), ..Default::default() };
    let asked = PlanOptions { control, model, ..PlanOptions::default() };
    let inputs = sources::inputs(&asked)?;
    Ok(inputs.into_iter().next().map(|input| input.history.routes).unwrap_or_default())
}

fn hint(flag: &str) -> Option<&'static str> {
    verify::hint(flag).or_else(|| options::hint(flag))
}

fn define() -> Command {
    options::command()
        .args(control_arguments())
        .arg(json_argument())
        .subcommand(calibrate::command())
        .subcommand(verify::command())
        .args_conflicts_with_subcommands(true)
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    if let Some(("calibrate", matches)) = matches.subcommand() {
        return Ok(Box::new(calibrate::parse(matches)));
    }
    if let Some(("verify", matches)) = matches.subcommand() {
        return Ok(Box::new(verify::parse(matches, control(matches, sources)?)?));
    }
    Ok(Box::new(options::parse(matches, control(matches, sources)?)?))
}

impl Run for PlanOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let inputs = sources::inputs(self)?;
        let plan = samovar_plan::plan(&inputs, &self.model)?;
        if let Some(file) = &self.html {
            std::fs::write(file, samovar_plan::page(&plan)).with_context(|| {
                format!(
                    "cannot write `{}`\nhint: name a file in a folder that exists",
                    file.display()
                )
            })?;
        }
        if let Some(balancer) = self.weights {
            terminal::print(&samovar_plan::weights(&plan, balancer)?)?;
        } else if self.json {
            terminal::print(&(serde_json::to_string(&plan)? + "\n"))?;
        } else {
            terminal::print(&crate::control_client::printable(&samovar_plan::text(&plan)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
