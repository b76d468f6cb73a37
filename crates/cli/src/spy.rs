//! `samovar spy`: activity of any PHP process of this machine, read from outside by crates/spy.
//!
//! It has three modes: the current stacks (`stacks.rs`), a table that is redrawn repeatedly
//! (`top.rs`), or a recording to a file (`record.rs`). `options.rs` parses the flags. No Samovar
//! server is needed.

mod messages;
pub(crate) mod options;
mod record;
mod stacks;
mod ticker;
mod top;

use anyhow::{Result, anyhow};
pub(crate) use options::{SpyOptions, WHOM_HINT, command, hint, parse};
use options::{SpyTarget, Task};
use samovar_spy::Watch;
use std::process::ExitCode;

pub(crate) fn run(asked: &SpyOptions) -> Result<ExitCode> {
    let mut watch = match &asked.whom {
        SpyTarget::These(pids) => Watch::of(pids).map_err(|error| anyhow!("{error}"))?,
        SpyTarget::All => Watch::all(),
    };
    match &asked.task {
        Task::Stacks => stacks::run(&mut watch, asked),
        Task::Top => top::run(&mut watch, asked),
        Task::Record(format) => record::run(&mut watch, asked, *format),
    }
}
