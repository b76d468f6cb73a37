//! Lines about the steps, and about the result on several hosts.

use crate::control_client::printable;
use anyhow::{Result, bail};
use samovar_deploy::Outcome;
use samovar_server::terminal;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Prints the result on several hosts.
pub(super) fn conclude(outcome: &Outcome, release: &str, can_roll_back: bool) -> Result<ExitCode> {
    let Some((host, why)) = &outcome.failed else {
        terminal::print(&format!("{release} serves on {}\n", outcome.done.join(", ")))?;
        return Ok(ExitCode::SUCCESS);
    };
    // Writing to a string cannot fail.
    let mut text = format!("{host}: {why}");
    if !outcome.done.is_empty() {
        let _ = write!(text, "\n{release} serves on {}", outcome.done.join(", "));
    }
    if !outcome.left.is_empty() {
        let _ = write!(text, "\nnothing was changed on {}", outcome.left.join(", "));
    }
    if can_roll_back && !outcome.done.is_empty() {
        let hosts: Vec<String> = outcome.done.iter().map(|host| format!("--host {host}")).collect();
        let _ = write!(
            text,
            "\nhint: to serve the release before there, run `samovar rollback` with the same \
             --folder and {}",
            hosts.join(" ")
        );
    }
    bail!(printable(&text))
}

/// Prints a step.
pub(super) fn say(line: &str) {
    // A closed pipe must not end a deploy in the middle.
    let _ = terminal::print(&format!("{}\n", printable(line)));
}

/// Says on which host the next lines are written.
pub(super) fn begins(host: &str) {
    say(&format!("{host}:"));
}
