//! Flags of `samovar test`, and the runs that they describe.

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::{PhpBinary, locate_worker};
use samovar_testing::{By, Framework, Options, Quarantine, default_command};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of processes.
const JOBS_MAX: i64 = 256;
/// Maximum number of reruns.
const RERUNS_MAX: i64 = 100;
/// Maximum run time of a unit without `--time-limit`.
const TIME_LIMIT: Duration = Duration::from_mins(5);
/// Maximum number of versions of PHP.
const VERSIONS_MAX: usize = 8;
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
        .arg(
            text("jobs", "N", "Number of tests that run at the same time [default: processors]")
                .short('j')
                .value_parser(value_parser!(i64).range(1..=JOBS_MAX)),
        )
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
        .arg(
            text("php", "VERSIONS", "PHP version, or several to compare: 8.2,8.4")
                .value_parser(versions),
        )
        .arg(path("php-ini", "FILE", "php.ini to use instead of the command line's"))
        .arg(
            Arg::new("define")
                .long("define")
                .short('d')
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .value_parser(directive)
                .help("Directive that overrides php.ini"),
        )
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
        "--jobs <N>" => Some("it takes a number from 1 to 256"),
        "--by <UNIT>" => Some("it takes `class`, `file` or `test`"),
        "--time-limit <TIME>" => Some("it takes a time, such as `30s` or `5m`"),
        "--rerun-failed <N>" => Some("it takes a number from 0 to 100"),
        "--shuffle[=<SEED>]" => Some("it takes a number, as in --shuffle=17"),
        "--php <VERSIONS>" => Some("it takes versions such as `8.2`, separated by commas"),
        "--define <KEY=VALUE>" => Some("it takes a directive, such as `memory_limit=1G`"),
        _ => None,
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

fn versions(text: &str) -> Result<Vec<String>, String> {
    let all: Vec<_> = text.split(',').map(|version| version.trim().to_owned()).collect();
    let is_version = |text: &String| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    if all.len() > VERSIONS_MAX || !all.iter().all(is_version) {
        return Err("no versions".to_owned());
    }
    Ok(all)
}

fn directive(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) || value.contains('\n') {
        return Err("no directive".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
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
    let define: BTreeMap<String, String> =
        matches.get_many("define").into_iter().flatten().cloned().collect();
    let options = Options {
        worker: PathBuf::new(),
        jobs: matches
            .get_one::<i64>("jobs")
            .map_or_else(processors, |jobs| usize::try_from(*jobs).unwrap_or(1)),
        by: matches.get_one("by").copied().unwrap_or(By::Class),
        time_limit: matches.get_one("time-limit").copied().unwrap_or(TIME_LIMIT),
        boot: matches.get_one::<PathBuf>("boot").map(|file| existing(&folder, file)).transpose()?,
        preload: !matches.get_flag("no-preload"),
        mocks: matches.get_flag("mocks"),
        php_ini: matches
            .get_one::<PathBuf>("php-ini")
            .map(|file| existing(&folder, file))
            .transpose()?,
        define,
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
    let versions = matches.get_one::<Vec<String>>("php").cloned().unwrap_or_default();
    let selections: Vec<_> = if versions.is_empty() {
        vec![None]
    } else {
        versions.into_iter().map(|version| Some(PhpBinary::Version(version))).collect()
    };
    let with = |selection: Option<PhpBinary>| {
        // Here the flag for a version is --php.
        let worker = locate_worker(selection.as_ref())
            .map_err(|error| anyhow!(error.to_string().replace("--php-binary", "--php")))?;
        Ok(Options { worker, ..options.clone() })
    };
    Ok((selections.into_iter().map(with).collect::<Result<_>>()?, log_junit))
}

fn processors() -> usize {
    let max = usize::try_from(JOBS_MAX).unwrap_or(1);
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(max)
}

fn existing(folder: &Path, file: &Path) -> Result<PathBuf> {
    let file = folder.join(file);
    if !file.is_file() {
        bail!(
            "cannot read `{}`: there is no such file\nhint: name a file that exists",
            file.display()
        );
    }
    Ok(file)
}

fn quarantine(matches: &ArgMatches, folder: &Path) -> Result<Quarantine> {
    match matches.get_one::<PathBuf>("quarantine") {
        Some(file) => Quarantine::read(&existing(folder, file)?),
        None => Quarantine::read(&folder.join(QUARANTINE)),
    }
}
