//! `samovar spy`: activity of any PHP process of this machine, read from outside by crates/spy.
//!
//! It has three modes: the current stacks (`stacks.rs`), a table that is redrawn repeatedly
//! (`top.rs`), or a recording to a file (`record.rs`). `options.rs` parses the flags,
//! `variables.rs` keeps secrets out of values. No Samovar server is needed.

mod child;
mod messages;
pub(crate) mod options;
mod record;
mod stacks;
mod ticker;
mod top;
mod variables;

use crate::arguments::json_argument;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Result, anyhow};
use clap::ArgMatches;
use options::{SpyOptions, SpyTarget, Task};
use samovar_config::Sources;
use samovar_server::Predecessor;
use samovar_spy::Watch;
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand =
    Subcommand { define: || options::command().arg(json_argument()), prepare, hint: options::hint };

#[allow(clippy::needless_pass_by_value, reason = "all commands have this type")]
fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let mut options = options::parse(matches)?;
    if !options.peeks.is_empty() {
        options.redact = sources.resolve()?.insight.redact;
    }
    Ok(Box::new(options))
}

impl Run for SpyOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &SpyOptions) -> Result<ExitCode> {
    let mut started = None;
    let mut watch = match &asked.whom {
        SpyTarget::These(pids) => Watch::of(pids).map_err(|error| anyhow!("{error}"))?,
        SpyTarget::Matching(text) => Watch::matching(text),
        SpyTarget::Child(words) => {
            let (child, watch) = child::start(words)?;
            started = Some(child);
            watch
        }
        SpyTarget::All => Watch::all(),
    };
    watch.peek(variables::readable(asked));
    if asked.memory || asked.task == Task::Stacks {
        watch.read_heap();
    }
    let code = match &asked.task {
        Task::Stacks => stacks::run(&mut watch, asked),
        Task::Top => top::run(&mut watch, asked),
        Task::Record(format) => record::run(&mut watch, asked, *format),
    }?;
    match started {
        Some(child) => child::finish(child, code),
        None => Ok(code),
    }
}
