//! `samovar compare`: sends the same requests to whole scripts and to the application as
//! configured, and reports differences and costs.
//!
//! Two separate servers run the application, one of them with `disable_checkpoint`. In each round
//! three new visitors request all URLs: each URL once from the scripts, once from the booted
//! application, and once more from the scripts. Text that differs between the scripts varies by
//! nature (a time, a token). All other text must be equal.

pub(crate) mod diff;
mod page;
mod report;
mod servers;

use crate::arguments::{json_argument, settings, with_settings};
use crate::subcommand::{Prepared, Run, Subcommand};
use crate::trial::model::Model;
use crate::trial::progress::Progress;
use crate::trial::server;
use crate::trial::targets::{self, Target};
use crate::trial::visitor::Visitor;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use page::Page;
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use servers::Pair;
use std::ffi::OsString;
use std::process::ExitCode;

const ROUNDS: u32 = 10;
const ROUNDS_MAX: u32 = 10_000;
/// Flag as clap names it when its value is wrong, and its allowed values.
const TIMES: &str = "--times <N>";
const TIMES_HINT: &str = "it takes a whole number from 2 to 10000";
/// Exit code if responses differ or are missing.
const EXIT_DIFFERENT: u8 = 1;
/// Exit code if there is nothing to compare: the application is not booted.
const EXIT_USAGE: u8 = 2;

const HELP: &str = "\
Starts two servers on free ports of 127.0.0.1, with the settings that samovar serve would have. One
runs the whole script for each request, the other one uses the checkpoint or Samovar\\serve().
Each URL is requested from both in turn, by clients with separate cookies: 2 × N times as a script,
N times after the checkpoint. The requests really run, so use URLs that change nothing.

A response differs if its status, headers or body match no script's response. Parts that differ
between two responses of scripts, such as a time or a token, may differ. If such a part is different
in each script's response and constant after the checkpoint, that is reported as well.

CPU is the CPU time of the whole server per request, including front and rollback. The first round
is not counted.

Examples:
  samovar compare public/index.php --urls / /about '/search?q=tea'
  samovar compare --urls urls.txt --times 50
  samovar compare --checkpoint-after vendor/autoload.php --urls / --json

Exit codes: 0 all responses are the same, 1 some differ or failed, 2 wrong flags or settings, or the
application cannot be booted before its requests.";

/// Options of the command.
#[derive(Debug)]
struct CompareOptions {
    targets: Vec<Target>,
    rounds: u32,
    json: bool,
    /// Flags of the settings, as typed, for both servers.
    flags: Vec<OsString>,
    workers: usize,
}

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

fn define() -> Command {
    let command = Command::new("compare")
        .about("Compares the responses of an application as a script and after its checkpoint")
        .after_help(HELP)
        .arg(targets::argument())
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(2..=i64::from(ROUNDS_MAX)))
                .overrides_with("times")
                .help(format!("Rounds: number of requests per URL [default: {ROUNDS}]")),
        );
    with_settings(command).arg(json_argument())
}

fn hint(flag: &str) -> Option<&'static str> {
    (flag == TIMES).then_some(TIMES_HINT)
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let settings = settings(matches, sources).resolve()?;
    Ok(Box::new(CompareOptions {
        targets: targets::typed(matches)?,
        rounds: matches.get_one("times").copied().unwrap_or(ROUNDS),
        json: matches.get_flag("json"),
        flags: server::flags(matches),
        workers: settings.workers.max,
    }))
}

impl Run for CompareOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &CompareOptions) -> Result<ExitCode> {
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

/// Fills caches. Also boots an application whose checkpoint is found only by a request.
fn warm_up(asked: &CompareOptions, pair: &Pair, progress: &mut Progress) -> Result<()> {
    let (mut one, mut other) = (Visitor::default(), Visitor::default());
    for (n, target) in asked.targets.iter().enumerate() {
        progress.say(|| format!("warm-up, URL {} of {}", n + 1, asked.targets.len()));
        for (visitor, server) in [(&mut one, &pair.script), (&mut other, &pair.booted)] {
            // A failure here occurs again in a counted round.
            let _ = visitor.get(server.address(), target);
            server.must_live()?;
        }
    }
    Ok(())
}

/// Runs one round: three new visitors, each of which requests all URLs.
fn walk(pair: &Pair, pages: &mut [Page], counts: bool, mut tell: impl FnMut(usize)) -> Result<()> {
    let (mut before, mut below, mut after) =
        (Visitor::default(), Visitor::default(), Visitor::default());
    for (n, page) in pages.iter_mut().enumerate() {
        tell(n);
        // In this order, a clock or a counter of the booted application has a value between those
        // of the scripts.
        page.ask_script(&mut before, pair, counts);
        page.ask_booted(&mut below, pair, counts);
        page.ask_script(&mut after, pair, counts);
        pair.script.must_live()?;
        pair.booted.must_live()?;
    }
    Ok(())
}
