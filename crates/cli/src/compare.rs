//! `samovar compare`: the same requests as whole scripts and as the application says; what differs, and what each costs.
//!
//! Two servers of its own run the application, one of them with `whole_scripts`. In each round three new visitors walk
//! through all URLs, each URL asked of a script, of the booted application and of a script again. What differs between
//! scripts varies by nature (a time, a token); all else must be the same.

mod alike;
mod cost;
mod page;
mod report;
mod servers;

use crate::terminal;
use crate::trial::model::Model;
use crate::trial::progress::Progress;
use crate::trial::server;
use crate::trial::targets::{self, Target};
use crate::trial::visitor::Visitor;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use page::Page;
use samovar_config::Settings;
use servers::Pair;
use std::ffi::OsString;
use std::process::ExitCode;

const ROUNDS: u32 = 10;
const ROUNDS_MAX: u32 = 10_000;
/// The flag as clap names it where its value is wrong, and what it takes.
pub(crate) const TIMES: &str = "--times <N>";
pub(crate) const TIMES_HINT: &str = "it takes a whole number from 2 to 10000";
/// Answers differ, or there was none.
const EXIT_DIFFERENT: u8 = 1;
/// Nothing to compare: the application is not booted ahead.
const EXIT_USAGE: u8 = 2;

const HELP: &str = "\
Starts two servers of its own on free ports of 127.0.0.1, with the settings that samovar serve would
have: one runs the whole script for each request, the other has the checkpoint or Samovar\\serve().
Each URL is asked of both in turn, by visitors with cookies of their own: 2 × N times as a script, N
times below the checkpoint. They are really run, so choose such as change nothing.

An answer differs when its status, headers or body are none that a script gives. What two answers
of scripts have different, such as a time or a token, may be different; but where each script's
answer has another value and the checkpoint's have the same, that is reported as well.

CPU is the whole server's per request, front, rollback and all; the first round does not count.

Examples:
  samovar compare public/index.php --urls / /about '/search?q=tea'
  samovar compare --urls urls.txt --times 50
  samovar compare --checkpoint-after vendor/autoload.php --urls / --json

Exit codes: 0 all alike, 1 some differ or were not answered, 2 wrong use: flags, settings, or
an application that is not booted ahead.";

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct CompareOptions {
    targets: Vec<Target>,
    rounds: u32,
    json: bool,
    /// The settings' flags, as given, for both servers.
    flags: Vec<OsString>,
    workers: usize,
}

/// The command, with the flags that are its own.
pub(crate) fn command() -> Command {
    Command::new("compare")
        .about("Asks an application as scripts and below its checkpoint; says what differs")
        .after_help(HELP)
        .arg(targets::argument())
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(2..=i64::from(ROUNDS_MAX)))
                .overrides_with("times")
                .help(format!("Rounds: how often each is asked [default: {ROUNDS}]")),
        )
}

pub(crate) fn parse(matches: &ArgMatches, settings: &Settings) -> Result<CompareOptions> {
    Ok(CompareOptions {
        targets: targets::typed(matches)?,
        rounds: matches.get_one("times").copied().unwrap_or(ROUNDS),
        json: matches.get_flag("json"),
        flags: server::flags(matches),
        workers: settings.workers.max,
    })
}

pub(crate) fn run(asked: &CompareOptions) -> Result<ExitCode> {
    let pair = Pair::start(&asked.flags, asked.workers)?;
    let mut progress = Progress::new();
    warm_up(asked, &pair, &mut progress)?;
    let model = match Model::wait(&pair.booted)? {
        Model::Booted(name) => name,
        Model::Scripts(why) => {
            terminal::complain(&format!("samovar: nothing to compare: {why}"));
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    let mut pages: Vec<Page> = asked.targets.iter().map(Page::new).collect();
    for round in 0..asked.rounds {
        walk(&pair, &mut pages, round > 0, |done| {
            progress.say(|| {
                let (of, urls) = (asked.rounds, asked.targets.len());
                format!("round {} of {of}, URL {} of {urls}", round + 1, done + 1)
            });
        })?;
    }
    let report = report::Report::of(&pages, &model, asked.rounds, pair.image()?);
    terminal::print(&if asked.json { report.json() } else { report.text() })?;
    Ok(if report.are_alike() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
}

/// Caches are filled, and an application that only a request finds out about is booted.
fn warm_up(asked: &CompareOptions, pair: &Pair, progress: &mut Progress) -> Result<()> {
    let (mut one, mut other) = (Visitor::default(), Visitor::default());
    for (n, target) in asked.targets.iter().enumerate() {
        progress.say(|| format!("warming up, URL {} of {}", n + 1, asked.targets.len()));
        for (visitor, server) in [(&mut one, &pair.script), (&mut other, &pair.booted)] {
            // What fails here fails again when it counts.
            let _ = visitor.get(server.address(), target);
            server.must_live()?;
        }
    }
    Ok(())
}

/// One round: three new visitors, each with its own way through all URLs.
fn walk(pair: &Pair, pages: &mut [Page], counts: bool, mut tell: impl FnMut(usize)) -> Result<()> {
    let (mut before, mut below, mut after) =
        (Visitor::default(), Visitor::default(), Visitor::default());
    for (n, page) in pages.iter_mut().enumerate() {
        tell(n);
        // In this order: a clock's hand, or a counter, is between what the scripts have shown.
        page.ask_script(&mut before, pair, counts);
        page.ask_booted(&mut below, pair, counts);
        page.ask_script(&mut after, pair, counts);
        pair.script.must_live()?;
        pair.booted.must_live()?;
    }
    Ok(())
}
