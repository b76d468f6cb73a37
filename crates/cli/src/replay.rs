//! `samovar replay`: runs a recorded request of a running server again, and compares the responses.
//!
//! Queries the control socket. `compare.rs` compares the responses, `costs.rs` formats the call
//! graph or the profile.

pub(crate) mod compare;
mod costs;

use crate::arguments::{control, control_arguments, json_argument};
use crate::commands::record::decoded;
use crate::control_client::{self, printable};
use crate::subcommand::{Prepared, Run, Subcommand};
use crate::usage_error::Early;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use compare::{Compared, Mask};
use costs::Costs;
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{Refused, ReplayNetwork, ReplayQuestion, ReplayResponse, Request};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

/// Exit code of a replay with another response.
const DIFFERS: u8 = 1;
/// Timeout for the response: a debugger may stop the script.
const RESPONSE_LIMIT: Duration = Duration::from_hours(25);

const HELP: &str = "\
Runs a recorded request again: in a process that serves no other request, forked from the image of
the running application. Compares the response with the recorded one.
Writes to sockets, connections and new processes are refused, unless the method is GET, HEAD or
OPTIONS. Files and shared memory are written as in any request.

Examples:
  samovar replay 3                                    run it, and compare
  samovar replay 3 --mask 'name=\"csrf\" value=\"*\"'     ignore a value that differs each time
  samovar replay 3 --network allow                    with connections to databases
  samovar replay 3 --trace                            show the functions that it calls
  samovar replay 3 --trace -o cart.callgrind          a file for KCachegrind
  samovar replay 3 --profile                          show the functions that take its time
  samovar replay 3 --profile -o cart.svg              a flame graph
  samovar replay 3 --xdebug                           connect Xdebug to an IDE at port 9003
  samovar replay 3 --body -                           print the body of the response

Exit codes: 0 same response, 1 another response or an error, 2 wrong flags.
See docs/guide/record-and-replay.md.";

#[derive(Debug)]
struct Replay {
    control: Option<PathBuf>,
    question: ReplayQuestion,
    masks: Vec<Mask>,
    body: Option<PathBuf>,
    output: Option<PathBuf>,
    json: bool,
}

fn hint(flag: &str) -> Option<&'static str> {
    (flag == "--xdebug[=<HOST:PORT>]").then_some("it takes an address, such as `127.0.0.1:9003`")
}

fn define() -> Command {
    let value = |name: &'static str, kind, help| {
        Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
    };
    Command::new("replay")
        .about("Runs a recorded request again, with the same input, and compares the responses")
        .after_help(HELP)
        .args(control_arguments())
        .arg(json_argument())
        .arg(
            Arg::new("id")
                .value_name("ID")
                .required(true)
                .value_parser(value_parser!(u64))
                .help("Number of the recorded request"),
        )
        .arg(
            value("network", "WHICH", "Allow or refuse writes to sockets [default: by the method]")
                .value_parser(["allow", "refuse"]),
        )
        .arg(
            Arg::new("trace")
                .long("trace")
                .action(ArgAction::SetTrue)
                .help("Show the functions that the request calls"),
        )
        .arg(
            Arg::new("profile")
                .long("profile")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["trace", "xdebug"])
                .help("Show the functions that take its time, from samples of 1 ms"),
        )
        .arg(
            Arg::new("xdebug")
                .long("xdebug")
                .value_name("HOST:PORT")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("127.0.0.1:9003")
                .conflicts_with("trace")
                .help("Start Xdebug's step debugger [default address: 127.0.0.1:9003]"),
        )
        .arg(mask_argument())
        .arg(
            value("body", "FILE", "Write the body of the new response to a file; - is the output")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            value(
                "output",
                "FILE",
                "Write the call graph or the profile to a file; its extension selects the format",
            )
            .short('o')
            .value_parser(value_parser!(PathBuf)),
        )
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let network = match matches.get_one::<String>("network").map(String::as_str) {
        Some("allow") => ReplayNetwork::Allow,
        Some(_) => ReplayNetwork::Refuse,
        None => ReplayNetwork::Auto,
    };
    let question = ReplayQuestion {
        id: matches.get_one("id").copied().unwrap_or(0),
        network,
        trace: matches.get_flag("trace"),
        profile: matches.get_flag("profile"),
        xdebug: matches.get_one("xdebug").cloned(),
    };
    if question.xdebug.is_some() && network == ReplayNetwork::Refuse {
        return Err(Early::Wrong(
            "samovar: a debugger needs network traffic\nhint: drop `--network refuse`".to_owned(),
        ));
    }
    if matches.contains_id("output") && !question.trace && !question.profile {
        return Err(Early::Wrong(
            "samovar: --output needs --trace or --profile\nhint: --body FILE writes the response"
                .to_owned(),
        ));
    }
    Ok(Box::new(Replay {
        control: control(matches, sources)?,
        question,
        masks: masks(matches)?,
        body: matches.get_one("body").cloned(),
        output: matches.get_one("output").cloned(),
        json: matches.get_flag("json"),
    }))
}

/// Returns the flag `--mask`.
pub(crate) fn mask_argument() -> Arg {
    Arg::new("mask")
        .long("mask")
        .value_name("PATTERN")
        .action(ArgAction::Append)
        .help("Ignore this text in both responses; `*` matches characters of one line")
}

/// Returns the masks of the flag.
pub(crate) fn masks(matches: &ArgMatches) -> Result<Vec<Mask>, Early> {
    let masks = matches.get_many::<String>("mask").into_iter().flatten();
    let masks = masks.map(|text| {
        Mask::new(text).ok_or_else(|| {
            Early::Wrong(format!(
                "samovar: the mask `{}` matches everything or nothing\nhint: a mask needs some \
                 text apart from `*`, and no line end",
                printable(text)
            ))
        })
    });
    masks.collect()
}

impl Run for Replay {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        if let Some(address) = &self.question.xdebug
            && !self.json
        {
            terminal::complain(&format!(
                "samovar: the debugger connects to {}; waiting for the end of the request",
                printable(address)
            ));
        }
        let request = Request::Replay(Box::new(self.question.clone()));
        let line = control_client::ask(&path, &request, RESPONSE_LIMIT)?;
        if let Ok(refused) = control_client::understand::<Refused>(&line) {
            bail!(printable(&refused.error));
        }
        let response: ReplayResponse = control_client::understand(&line)?;
        if let Some(error) = &response.error {
            bail!(printable(error));
        }
        let compared = Compared::of(&response, &self.masks);
        let body = decoded(&response.response.body);
        match self.body.as_deref().map(Path::to_str) {
            Some(Some("-")) => print_body(&body)?,
            Some(_) => write(self.body.as_deref(), &body)?,
            None => {}
        }
        if self.body.is_some() && response.response.bytes > body.len() as u64 {
            terminal::complain(&format!(
                "samovar: only the first {} of {} bytes of the body are kept",
                body.len(),
                response.response.bytes
            ));
        }
        let costs = self.costs(&response)?;
        if let (Some(file), Some(costs)) = (&self.output, &costs) {
            write(Some(file), &costs.exported(file, &response.recorded.target)?)?;
        }
        if self.json {
            let mut all = serde_json::to_value(&response)?;
            all["same"] = compared.is_same().into();
            all["differences"] = compared.lines().into();
            terminal::print(&format!("{}\n", samovar_log::printable_json(all.to_string())))?;
        } else if self.body.as_deref() != Some(Path::new("-")) {
            let costs = costs.filter(|_| self.output.is_none());
            terminal::print(&text(&response, &compared, costs.as_ref()))?;
        }
        Ok(ExitCode::from(if compared.is_same() { 0 } else { DIFFERS }))
    }
}

impl Replay {
    fn costs(&self, response: &ReplayResponse) -> Result<Option<Costs>> {
        if self.question.trace {
            return Costs::of_graph(&response.graph).map(Some);
        }
        self.question.profile.then(|| Costs::of_profile(&response.profile)).transpose()
    }
}

/// Prints a body: as it is, or without control characters on a terminal.
fn print_body(body: &[u8]) -> Result<()> {
    if std::io::stdout().is_terminal() {
        return terminal::print(&printable(&String::from_utf8_lossy(body)));
    }
    terminal::print_bytes(body)
}

fn write(file: Option<&Path>, bytes: &[u8]) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, bytes).with_context(|| {
        format!("cannot write `{}`\nhint: its folder must exist and be writable", file.display())
    })
}

fn text(response: &ReplayResponse, compared: &Compared, costs: Option<&Costs>) -> String {
    let recorded = &response.recorded;
    let one_line = |text: &str| samovar_log::printable(text).into_owned();
    let image = if response.has_own_image { "an image of its own" } else { "the serving image" };
    let network = if response.network_refused { "refused" } else { "allowed" };
    let mut text = format!(
        "request {}: {} {}\n  process   {}, forked from {image}\n  network   {network}\n",
        recorded.id,
        one_line(&recorded.method),
        one_line(&recorded.target),
        response.pid
    );
    if !recorded.redacted.is_empty() {
        let _ = writeln!(text, "  replaced  {}", one_line(&recorded.redacted.join(", ")));
    }
    let _ = writeln!(
        text,
        "  time      {:.1} ms, recorded {:.1} ms",
        response.milliseconds, recorded.milliseconds
    );
    let bytes = response.response.bytes;
    let _ = writeln!(text, "  response  status {}, {bytes} bytes", response.response.status);
    if let Some(lost) = &response.lost {
        let _ = writeln!(text, "  failure   {}", one_line(lost));
    }
    if let Some(costs) = costs {
        text.push_str(&costs.table());
    }
    for line in compared.lines() {
        let _ = writeln!(text, "{}", one_line(&line));
    }
    let has_no_end = compare::is_partial(recorded);
    text.push_str(match (compared.is_same(), recorded.redacted.is_empty()) {
        (false, _) if has_no_end => "The whole response cannot be compared.\n",
        (true, _) => "The response is the same.\n",
        (false, true) => "The response differs.\n",
        (false, false) => {
            "The response differs.\nhint: values of the request were replaced; record with \
             --with-secrets to keep them\n"
        }
    });
    text
}
