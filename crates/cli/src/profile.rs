//! `samovar profile`: time of a running server's requests by function, from its sampler.
//!
//! Queries the control socket, and prints the response as a table (`table.rs`) or writes it as a
//! file (`picture.rs`); both use `shown.rs`. `allocations.rs` shows memory of traced requests.
//! `options.rs` parses the flags.

mod allocations;
pub(crate) mod options;
mod picture;
mod shown;
mod table;

use crate::arguments::{control, control_arguments, json_argument, pool_argument};
use crate::control_client::{self, understand};
use crate::known_names::no_such_route;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use options::ProfileOptions;
use samovar_config::Sources;
use samovar_profile::now;
use samovar_server::{Predecessor, terminal};
use samovar_spy::profile::Part;
use samovar_wire::{ProfileQuestion, ProfileResponse, Request};
use shown::Shown;
use std::process::ExitCode;
use std::time::Duration;

/// Timeout for the response: the server reads a day of profiles for it.
const RESPONSE_LIMIT: Duration = Duration::from_secs(15);

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: options::hint };

fn define() -> Command {
    let pool = pool_argument(options::OF_POOL);
    options::command().arg(pool).args(control_arguments()).arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(options::parse(matches, control(matches, sources)?)?))
}

impl Run for ProfileOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn knows(routes: &[(String, u64)], route: &str) -> bool {
    routes.iter().any(|(name, _)| name == route)
}

fn run(asked: &ProfileOptions) -> Result<ExitCode> {
    let path = control_client::path(asked.control.as_ref())?;
    if asked.memory {
        return allocations::run(asked, &path);
    }
    let to = now() + 1;
    let question = ProfileQuestion {
        pool: asked.pool.clone(),
        route: asked.route.clone(),
        from: to.saturating_sub(asked.last.as_secs().max(1)),
        to,
        generation: asked.generation,
        against: asked.against,
    };
    let line = control_client::ask(&path, &Request::Profile(Box::new(question)), RESPONSE_LIMIT)?;
    let response: ProfileResponse = understand(&line)?;
    if let Some(why) = response.error {
        let route = asked.route.as_deref();
        // The reason may be another one, such as a server without profiler.
        let is_known = route.is_none_or(|route| knows(&response.routes, route));
        let lacks = !is_known && !response.routes.is_empty();
        if let Some(error) =
            route.filter(|_| lacks).and_then(|route| no_such_route(&path, route, &response.routes))
        {
            return Err(error);
        }
        bail!("{}", control_client::printable(&why));
    }
    let shown = Shown::of(asked, &response)?;
    if shown.now.profile.total().samples == 0 {
        let part = if asked.part == Part::Waiting { "waiting" } else { "running" };
        bail!(
            "no samples {part} in that time\nhint: leave out --on-cpu and --waiting to show all \
             samples"
        );
    }
    match asked.format {
        Some(format) => picture::write(&shown, asked, format)?,
        None if asked.json => terminal::print(&table::json(&shown))?,
        None => terminal::print(&table::text(&shown))?,
    }
    Ok(ExitCode::SUCCESS)
}
