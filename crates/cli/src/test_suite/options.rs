//! Flags of `samovar test`, and the runs that they describe.

use crate::php_flags::{self, existing_file};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::locate_worker;
use samovar_testing::{By, Framework, Options, Quarantine, default_command};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of reruns.
const RERUNS_MAX: i64 = 100;
/// Maximum run time of a unit without `--time-limit`.
const TIME_LIMIT: Duration = Duration::from_mins(5);
/// File with known failures.
const QUARANTINE: &str = "samovar-quarantine.toml";

const HELP: &str = "\
Boots PHP, the test framework and its bootstrap once, then runs each test class in a fork of that
process: each begins with the same state, and all processors are used. The words after -- are the
command of PHPUnit (9 to 12) or Pest, unchanged; without them it is phpunit. A class that hangs is
killed, and a crash costs one test.

Examples:
  samovar test                                  run the tests of phpunit.xml
  samovar test -- phpunit --filter Cart tests   with options of phpunit
  samovar test --boot tests/kernel.php          boot the application's kernel once, too
  samovar test --by test --jobs 8               a process for each test, 8 at the same time
  samovar test --rerun-failed 2                 tests that pass in a rerun are flaky
  samovar test --shuffle                        tests that depend on their order
  samovar test --mocks                          tests may use Samovar\\Mock
  samovar test --php 8.2,8.4                    the tests whose results differ

Exit codes: 0 all tests passed, 1 failures, 2 errors, crashes, wrong flags, or no tests. With --php
and several versions: 0 same results, 1 different ones.";

pub(super) fn define() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).overrides_with(name).help(help)
    };
    let path = |name, value, help| text(name, value, help).value_parser(value_parser!(PathBuf));
    Command::new("test")
        .about("Runs a test suite in parallel, each class in a fork of the booted application")
        .after_help(HELP)
        .arg(php_flags::jobs("Number of tests that run at the same time [default: processors]"))
        .arg(
            text("by", "UNIT", "Tests that share a process: class, file or test")
                .default_value("class")
                .value_parser(by),
        )
        .arg(
            text("time-limit", "TIME", "Maximum run time of one process [default: 5m]")
                .value_parser(time),
        )
        .arg(path("boot", "FILE", "PHP file that boots the application, after the bootstrap"))
        .arg(
            Arg::new("no-preload")
                .long("no-preload")
                .action(ArgAction::SetTrue)
                .overrides_with("no-preload")
                .help("Do not load classes of vendor/ before the tests that use them"),
        )
        .arg(
            Arg::new("mocks")
                .long("mocks")
                .action(ArgAction::SetTrue)
                .overrides_with("mocks")
                .help("Let tests replace functions, methods and constants with Samovar\\Mock"),
        )
        .arg(
            text("rerun-failed", "N", "Maximum number of reruns of failed tests")
                .default_value("0")
                .value_parser(value_parser!(i64).range(0..=RERUNS_MAX)),
        )
        .arg(
            text("shuffle", "SEED", "Run the tests in a random order")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("")
                .value_parser(seed),
        )
        .arg(path("quarantine", "FILE", "Known failures [default: samovar-quarantine.toml]"))
        .arg(text("before", "COMMAND", "Shell command before the tests of each process"))
        .arg(text("after", "COMMAND", "Shell command after the tests of each process"))
        .arg(path("log-junit", "FILE", "Write the results in JUnit's format"))
        .arg(php_flags::versions("PHP version, or several to compare: 8.2,8.4"))
        .args(php_flags::settings())
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .num_args(0..)
                .last(true)
                .help("Command of the test framework, with its options [default: phpunit]"),
        )
}

pub(super) fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--by <UNIT>" => Some("it takes `class`, `file` or `test`"),
        "--time-limit <TIME>" => Some("it takes a time, such as `30s` or `5m`"),
        "--rerun-failed <N>" => Some("it takes a number from 0 to 100"),
        "--shuffle[=<SEED>]" => Some("it takes a number, as in --shuffle=17"),
        _ => php_flags::hint(flag),
    }
}

fn by(text: &str) -> Result<By, String> {
    match text {
        "class" => Ok(By::Class),
        "file" => Ok(By::File),
        "test" => Ok(By::Test),
        _ => Err("unknown".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = samovar_config::duration(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "no time".to_owned())
}

/// Parses a seed; without one it depends on the time.
fn seed(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        return Ok(u64::from(now.unwrap_or_default().subsec_micros()));
    }
    text.parse::<u32>().map(u64::from).map_err(|error| error.to_string())
}

/// Whether the results of several versions of PHP are compared.
pub(super) fn compares(matches: &ArgMatches) -> bool {
    matches.get_one::<Vec<String>>("php").is_some_and(|versions| versions.len() > 1)
}

/// Returns a run for each version of PHP, and the file for the results.
pub(super) fn runs(matches: &ArgMatches) -> Result<(Vec<Options>, Option<PathBuf>)> {
    let folder = std::env::current_dir().context("cannot determine the working directory")?;
    let words: Vec<String> = matches.get_many("command").into_iter().flatten().cloned().collect();
    let words = if words.is_empty() { default_command() } else { words };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let framework = Framework::new(&words, &folder, &path)?;
    let log_junit = matches.get_one::<PathBuf>("log-junit").cloned();
    let log_junit = log_junit.or_else(|| framework.log_junit.clone());
    if let (Some(file), true) = (&log_junit, compares(matches)) {
        bail!(
            "`{}` cannot hold the results of several versions of PHP\nhint: leave out --log-junit",
            file.display()
        );
    }
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let options = Options {
        worker: PathBuf::new(),
        jobs: php_flags::jobs_of(matches),
        by: matches.get_one("by").copied().unwrap_or(By::Class),
        time_limit: matches.get_one("time-limit").copied().unwrap_or(TIME_LIMIT),
        boot: matches
            .get_one::<PathBuf>("boot")
            .map(|file| existing_file(&folder, file))
            .transpose()?,
        preload: !matches.get_flag("no-preload"),
        mocks: matches.get_flag("mocks"),
        php_ini: php_flags::php_ini(matches, &folder)?,
        define: php_flags::define(matches),
        reruns: matches
            .get_one::<i64>("rerun-failed")
            .map_or(0, |n| u32::try_from(*n).unwrap_or(0)),
        shuffle: matches.get_one("shuffle").copied(),
        quarantine: quarantine(matches, &folder)?,
        before: text("before"),
        after: text("after"),
        framework,
        folder,
    };
    let workers = php_flags::selected(matches)?;
    let workers = if workers.is_empty() { vec![locate_worker(None)?] } else { workers };
    let with = |worker| Options { worker, ..options.clone() };
    Ok((workers.into_iter().map(with).collect(), log_junit))
}

fn quarantine(matches: &ArgMatches, folder: &Path) -> Result<Quarantine> {
    match matches.get_one::<PathBuf>("quarantine") {
        Some(file) => Quarantine::read(&existing_file(folder, file)?),
        None => Quarantine::read(&folder.join(QUARANTINE)),
    }
}
