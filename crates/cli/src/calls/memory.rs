//! Allocation profile of traced requests, as a table, a flame graph or lines of stacks.

// The casts are of means of bytes.
#![allow(clippy::cast_precision_loss)]

use crate::control_client::printable;
use anyhow::{Result, bail};
use samovar_profile::calls::{Allocated, Function, Graph};
use samovar_spy::profile::svg;
use std::fmt::Write as _;

/// Maximum number of functions in the table.
const ROWS_MAX: usize = 30;
const KIB: f64 = 1_024.0;

/// Rejects a graph without samples.
pub(super) fn check(graph: &Graph) -> Result<()> {
    if graph.allocations.requests == 0 {
        bail!(
            "no allocation was sampled in {} traced requests\nhint: do not set USE_ZEND_ALLOC=0 \
             in the environment of the server, and trace requests with this version of it",
            graph.requests
        );
    }
    Ok(())
}

fn function(graph: &Graph, at: u32) -> &Function {
    &graph.functions[at as usize]
}

/// Returns the functions that allocate most.
pub(super) fn table(graph: &Graph, route: &str, pool: &str) -> String {
    let stacks = &graph.allocations;
    let all = stacks.by_function();
    let requests = stacks.requests as f64;
    let bytes = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.own));
    let of_pool = if pool.is_empty() { String::new() } else { format!(" of pool {pool}") };
    let mut out = format!(
        "{route}{of_pool}: {:.1} K allocated per request, from samples every {} K in {} \
         requests\n\n",
        bytes as f64 / requests / KIB,
        stacks.sample_bytes / 1_024,
        stacks.requests,
    );
    out.push_str("   SELF   TOTAL      PER REQ       COUNT  FUNCTION\n");
    let shown = all.iter().filter(|one| one.own > 0 || one.total > 0);
    for Allocated { function: at, own, total, count } in shown.take(ROWS_MAX) {
        let of_all = |part: u64| part as f64 * 100.0 / bytes.max(1) as f64;
        let function = function(graph, *at);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{:>6.1}% {:>6.1}% {:>10.1} K {:>11.1}  {}",
            of_all(*own),
            of_all(*total),
            *own as f64 / requests / KIB,
            *count as f64 / requests,
            function.name,
        );
        let _ = match &*function.file {
            "" => writeln!(out),
            file if function.name.ends_with(file) => writeln!(out),
            file => writeln!(out, "  {file}:{}", function.line),
        };
    }
    if all.len() > ROWS_MAX {
        let _ = writeln!(out, "… and {} more functions", all.len() - ROWS_MAX);
    }
    printable(&out)
}

/// Returns a line `outer;inner bytes` for each stack.
pub(super) fn collapsed(graph: &Graph) -> String {
    let stacks = &graph.allocations;
    let mut lines: Vec<String> = Vec::new();
    for (at, stack) in stacks.stacks.iter().enumerate().filter(|(_, stack)| stack.bytes > 0) {
        let calls = stacks.calls(at);
        let names = calls.iter().map(|call| function(graph, *call).name.replace([';', '\n'], ":"));
        lines.push(format!("{} {}\n", names.collect::<Vec<_>>().join(";"), stack.bytes));
    }
    lines.sort();
    lines.concat()
}

/// Returns a flame graph of bytes.
pub(super) fn flames(graph: &Graph, route: &str) -> String {
    let title = format!("{route}: memory allocated in {} requests", graph.allocations.requests);
    svg::render(&graph.allocation_profile(), &title, svg::Measure::Bytes)
}
