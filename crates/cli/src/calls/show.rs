//! Formats a call graph for people: a table of functions, or one function with its callers and
//! callees.

// The casts are of means of times.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use crate::control_client::printable;
use crate::known_names::{hint, suggestions};
use anyhow::{Context, Result};
use samovar_profile::calls::Graph;
use samovar_profile::calls::table::{Neighbour, Order, Row, neighbours, rows};
use samovar_wire::CallsResponse;
use std::fmt::Write as _;

/// Maximum number of functions in the table, and on each side of one function.
const ROWS_MAX: usize = 30;
const NS_PER_US: f64 = 1_000.0;

/// Data to show.
pub(super) struct Shown<'a> {
    pub(super) response: &'a CallsResponse,
    pub(super) graph: &'a Graph,
    pub(super) before: &'a Graph,
}

/// Returns the signature with a line end for a terminal; `$(…)` removes it.
pub(super) fn signature(text: &str) -> String {
    format!("{text}\n")
}

fn time(ns: f64) -> String {
    if ns.abs() < 10_000_000.0 {
        format!("{:.1} µs", ns / NS_PER_US)
    } else {
        format!("{:.1} ms", ns / NS_PER_US / 1_000.0)
    }
}

fn growth(of: Option<f64>) -> String {
    match of {
        None => "-".to_owned(),
        Some(more) if more > 0.0 => format!("+{}", time(more)),
        Some(more) => time(more),
    }
}

impl Shown<'_> {
    pub(super) fn text(&self, order: Order, function: Option<&str>) -> Result<String> {
        let text = match function {
            None => self.table(order),
            Some(name) => self.one(name)?,
        };
        Ok(printable(&text))
    }

    fn table(&self, order: Order) -> String {
        let all = rows(self.graph, self.before, order);
        let of_pool = match &*self.response.pool {
            "" => String::new(),
            pool => format!(" of pool {pool}"),
        };
        let mut out = format!(
            "{}{of_pool}: {} requests traced, {} in the week before; figures per request\n\n",
            self.response.route, self.graph.requests, self.before.requests
        );
        out.push_str(
            "     CALLS        OWN        CPU      TOTAL       95 \
                      %     MEMORY     GROWTH  FUNCTION\n",
        );
        for Row { function, calls, own, total, cpu, memory, percentiles, growth: more } in
            all.iter().take(ROWS_MAX)
        {
            let slow = time(percentiles[1] as f64);
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "{calls:>10.1} {:>10} {:>10} {:>10} {slow:>10} {:>8.1} K {:>10}  {}",
                time(*own),
                time(*cpu),
                time(*total),
                memory / 1_024.0,
                growth(*more),
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
        out
    }

    fn one(&self, name: &str) -> Result<String> {
        let [above, below] = neighbours(self.graph, name).with_context(|| {
            let known = self.graph.functions.iter().map(|function| function.name.as_str());
            let known: Vec<&str> = known.collect();
            let near = suggestions(name, &known);
            let hint = match near[..] {
                [] => "use the name in the table, with its class".to_owned(),
                _ => hint(&near, &known),
            };
            format!("no traced request called `{name}`\nhint: {hint}")
        })?;
        let mut out = String::new();
        for (title, side) in [("called by", above), ("calls", below)] {
            let _ = writeln!(out, "{title}\n     CALLS      TOTAL        CPU  FUNCTION");
            for (function, calls, wall, cpu) in side.iter().take(ROWS_MAX) {
                let of: &Neighbour<'_> = &(*function, *calls, *wall, *cpu);
                let _ = writeln!(
                    out,
                    "{:>10.1} {:>10} {:>10}  {}",
                    of.1,
                    time(of.2),
                    time(of.3),
                    of.0.name
                );
            }
            out.push('\n');
        }
        Ok(out)
    }
}
