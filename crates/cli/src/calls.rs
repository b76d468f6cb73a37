//! `samovar calls`: call graphs of a running server's traced requests, as a table or for other
//! tools.
//!
//! Queries the control socket. `options.rs` parses the flags, `show.rs` formats the table,
//! `memory.rs` formats allocations.

mod memory;
mod options;
mod show;

use crate::arguments::{ONE_POOL, control, control_arguments, json_argument, pool_argument};
use crate::control_client::{self, understand};
use crate::known_names::no_such_route;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command};
use options::{CallsOptions, Format};
use samovar_config::Sources;
use samovar_profile::calls::{Graph, export};
use samovar_server::{Predecessor, terminal};
use samovar_wire::{CallsQuestion, CallsResponse, Request};
use std::process::ExitCode;
use std::time::Duration;

/// Timeout for the response: the server reads a week of graphs for it.
const RESPONSE_LIMIT: Duration = Duration::from_secs(15);

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: options::hint };

fn define() -> Command {
    let pool = pool_argument(ONE_POOL);
    options::command().arg(pool).args(control_arguments()).arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(options::parse(matches, control(matches, sources)?)?))
}

impl Run for CallsOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &CallsOptions) -> Result<ExitCode> {
    let path = control_client::path(asked.control.as_ref())?;
    let question = CallsQuestion {
        pool: asked.pool.clone(),
        route: asked.route.clone(),
        day: asked.day,
        sign_s: asked.sign.map(|span| span.as_secs().max(1)),
    };
    let line = control_client::ask(&path, &Request::Calls(Box::new(question)), RESPONSE_LIMIT)?;
    let response: CallsResponse = understand(&line)?;
    if let Some(why) = response.error {
        bail!("{}", control_client::printable(&why));
    }
    if let Some(signature) = response.signature {
        terminal::print(&show::signature(&control_client::printable(&signature)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let read = |value| serde_json::from_value::<Graph>(value);
    let why = "the response is not a call graph\nhint: check that `samovar` and the server have \
               the same version";
    let graph = read(response.graph.clone()).context(why)?;
    let before = read(response.before.clone()).context(why)?;
    if !graph.is_sound() || !before.is_sound() {
        bail!(why);
    }
    if graph.requests == 0 {
        let typed = asked.route.as_deref();
        if let Some(error) = typed.and_then(|of| no_such_route(&path, of, &response.routes)) {
            return Err(error);
        }
        bail!(
            "no request was traced{}\nhint: see requests_traced_total and \
             trace_requests_dropped_total in `samovar status --json`; requests are dropped if the \
             tracing workers are busy",
            typed.map(|route| format!(" of the route `{route}`")).unwrap_or_default()
        );
    }
    if asked.memory {
        memory::check(&graph)?;
    }
    let bytes = match asked.format {
        Some(Format::Svg) => memory::flames(&graph, &response.route).into_bytes(),
        Some(Format::Collapsed) => memory::collapsed(&graph).into_bytes(),
        Some(Format::Callgrind) => export::callgrind(&graph).into_bytes(),
        Some(Format::Xhprof) => json(&export::xhprof(&graph))?,
        Some(Format::XhprofSerialized) => export::serialized(&export::xhprof(&graph)),
        None if asked.json => json(&serde_json::to_value(&graph)?)?,
        None if asked.memory => {
            terminal::print(&memory::table(&graph, &response.route, &response.pool))?;
            return Ok(ExitCode::SUCCESS);
        }
        None => {
            let shown = show::Shown { response: &response, graph: &graph, before: &before };
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
