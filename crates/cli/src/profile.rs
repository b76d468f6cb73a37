//! `samovar profile`: where the time of a running server's requests went, by what its sampler has seen.
//!
//! It asks the control socket, and says the answer as a table (`table.rs`) or a file (`picture.rs`), both made of `shown.rs`.
//! `options.rs` is what was asked for.

pub(crate) mod options;
mod picture;
mod shown;
mod table;

use crate::control::client::{self, understand};
use crate::terminal;
use anyhow::{Result, bail};
pub(crate) use options::{OF_POOL, ProfileOptions, command, hint, parse};
use samovar_profile::now;
use samovar_spy::profile::Part;
use samovar_wire::{ProfileAnswer, ProfileQuestion, Request};
use shown::Shown;
use std::process::ExitCode;
use std::time::Duration;

/// How long an answer is waited for: a day of profiles is read for it.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

pub(crate) fn run(asked: &ProfileOptions) -> Result<ExitCode> {
    let path = asked.control.clone().map_or_else(samovar_config::discover_control, Ok)?;
    let to = now() + 1;
    let question = ProfileQuestion {
        pool: asked.pool.clone(),
        route: asked.route.clone(),
        from: to.saturating_sub(asked.last.as_secs().max(1)),
        to,
        generation: asked.generation,
        against: asked.against,
    };
    let line = client::ask(&path, &Request::Profile(Box::new(question)), ANSWER_LIMIT)?;
    let answer: ProfileAnswer = understand(&line)?;
    if let Some(why) = answer.error {
        bail!("{}", client::printable(&why));
    }
    let shown = Shown::of(asked, &answer)?;
    if shown.now.profile.total().samples == 0 {
        let part = if asked.part == Part::Waiting { "waiting" } else { "running" };
        bail!(
            "no worker was seen {part} in that time\nhint: without --on-cpu and --waiting all is shown"
        );
    }
    match asked.format {
        Some(format) => picture::write(&shown, asked, format)?,
        None if asked.json => terminal::print(&table::json(&shown))?,
        None => terminal::print(&table::text(&shown))?,
    }
    Ok(ExitCode::SUCCESS)
}
