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

/// Runs each test in its own process, as many at once as the machine can run.
#[derive(Debug, Parser)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Arguments {
    /// Output of `cargo test --no-run --message-format=json`
    #[arg(long, required = true)]
    built: Vec<PathBuf>,
    /// Which tests cannot run next to others
    #[arg(long, default_value = "tests/groups.toml")]
    groups: PathBuf,
    /// Seconds of each test in an earlier run: the longest tests start first. The last whole run
    /// into the output folder takes precedence
    #[arg(long, default_value = "tests/durations.tsv")]
    durations: PathBuf,
    /// Folder for results and output
    #[arg(long, default_value = "target/tests")]
    output: PathBuf,
    /// Number of tests that run at once [default: three for each core]
    #[arg(long)]
    at_once: Option<usize>,
    /// Also run the tests that tests/groups.toml reserves for the nightly tier
    #[arg(long)]
    nightly: bool,
    /// Also run the tests with #[ignore]
    #[arg(long)]
    with_ignored: bool,
    /// Run only the tests with #[ignore]
    #[arg(long)]
    only_ignored: bool,
    /// Show the output of each test while it runs, one test after the other; also run the tests
    /// with #[ignore]
    #[arg(long)]
    show: bool,
    /// Print a line for each test
    #[arg(long)]
    verbose: bool,
    /// Leave out tests whose name contains this
    #[arg(long)]
    skip: Vec<String>,
    /// Run this test many times, next to busy loops and then next to other tests of its folder
    #[arg(long, value_name = "TEST")]
    unflake: Option<String>,
    /// Number of repetitions
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
    let here = std::env::current_dir().context("cannot get the working directory")?;
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
    let mut earlier = earlier_durations(&arguments.durations);
    earlier.extend(earlier_durations(&arguments.output.join("durations.tsv")));
    let plan = Plan {
        tests: tests.into_iter().filter(is_wanted).collect(),
        programs,
        groups,
        at_once: if arguments.show { 1 } else { arguments.at_once.unwrap_or(3 * cores) },
        earlier,
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
        bail!("no test name contains one of these words: {}", arguments.words.join(" "));
    }
    let results = plan.run()?;
    let is_selection =
        !arguments.words.is_empty() || !arguments.skip.is_empty() || arguments.only_ignored;
    results.write(&arguments.output, is_selection)?;
    print!("{}", results.summary());
    Ok(results.is_green())
}

/// Rejects a group that names a missing test: the group would have no effect. The check is skipped
/// if only a part of the programs runs, because the tests of the other programs are unknown.
fn check_names(groups: &Groups, tests: &[Test]) -> Result<()> {
    let ids: Vec<&str> = tests.iter().map(|test| test.id.as_str()).collect();
    if !ids.iter().any(|id| id.starts_with("suite::")) {
        return Ok(());
    }
    let unknown = groups.unknown(&ids);
    if !unknown.is_empty() {
        bail!("tests/groups.toml names unknown tests: {}", unknown.join(", "));
    }
    Ok(())
}
