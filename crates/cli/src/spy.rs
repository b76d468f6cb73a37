//! `samovar spy`: what any PHP process of this machine does, read from outside by crates/spy.
//!
//! One of three: the stacks of this moment (`stacks.rs`), a table that is drawn again and again (`top.rs`), or a recording
//! for a file (`record.rs`). `options.rs` is what was asked for; no server of ours is needed.

mod beat;
pub(crate) mod options;
mod record;
mod stacks;
mod top;
mod words;

use anyhow::{Result, anyhow};
pub(crate) use options::{SpyOptions, WHOM_HINT, command, hint, parse};
use options::{Task, Whom};
use samovar_spy::Watch;
use std::process::ExitCode;

pub(crate) fn run(asked: &SpyOptions) -> Result<ExitCode> {
    let mut watch = match &asked.whom {
        Whom::These(pids) => Watch::of(pids).map_err(|error| anyhow!("{error}"))?,
        Whom::All => Watch::all(),
    };
    match &asked.task {
        Task::Stacks => stacks::run(&mut watch, asked),
        Task::Top => top::run(&mut watch, asked),
        Task::Record(format) => record::run(&mut watch, asked, *format),
    }
}
