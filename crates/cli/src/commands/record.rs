//! `samovar record`: keeps the input of requests of the running server, for `samovar replay`.

use crate::arguments::{control, control_arguments, json_argument};
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand};
use crate::usage_error::Early;
use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{
    RecordAction, RecordQuestion, RecordResponse, RecordedRequest, RecordingStatus, Refused,
    Request,
};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

const HELP: &str = "\
Keeps requests of the running server in its memory, with their responses, for `samovar replay`.
Cookies, credentials and values with secret names (insight.redact) are replaced.

Examples:
  samovar record --count 20                        record the next 20 requests
  samovar record --failed --for 1h                 record requests that fail
  samovar record --path '/cart*' --slow 200ms      record slow requests of these paths
  samovar record                                   list the recorded requests
  samovar record show 3                            show one
  samovar record stop                              end the recording; the requests stay
  samovar record rm                                remove all recorded requests

See docs/guide/record-and-replay.md.";

const ACTIONS: [(&str, RecordAction); 5] = [
    ("ls", RecordAction::List),
    ("start", RecordAction::Start),
    ("stop", RecordAction::Stop),
    ("show", RecordAction::Show),
    ("rm", RecordAction::Remove),
];
/// Flags that start a recording.
const CONDITIONS: [&str; 6] = ["path", "slow", "failed", "count", "for", "with-secrets"];

#[derive(Debug)]
struct Record {
    control: Option<PathBuf>,
    question: RecordQuestion,
    json: bool,
}

fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--slow <TIME>" => "it takes a time, such as `200ms` or `1s`",
        "--for <TIME>" => "it takes a time of 1s or more, such as `10m` or `1h`",
        _ => return None,
    })
}

fn define() -> Command {
    let value = |name: &'static str, kind, help| {
        Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
    };
    let flag =
        |name: &'static str, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("record")
        .about("Keeps requests of the running server, so that they can be run again")
        .after_help(HELP)
        .args(control_arguments())
        .arg(json_argument())
        .arg(
            Arg::new("action")
                .value_name("ACTION")
                .value_parser(ACTIONS.map(|(name, _)| name))
                .help("Action [default: start with a condition, ls without]"),
        )
        .arg(
            Arg::new("id")
                .value_name("ID")
                .value_parser(value_parser!(u64))
                .help("Number of a recorded request"),
        )
        .arg(value("path", "PATTERN", "Record requests of this path; `*` matches any characters"))
        .arg(
            value("slow", "TIME", "Record requests that take at least this time")
                .value_parser(time),
        )
        .arg(flag("failed", "Record requests that fail: status 5xx, or incomplete response"))
        .arg(
            value(
                "count",
                "NUMBER",
                "End the recording after this number of requests [default: 20]",
            )
            .value_parser(value_parser!(usize)),
        )
        .arg(
            value("for", "TIME", "End the recording after this time [default: 10m]")
                .value_parser(span),
        )
        .arg(flag("with-secrets", "Keep cookies, credentials and values with secret names"))
}

fn time(text: &str) -> Result<Duration, String> {
    samovar_config::duration(text).ok_or_else(String::new)
}

fn span(text: &str) -> Result<Duration, String> {
    time(text).ok().filter(|span| span.as_secs() > 0).ok_or_else(String::new)
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let is_given =
        |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
    let condition = CONDITIONS.into_iter().find(|name| is_given(name));
    let name = matches.get_one::<String>("action").map(String::as_str);
    let name = name.unwrap_or(if condition.is_some() { "start" } else { "ls" });
    let action = ACTIONS.iter().find(|(known, _)| *known == name).map(|(_, action)| *action);
    let action = action.unwrap_or_default();
    let id = matches.get_one("id").copied();
    if let Some(condition) = condition.filter(|_| action != RecordAction::Start) {
        return Err(Early::Wrong(format!(
            "samovar: `record {name}` does not take --{condition}\nhint: it is for `samovar record \
             start`"
        )));
    }
    if id.is_some() && !matches!(action, RecordAction::Show | RecordAction::Remove) {
        return Err(Early::Wrong(format!(
            "samovar: `record {name}` takes no ID\nhint: it is for `record show` and `record rm`"
        )));
    }
    if id.is_none() && action == RecordAction::Show {
        return Err(Early::Wrong(
            "samovar: `record show` needs an ID\nhint: `samovar record ls` lists them".to_owned(),
        ));
    }
    let span: Option<&Duration> = matches.get_one("for");
    let slow: Option<&Duration> = matches.get_one("slow");
    let ms = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let question = RecordQuestion {
        action,
        id,
        path: matches.get_one("path").cloned(),
        slow_ms: slow.map(ms),
        failed: matches.get_flag("failed"),
        count: matches.get_one("count").copied().unwrap_or(20),
        seconds: span.map_or(600, Duration::as_secs),
        with_secrets: matches.get_flag("with-secrets"),
    };
    let json = matches.get_flag("json");
    Ok(Box::new(Record { control: control(matches, sources)?, question, json }))
}

impl Run for Record {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let request = Request::Record(Box::new(self.question.clone()));
        let line = control_client::ask(&path, &request, control_client::RESPONSE_LIMIT)?;
        if let Ok(refused) = control_client::understand::<Refused>(&line) {
            bail!(printable(&refused.error));
        }
        let response: RecordResponse = control_client::understand(&line)?;
        if let Some(error) = &response.error {
            bail!(printable(error));
        }
        let text = match self.question.action {
            _ if self.json => format!("{}\n", line.trim()),
            RecordAction::List => list(&response),
            RecordAction::Start => response.recording.as_ref().map_or_else(String::new, recording),
            RecordAction::Stop => "the recording has ended\n".to_owned(),
            RecordAction::Show => response.requests.first().map_or_else(String::new, show),
            RecordAction::Remove => format!("removed: {}\n", response.removed),
        };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Decodes bytes of a response of the server; invalid ones are empty.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

/// Makes a text of a request safe for a terminal, so that it also cannot add lines.
fn one_line(text: &str) -> String {
    samovar_log::printable(text).into_owned()
}

fn recording(of: &RecordingStatus) -> String {
    let mut conditions = Vec::new();
    if let Some(ms) = of.slow_ms {
        conditions.push(format!("slow (from {ms} ms)"));
    }
    if of.failed {
        conditions.push("failed".to_owned());
    }
    let conditions = if conditions.is_empty() { "all".to_owned() } else { conditions.join(" or ") };
    let path = of.path.as_ref().map_or_else(String::new, |path| format!(" of {path}"));
    let secrets = if of.with_secrets { ", with secret values" } else { "" };
    format!(
        "recording: {conditions} requests{}, {} more, {} s left{secrets}\n",
        one_line(&path),
        of.left,
        of.seconds
    )
}

fn list(response: &RecordResponse) -> String {
    let mut text = response.recording.as_ref().map_or_else(String::new, recording);
    if response.missed > 0 {
        let _ = writeln!(
            text,
            "not kept: {} requests, because too many were held or a head was too long",
            response.missed
        );
    }
    if response.requests.is_empty() {
        text.push_str("no recorded requests\n");
        return text;
    }
    let _ = writeln!(text, "{:>5} {:>6} {:>10} {:>9}  request", "id", "status", "time", "bytes");
    for one in &response.requests {
        let RecordedRequest { id, status, milliseconds, response_bytes, .. } = one;
        let cut = if one.is_cut { " (body cut)" } else { "" };
        let left = if one.has_client_left { " (client left)" } else { "" };
        let pool = if one.pool.is_empty() { String::new() } else { format!("{}: ", one.pool) };
        let request = one_line(&format!("{pool}{} {}", one.method, one.target));
        let _ = writeln!(
            text,
            "{id:>5} {status:>6} {milliseconds:>7.1} ms {response_bytes:>9}  {request}{cut}{left}"
        );
    }
    text
}

fn show(one: &RecordedRequest) -> String {
    let mut text = format!("{} {}\n", one_line(&one.method), one_line(&one.target));
    let details = one.details.clone().unwrap_or_default();
    for (name, value) in &details.headers {
        let _ = writeln!(text, "{}: {}", one_line(name), one_line(value));
    }
    let body = match (one.is_cut, one.body_bytes) {
        (true, bytes) => format!("body: {bytes} bytes, too long to be kept"),
        (false, 0) => "body: none".to_owned(),
        (false, bytes) => format!("body: {bytes} bytes"),
    };
    let _ = writeln!(text, "\n{body}");
    if !details.body.is_empty() {
        let _ = writeln!(text, "{}", printable(&String::from_utf8_lossy(&decoded(&details.body))));
    }
    if !one.redacted.is_empty() {
        let _ = writeln!(text, "replaced: {}", one_line(&one.redacted.join(", ")));
    }
    let response = &details.response;
    let _ = writeln!(
        text,
        "\nresponse: status {}, {} bytes, {:.1} ms{}",
        one.status,
        one.response_bytes,
        one.milliseconds,
        match (response.is_complete, one.has_client_left) {
            (true, false) => "",
            (false, false) => ", incomplete",
            (_, true) => ", the client left before its end",
        }
    );
    text.push_str(&printable(&String::from_utf8_lossy(&decoded(&response.head))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_shows_recording_and_requests() {
        let request = RecordedRequest {
            id: 3,
            status: 500,
            milliseconds: 12.34,
            method: "POST".to_owned(),
            target: "/a\u{1b}[2J".to_owned(),
            is_cut: true,
            has_client_left: true,
            ..RecordedRequest::default()
        };
        let recording = RecordingStatus {
            slow_ms: Some(200),
            failed: true,
            left: 7,
            seconds: 60,
            ..RecordingStatus::default()
        };
        let response = RecordResponse {
            recording: Some(recording),
            requests: vec![request],
            missed: 5,
            ..RecordResponse::default()
        };
        let text = list(&response);
        assert!(text.contains("\nnot kept: 5 requests"), "{text}");
        assert!(text.starts_with("recording: slow (from 200 ms) or failed requests, 7 more, 60 s"));
        assert!(text.contains("    3    500    12.3 ms         0  POST /a"), "{text}");
        assert!(text.ends_with("(body cut) (client left)\n") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(list(&RecordResponse::default()), "no recorded requests\n");
    }
}
