//! `samovar canary`: shows the canary of the running server, lets it take over, or ends it.

use crate::arguments::{control, control_arguments, json_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{
    CanaryAction, CanaryBrief, CanaryQuestion, CanaryResponse, CanaryRoute, CanaryState,
    CanaryStatus, Request,
};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

/// Maximum wait for the end of a canary, and the pause between two looks.
const END_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// Share of all requests, ppm.
const ALL: u32 = 1_000_000;

const HELP: &str = "\
Examples:
  samovar reload --canary 5%        boot a canary that serves 5% of the visitors
  samovar canary                    compare it with the serving generation
  samovar canary promote --to 25%   raise its share
  samovar canary promote            let it take over
  samovar canary abort              end it; the serving generation gets all requests

See docs/guide/canary.md.";

const ACTIONS: [(&str, CanaryAction); 3] = [
    ("status", CanaryAction::Status),
    ("promote", CanaryAction::Promote),
    ("abort", CanaryAction::Abort),
];

#[derive(Debug)]
struct Canary {
    control: Option<PathBuf>,
    question: CanaryQuestion,
    json: bool,
}

fn define() -> Command {
    Command::new("canary")
        .about("Shows a canary generation, lets it take over, or ends it")
        .after_help(HELP)
        .args(control_arguments())
        .arg(json_argument())
        .arg(
            Arg::new("action")
                .value_name("ACTION")
                .default_value("status")
                .value_parser(ACTIONS.map(|(name, _)| name))
                .help("Action"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("SHARE")
                .overrides_with("to")
                .value_parser(share)
                .help("With promote: raise the share of the visitors to this one, such as 25%"),
        )
}

fn hint(flag: &str) -> Option<&'static str> {
    (flag == "--to <SHARE>").then_some("it takes a share, such as 25%")
}

/// Reads `5%` or `0.25%`, as ppm.
pub(crate) fn share(text: &str) -> Result<u32, String> {
    let wrong = || "it takes a share, such as 5%".to_owned();
    let number = text.strip_suffix('%').ok_or_else(wrong)?;
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 3
        || rest.len() > 4
        || !is_number(whole)
        || !is_number(rest)
    {
        return Err(wrong());
    }
    let ppm = format!("{whole}{rest:0<4}").parse::<u32>().map_err(|_| wrong())?;
    if (1..=ALL).contains(&ppm) { Ok(ppm) } else { Err(wrong()) }
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let name = matches.get_one::<String>("action").map_or("status", String::as_str);
    let action = ACTIONS.iter().find(|(known, _)| *known == name).map(|(_, action)| *action);
    let to = matches.get_one::<u32>("to").copied().filter(|share| *share < ALL);
    let action = match (action.unwrap_or_default(), to) {
        (CanaryAction::Promote, Some(_)) => CanaryAction::Share,
        (action, _) => action,
    };
    let shares_ppm = to.into_iter().collect();
    let question = CanaryQuestion { action, shares_ppm, ..CanaryQuestion::default() };
    let json = matches.get_flag("json");
    Ok(Box::new(Canary { control: control(matches, sources)?, question, json }))
}

impl Run for Canary {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let (mut line, mut response) = ask(&path, &self.question)?;
        if let Some(why) = &response.error {
            bail!(printable(why));
        }
        let is_end = matches!(self.question.action, CanaryAction::Promote | CanaryAction::Abort);
        let began = Instant::now();
        let goes_on = |response: &CanaryResponse| {
            response.canary.as_ref().is_some_and(|canary| !canary.state.is_final())
        };
        while is_end && goes_on(&response) {
            if began.elapsed() > END_LIMIT {
                bail!("the canary has not ended yet\nhint: see `samovar canary` and the log");
            }
            std::thread::sleep(LOOK);
            (line, response) = ask(&path, &CanaryQuestion::default())?;
        }
        let text = match &response.canary {
            _ if self.json => format!("{}\n", line.trim()),
            None => "no canary has run since the server's start\n".to_owned(),
            Some(canary) if is_end => ended(canary, self.question.action)?,
            Some(canary) => render(canary),
        };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

pub(crate) fn ask(path: &Path, question: &CanaryQuestion) -> Result<(String, CanaryResponse)> {
    let request = Request::Canary(Box::new(question.clone()));
    let line = control_client::ask(path, &request, control_client::RESPONSE_LIMIT)?;
    let response = control_client::understand(&line)?;
    Ok((line, response))
}

fn ended(canary: &CanaryStatus, wanted: CanaryAction) -> Result<String> {
    match (canary.state, wanted) {
        (CanaryState::Promoted, _) => Ok(format!("generation {} serves\n", canary.generation)),
        (_, CanaryAction::Abort) => {
            Ok("the canary has ended, the old generation serves all requests\n".to_owned())
        }
        _ => bail!("the canary was aborted: {}", printable(&canary.reason)),
    }
}

fn percent(ppm: u32) -> String {
    let text = format!("{:.4}", f64::from(ppm) / 10_000.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the line for `samovar status`, too.
pub(crate) fn headline(canary: &CanaryBrief) -> String {
    let pool = if canary.pool.is_empty() {
        String::new()
    } else {
        format!(" of pool {}", printable(&canary.pool))
    };
    let share = match &*canary.state {
        "running" => {
            let by = printable(&canary.by);
            format!("serves {} of the visitors by {by}", percent(canary.share_ppm))
        }
        state => printable(state),
    };
    let release = if canary.release.is_empty() {
        String::new()
    } else {
        format!(" (release {})", printable(&canary.release))
    };
    format!("canary: generation {}{release}{pool} {share}, {} s\n", canary.generation, canary.age_s)
}

fn render(canary: &CanaryStatus) -> String {
    let mut out = headline(&canary.brief());
    // Writing to a string cannot fail.
    let _ = writeln!(out, "root {}", printable(&canary.root.to_string_lossy()));
    if canary.state == CanaryState::Running && !canary.next_ppm.is_empty() {
        let next: Vec<String> = canary.next_ppm.iter().map(|share| percent(*share)).collect();
        let _ = writeln!(out, "next {}, each after {} s at least", next.join(", "), canary.step_s);
    }
    if !canary.reason.is_empty() {
        let _ = writeln!(out, "reason: {}", printable(&canary.reason));
    }
    let [old, new] = canary.requests;
    let _ = writeln!(out, "requests {old} (serving) {new} (canary)");
    if canary.evidence > 0.0 {
        let route = match &*canary.evidence_route {
            "" => "all routes".to_owned(),
            route => printable(route),
        };
        let _ = writeln!(
            out,
            "strongest evidence against it: {:.0} % of that for an abort ({}, {route})",
            100.0 * canary.evidence,
            canary.evidence_figure
        );
    }
    let _ = writeln!(
        out,
        "\n{:32} {:>15} {:>17} {:>17} {:>15} {:>13} {:>13}",
        "ROUTE", "REQUESTS", "CPU ms", "LATENCY ms", "MEMORY MiB", "5xx %", "FATAL %"
    );
    canary.routes.iter().for_each(|route| render_route(route, &mut out));
    for error in &canary.new_errors {
        let _ = writeln!(
            out,
            "\nnew error on {}, {} times:\n{}",
            printable(&error.route),
            error.count[1],
            printable(&error.trace)
        );
    }
    out
}

fn render_route(route: &CanaryRoute, out: &mut String) {
    let name = if route.route.is_empty() { "(all)".to_owned() } else { printable(&route.route) };
    let pair = |[old, new]: [f64; 2], unit: f64, digits: usize| {
        format!("{:.digits$} → {:.digits$}", old / unit, new / unit)
    };
    let [old, new] = route.requests;
    let _ = writeln!(
        out,
        "{name:32} {:>15} {:>17} {:>17} {:>15} {:>13} {:>13}",
        format!("{old} → {new}"),
        pair(route.cpu_ns, 1e6, 2),
        pair(route.latency_ns, 1e6, 2),
        pair(route.memory_bytes, 1_048_576.0, 2),
        pair(route.failure, 0.01, 2),
        pair(route.fatal, 0.01, 2)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_ppm() {
        for (text, expected) in
            [("5%", 50_000), ("0.25%", 2_500), ("100%", ALL), ("0.0001%", 1), ("33.3%", 333_000)]
        {
            assert_eq!(share(text), Ok(expected), "{text}");
            assert_eq!(percent(expected), text);
        }
        for wrong in ["", "%", "5", "0%", "101%", "-1%", "1e2%", "0.00001%", ".5%", "5 %", "1000%"]
        {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
