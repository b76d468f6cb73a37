//! `samovar queue`: lists the queues of the running server, and changes them.

use crate::arguments::{control, control_arguments, json_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{QueueAction, QueueQuestion, QueueResponse, QueueStatus, Refused, Request};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
Examples:
  samovar queue                      list the queues: waiting, running and dead jobs
  samovar queue show emails          show dead jobs with their errors and payloads
  samovar queue show emails --after 123  show further ones
  samovar queue retry emails         run all dead jobs again
  samovar queue retry emails 17      run only this one again
  samovar queue forget emails        remove all dead jobs
  samovar queue drop emails          remove all jobs that wait
  samovar queue pause emails         start no further jobs; pushes are still stored
  samovar queue resume emails        start jobs again
  samovar queue drain emails         wait until the queue is empty
  samovar queue move emails mails    move all jobs that wait to the queue mails
  samovar queue move emails mails --dead  move all dead jobs; they stay dead

Exit codes: 0 success, 1 no server responds or the command failed, 2 wrong flags, 3 the queue is not
empty within --timeout.

A queue stays paused after a restart. See docs/guide/queues.md.";

/// Maximum wait for a response: the store may sync 1,000 changes to a slow disk.
const RESPONSE_LIMIT: Duration = Duration::from_secs(30);
/// Default of `--limit`.
const SHOWN: usize = 20;
/// Maximum number of numbers of jobs in one request.
const IDS_MAX: usize = 1_000;
/// Pause of `drain` between two requests.
const DRAIN_STEP: Duration = Duration::from_millis(200);
/// Time between two lines about the progress.
const PROGRESS_STEP: Duration = Duration::from_secs(1);
/// Exit status if the queue is not empty in time.
const NOT_EMPTY: u8 = 3;

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// One request, or several until all jobs are changed.
    Ask(QueueAction),
    /// Wait until the queue is empty.
    Drain,
}

const ACTIONS: [(&str, Action); 9] = [
    ("ls", Action::Ask(QueueAction::List)),
    ("show", Action::Ask(QueueAction::Show)),
    ("retry", Action::Ask(QueueAction::Retry)),
    ("forget", Action::Ask(QueueAction::Forget)),
    ("drop", Action::Ask(QueueAction::Drop)),
    ("pause", Action::Ask(QueueAction::Pause)),
    ("resume", Action::Ask(QueueAction::Resume)),
    ("drain", Action::Drain),
    ("move", Action::Ask(QueueAction::Move)),
];

#[derive(Debug)]
struct Queue {
    control: Option<PathBuf>,
    action: Action,
    question: QueueQuestion,
    timeout: Option<Duration>,
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
                .help("Numbers of jobs [default: all]; for `move`, first the other queue"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..=1_000))
                .help(format!("Maximum number of jobs that `show` prints [default: {SHOWN}]")),
        )
        .arg(
            Arg::new("after")
                .long("after")
                .value_name("ID")
                .value_parser(value_parser!(i64))
                .help("Shows jobs with larger numbers"),
        )
        .arg(
            Arg::new("dead")
                .long("dead")
                .action(ArgAction::SetTrue)
                .help("Moves dead jobs; they stay dead"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("TIME")
                .value_parser(timeout)
                .help("Maximum time that `drain` waits [default: no limit]"),
        )
}

fn timeout(text: &str) -> Result<Duration, String> {
    samovar_config::duration(text).ok_or_else(|| "it takes a time, such as 10m".to_owned())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let name = matches.get_one::<String>("action").map_or("ls", String::as_str);
    let known = ACTIONS.iter().find(|(known, _)| *known == name);
    let action = known.map_or(Action::Ask(QueueAction::List), |(_, action)| *action);
    let mut words: Vec<&String> = matches.get_many("id").unwrap_or_default().collect();
    let is_move = action == Action::Ask(QueueAction::Move);
    let to = if is_move && !words.is_empty() { words.remove(0).clone() } else { String::new() };
    let ids = words.iter().map(|word| number(word)).collect::<Result<_>>()?;
    let limit = matches.get_one::<u64>("limit").copied();
    let question = QueueQuestion {
        action: if let Action::Ask(action) = action { action } else { QueueAction::List },
        queue: matches.get_one::<String>("queue").cloned().unwrap_or_default(),
        ids,
        after: matches.get_one("after").copied().unwrap_or(0),
        until: 0,
        limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0),
        to,
        dead: matches.get_flag("dead"),
    };
    check(name, matches, &question)?;
    let (json, control) = (matches.get_flag("json"), control(matches, sources)?);
    let timeout = matches.get_one("timeout").copied();
    Ok(Box::new(Queue { control, action, question, timeout, json }))
}

fn number(word: &str) -> Result<i64> {
    word.parse().ok().with_context(|| {
        let word = printable(word);
        format!("`{word}` is not the number of a job\nhint: `samovar queue show` has them")
    })
}

/// Refuses arguments that the action would ignore.
fn check(name: &str, matches: &ArgMatches, question: &QueueQuestion) -> Result<()> {
    if name == "move" && question.to.is_empty() {
        bail!("`move` needs two queues\nhint: samovar queue move FROM TO");
    }
    let takes_ids = matches!(name, "show" | "retry" | "forget" | "drop" | "move");
    if !takes_ids && !question.ids.is_empty() {
        bail!("`{name}` takes no numbers of jobs\nhint: it is about the whole queue");
    }
    let flags = [("limit", "show"), ("after", "show"), ("timeout", "drain"), ("dead", "move")];
    for (flag, action) in flags {
        if name != action && matches.value_source(flag) == Some(ValueSource::CommandLine) {
            bail!("`{name}` does not take --{flag}\nhint: it is for `samovar queue {action}`");
        }
    }
    Ok(())
}

impl Run for Queue {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        match self.action {
            Action::Drain => return self.drain(&path),
            Action::Ask(
                QueueAction::Retry | QueueAction::Forget | QueueAction::Drop | QueueAction::Move,
            ) => return self.change(&path),
            Action::Ask(_) => {}
        }
        let mut question = self.question.clone();
        if question.action == QueueAction::Show && question.limit == 0 {
            question.limit = SHOWN;
        }
        let (response, line) = ask(&path, &question)?;
        let text = match question.action {
            _ if self.json => format!("{}\n", line.trim()),
            QueueAction::List => list(&response.queues),
            QueueAction::Show => show(&question.queue, &response),
            QueueAction::Pause => format!("{} is paused\n", printable(&question.queue)),
            _ => format!("{} is not paused\n", printable(&question.queue)),
        };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Queue {
    /// Changes jobs in parts, each of which is stored as a whole.
    fn change(&self, path: &Path) -> Result<ExitCode> {
        let mut changed = 0;
        let parts: Vec<&[i64]> = match &self.question.ids[..] {
            [] => vec![&[]],
            ids => ids.chunks(IDS_MAX).collect(),
        };
        for ids in parts {
            let mut question = QueueQuestion { ids: ids.to_vec(), ..self.question.clone() };
            loop {
                let (response, _) = ask(path, &question).with_context(|| match changed {
                    0 => "nothing was changed".to_owned(),
                    _ => format!("stopped after {}", jobs(changed)),
                })?;
                changed += response.changed;
                if response.next <= question.after {
                    break;
                }
                (question.after, question.until) = (response.next, response.until);
            }
        }
        let text = if self.json {
            samovar_wire::line(&QueueResponse { changed, ..QueueResponse::default() })
        } else {
            jobs(changed)
        };
        terminal::print(&format!("{text}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Waits until no job waits or runs.
    fn drain(&self, path: &Path) -> Result<ExitCode> {
        let started = Instant::now();
        let mut told: Option<(Instant, String)> = None;
        loop {
            let (response, _) = ask(path, &self.question)?;
            let name = &self.question.queue;
            let Some(queue) = response.queues.iter().find(|queue| queue.name == *name) else {
                let known: Vec<_> =
                    response.queues.iter().map(|queue| format!("`{}`", queue.name)).collect();
                bail!(
                    "there is no queue `{}`\nhint: the queues are {}",
                    printable(name),
                    printable(&known.join(", "))
                );
            };
            let left = left(queue);
            let is_empty = queue.ready + queue.delayed + queue.running == 0;
            let is_late = self.timeout.is_some_and(|timeout| started.elapsed() >= timeout);
            if is_empty || is_late {
                let text = if self.json {
                    format!("{}\n", samovar_wire::line(queue))
                } else if is_empty {
                    format!("{} is empty\n", printable(name))
                } else {
                    format!("{} is not empty: {left}\n", printable(name))
                };
                terminal::print(&text)?;
                return Ok(if is_empty { ExitCode::SUCCESS } else { ExitCode::from(NOT_EMPTY) });
            }
            if queue.paused {
                bail!(
                    "{name} is paused, so it does not become empty: {left}\nhint: `samovar queue \
                     resume {name}`",
                    name = printable(name)
                );
            }
            let is_news = told
                .as_ref()
                .is_none_or(|(at, text)| at.elapsed() >= PROGRESS_STEP && *text != left);
            if is_news {
                terminal::complain(&format!("{}: {left}", printable(name)));
                told = Some((Instant::now(), left));
            }
            std::thread::sleep(DRAIN_STEP);
        }
    }
}

/// Sends a request. Returns the response, and its line.
fn ask(path: &Path, question: &QueueQuestion) -> Result<(QueueResponse, String)> {
    let request = Request::Queue(Box::new(question.clone()));
    let line = control_client::ask(path, &request, RESPONSE_LIMIT)?;
    if let Ok(refused) = control_client::understand::<Refused>(&line) {
        bail!(printable(&refused.error));
    }
    let response: QueueResponse = control_client::understand(&line)?;
    if let Some(error) = &response.error {
        bail!(printable(error));
    }
    Ok((response, line))
}

/// Returns `1 job`, `2 jobs`.
fn jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

fn left(queue: &QueueStatus) -> String {
    let QueueStatus { ready, delayed, running, .. } = queue;
    format!("{ready} ready, {delayed} delayed, {running} running")
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

fn show(queue: &str, of: &QueueResponse) -> String {
    let mut text = String::new();
    for job in &of.jobs {
        let runs = if job.attempts == 1 { "1 run" } else { &format!("{} runs", job.attempts) };
        let key = job.key.as_ref().map_or_else(String::new, |key| format!(", key {key}"));
        let _ = writeln!(text, "job {}: {runs}{}", job.id, one_line(&key));
        for line in job.error.lines() {
            let _ = writeln!(text, "  {}", one_line(line));
        }
        if !job.traceparent.is_empty() {
            let _ = writeln!(text, "  traceparent {}", one_line(&job.traceparent));
        }
        let _ = writeln!(text, "  payload {}\n", one_line(&job.payload));
    }
    if of.next > 0 {
        let _ = writeln!(
            text,
            "there are more: samovar queue show {} --after {}",
            printable(queue),
            of.next
        );
    }
    if text.is_empty() { "no dead jobs\n".to_owned() } else { text }
}

/// Makes a text of a job safe for a terminal, so that it also cannot add lines.
fn one_line(text: &str) -> String {
    samovar_log::printable(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_wire::DeadJob;

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
        let of = |jobs| QueueResponse { jobs, ..QueueResponse::default() };
        assert_eq!(
            show("emails", &of(vec![job.clone()])),
            "job 7: 3 runs\n  RuntimeException: no\n  #0 {main}\n  payload {\"to\":1}\n\n"
        );
        assert_eq!(show("emails", &of(Vec::new())), "no dead jobs\n");
        let more = show("emails", &QueueResponse { next: 7, ..of(vec![job]) });
        assert!(more.ends_with("there are more: samovar queue show emails --after 7\n"), "{more}");
    }

    #[test]
    fn texts_of_jobs_cannot_write_lines_or_change_the_terminal() {
        let hostile = "a\u{1b}[2J\u{202e}b\njob 9: 1 run".to_owned();
        let job = DeadJob {
            attempts: 1,
            key: Some(hostile.clone()),
            error: hostile.clone(),
            payload: hostile,
            ..DeadJob::default()
        };
        let text = show("emails", &QueueResponse { jobs: vec![job], ..Default::default() });
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("job ")).count(), 1, "{text}");
        assert!(text.starts_with("job 0: 1 run, key "), "{text}");
    }

    #[test]
    fn number_of_jobs_has_a_singular() {
        assert_eq!([jobs(0), jobs(1), jobs(2)], ["0 jobs", "1 job", "2 jobs"]);
    }
}
