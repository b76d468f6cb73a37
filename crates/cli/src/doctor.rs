//! `samovar doctor`: checks of a running server, or of an application that does not run.
//!
//! `gather.rs` queries the server, `application.rs` reads the application's folder; crates/doctor
//! judges the facts.

mod application;
mod gather;

use crate::arguments::{control, control_arguments, json_argument};
use crate::subcommand::{Prepared, Run, Subcommand};
use crate::usage_error::Early;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::Sources;
use samovar_doctor::{Examination, Severity, Shown, all, examine, explanations, text};
use samovar_server::{Predecessor, terminal};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code if nothing could be checked, as for wrong flags.
const EXIT_NOT_CHECKED: u8 = 2;
/// Value of `--fail-on` for a command that never fails because of findings.
const NEVER: &str = "never";

const HELP: &str = "\
Checks a running server: its health, requests, workers, boot, opcache, PHP's settings, the
application's folder, and the kernel's limits. Each finding has its evidence and a hint. A cost is
shown only if it was measured.

With a PATH or --config, it checks an application that does not run: PHP is started only to report
its settings, and nothing is served.

Examples:
  samovar doctor                        the running server
  samovar doctor public                 an application that does not run
  samovar doctor --verbose              also the checks without a finding, and those not made
  samovar doctor --json --fail-on problem   for scripts
  samovar doctor --ignore jit,xdebug    leave out checks
  samovar doctor --list                 all checks, with their explanations

Exit codes: 0 no finding at or above --fail-on, 1 there is one, 2 could not check, or wrong flags.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

/// Subject of the examination.
#[derive(Debug)]
enum Subject {
    /// The server of this control socket; `None`: discover it.
    Server(Option<PathBuf>),
    /// An application with these settings.
    Application(Sources),
}

/// Options of the command.
#[derive(Debug)]
struct Doctor {
    subject: Subject,
    ignored: Vec<&'static str>,
    /// The mildest severity that fails; `None`: none does.
    fail_on: Option<Severity>,
    shown: Shown,
    json: bool,
}

/// Prints the list of checks.
#[derive(Debug)]
struct List {
    json: bool,
}

fn define() -> Command {
    let command = Command::new("doctor")
        .about("Checks a running server or an application: faults, costs, improvements");
    let flag = |name: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(name)
    };
    let ignore = Arg::new("ignore")
        .long("ignore")
        .value_name("CODE")
        .action(ArgAction::Append)
        .value_delimiter(',')
        .value_parser(code)
        .help("Leave out this check (repeatable)");
    let fail_on = Arg::new("fail-on")
        .long("fail-on")
        .value_name("SEVERITY")
        .overrides_with("fail-on")
        .default_value("warning")
        .value_parser(["problem", "warning", "note", NEVER])
        .help("Lowest severity that makes the command fail");
    let path = Arg::new("path")
        .value_name("PATH")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Check this application, which does not run: its public folder or front controller");
    let config = Arg::new("config")
        .long("config")
        .short('c')
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .overrides_with("config")
        .help("Check the application of this settings file, which does not run");
    command
        .after_help(HELP)
        .arg(path.conflicts_with_all(["control", "server"]))
        .arg(config.conflicts_with_all(["control", "server"]))
        .args(control_arguments())
        .arg(ignore)
        .arg(fail_on)
        .arg(flag("list").help("List all checks with their explanations, and check nothing"))
        .arg(
            flag("verbose")
                .short('v')
                .help("Also show checks without a finding, and those not made with the reason"),
        )
        .arg(json_argument())
}

/// Returns the code of a check.
fn code(text: &str) -> Result<&'static str, String> {
    let found = all().into_iter().find(|check| check.code == text).map(|check| check.code);
    found.ok_or_else(|| "there is no such check; `samovar doctor --list` lists them".to_owned())
}

fn hint(flag: &str) -> Option<&'static str> {
    (flag == "--ignore").then_some("a code of `samovar doctor --list`, such as opcache-full")
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let json = matches.get_flag("json");
    if matches.get_flag("list") {
        return Ok(Box::new(List { json }));
    }
    let fail_on = matches.get_one::<String>("fail-on").map_or("warning", String::as_str);
    let shown = if matches.get_flag("verbose") { Shown::All } else { Shown::Findings };
    let ignored = matches.get_many::<&'static str>("ignore").into_iter().flatten().copied();
    let (ignored, subject) = (ignored.collect(), subject(matches, sources)?);
    Ok(Box::new(Doctor { subject, ignored, fail_on: Severity::named(fail_on), shown, json }))
}

fn subject(matches: &ArgMatches, mut sources: Sources) -> Result<Subject, Early> {
    let path = matches.get_one::<PathBuf>("path");
    let config = matches.get_one::<PathBuf>("config");
    if path.is_none() && config.is_none() {
        return Ok(Subject::Server(control(matches, sources)?));
    }
    if let Some(config) = config {
        sources = sources.config(config);
    }
    if let Some(path) = path {
        let root = samovar_config::names::by_flag("root");
        sources = sources.flag(root, path.to_string_lossy());
    }
    Ok(Subject::Application(sources))
}

/// JSON output.
#[derive(Serialize)]
struct Report<'a> {
    /// Whether no finding is at or above `--fail-on`.
    ok: bool,
    #[serde(flatten)]
    examination: &'a Examination,
}

impl Run for Doctor {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let facts = match &self.subject {
            Subject::Server(socket) => gather::from_server(socket.as_ref()),
            Subject::Application(sources) => gather::from_settings(sources),
        };
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => {
                terminal::complain(&format!("samovar: {}", terminal::words(&error)));
                return Ok(ExitCode::from(EXIT_NOT_CHECKED));
            }
        };
        let examination = examine(&facts, &self.ignored);
        let is_bad = self.fail_on.is_some_and(|mildest| examination.worst() >= Some(mildest));
        let shown = if self.json {
            let report = Report { ok: !is_bad, examination: &examination };
            serde_json::to_string(&report)? + "\n"
        } else {
            text(&examination, self.shown)
        };
        terminal::print(&crate::control_client::printable(&shown))?;
        Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

impl Run for List {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let shown = if self.json {
            let row = |check: &samovar_doctor::Check| {
                serde_json::json!({"code": check.code, "group": check.group.name(),
                    "finds": check.finds, "why": check.why})
            };
            let rows: Vec<_> = all().iter().map(row).collect();
            serde_json::to_string(&rows)? + "\n"
        } else {
            explanations()
        };
        terminal::print(&shown)?;
        Ok(ExitCode::SUCCESS)
    }
}
