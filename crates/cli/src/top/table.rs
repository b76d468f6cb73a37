//! Definition of the tables: columns, cells, and sort order.

use super::rows::Rows;
use std::cmp::Ordering;

/// One of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Routes.
    #[default]
    Routes,
    /// Workers.
    Workers,
    /// Peers that PHP waits for.
    Waits,
    /// Queues of jobs.
    Queues,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Routes, Kind::Workers, Kind::Waits, Kind::Queues];

    /// Returns the name on the command line and on the screen.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Routes => "routes",
            Kind::Workers => "workers",
            Kind::Waits => "waits",
            Kind::Queues => "queues",
        }
    }

    /// Returns the columns; the first one is wide.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Kind::Routes => &[
                "ROUTE", "REQ/S", "ERR/S", "CORES", "CPU MS", "WAIT MS", "P50 MS", "P95 MS",
                "P99 MS", "REQUESTS",
            ],
            Kind::Workers => {
                &["STATE", "PID", "MODEL", "REQ/S", "CORES", "MB", "REQUESTS", "AGE S", "GEN"]
            }
            Kind::Waits => &["PEER", "KIND", "TIMES/S", "WAITING", "MS EACH"],
            Kind::Queues => &[
                "QUEUE", "READY", "OLDEST S", "DELAYED", "RUNNING", "DEAD", "PUSH/S", "DONE/S",
                "FAIL/S",
            ],
        }
    }

    /// Returns the default sort column.
    pub(super) fn first_sort(self) -> usize {
        match self {
            Kind::Routes | Kind::Waits => 3,
            Kind::Workers => 4,
            Kind::Queues => 1,
        }
    }
}

/// Content of a cell, also used for sorting.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    /// A number with this number of decimals.
    Number(f64, usize),
}

impl Cell {
    pub(super) fn show(&self) -> String {
        match self {
            // A route's name may come from a client.
            Cell::Text(text) => samovar_log::printable(text).into_owned(),
            Cell::Number(number, decimals) => format!("{number:.decimals$}"),
        }
    }

    /// Texts ascending, numbers descending.
    fn compare(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Number(a, _), Cell::Number(b, _)) => b.total_cmp(a),
            (Cell::Text(_), Cell::Number(..)) => Ordering::Less,
            (Cell::Number(..), Cell::Text(_)) => Ordering::Greater,
        }
    }
}

/// Returns the sorted lines of a table.
pub(super) fn lines(rows: &Rows, kind: Kind, sort: usize, is_reversed: bool) -> Vec<Vec<Cell>> {
    let mut lines: Vec<_> = match kind {
        Kind::Routes => routes(rows),
        Kind::Workers => workers(rows),
        Kind::Waits => waits(rows),
        Kind::Queues => queues(rows),
    };
    lines.sort_by(|a, b| {
        let by_column = a[sort].compare(&b[sort]);
        let by_column = if is_reversed { by_column.reverse() } else { by_column };
        by_column.then_with(|| a[0].compare(&b[0])).then_with(|| a[1].compare(&b[1]))
    });
    lines
}

fn text(of: &str) -> Cell {
    Cell::Text(of.to_owned())
}

#[allow(clippy::cast_precision_loss)] // Counters stay below 2⁵³.
fn whole(of: u64) -> Cell {
    Cell::Number(of as f64, 0)
}

fn routes(rows: &Rows) -> Vec<Vec<Cell>> {
    let line = |r: &super::rows::RouteRow| {
        vec![
            text(&r.route),
            Cell::Number(r.requests_per_second, 1),
            Cell::Number(r.errors_per_second, 1),
            Cell::Number(r.cores, 2),
            Cell::Number(r.cpu_ms_each, 2),
            Cell::Number(r.waiting_ms_each, 2),
            Cell::Number(r.p50_ms, 1),
            Cell::Number(r.p95_ms, 1),
            Cell::Number(r.p99_ms, 1),
            whole(r.requests),
        ]
    };
    rows.routes.iter().map(line).collect()
}

fn workers(rows: &Rows) -> Vec<Vec<Cell>> {
    let line = |w: &super::rows::WorkerRow| {
        let state = match &*w.pool {
            "" => w.state.clone(),
            pool => format!("{} in pool {pool}", w.state),
        };
        vec![
            Cell::Text(state),
            Cell::Number(w.pid.into(), 0),
            text(&w.model),
            Cell::Number(w.requests_per_second, 1),
            Cell::Number(w.cores, 2),
            whole(w.rss_bytes / 1_000_000),
            whole(w.requests),
            Cell::Number(w.age_seconds, 0),
            whole(w.generation),
        ]
    };
    rows.workers.iter().map(line).collect()
}

fn waits(rows: &Rows) -> Vec<Vec<Cell>> {
    let line = |w: &super::rows::WaitRow| {
        vec![
            text(if w.peer.is_empty() { &w.kind } else { &w.peer }),
            text(&w.kind),
            Cell::Number(w.times_per_second, 1),
            Cell::Number(w.waiting, 2),
            Cell::Number(w.ms_each, 2),
        ]
    };
    rows.waits.iter().map(line).collect()
}

fn queues(rows: &Rows) -> Vec<Vec<Cell>> {
    let line = |q: &super::rows::QueueRow| {
        let paused = if q.paused { " (paused)" } else { "" };
        vec![
            Cell::Text(format!("{}{paused}", q.queue)),
            whole(q.ready),
            Cell::Number(q.oldest_seconds, 1),
            whole(q.delayed),
            whole(q.running),
            whole(q.dead),
            Cell::Number(q.pushed_per_second, 1),
            Cell::Number(q.done_per_second, 1),
            Cell::Number(q.failed_per_second, 1),
        ]
    };
    rows.queues.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{Kind, lines};
    use crate::top::rows::{QueueRow, RouteRow, Rows, WaitRow, WorkerRow};

    fn rows() -> Rows {
        let route =
            |name: &str, cores| RouteRow { route: name.to_owned(), cores, ..RouteRow::default() };
        Rows {
            routes: vec![route("b", 0.1), route("a\u{1b}[2J", 0.1), route("c", 0.9)],
            workers: vec![WorkerRow::default()],
            waits: vec![WaitRow { kind: "sleep".to_owned(), ..WaitRow::default() }],
            queues: vec![QueueRow { paused: true, ..QueueRow::default() }],
            ..Rows::default()
        }
    }

    #[test]
    fn table_is_sorted_by_selected_column() {
        let names = |sort, is_reversed| -> Vec<_> {
            let lines = lines(&rows(), Kind::Routes, sort, is_reversed);
            lines.iter().map(|line| line[0].show()).collect()
        };
        assert_eq!(names(3, false), ["c", "a\u{fffd}[2J", "b"]);
        assert_eq!(names(3, true), ["a\u{fffd}[2J", "b", "c"]);
        assert_eq!(names(0, true), ["c", "b", "a\u{fffd}[2J"]);
    }

    #[test]
    fn each_line_has_a_cell_for_each_column() {
        for kind in Kind::ALL {
            let lines = lines(&rows(), kind, kind.first_sort(), false);
            assert!(!lines.is_empty());
            assert!(lines.iter().all(|line| line.len() == kind.columns().len()), "{kind:?}");
        }
        assert_eq!(lines(&rows(), Kind::Waits, 0, false)[0][0].show(), "sleep");
        let (pool, state) = ("api".to_owned(), "busy".to_owned());
        let workers = vec![WorkerRow { pool, state, ..WorkerRow::default() }];
        let of_pool = Rows { workers, ..Rows::default() };
        let shown = lines(&of_pool, Kind::Workers, 0, false)[0][0].show();
        assert_eq!(shown, "busy in pool api");
    }
}
