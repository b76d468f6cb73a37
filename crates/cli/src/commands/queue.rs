//! `samovar queue`: lists the queues of the running server, and changes them.

use crate::arguments::{control, control_arguments, json_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{
    DeadJob, QueueAction, QueueQuestion, QueueResponse, QueueStatus, Refused, Request,
};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
Examples:
  samovar queue                    list the queues: waiting, running and dead jobs
  samovar queue show emails        show dead jobs with their errors and payloads
  samovar queue retry emails       run all dead jobs again
  samovar queue retry emails 17    run only this one again
  samovar queue forget emails      remove all dead jobs
  samovar queue drop emails        remove all jobs that wait
  samovar queue pause emails       start no further jobs; pushes are still stored
  samovar queue resume emails      start jobs again

A queue stays paused after a restart. See docs/guide/queues.md.";

const ACTIONS: [(&str, QueueAction); 7] = [
    ("ls", QueueAction::List),
    ("show", QueueAction::Show),
    ("retry", QueueAction::Retry),
    ("forget", QueueAction::Forget),
    ("drop", QueueAction::Drop),
    ("pause", QueueAction::Pause),
    ("resume", QueueAction::Resume),
];

#[derive(Debug)]
struct Queue {
    control: Option<PathBuf>,
    question: QueueQuestion,
    json: bool,
}

fn define() -> Command {
    Command::new("queue")
        .about("Lists the queues of jobs, and changes them")
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
            Arg::new("queue")
                .value_name("QUEUE")
                .required_if_eq_any(ACTIONS[1..].iter().map(|(name, _)| ("action", *name)))
                .help("Name of the queue"),
        )
        .arg(
            Arg::new("id")
                .value_name("ID")
                .num_args(0..)
                .value_parser(value_parser!(i64))
                .help("Numbers of jobs [default: all]"),
        )
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let name = matches.get_one::<String>("action").map_or("ls", String::as_str);
    let action = ACTIONS.iter().find(|(known, _)| *known == name).map(|(_, action)| *action);
    let question = QueueQuestion {
        action: action.unwrap_or_default(),
        queue: matches.get_one::<String>("queue").cloned().unwrap_or_default(),
        ids: matches.get_many::<i64>("id").unwrap_or_default().copied().collect(),
        after: 0,
    };
    let json = matches.get_flag("json");
    Ok(Box::new(Queue { control: control(matches, sources)?, question, json }))
}

impl Run for Queue {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let request = Request::Queue(Box::new(self.question.clone()));
        let line = control_client::ask(&path, &request, control_client::RESPONSE_LIMIT)?;
        if let Ok(refused) = control_client::understand::<Refused>(&line) {
            bail!(printable(&refused.error));
        }
        let response: QueueResponse = control_client::understand(&line)?;
        if let Some(error) = &response.error {
            bail!(printable(error));
        }
        let text = match self.question.action {
            _ if self.json => format!("{}\n", line.trim()),
            QueueAction::List => list(&response.queues),
            QueueAction::Show => show(&response.jobs),
            QueueAction::Pause => format!("{} is paused\n", printable(&self.question.queue)),
            QueueAction::Resume => format!("{} is not paused\n", printable(&self.question.queue)),
            QueueAction::Retry | QueueAction::Forget | QueueAction::Drop => {
                format!("{} jobs\n", response.changed)
            }
        };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn list(queues: &[QueueStatus]) -> String {
    let width = queues.iter().map(|queue| queue.name.len()).max().unwrap_or(0).max("queue".len());
    let mut text = format!(
        "{:width$} {:>8} {:>8} {:>8} {:>8} {:>9} {:>10} {:>8}\n",
        "queue", "ready", "delayed", "running", "dead", "oldest", "done", "failed"
    );
    for queue in queues {
        let oldest = format!("{}.{}s", queue.oldest_ms / 1_000, queue.oldest_ms % 1_000 / 100);
        let paused = if queue.paused { " paused" } else { "" };
        let _ = writeln!(
            text,
            "{:width$} {:>8} {:>8} {:>8} {:>8} {oldest:>9} {:>10} {:>8}{paused}",
            queue.name,
            queue.ready,
            queue.delayed,
            queue.running,
            queue.dead,
            queue.done_total,
            queue.failed_total
        );
    }
    text
}

fn show(jobs: &[DeadJob]) -> String {
    let mut text = String::new();
    for job in jobs {
        let key = job.key.as_ref().map_or_else(String::new, |key| format!(", key {key}"));
        let _ = writeln!(text, "job {}: {} runs{}", job.id, job.attempts, printable(&key));
        for line in job.error.lines() {
            let _ = writeln!(text, "  {}", printable(line));
        }
        let _ = writeln!(text, "  payload {}\n", printable(&job.payload));
    }
    if text.is_empty() { "no dead jobs\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_aligns_columns() {
        let queue = QueueStatus {
            name: "emails".to_owned(),
            ready: 3,
            oldest_ms: 1_250,
            paused: true,
            ..QueueStatus::default()
        };
        let text = list(&[queue]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("queue  "), "{text}");
        assert!(lines[1].starts_with("emails        3"), "{text}");
        assert!(lines[1].contains("1.2s") && lines[1].ends_with("paused"), "{text}");
    }

    #[test]
    fn show_contains_error_and_payload() {
        let job = DeadJob {
            id: 7,
            attempts: 3,
            error: "RuntimeException: no\n#0 {main}".to_owned(),
            payload: "{\"to\":1}".to_owned(),
            ..DeadJob::default()
        };
        assert_eq!(
            show(&[job]),
            "job 7: 3 runs\n  RuntimeException: no\n  #0 {main}\n  payload {\"to\":1}\n\n"
        );
        assert_eq!(show(&[]), "no dead jobs\n");
    }
}
