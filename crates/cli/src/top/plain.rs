//! The tables for a pipe: once, as text or as JSON.

use super::rows::Rows;
use super::table::{Kind, lines};
use std::fmt::Write as _;

/// Maximum number of lines of each table.
const LINES_MAX: usize = 20;
/// Maximum width of a name.
const NAME_WIDTH: usize = 48;

/// Returns the health verdict.
pub(super) fn headline(rows: &Rows) -> String {
    let (version, listen) = (&rows.version, rows.listen.join(", "));
    let generation = rows.generation;
    let verdict = match &rows.troubles[..] {
        [] => "healthy".to_owned(),
        all if rows.healthy => format!("healthy, to be looked at: {}", all.join("; ")),
        all => format!("unhealthy: {}", all.join("; ")),
    };
    let line = format!("samovar {version} on {listen}, generation {generation}: {verdict}");
    crate::control_client::printable(&line)
}

/// Returns the summary in one line.
pub(super) fn summary(rows: &Rows) -> String {
    format!(
        "{:.1} req/s  {:.1} err/s  cores: workers {:.2} server {:.2}  in flight {}  queued {}  \
         connections {}  p50 {:.1} ms  p99 {:.1} ms",
        rows.requests_per_second,
        rows.errors_per_second,
        rows.workers_cores,
        rows.server_cores,
        rows.in_flight,
        rows.queue_depth,
        rows.connections,
        rows.p50_ms,
        rows.p99_ms,
    )
}

pub(super) fn text(rows: &Rows) -> String {
    let mut out = format!("{}\n{}\n", headline(rows), summary(rows));
    for kind in Kind::ALL {
        let all = lines(rows, kind, kind.first_sort(), false);
        if !all.is_empty() {
            out.push('\n');
            line(kind.columns().iter().map(|name| (*name).to_owned()), &mut out);
            for cells in all.iter().take(LINES_MAX) {
                line(cells.iter().map(super::table::Cell::show), &mut out);
            }
        }
    }
    out
}

fn line(cells: impl Iterator<Item = String>, out: &mut String) {
    for (at, cell) in cells.enumerate() {
        // Writing to a string cannot fail.
        let _ = match at {
            0 => {
                let cut: String = cell.chars().take(NAME_WIDTH).collect();
                write!(out, "{cut:<NAME_WIDTH$}")
            }
            _ => write!(out, " {cell:>10}"),
        };
    }
    out.push('\n');
}

/// Returns one line of JSON.
pub(super) fn json(rows: &Rows) -> String {
    let mut line = samovar_wire::line(rows);
    line.push('\n');
    line
}
