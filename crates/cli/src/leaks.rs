//! `samovar leaks`: what requests leave behind in the process that answers them, by name and line.
//!
//! A server of its own runs the application. Its only worker writes a census of what there is in its process, before the
//! first request and behind each: of a resident application in one process that is not rolled back meanwhile, so that what
//! grows is seen to grow; below a checkpoint against the image.

mod census;
mod differ;
mod folder;
mod holdings;
mod judge;
mod naming;
mod place;
mod report;
mod series;

use crate::companion;
use crate::terminal;
use crate::trial::model::Model;
use crate::trial::progress::Progress;
use crate::trial::server::{self, Server};
use crate::trial::targets::{self, Target};
use crate::trial::visitor::Visitor;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use folder::Folder;
use samovar_config::Settings;
use series::Series;
use std::ffi::OsString;
use std::process::ExitCode;

const TIMES: u32 = 10;
const TIMES_MIN: u32 = 3;
const TIMES_MAX: u32 = 1000;
/// What is said of requests that went wrong.
const FAILURES_MAX: usize = 100;
/// Something would be met by the next request, or a request failed.
const EXIT_LEAKS: u8 = 1;
/// Nothing to look at: the application is not booted ahead.
const EXIT_USAGE: u8 = 2;

const HELP: &str = "\
Starts a server of its own on a free port of 127.0.0.1, with the settings that samovar serve would
have and one worker, and asks it for each URL N times. They are really run, so choose such as change
nothing. Behind each request the worker lists what there is in its process: static properties and
variables, globals, constants, ini settings, handlers, autoloaders, stream wrappers, classes and
functions, environment, locale, timezone and other settings, descriptors, mappings, children.

With Samovar\\serve() or a worker script of FrankenPHP the requests follow each other in one process,
which shows what grows, what is carried from one to the next, and what is a cache. Below a
checkpoint each request begins with the image: what it has changed is shown, and would stay if the
application were resident.

Examples:
  samovar leaks public/index.php --urls / /about '/search?q=tea'
  samovar leaks --urls urls.txt --times 50 --json

Exit codes: 0 nothing leaks, 1 something does or a request failed, 2 wrong use: flags, settings, or
an application that is not booted ahead.";

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct LeaksOptions {
    targets: Vec<Target>,
    times: u32,
    json: bool,
    /// The settings' flags, as given.
    flags: Vec<OsString>,
    settings: Box<Settings>,
}

/// The command, with the flags that are its own.
pub(crate) fn command() -> Command {
    Command::new("leaks")
        .about("Says what requests leave behind in a process: may the application be resident?")
        .after_help(HELP)
        .arg(targets::argument())
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(i64::from(TIMES_MIN)..=i64::from(TIMES_MAX)))
                .overrides_with("times")
                .help(format!("How often each is asked, from {TIMES_MIN} on [default: {TIMES}]")),
        )
}

pub(crate) fn parse(matches: &ArgMatches, settings: Settings) -> Result<LeaksOptions> {
    Ok(LeaksOptions {
        targets: targets::typed(matches)?,
        times: matches.get_one("times").copied().unwrap_or(TIMES),
        json: matches.get_flag("json"),
        flags: server::flags(matches),
        settings: Box::new(settings),
    })
}

pub(crate) fn run(asked: &LeaksOptions) -> Result<ExitCode> {
    let folder = Folder::new(&asked.settings)?;
    let census: OsString = format!("--{}", companion::CENSUS_FLAG).into();
    let more = [census, folder.path().into()];
    let server = Server::start("leaks", &asked.flags, 1, &more)?;
    // An application that only a request finds out about is booted by it. It may fail: the next ones tell.
    if let Model::Scripts(_) = Model::now(&server)? {
        let _ = Visitor::default().get(server.address(), &asked.targets[0]);
    }
    if let Model::Scripts(why) = Model::wait(&server)? {
        terminal::complain(&format!("samovar: nothing to look at: {why}"));
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    let script = asked.settings.front_controller.as_ref();
    let script = script.map(|file| file.display().to_string()).unwrap_or_default();
    let series = Series::of(script);
    let mut walk = Walk { folder, server, series, failures: Vec::new(), failing: None };
    let mut progress = Progress::new();
    for (n, target) in asked.targets.iter().enumerate() {
        // The same visitor: a session is built up once.
        let mut visitor = Visitor::default();
        for time in 0..asked.times {
            progress.say(|| {
                let (of, urls) = (asked.times, asked.targets.len());
                format!("URL {} of {urls}, request {} of {of}", n + 1, time + 1)
            });
            walk.step(&mut visitor, n, time, target)?;
        }
    }
    let report = report::Report::of(&walk.series, &asked.targets, walk.failures);
    terminal::print(&if asked.json { report.json() } else { report.text() })?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_LEAKS) })
}

/// The way through all URLs.
struct Walk {
    /// Dropped last, after the server that writes there.
    server: Server,
    series: Series,
    failures: Vec<String>,
    /// The URL whose first answer was an error: that is how it is.
    failing: Option<usize>,
    folder: Folder,
}

impl Walk {
    fn step(&mut self, visitor: &mut Visitor, n: usize, time: u32, target: &Target) -> Result<()> {
        let workers = server::workers(&self.server)?;
        let answer = visitor.get(self.server.address(), target);
        self.server.must_live()?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.fail(target, &format!("{error:#}"));
                return Ok(());
            }
        };
        if answer.status >= 500 && time == 0 {
            self.failing = Some(n);
        }
        if answer.status >= 500 && self.failing != Some(n) {
            self.fail(
                target,
                &format!("the answer's status is {}, and was another at first", answer.status),
            );
        }
        let is_over = || Ok(server::workers(&self.server)? != workers);
        let Some(census) = self.folder.take(answer.id.as_deref().unwrap_or_default(), is_over)?
        else {
            let hint = "a file that is no PHP, or a worker that has died or was replaced";
            self.fail(target, &format!("no census was written behind it ({hint})"));
            return Ok(());
        };
        if census.fatal {
            self.fail(target, "it ends in a fatal error");
            return Ok(());
        }
        if !self.series.knows(census.process) {
            self.series.begin(self.folder.image(census.process)?);
        }
        self.series.add(n, census);
        Ok(())
    }

    fn fail(&mut self, target: &Target, why: &str) {
        let line = format!("{target}: {why}");
        if self.failures.len() < FAILURES_MAX && !self.failures.contains(&line) {
            self.failures.push(line);
        }
    }
}
