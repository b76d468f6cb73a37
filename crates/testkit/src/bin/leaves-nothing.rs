//! `leaves-nothing COMMAND…`: runs a command, the test-suite, and fails if a server's process that it started is left.
//!
//! A process is known by the run's name in its environment, whoever its parent is by then.

use samovar_testkit::family;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: leaves-nothing COMMAND…");
        return ExitCode::from(2);
    };
    let run = format!("run-{}", std::process::id());
    let status = match Command::new(&program).args(words).env(family::RUN, &run).status() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("cannot run `{}`: {error}", program.display());
            return ExitCode::from(2);
        }
    };
    if let Err(left) = family::gone(family::RUN, &run) {
        eprintln!("processes that the tests started are left:");
        for one in &left {
            eprintln!("  {one}");
        }
        return ExitCode::FAILURE;
    }
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
