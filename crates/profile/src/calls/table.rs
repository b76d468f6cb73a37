//! A graph as a table of functions, with values per request and the change since the week before.
//! Pure: the page and the command display it.

// The casts are of means of times.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use super::graph::{Function, Graph};

/// Sort order of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Wall time without callees.
    #[default]
    Own,
    /// Wall time, callees included.
    Total,
    /// CPU time without callees.
    Cpu,
    /// Number of calls.
    Calls,
    /// Growth of memory.
    Memory,
    /// Growth of the wall time since the week before.
    Growth,
    /// 95th percentile of the wall time.
    Slowest,
}

impl Order {
    /// All orders with their names.
    pub const ALL: [(Order, &'static str); 7] = [
        (Order::Own, "own"),
        (Order::Total, "total"),
        (Order::Cpu, "cpu"),
        (Order::Calls, "calls"),
        (Order::Memory, "memory"),
        (Order::Growth, "growth"),
        (Order::Slowest, "slowest"),
    ];

    /// Returns the order with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Order> {
        Order::ALL.iter().find_map(|(order, known)| (*known == name).then_some(*order))
    }
}

/// Values of one function per request of its route. Times in ns, memory in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// The function.
    pub function: &'a Function,
    /// Number of calls.
    pub calls: f64,
    /// Wall time without callees.
    pub own: f64,
    /// Wall time, callees included.
    pub total: f64,
    /// CPU time without callees.
    pub cpu: f64,
    /// Growth of memory, callees included.
    pub memory: f64,
    /// Median and 95th percentile of the wall time with callees, over the requests that called the
    /// function.
    pub percentiles: [u64; 2],
    /// Change of `own` since the week before; `None`: that week has no data.
    pub growth: Option<f64>,
}

fn per(sum: i64, requests: u64) -> f64 {
    sum as f64 / requests.max(1) as f64
}

/// Returns the functions in this order.
#[must_use]
pub fn rows<'a>(graph: &'a Graph, before: &Graph, order: Order) -> Vec<Row<'a>> {
    let n = graph.requests;
    let was: std::collections::HashMap<&str, f64> = before
        .functions
        .iter()
        .map(|function| (function.name.as_str(), per(function.wall_own, before.requests)))
        .collect();
    let row = |function: &'a Function| {
        let own = per(function.wall_own, n).max(0.0);
        let was = was.get(function.name.as_str()).copied().unwrap_or(0.0).max(0.0);
        Row {
            function,
            calls: function.calls as f64 / n.max(1) as f64,
            own,
            total: per(function.wall, n),
            cpu: per(function.cpu_own, n).max(0.0),
            memory: per(function.mem, n),
            percentiles: [50.0, 95.0].map(|percent| function.times.percentile(percent)),
            growth: (before.requests > 0).then_some(own - was),
        }
    };
    let used = graph.functions.iter().filter(|function| function.requests > 0);
    let mut rows: Vec<_> = used.map(row).collect();
    let key = |row: &Row<'_>| match order {
        Order::Own => row.own,
        Order::Total => row.total,
        Order::Cpu => row.cpu,
        Order::Calls => row.calls,
        Order::Memory => row.memory,
        Order::Growth => row.growth.unwrap_or(0.0),
        Order::Slowest => row.percentiles[1] as f64,
    };
    rows.sort_by(|a, b| {
        key(b).total_cmp(&key(a)).then_with(|| a.function.name.cmp(&b.function.name))
    });
    rows
}

/// A caller or callee of a function: the other function, calls, wall time (ns) and CPU time (ns)
/// per request.
pub type Neighbour<'a> = (&'a Function, f64, f64, f64);

/// Returns the callers and the callees of a function, longest wall time first.
#[must_use]
pub fn neighbours<'a>(graph: &'a Graph, name: &str) -> Option<[Vec<Neighbour<'a>>; 2]> {
    let (at, _) = graph.function(name)?;
    let n = graph.requests;
    let mut sides = [Vec::new(), Vec::new()];
    for edge in &graph.edges {
        let calls = edge.calls as f64 / n.max(1) as f64;
        let (wall, cpu) = (per(edge.wall, n), per(edge.cpu, n));
        if edge.callee == at {
            sides[0].push((&graph.functions[edge.caller as usize], calls, wall, cpu));
        }
        if edge.caller == at {
            sides[1].push((&graph.functions[edge.callee as usize], calls, wall, cpu));
        }
    }
    for side in &mut sides {
        side.sort_by(|a: &Neighbour<'_>, b| {
            b.2.total_cmp(&a.2).then_with(|| a.0.name.cmp(&b.0.name))
        });
    }
    Some(sides)
}
