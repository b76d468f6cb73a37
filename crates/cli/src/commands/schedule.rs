//! `samovar schedule`: lists the schedules of the running server, and runs one now.

use crate::arguments::{control, control_arguments, json_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{
    Refused, Request, ScheduleAction, ScheduleQuestion, ScheduleResponse, ScheduleStatus,
};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
Examples:
  samovar schedule               list the schedules: next run, last run and its result
  samovar schedule show report   show one of them, and the output of its last run
  samovar schedule run report    run it now, in addition to its times

See docs/guide/schedules.md.";

const ACTIONS: [(&str, ScheduleAction); 3] =
    [("ls", ScheduleAction::List), ("show", ScheduleAction::Show), ("run", ScheduleAction::Run)];

#[derive(Debug)]
struct Schedule {
    control: Option<PathBuf>,
    question: ScheduleQuestion,
    json: bool,
}

fn define() -> Command {
    Command::new("schedule")
        .about("Lists the schedules, and runs one of them now")
        .after_help(HELP)
        .args(control_arguments())
        .arg(json_argument())
        .arg(
            Arg::new("action")
                .value_name("ACTION")
                .default_value("ls")
                .value_parser(ACTIONS.map(|(name, _)| name))
                .help("Action"),
        )
        .arg(
            Arg::new("schedule")
                .value_name("SCHEDULE")
                .required_if_eq_any(ACTIONS[1..].iter().map(|(name, _)| ("action", *name)))
                .help("Name of the schedule"),
        )
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let name = matches.get_one::<String>("action").map_or("ls", String::as_str);
    let action = ACTIONS.iter().find(|(known, _)| *known == name).map(|(_, action)| *action);
    let question = ScheduleQuestion {
        action: action.unwrap_or_default(),
        schedule: matches.get_one::<String>("schedule").cloned().unwrap_or_default(),
    };
    let json = matches.get_flag("json");
    Ok(Box::new(Schedule { control: control(matches, sources)?, question, json }))
}

impl Run for Schedule {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let request = Request::Schedule(Box::new(self.question.clone()));
        let line = control_client::ask(&path, &request, control_client::RESPONSE_LIMIT)?;
        if let Ok(refused) = control_client::understand::<Refused>(&line) {
            bail!(printable(&refused.error));
        }
        let response: ScheduleResponse = control_client::understand(&line)?;
        if let Some(error) = &response.error {
            bail!(printable(error));
        }
        let text = match self.question.action {
            _ if self.json => format!("{}\n", line.trim()),
            ScheduleAction::List => list(&response.schedules),
            ScheduleAction::Show => show(&response),
            ScheduleAction::Run => format!("{} is started\n", printable(&self.question.schedule)),
        };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a distance in time with one unit.
fn span(ms: u64) -> String {
    match ms / 1_000 {
        0..1 => format!("{ms}ms"),
        seconds @ 1..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

fn next(of: &ScheduleStatus, now_ms: u64) -> String {
    match of.state.as_str() {
        "waiting" if of.next_ms > 0 => format!("in {}", span(of.next_ms.saturating_sub(now_ms))),
        "waiting" => "never".to_owned(),
        state => state.to_owned(),
    }
}

fn last(of: &ScheduleStatus, now_ms: u64) -> String {
    if of.started_ms == 0 {
        return "-".to_owned();
    }
    format!("{} ago", span(now_ms.saturating_sub(of.started_ms)))
}

/// Returns a table, for this command and `samovar status`.
pub(crate) fn list(schedules: &[ScheduleStatus]) -> String {
    let now_ms = now_ms();
    let longest = |of: fn(&ScheduleStatus) -> &str, min: usize| {
        schedules.iter().map(|one| of(one).chars().count()).max().unwrap_or(0).max(min)
    };
    let (name, times) = (longest(|one| &one.name, 8), longest(|one| &one.times, 5));
    let mut text = format!(
        "{:name$} {:times$} {:>9} {:>9} {:>8}  {}\n",
        "SCHEDULE", "TIMES", "NEXT", "LAST", "TOOK", "RESULT"
    );
    for one in schedules {
        let detail =
            if one.detail.is_empty() { String::new() } else { format!(": {}", one.detail) };
        let took = if one.result.is_empty() { "-".to_owned() } else { span(one.duration_ms) };
        let line = format!(
            "{:name$} {:times$} {:>9} {:>9} {took:>8}  {}{detail}",
            one.name,
            one.times,
            next(one, now_ms),
            last(one, now_ms),
            one.result.replace('_', " ")
        );
        let _ = writeln!(text, "{}", printable(line.trim_end()));
    }
    text
}

fn show(response: &ScheduleResponse) -> String {
    let mut text = String::new();
    for one in &response.schedules {
        text.push_str(&list(std::slice::from_ref(one)));
        let _ = writeln!(text, "\nruns       {}", printable(&one.work));
        if !one.next.is_empty() {
            let _ =
                writeln!(text, "next       {} {}", printable(&one.next), printable(&one.timezone));
        }
        let runs = &one.runs;
        let counts = [
            ("succeeded", runs.succeeded),
            ("failed", runs.failed),
            ("timed out", runs.timed_out),
            ("stopped", runs.stopped),
            ("not started", runs.not_started),
            ("interrupted", runs.interrupted),
            ("skipped", runs.skipped),
        ];
        let counts: Vec<String> = (counts.iter().filter(|(_, count)| *count > 0))
            .map(|(result, count)| format!("{count} {result}"))
            .collect();
        let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        let _ = writeln!(text, "so far     {counts}");
    }
    if !response.output.is_empty() {
        text.push_str("\nlast output:\n");
        for line in response.output.lines() {
            let _ = writeln!(text, "  {}", printable(line));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_and_output_are_shown() {
        let one = ScheduleStatus {
            name: "report".to_owned(),
            times: "30 2 * * *".to_owned(),
            state: "waiting".to_owned(),
            next_ms: now_ms() + 3 * 3_600_000 + 5_000,
            started_ms: now_ms() - 90_000,
            duration_ms: 250,
            result: "timed_out".to_owned(),
            detail: "why".to_owned(),
            ..ScheduleStatus::default()
        };
        let response = ScheduleResponse {
            schedules: vec![one],
            output: "a\n\u{1b}b".to_owned(),
            ..ScheduleResponse::default()
        };
        let text = show(&response);
        let line = text.lines().nth(1).expect("a row");
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = "report 30 2 * * * in 3h 90s ago 250ms timed out: why";
        assert_eq!(words.join(" "), expected);
        assert!(text.ends_with("so far     none\n\nlast output:\n  a\n  \u{fffd}b\n"), "{text}");
    }
}
