//! `samovar test`: runs a project's test suite in forks of a process that has booted it.
//!
//! crates/testing runs the tests; this file reads the flags and prints the results.

mod options;

use crate::control_client::printable;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result};
use clap::ArgMatches;
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_testing::{Options, Progress, Results, Step, differences, junit, run, summary};
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand =
    Subcommand { define: options::define, prepare, hint: options::hint };

/// Exit code if the tests cannot run.
const EXIT_ERROR: u8 = 2;

/// Options of the command.
#[derive(Debug)]
struct TestOptions {
    /// One run for each version of PHP.
    runs: Vec<Options>,
    log_junit: Option<PathBuf>,
    /// Whether the versions are compared.
    compares: bool,
}

fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    let (runs, log_junit) = options::runs(matches)?;
    let compares = options::compares(matches);
    Ok(Box::new(TestOptions { runs, log_junit, compares }))
}

impl Run for TestOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        // Status 1 means failed tests.
        self.all().or_else(|error| {
            terminal::complain(&format!("samovar: {}", terminal::words(&error)));
            Ok(ExitCode::from(EXIT_ERROR))
        })
    }
}

impl TestOptions {
    fn all(&self) -> Result<ExitCode> {
        if let Some(file) = &self.log_junit {
            // Better now than after all tests. Old results do not survive a run that fails.
            File::create(file).with_context(|| {
                format!(
                    "cannot write `{}`\nhint: name a file in a folder that exists and that this \
                     user may write to",
                    file.display()
                )
            })?;
        }
        let mut all = Vec::new();
        for options in &self.runs {
            all.push(self.one(options)?);
        }
        if let Some(file) = &self.log_junit {
            let name = |results: &Results| format!("PHP {}", results.php);
            let text = all.iter().map(|results| junit(&name(results), &results.cases)).next_back();
            std::fs::write(file, text.unwrap_or_default())
                .with_context(|| format!("cannot write `{}`", file.display()))?;
        }
        let mut status = all.iter().map(Results::status).max().unwrap_or(0);
        if self.compares {
            let (text, count) = differences(&all);
            let versions: Vec<_> = all.iter().map(|results| results.php.as_str()).collect();
            let end = format!("{count} tests differ between PHP {}.", versions.join(" and "));
            terminal::print(&printable(&format!("{text}\n{end}\n")))?;
            status = u8::from(count > 0);
        }
        Ok(ExitCode::from(status))
    }

    /// Runs the tests with one version of PHP.
    fn one(&self, options: &Options) -> Result<Results> {
        let mut progress = Progress::default();
        let results = run(options, &mut |step| {
            let text = match step {
                Step::Listed { php, tests, units, output } => {
                    progress = Progress::new(tests);
                    let jobs = options.jobs.min(units);
                    let output =
                        if output.is_empty() { String::new() } else { format!("{output}\n") };
                    format!(
                        "{output}samovar test: PHP {php}, {units} units in {jobs} processes\n\n"
                    )
                }
                Step::Cases(_) if self.compares => String::new(),
                Step::Cases(cases) => progress.add(cases),
                Step::Reruns(units) => {
                    format!("{}Running {units} units again\n", progress.finish())
                }
            };
            // A closed output does not end the run: the file with the results is still written.
            let _ = terminal::print(&printable(&text));
        })?;
        if self.compares {
            terminal::print(&format!("{} tests done\n", results.cases.len()))?;
        } else {
            let text = progress.finish() + &summary(&results);
            terminal::print(&printable(&text))?;
        }
        Ok(results)
    }
}
