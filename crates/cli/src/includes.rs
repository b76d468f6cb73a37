//! `samovar includes`: files that the requests of a running server include, by route.
//!
//! Queries the control socket; `show.rs` formats the response for people.

mod show;

pub(crate) use show::warmup_line;

use crate::arguments::{ONE_POOL, control, control_arguments, json_argument, pool_argument};
use crate::control_client::{self, understand};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::Sources;
use samovar_profile::loads::Includes;
use samovar_server::{Predecessor, terminal};
use samovar_wire::{IncludesQuestion, IncludesResponse, Request};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const RESPONSE_LIMIT: Duration = Duration::from_secs(15);

const HELP: &str = "\
Shows the files that requests of a running server include: number of requests, time of the first
inclusion, time for compiling and for the file's own code, and the line or class that includes it.
Also shows the start that the scripts of all routes share, which is the best `checkpoint_after`.

Each worker records its first requests, and then one request out of 251 whole scripts or 64
requests below a checkpoint. The cost is about a microsecond per request.

Examples:
  samovar includes                    routes, and the files of all of them
  samovar includes --route /cart      the files of one route
  samovar includes --all              all files
  samovar includes --json             everything, as JSON

Exit codes: 0 done, 1 nothing to show, 2 wrong flags.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

/// Options of the command.
#[derive(Debug)]
struct IncludesOptions {
    /// Socket of the server; `None`: discover it.
    control: Option<PathBuf>,
    pool: Option<String>,
    route: Option<String>,
    all: bool,
    json: bool,
}

fn define() -> Command {
    let all = Arg::new("all").long("all").action(ArgAction::SetTrue).overrides_with("all");
    let route = Arg::new("route").long("route").value_name("ROUTE").overrides_with("route");
    Command::new("includes")
        .about("Shows the files that the requests of each route include")
        .after_help(HELP)
        .arg(route.help("Show only the files of this route"))
        .arg(all.help("List all files and routes, not only the first ones"))
        .arg(pool_argument(ONE_POOL))
        .args(control_arguments())
        .arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let control = control(matches, sources)?;
    Ok(Box::new(IncludesOptions {
        control,
        pool: matches.get_one("pool").cloned(),
        route: matches.get_one("route").cloned(),
        all: matches.get_flag("all"),
        json: matches.get_flag("json"),
    }))
}

impl Run for IncludesOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        run(self)
    }
}

fn run(asked: &IncludesOptions) -> Result<ExitCode> {
    let path = control_client::path(asked.control.as_ref())?;
    let question = IncludesQuestion { pool: asked.pool.clone(), route: asked.route.clone() };
    let (pool, includes) = query(&path, question)?;
    if let Some(route) = asked.route.as_ref().filter(|_| includes.files.is_empty()) {
        let known: Vec<_> =
            includes.routes.iter().take(ROUTES_HINT_MAX).map(|r| &*r.route).collect();
        bail!(
            "no recorded request of the route `{route}` included a file\nhint: recorded routes: {}",
            control_client::printable(&known.join(", "))
        );
    }
    let text = if asked.json {
        let mut text = serde_json::to_string(&includes)?;
        text.push('\n');
        text
    } else {
        let mut text = show::text(&includes, asked.all);
        if !pool.is_empty() {
            text.insert_str(0, &format!("pool {pool}\n"));
        }
        control_client::printable(&text)
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Maximum number of routes in a hint.
const ROUTES_HINT_MAX: usize = 10;

/// Queries the files that requests include: the name of the pool, and its files.
pub(crate) fn query(control: &Path, question: IncludesQuestion) -> Result<(String, Includes)> {
    let request = Request::Includes(Box::new(question));
    let response: IncludesResponse =
        understand(&control_client::ask(control, &request, RESPONSE_LIMIT)?)?;
    if let Some(why) = response.error {
        bail!("{}", control_client::printable(&why));
    }
    let why = "the response has no included files\nhint: check that `samovar` and the server have \
               the same version";
    Ok((response.pool, serde_json::from_value(response.includes).context(why)?))
}
