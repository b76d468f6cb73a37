//! load: HTTP/1.1 requests to one server, and figures about its responses.
//!
//! It has one thread, to take as little as possible from a server on the same cores. Two users:
//!
//! - the load generator of `bench/` (`main.rs`, [`program`]): one run, printed as JSON
//! - `samovar plan verify` ([`OpenLoop`]): steps of growing rate with kept connections
//!
//! The way of a request:
//!
//! - `drive` begins it, in a closed loop or as scheduled by `schedule` and `arrivals`; `open_loop`
//!   begins it at the random times of `poisson`
//! - `targets` or `mix` selects it, `request` has its bytes
//! - `connection` sends it, `input` reads until `response` finds the response complete
//! - `measure` counts it, `report` prints the sums; `figures` has those of a step

mod arrivals;
mod connection;
mod deadline;
mod drive;
mod failure;
mod figures;
mod input;
mod measure;
mod mix;
mod open_loop;
mod options;
mod poisson;
mod report;
mod request;
mod response;
mod schedule;
mod targets;
mod url;

pub use failure::Failure;
pub use figures::{Cut, Figures};
pub use mix::{Mix, Target};
pub use open_loop::{CONNECTIONS_MAX, Limits, OpenLoop, Step};
pub use url::Url;

use anyhow::Context;
use clap::Parser;
use options::Options;
use report::Report;
use std::io::{self, Write};
use std::process::ExitCode;
use targets::Targets;
use tokio::runtime::{Builder, LocalOptions};

/// Exit code for bad arguments, the same as clap's.
const EXIT_USAGE: u8 = 2;

/// Runs the load generator with the arguments of this process.
pub fn program() -> ExitCode {
    let options = Options::parse();
    let targets = match prepare(&options) {
        Ok(targets) => targets,
        Err(error) => return fail(&error, EXIT_USAGE),
    };
    match measure(&options, targets).and_then(|report| print(&report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 1),
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    eprintln!("samovar-load: {error:#}");
    ExitCode::from(code)
}

fn prepare(options: &Options) -> anyhow::Result<Targets> {
    options::allow_connections(options.connections)?;
    Targets::load(options)
}

fn measure(options: &Options, targets: Targets) -> anyhow::Result<Report> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .context("cannot start the event loop")?;
    runtime.block_on(drive::run(options, targets))
}

fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, report).context("cannot write the result")?;
    writeln!(out).context("cannot write the result")
}
