//! `samovar preload`: writes a preload file of the classes that requests use, tries it, and
//! measures its gain.
//!
//! | file | content |
//! |---|---|
//! | `preload/collect.rs` | used files: of the running server, or of a private one |
//! | `preload/plan.rs` | used files → files to preload, and reasons for the others |
//! | `preload/script.rs` | text of the preload file |
//! | `preload/trial.rs` | private servers with and without the file: messages, memory, CPU time |
//! | `preload/faults.rs` | log of a trial → files that PHP could not preload |
//! | `preload/gain.rs` | rounds of a measurement → gain with its interval |
//! | `preload/measured.rs` | memory and gain of a trial |
//! | `preload/checkpoint.rs` | the same for `checkpoint_after` and `warmup` |
//! | `preload/report.rs` | result for people, and as JSON |

mod checkpoint;
mod collect;
mod faults;
mod gain;
mod measured;
mod plan;
mod report;
mod script;
mod trial;

use crate::arguments::{json_argument, settings, with_settings};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use crate::trial::progress::Progress;
use crate::trial::server;
use crate::trial::targets::{self, Target};
use crate::usage_error::Early;
use anyhow::{Context, Result, bail};
use checkpoint::Advice;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plan::plan;
use report::Report;
use samovar_config::{Settings, Sources};
use samovar_server::{Predecessor, companion, terminal};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trial::{Outcome, Trial};

const OUTPUT: &str = "preload.php";
const SHARE: &str = "0.5";
const ROUNDS: u32 = 10;
const ROUNDS_MAX: u32 = 1_000;
/// Maximum number of trials, each without the files that failed in the one before.
const TRIALS_MAX: u32 = 20;
/// Bytes of an existing file that are searched for the mark of this command.
const HEAD_BYTES: u64 = 4_096;
/// Exit code if there is nothing to preload.
const EXIT_NOTHING: u8 = 1;

const HELP: &str = "\
Writes a file for opcache.preload from the files that requests really include: those of --urls in a
private server, or with --live those that the running server has recorded (`samovar includes`).

A file is preloaded if it only declares classes and functions. Parents, interfaces and traits come
first. Each other file is listed with the reason: it runs code, declares under a condition, prints,
returns a value, is part of a cache, or needs a class that is left out or missing.

The file is tried in a private server. Files about which PHP warns are left out, with the warning.
Then two private servers, without and with the file, get the same requests in turn. The gain is that
of the CPU time per request, with its 95 % interval. The requests really run, so use URLs that
change nothing.

With --checkpoint no file is written. The command tries the best `checkpoint_after`, the file that
ends last before routes differ, with a list of `warmup` requests, and shows memory and gain.

Examples:
  samovar preload public/index.php --urls / /about '/search?q=tea'
  samovar preload public/index.php --live --share 0.2 --output config/preload.php
  samovar preload public/index.php --urls urls.txt --times 20 --json
  samovar preload public/index.php --urls / /about --checkpoint

Exit codes: 0 written, 1 there is nothing to preload, or a failure, 2 wrong flags or settings.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

/// Options of the command.
#[derive(Debug)]
struct PreloadOptions {
    targets: Vec<Target>,
    output: PathBuf,
    source: Source,
    /// Whether a checkpoint is advised instead of a preload file.
    is_for_checkpoint: bool,
    share: f64,
    rounds: u32,
    json: bool,
    /// Flags of the settings, as typed.
    flags: Vec<OsString>,
    settings: Box<Settings>,
}

/// Source of the used files.
#[derive(Debug)]
enum Source {
    /// The running server, with its control socket (`None`: discover it).
    Running(Option<PathBuf>),
    /// A private server, which gets the URLs.
    Private,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 1".to_owned())
}

fn define() -> Command {
    let command = Command::new("preload")
        .about("Writes a preload file of the classes that requests use, and measures its gain")
        .after_help(HELP)
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .overrides_with("output")
                .help(format!("Preload file to write [default: {OUTPUT}]")),
        )
        .arg(targets::argument())
        .arg(
            Arg::new("live").long("live").action(ArgAction::SetTrue).overrides_with("live").help(
                "Take the files from the running server; --urls are only for the measurement",
            ),
        )
        .arg(
            Arg::new("checkpoint")
                .long("checkpoint")
                .action(ArgAction::SetTrue)
                .overrides_with("checkpoint")
                .help("Instead: advise `checkpoint_after` and `warmup`, and measure their gain"),
        )
        .arg(
            Arg::new("share")
                .long("share")
                .value_name("FRACTION")
                .value_parser(share)
                .default_value(SHARE)
                .overrides_with("share")
                .help("Smallest fraction of the requests that include a preloaded file"),
        )
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(2..=i64::from(ROUNDS_MAX)))
                .overrides_with("times")
                .help(format!("Rounds of the measurement [default: {ROUNDS}]")),
        );
    with_settings(command).arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let sources = settings(matches, sources);
    let is_live = matches.get_flag("live");
    let source = if is_live { Source::Running(sources.control()?) } else { Source::Private };
    let mut settings = sources.resolve()?;
    companion::isolate(&mut settings);
    let output = matches.get_one("output").cloned().unwrap_or_else(|| PathBuf::from(OUTPUT));
    let output = std::path::absolute(&output).map_err(|error| {
        Early::Wrong(format!("samovar: `--output`: `{}`: {error}", output.display()))
    })?;
    Ok(Box::new(PreloadOptions {
        targets: targets::typed(matches)?,
        output,
        source,
        is_for_checkpoint: matches.get_flag("checkpoint"),
        share: matches.get_one("share").copied().unwrap_or(0.5),
        rounds: matches.get_one("times").copied().unwrap_or(ROUNDS),
        json: matches.get_flag("json"),
        flags: server::flags(matches),
        settings: Box::new(settings),
    }))
}

impl Run for PreloadOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &PreloadOptions) -> Result<ExitCode> {
    if !asked.is_for_checkpoint {
        must_be_replaceable(&asked.output)?;
    }
    let mut progress = Progress::new();
    let measurement = (&*asked.targets, asked.rounds);
    let trial = Trial::new(&asked.flags, &asked.settings, &asked.output);
    let collected = match &asked.source {
        Source::Running(control) => collect::of_running(control.as_ref())?,
        Source::Private => collect::of_private(&trial, &asked.targets, &mut progress)?,
    };
    if asked.is_for_checkpoint {
        let advice = Advice::of(&collected, &trial, measurement, &mut progress)?;
        terminal::print(&if asked.json { advice.json()? } else { advice.text() })?;
        let code = if advice.is_advised() { 0 } else { EXIT_NOTHING };
        return Ok(ExitCode::from(code));
    }
    let mut report = Report::new(&collected, &asked.output, trial.needs_user);
    let mut refused = BTreeMap::new();
    for trials in 1.. {
        let plan = plan(&collected.used, asked.share, &refused);
        report.plan(&plan);
        if plan.files.is_empty() {
            break;
        }
        progress.say(|| format!("trial {trials}, {} files", plan.files.len()));
        match trial.run(&plan)? {
            Outcome::Clean(server) => {
                let measured = trial.measure(&server, measurement, &mut progress)?;
                if measured.after.opcache_bytes == 0 {
                    bail!("opcache is off\nhint: set `opcache.enable = true` in the table [php]");
                }
                report.measured = Some(measured);
                let text = script::text(&plan, &trial.folder, &report.remarks());
                trial.write(&text)?;
                break;
            }
            Outcome::Faults(faults) if trials < TRIALS_MAX => refused.extend(faults.files),
            Outcome::Faults(_) => {
                bail!("PHP still warns after {TRIALS_MAX} trials\nhint: use a larger --share")
            }
        }
    }
    terminal::print(&if asked.json { report.json()? } else { report.text() })?;
    Ok(if report.is_written() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOTHING) })
}

/// Refuses to replace a file that this command has not written.
fn must_be_replaceable(output: &Path) -> Result<()> {
    let shown = output.display();
    let folder = output.parent().filter(|folder| folder.is_dir());
    if folder.is_none() {
        bail!(
            "`--output`: the folder of `{shown}` does not exist\nhint: create it, or pass another \
             file"
        );
    }
    // A pipe would block.
    if std::fs::metadata(output).is_ok_and(|found| !found.is_file()) {
        bail!("`--output`: `{shown}` is no regular file\nhint: pass another file");
    }
    let file = match std::fs::File::open(output) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("`--output`: cannot read `{shown}`"));
        }
    };
    let mut head = Vec::new();
    let read = file.take(HEAD_BYTES).read_to_end(&mut head);
    read.with_context(|| format!("`--output`: cannot read `{shown}`"))?;
    if !String::from_utf8_lossy(&head).lines().any(|line| line == script::MARK) {
        bail!(
            "`--output`: `{shown}` exists, and was not written by `samovar preload`\nhint: pass \
             another file, or remove this one"
        );
    }
    Ok(())
}
