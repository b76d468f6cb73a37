//! `samovar leaks`: finds data that requests leave in the process that runs them, by name and
//! source line.
//!
//! A separate server runs the application. Its only worker writes a heap walk of its
//! process before the first request and after each one. A resident application runs in one process
//! without rollbacks, so that growth is visible between requests. An application with a checkpoint
//! is compared with its image.

mod differ;
mod folder;
mod heap_walk;
mod holdings;
mod judge;
mod naming;
mod place;
mod report;
mod series;
mod trend;

use crate::arguments::{json_argument, settings, with_settings};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use crate::trial::model::Model;
use crate::trial::progress::Progress;
use crate::trial::server::{self, Server};
use crate::trial::targets::{self, Target};
use crate::trial::visitor::Visitor;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use folder::Folder;
use samovar_config::{Settings, Sources};
use samovar_server::{Predecessor, companion, terminal};
use series::Series;
use std::ffi::OsString;
use std::process::ExitCode;

/// Requests per URL: a leak in 1 of 10 requests is seen with a probability of 99 %.
const TIMES: u32 = 45;
const TIMES_MIN: u32 = 3;
const TIMES_MAX: u32 = 1000;
/// Requests of a URL that has grown a value: a cache with fewer members stops growing before.
const PROOF: u32 = 300;
const PROOF_MAX: u32 = 100_000;
/// Requests between two checks whether the growth has ended.
const PROOF_STEP: u32 = 10;
/// Maximum number of such further requests of a run.
const PROOF_TOTAL_MAX: u32 = 20_000;
/// Maximum number of reported failures of requests.
const FAILURES_MAX: usize = 100;
/// Exit code if something would affect the next request, or a request failed.
const EXIT_LEAKS: u8 = 1;
/// Exit code if there is nothing to check: the application is not booted.
const EXIT_USAGE: u8 = 2;

const HELP: &str = "\
Starts a server with one worker on a free port of 127.0.0.1, with the settings that samovar serve
would have, and requests each URL N times. The requests really run, so use URLs that change nothing.
After each request the worker lists the state of its process: static properties and variables,
globals, constants, ini settings, handlers, autoloaders, stream wrappers, classes and functions,
environment, locale, timezone and other settings, descriptors, mappings, child processes.

With Samovar\\serve() or a worker script of FrankenPHP all requests run in one process, which shows
growth, state carried over to the next request, and caches. After a checkpoint each request begins
with the image: the command shows its changes, which would persist in a resident application.

Growth is judged per URL. A URL that has grown a value is repeated until the growth ends, which is a
cache, or until --times-max requests, which is a leak. The report names the URL, and how rare a leak
could be without being seen.

Examples:
  samovar leaks public/index.php --urls / /about '/search?q=tea'
  samovar leaks --urls urls.txt --times 100 --json

Exit codes: 0 nothing leaks, 1 something leaks or a request failed, 2 wrong flags or settings, or
the application cannot be booted before its requests.";

/// Options of the command.
#[derive(Debug)]
struct LeaksOptions {
    targets: Vec<Target>,
    times: u32,
    /// Maximum number of requests of a URL that has grown a value.
    times_max: u32,
    json: bool,
    /// Flags of the settings, as typed.
    flags: Vec<OsString>,
    settings: Box<Settings>,
}

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

fn define() -> Command {
    let command = Command::new("leaks")
        .about(
            "Finds state that requests leave in a process, to check whether the application \
                can be resident",
        )
        .after_help(HELP)
        .arg(targets::argument())
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(i64::from(TIMES_MIN)..=i64::from(TIMES_MAX)))
                .overrides_with("times")
                .help(format!(
                    "Number of requests per URL, at least {TIMES_MIN} [default: \
                               {TIMES}]"
                )),
        )
        .arg(
            Arg::new("times-max")
                .long("times-max")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=i64::from(PROOF_MAX)))
                .overrides_with("times-max")
                .help(format!(
                    "Maximum number of requests of a URL that has grown a value, to distinguish a \
                     cache from a leak [default: {PROOF}]"
                )),
        );
    with_settings(command).arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let mut settings = settings(matches, sources).resolve()?;
    companion::isolate(&mut settings);
    Ok(Box::new(LeaksOptions {
        targets: targets::typed(matches)?,
        times: matches.get_one("times").copied().unwrap_or(TIMES),
        times_max: matches.get_one("times-max").copied().unwrap_or(PROOF),
        json: matches.get_flag("json"),
        flags: server::flags(matches),
        settings: Box::new(settings),
    }))
}

impl Run for LeaksOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &LeaksOptions) -> Result<ExitCode> {
    let folder = Folder::new(&asked.settings)?;
    let heap_walk: OsString = format!("--{}", companion::HEAP_WALK_FLAG).into();
    let more = [heap_walk, folder.path().into()];
    let server = Server::start("leaks", &asked.flags, 1, &more)?;
    // This request boots an application whose checkpoint is found only by a request. It may fail;
    // the following requests show that.
    if let Model::Scripts(_) = Model::now(&server)? {
        let _ = Visitor::default().get(server.address(), &asked.targets[0]);
    }
    if let Model::Scripts(why) = Model::wait(&server)? {
        terminal::complain(&format!("samovar: nothing to examine: {why}"));
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    let script = asked.settings.front_controller.as_ref();
    let script = script.map(|file| file.display().to_string()).unwrap_or_default();
    let series = Series::of(script);
    let mut walk = Walk { folder, server, series, failures: Vec::new(), failing: None, skipped: 0 };
    let mut progress = Progress::new();
    let mut proof = PROOF_TOTAL_MAX;
    for n in 0..asked.targets.len() {
        walk.url(n, asked, &mut proof, &mut progress)?;
    }
    let report = report::Report::of(&walk.series, &asked.targets, walk.failures);
    terminal::print(&if asked.json { report.json() } else { report.text() })?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_LEAKS) })
}

/// State of the run through all URLs.
struct Walk {
    /// Dropped before `folder`, into which its worker writes.
    server: Server,
    series: Series,
    failures: Vec<String>,
    /// The URL whose first response was an error; its further errors are not reported.
    failing: Option<usize>,
    /// Number of requests since the last heap walk that was compared.
    skipped: usize,
    folder: Folder,
}

impl Walk {
    /// Requests one URL again and again.
    fn url(
        &mut self,
        n: usize,
        asked: &LeaksOptions,
        proof: &mut u32,
        progress: &mut Progress,
    ) -> Result<()> {
        let (target, urls) = (&asked.targets[n], asked.targets.len());
        // All requests have the same visitor, so that a session is started only once.
        let mut visitor = Visitor::default();
        let mut time = 0;
        let mut is_open = false;
        while time < asked.times || is_open {
            // Growth seen so far decides about the next requests.
            let end = if time < asked.times { asked.times } else { time + PROOF_STEP };
            while time < end {
                let (done, of) = (u64::from(asked.times) * n as u64 + u64::from(time), asked.times);
                progress.say_with_rest(done, u64::from(of) * urls as u64, || {
                    let of = if is_open { asked.times_max } else { of };
                    let why = if is_open { " at most, to see whether growth ends" } else { "" };
                    format!("URL {} of {urls}, request {} of {of}{why}", n + 1, time + 1)
                });
                time += 1;
                // Growth over several requests is seen by one comparison.
                let is_compared = !is_open || time == end;
                self.step(&mut visitor, n, target, (time == 1, is_compared))?;
            }
            // The first request is not a repeated one.
            is_open = self.series.is_open(n, asked.times_max as usize - 1)
                && time < asked.times_max
                && *proof >= PROOF_STEP;
            if is_open {
                *proof -= PROOF_STEP;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        visitor: &mut Visitor,
        n: usize,
        target: &Target,
        (is_first, is_compared): (bool, bool),
    ) -> Result<()> {
        let workers = server::workers(&self.server)?;
        let response = visitor.get(self.server.address(), target);
        self.server.must_live()?;
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                self.fail(target, &format!("{error:#}"));
                return Ok(());
            }
        };
        if response.status >= 500 && is_first {
            self.failing = Some(n);
        }
        if response.status >= 500 && self.failing != Some(n) {
            self.fail(
                target,
                &format!("the response status is {}, after another one at first", response.status),
            );
        }
        let is_over = || Ok(server::workers(&self.server)? != workers);
        let id = response.id.as_deref().unwrap_or_default();
        let hint = "the file is not PHP, or the worker died or was replaced";
        let missing = format!("no heap walk was written after it ({hint})");
        if !is_compared {
            if self.folder.skip(id, is_over)? {
                self.skipped += 1;
            } else {
                self.fail(target, &missing);
            }
            return Ok(());
        }
        let Some(heap_walk) = self.folder.take(id, is_over)? else {
            self.fail(target, &missing);
            return Ok(());
        };
        if heap_walk.fatal {
            self.fail(target, "it ends in a fatal error");
            return Ok(());
        }
        if !self.series.knows(heap_walk.process) {
            self.series.begin(self.folder.image(heap_walk.process)?);
        }
        let span = std::mem::take(&mut self.skipped) + 1;
        self.series.add(n, heap_walk, span);
        Ok(())
    }

    fn fail(&mut self, target: &Target, why: &str) {
        let line = format!("{target}: {why}");
        if self.failures.len() < FAILURES_MAX && !self.failures.contains(&line) {
            self.failures.push(line);
        }
    }
}
