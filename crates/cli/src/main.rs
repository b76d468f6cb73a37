//! The command `samovar`: selects the subcommand; each one has its own file.
//!
//! Modules by layer; a layer uses only the ones before it (`tests/rooms.rs`):
//!
//! - output of commands (`terminal`) and the server's log (`logging`, `panics`)
//! - the process and its rights (`service`, `descriptors`, `rights`, `binary`, `companion`)
//! - settings of other crates (`convert`)
//! - sampling of workers (`sampling`)
//! - the `control` socket
//! - `reload`, the server's side of it
//! - `serve`
//! - the other `commands`, `top`, `spy` and `profile`
//! - `trial`: servers that `compare` and `leaks` start for themselves
//! - `args`: the command line

mod args;
mod binary;
mod boot;
mod calls;
mod certificates;
mod commands;
mod companion;
mod compare;
mod control;
mod convert;
mod descriptors;
mod engine;
mod graphs;
mod handover;
mod leaks;
mod loads;
mod logging;
mod panics;
mod pools;
mod profile;
mod publish;
mod reload;
mod rights;
mod sampling;
mod serve;
mod service;
mod spy;
mod terminal;
mod top;
mod trial;
mod upgrade;

use args::Invocation;
use handover::predecessor::Predecessor;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Must run before this process opens any descriptor. A new descriptor could get the number of
    // an inherited one that is missing.
    let predecessor = match Predecessor::of_environment() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            terminal::complain(&format!(
                "samovar: cannot take over from the previous server: {error}"
            ));
            return ExitCode::FAILURE;
        }
    };
    let result = match args::parse() {
        Ok(Invocation::Serve { settings, sources }) => {
            serve::run(*settings, *sources, predecessor.as_ref())
        }
        Ok(Invocation::Check { sources, json }) => return commands::check::run(&sources, json),
        Ok(Invocation::Routes { settings, asked }) => {
            succeed(commands::routes::run(&settings, &asked))
        }
        Ok(Invocation::Compare(asked)) => compare::run(&asked),
        Ok(Invocation::Leaks(asked)) => leaks::run(&asked),
        Ok(Invocation::Spy(asked)) => spy::run(&asked),
        Ok(Invocation::Profile(asked)) => profile::run(&asked),
        Ok(Invocation::Calls(asked)) => calls::run(&asked),
        Ok(Invocation::Boot(asked)) => boot::run(&asked),
        Ok(Invocation::Status { json, control }) => succeed(commands::status::run(control, json)),
        Ok(Invocation::Top(options)) => succeed(top::run(options)),
        Ok(Invocation::Reload { control, options }) => {
            succeed(commands::reload::run(control, options))
        }
        Ok(Invocation::Upgrade { control, binary }) => {
            succeed(commands::upgrade::run(control, binary))
        }
        Ok(Invocation::Stop { control }) => succeed(commands::stop::run(control)),
        Err(refused) => {
            if let Some(predecessor) = predecessor {
                predecessor.failed(&refused.to_string());
            }
            return refused.report();
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            terminal::complain(&format!("samovar: {}", terminal::words(&error)));
            ExitCode::FAILURE
        }
    }
}

fn succeed(done: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    done.map(|()| ExitCode::SUCCESS)
}
