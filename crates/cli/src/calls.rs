//! `samovar calls`: what the traced requests of a running server have called, as a table or for others' tools.
//!
//! It asks the control socket. `options.rs` is what was asked for, `show.rs` the table.

mod options;
mod show;

use crate::control::client::{self, understand};
use crate::terminal;
use anyhow::{Context, Result, bail};
use options::Format;
pub(crate) use options::{CallsOptions, command, hint, parse};
use samovar_profile::calls::{Graph, export};
use samovar_wire::{CallsAnswer, CallsQuestion, Request};
use std::process::ExitCode;
use std::time::Duration;

/// How long an answer is waited for: a week of graphs is read for it.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

pub(crate) fn run(asked: &CallsOptions) -> Result<ExitCode> {
    let path = asked.control.clone().map_or_else(samovar_config::discover_control, Ok)?;
    let question = CallsQuestion {
        pool: asked.pool.clone(),
        route: asked.route.clone(),
        day: asked.day,
        sign_s: asked.sign.map(|span| span.as_secs().max(1)),
    };
    let line = client::ask(&path, &Request::Calls(Box::new(question)), ANSWER_LIMIT)?;
    let answer: CallsAnswer = understand(&line)?;
    if let Some(why) = answer.error {
        bail!("{}", client::printable(&why));
    }
    if let Some(signature) = answer.signature {
        terminal::print(&show::signature(&client::printable(&signature)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let read = |value| serde_json::from_value::<Graph>(value);
    let why = "the answer is no call graph\nhint: is `samovar` of another version than the server?";
    let graph = read(answer.graph.clone()).context(why)?;
    let before = read(answer.before.clone()).context(why)?;
    if !graph.is_sound() || !before.is_sound() {
        bail!(why);
    }
    if graph.requests == 0 {
        bail!(
            "no request was traced\nhint: `samovar status --json` counts them (traced_total); those that find the \
             workers for it busy are not traced (not_traced_total)"
        );
    }
    let bytes = match asked.format {
        Some(Format::Callgrind) => export::callgrind(&graph).into_bytes(),
        Some(Format::Xhprof) => json(&export::xhprof(&graph))?,
        Some(Format::XhprofSerialized) => export::serialized(&export::xhprof(&graph)),
        None if asked.json => json(&serde_json::to_value(&graph)?)?,
        None => {
            let shown = show::Shown { answer: &answer, graph: &graph, before: &before };
            terminal::print(&shown.text(asked.order, asked.function.as_deref())?)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    match &asked.output {
        Some(file) => std::fs::write(file, bytes).with_context(|| {
            format!(
                "cannot write `{}`\nhint: its folder must exist and be writable",
                file.display()
            )
        })?,
        None => terminal::print(&String::from_utf8_lossy(&bytes))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn json(value: &serde_json::Value) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}
