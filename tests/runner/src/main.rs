//! `run-tests`: runs the tests that cargo has built (see the library).

use anyhow::{Context, Result, bail};
use clap::Parser;
use samovar_test_runner::groups::Groups;
use samovar_test_runner::programs::{self, Test};
use samovar_test_runner::results::earlier_durations;
use samovar_test_runner::run::Plan;
use samovar_test_runner::stress;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs each test in a process of its own, as many at once as the machine carries.
#[derive(Debug, Parser)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Arguments {
    /// What `cargo test --no-run --message-format=json` printed
    #[arg(long, required = true)]
    built: Vec<PathBuf>,
    /// Which tests cannot run next to others
    #[arg(long, default_value = "tests/groups.toml")]
    groups: PathBuf,
    /// Seconds of each test in an earlier run: the longest start first
    #[arg(long, default_value = "tests/durations.tsv")]
    durations: PathBuf,
    /// Where results and output go
    #[arg(long, default_value = "target/tests")]
    output: PathBuf,
    /// Tests that run at once [default: three for each core]
    #[arg(long)]
    at_once: Option<usize>,
    /// Tests that tests/groups.toml leaves to the nightly tier run as well
    #[arg(long)]
    nightly: bool,
    /// Tests with #[ignore] run as well
    #[arg(long)]
    with_ignored: bool,
    /// Only tests with #[ignore]
    #[arg(long)]
    only_ignored: bool,
    /// Show the output of each test while it runs, one test after the other; those with #[ignore] run as well
    #[arg(long)]
    show: bool,
    /// A line for each test
    #[arg(long)]
    verbose: bool,
    /// Leave out tests whose name contains this
    #[arg(long)]
    skip: Vec<String>,
    /// Run this test many times, next to busy loops and then next to its neighbours
    #[arg(long, value_name = "TEST")]
    unflake: Option<String>,
    /// How many times
    #[arg(long, default_value_t = 200)]
    runs: usize,
    /// Run the tests whose name contains one of these
    words: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("run-tests: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let mut programs = Vec::new();
    for path in &arguments.built {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        programs.extend(programs::read(&text).with_context(|| format!("in {shown}"))?);
    }
    let groups = Groups::load(&arguments.groups)?;
    let here = std::env::current_dir().context("no working directory")?;
    programs
        .extend(groups.commands.iter().map(|(name, line)| programs::command(name, line, &here)));
    let mut tests = programs::list(&programs, |name| groups.is_single(name))?;
    check_names(&groups, &tests)?;
    for test in &mut tests {
        let is_named = arguments.words.iter().any(|word| test.id.ends_with(word.as_str()));
        test.is_ignored |= groups.is_nightly(&test.id) && !arguments.nightly && !is_named;
    }
    let is_wanted = |test: &Test| {
        let contains = |word: &String| test.id.contains(word.as_str());
        (arguments.words.is_empty() || arguments.words.iter().any(contains))
            && !arguments.skip.iter().any(contains)
            && (test.is_ignored || !arguments.only_ignored)
    };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let plan = Plan {
        tests: tests.into_iter().filter(is_wanted).collect(),
        programs,
        groups,
        at_once: if arguments.show { 1 } else { arguments.at_once.unwrap_or(3 * cores) },
        earlier: earlier_durations(&arguments.durations),
        with_ignored: arguments.with_ignored || arguments.only_ignored || arguments.show,
        is_shown: arguments.show,
        logs: arguments.output.join("logs"),
        is_verbose: arguments.verbose,
    };
    if let Some(name) = &arguments.unflake {
        let failed = stress::repeat(&plan, name, arguments.runs)?;
        println!("{name}: {failed} runs failed");
        return Ok(failed == 0);
    }
    if plan.tests.is_empty() {
        bail!("no test has one of these words in its name: {}", arguments.words.join(" "));
    }
    let results = plan.run()?;
    results.write(&arguments.output)?;
    print!("{}", results.summary());
    Ok(results.is_green())
}

/// A group that names a test which is not there would protect nothing. Where a part of the programs is run, nothing is known of
/// the others.
fn check_names(groups: &Groups, tests: &[Test]) -> Result<()> {
    let ids: Vec<&str> = tests.iter().map(|test| test.id.as_str()).collect();
    if !ids.iter().any(|id| id.starts_with("suite::")) {
        return Ok(());
    }
    let unknown = groups.unknown(&ids);
    if !unknown.is_empty() {
        bail!("tests/groups.toml names tests that do not exist: {}", unknown.join(", "));
    }
    Ok(())
}
