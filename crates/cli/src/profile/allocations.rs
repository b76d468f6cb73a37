//! `samovar profile --memory`: allocated memory by function, of one route or of all traced routes.
//! The tracing workers sample the allocations. `samovar calls --memory` shows those of one route.

// The casts are of means of bytes.
#![allow(clippy::cast_precision_loss)]

use super::options::ProfileOptions;
use super::picture;
use crate::control_client::{self, printable, understand};
use crate::known_names::no_such_route;
use crate::spy::options::Format;
use anyhow::{Context, Result, bail};
use samovar_profile::calls::Graph;
use samovar_server::terminal;
use samovar_spy::profile::svg::{self, Measure};
use samovar_spy::profile::{Profile, STACKS_MAX, Share, callgrind, collapsed, pprof, speedscope};
use samovar_wire::{CallsQuestion, CallsResponse, Request};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

/// Timeout for each response.
const RESPONSE_LIMIT: Duration = Duration::from_secs(15);
/// Maximum number of routes that are added up: those with the most traced requests.
const ROUTES_MAX: usize = 50;
/// Maximum number of functions in the table.
const ROWS_MAX: usize = 30;
const KIB: f64 = 1_024.0;
const DAY_S: u64 = 86_400;
/// Route of boots, which are no requests.
const BOOT: &str = "(boot)";

/// Memory allocated in all requests.
struct Allocated {
    title: String,
    day: u64,
    requests: u64,
    sample_bytes: u64,
    profile: Profile,
}

impl Allocated {
    fn add(&mut self, graph: &Graph) {
        self.requests += graph.allocations.requests;
        self.sample_bytes = self.sample_bytes.max(graph.allocations.sample_bytes);
        self.profile.merge(&graph.allocation_profile(), STACKS_MAX);
    }
}

fn ask(
    asked: &ProfileOptions,
    path: &Path,
    route: Option<String>,
) -> Result<(Graph, CallsResponse)> {
    let question = CallsQuestion { pool: asked.pool.clone(), route, ..CallsQuestion::default() };
    let line = control_client::ask(path, &Request::Calls(Box::new(question)), RESPONSE_LIMIT)?;
    let mut response: CallsResponse = understand(&line)?;
    if let Some(why) = &response.error {
        bail!("{}", printable(why));
    }
    let graph: Option<Graph> = serde_json::from_value(response.graph.take()).ok();
    let graph = graph.filter(Graph::is_sound).context(
        "the response is not a call graph\nhint: check that `samovar` and the server have the \
         same version",
    )?;
    Ok((graph, response))
}

/// Shows the profile.
pub(super) fn run(asked: &ProfileOptions, path: &Path) -> Result<ExitCode> {
    let (first, response) = ask(asked, path, asked.route.clone())?;
    let of_pool = if response.pool.is_empty() { "" } else { " of pool " };
    let what = asked.route.as_deref().unwrap_or("all traced routes");
    let mut all = Allocated {
        title: printable(&format!("{what}{of_pool}{}", response.pool)),
        day: response.day,
        requests: 0,
        sample_bytes: 0,
        profile: Profile::new(),
    };
    if asked.route.is_some() || response.route != BOOT {
        all.add(&first);
    }
    if asked.route.is_none() {
        let is_other = |route: &str| route != response.route && route != BOOT;
        let others = response.routes.iter().filter(|(route, _)| is_other(route));
        for (route, _) in others.take(ROUTES_MAX) {
            all.add(&ask(asked, path, Some(route.clone()))?.0);
        }
    }
    if all.requests == 0 || all.profile.is_empty() {
        let typed = asked.route.as_deref();
        if let Some(error) = typed.and_then(|of| no_such_route(path, of, &response.routes)) {
            return Err(error);
        }
        bail!(
            "no allocation was sampled\nhint: requests must be traced (profile.trace); do not set \
             USE_ZEND_ALLOC=0 in the environment of the server"
        );
    }
    match asked.format {
        Some(format) => picture::save(&file(&all, format)?, asked, &all.profile)?,
        None if asked.json => terminal::print(&document(&all))?,
        None => terminal::print(&table(&all))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn file(all: &Allocated, format: Format) -> Result<Vec<u8>> {
    let (profile, measure) = (&all.profile, Measure::Bytes);
    let title = format!("{}: memory allocated in {} requests", all.title, all.requests);
    Ok(match format {
        Format::Svg => svg::render(profile, &title, measure).into_bytes(),
        Format::Collapsed => collapsed::render_bytes(profile).into_bytes(),
        Format::Callgrind => callgrind::render_bytes(profile, measure).into_bytes(),
        Format::Speedscope => speedscope::render_bytes(profile, &title).into_bytes(),
        Format::Pprof => {
            let began = UNIX_EPOCH + Duration::from_secs(all.day.saturating_mul(DAY_S));
            pprof::render_bytes(profile, measure, (began, Duration::from_secs(DAY_S)))?
        }
    })
}

fn table(all: &Allocated) -> String {
    let (total, requests) = (all.profile.total().wall_ns, all.requests as f64);
    let mut out = format!(
        "{}: {:.1} K allocated per request, from samples every {} K in {} requests\n\n",
        all.title,
        total as f64 / requests / KIB,
        all.sample_bytes / 1_024,
        all.requests,
    );
    out.push_str("   SELF   TOTAL      PER REQ  FUNCTION\n");
    let shares = all.profile.shares_by_bytes();
    for Share { function, own, total: with } in shares.iter().take(ROWS_MAX) {
        let of_all = |part: u64| part as f64 * 100.0 / total.max(1) as f64;
        let place = if function.is_internal() {
            String::new()
        } else {
            format!("  {}:{}", function.file, function.line)
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>6.1}% {:>6.1}% {:>10.1} K  {}{place}",
            of_all(own.wall_ns),
            of_all(with.wall_ns),
            own.wall_ns as f64 / requests / KIB,
            function.full_name(),
        );
    }
    if shares.len() > ROWS_MAX {
        let _ = writeln!(out, "… and {} more functions", shares.len() - ROWS_MAX);
    }
    printable(&out)
}

fn document(all: &Allocated) -> String {
    let function = |share: Share| {
        json!({
            "function": share.function.full_name(),
            "file": share.function.file,
            "line": share.function.line,
            "self_bytes": share.own.wall_ns,
            "total_bytes": share.total.wall_ns,
            "allocations": share.own.samples,
        })
    };
    let document = json!({
        "requests": all.requests,
        "sample_bytes": all.sample_bytes,
        "allocated_bytes": all.profile.total().wall_ns,
        "functions": all.profile.shares_by_bytes().into_iter().map(function).collect::<Vec<_>>(),
    });
    format!("{document}\n")
}
