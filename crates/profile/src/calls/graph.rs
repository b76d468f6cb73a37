//! Call graphs of many requests, added up: functions by name, edges by the names of caller and
//! callee.

use super::stacks::Stacks;
use super::times::Times;
use super::trace::{Cost, Trace, TracedFunction};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Maximum number of functions in one graph; the others are counted as [`OTHER`].
const FUNCTIONS_MAX: usize = 4_000;
/// Maximum number of edges in one graph; the others are counted as [`OTHER`].
const EDGES_MAX: usize = 16_000;
const OTHER: &str = "(other)";
/// Name of the graph's root.
pub(super) const ROOT: &str = "(request)";

/// Origin of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Written in PHP.
    #[default]
    User,
    /// Built into PHP or an extension.
    Internal,
}

/// One function in all traced requests. Times in ns, memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Name such as `App\Basket::total`, or `{file} /srv/a.php` for a file's own code.
    pub name: String,
    /// File of the declaration.
    pub file: String,
    /// Line of the declaration.
    pub line: u32,
    /// Origin of the function.
    pub kind: Kind,
    /// Number of requests that called it.
    pub requests: u64,
    /// Number of calls.
    pub calls: u64,
    /// Wall time, callees included.
    pub wall: i64,
    /// Wall time without callees.
    pub wall_own: i64,
    /// CPU time, callees included.
    pub cpu: i64,
    /// CPU time without callees.
    pub cpu_own: i64,
    /// Growth of memory, callees included.
    pub mem: i64,
    /// Growth of memory without callees.
    pub mem_own: i64,
    /// Distribution of `wall` over the requests that called it.
    pub times: Times,
}

/// Calls from one function to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Index of the caller in `functions`.
    pub caller: u32,
    /// Index of the callee in `functions`.
    pub callee: u32,
    /// Number of calls.
    pub calls: u64,
    /// Wall time of the callee, ns.
    pub wall: i64,
    /// CPU time of the callee, ns.
    pub cpu: i64,
    /// Growth of memory in the callee, bytes.
    pub mem: i64,
}

/// Call graph of a route's requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Number of traced requests.
    pub requests: u64,
    /// Sum of the requests' peak memory.
    pub peak_bytes: u64,
    /// Measured overhead of the tracer per call in ns, for functions written in PHP and for
    /// internal ones. The times exclude it. Value of the latest request.
    pub costs: Vec<u64>,
    /// Number of functions and edges that did not fit into a worker's tables.
    pub lost: u64,
    /// Functions; the first one is the request itself.
    pub functions: Vec<Function>,
    /// Edges, in no particular order.
    pub edges: Vec<Edge>,
    /// Memory allocated by stack.
    #[serde(default)]
    pub allocations: Stacks,
    #[serde(skip)]
    named: HashMap<String, u32>,
    #[serde(skip)]
    ends: HashMap<(u32, u32), u32>,
}

impl Graph {
    fn index(&mut self) {
        if self.named.len() != self.functions.len() || self.ends.len() != self.edges.len() {
            let names = self.functions.iter().zip(0..);
            self.named = names.map(|(function, at)| (function.name.clone(), at)).collect();
            let ends = self.edges.iter().zip(0..);
            self.ends = ends.map(|(edge, at)| ((edge.caller, edge.callee), at)).collect();
        }
    }

    /// Returns whether all edges refer to existing functions. For graphs read from a file or from
    /// another process.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let count = self.functions.len();
        let is_in = |at: u32| (at as usize) < count;
        count <= FUNCTIONS_MAX + 2
            && self.edges.len() <= EDGES_MAX + 1
            && self.edges.iter().all(|edge| is_in(edge.caller) && is_in(edge.callee))
            && self.allocations.is_sound(count)
    }

    fn place(&mut self, name: &str, file: &str, line: u32, kind: Kind) -> u32 {
        if let Some(at) = self.named.get(name) {
            return *at;
        }
        // The last entry is reserved for `OTHER`.
        if self.functions.len() >= FUNCTIONS_MAX && name != OTHER {
            return self.place(OTHER, "", 0, Kind::Internal);
        }
        let at = self.functions.len() as u32;
        let (name, file) = (name.to_owned(), file.to_owned());
        self.named.insert(name.clone(), at);
        self.functions.push(Function { name, file, line, kind, ..Function::default() });
        at
    }

    fn edge(&mut self, caller: u32, callee: u32) -> &mut Edge {
        let mut ends = (caller, callee);
        if !self.ends.contains_key(&ends) {
            if self.edges.len() >= EDGES_MAX {
                let other = self.place(OTHER, "", 0, Kind::Internal);
                ends = (other, other);
            }
            if !self.ends.contains_key(&ends) {
                self.ends.insert(ends, self.edges.len() as u32);
                self.edges.push(Edge { caller: ends.0, callee: ends.1, ..Edge::default() });
            }
        }
        &mut self.edges[self.ends[&ends] as usize]
    }

    fn add_cost(function: &mut Function, all: &Cost, own: &Cost) {
        function.calls = function.calls.saturating_add(all.calls);
        // For short calls the calibration may subtract too much; a negative time counts as 0.
        for (sum, more) in [
            (&mut function.wall, all.wall.max(0)),
            (&mut function.wall_own, own.wall),
            (&mut function.cpu, all.cpu.max(0)),
            (&mut function.cpu_own, own.cpu),
            (&mut function.mem, all.mem),
            (&mut function.mem_own, own.mem),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Adds one request.
    pub(super) fn add(&mut self, trace: &Trace) {
        self.index();
        self.requests += 1;
        self.peak_bytes = self.peak_bytes.saturating_add(trace.peak_bytes);
        self.lost = self.lost.saturating_add(trace.lost);
        self.costs.clone_from(&trace.costs);
        let mut places = Vec::with_capacity(trace.functions.len());
        for TracedFunction { is_user, cost, own, line, file, name } in &trace.functions {
            let kind = if *is_user { Kind::User } else { Kind::Internal };
            let at = self.place(name, file, *line, kind);
            places.push(at);
            if cost.calls == 0 && cost.wall == 0 {
                continue;
            }
            let function = &mut self.functions[at as usize];
            function.requests += 1;
            function.times.add(cost.wall.max(0).unsigned_abs());
            Graph::add_cost(function, cost, own);
        }
        for edge in &trace.edges {
            let to = self.edge(places[edge.caller], places[edge.callee]);
            to.calls = to.calls.saturating_add(edge.cost.calls);
            to.wall = to.wall.saturating_add(edge.cost.wall.max(0));
            to.cpu = to.cpu.saturating_add(edge.cost.cpu.max(0));
            to.mem = to.mem.saturating_add(edge.cost.mem);
        }
        self.allocations.add(trace, &places);
    }

    /// Adds all requests of another graph.
    pub fn merge(&mut self, other: &Graph) {
        self.index();
        self.requests = self.requests.saturating_add(other.requests);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.lost = self.lost.saturating_add(other.lost);
        self.costs.clone_from(&other.costs);
        let mut places = Vec::with_capacity(other.functions.len());
        for from in &other.functions {
            let at = self.place(&from.name, &from.file, from.line, from.kind);
            places.push(at);
            let to = &mut self.functions[at as usize];
            let all = Cost { calls: from.calls, wall: from.wall, cpu: from.cpu, mem: from.mem };
            let own = Cost {
                calls: from.calls,
                wall: from.wall_own,
                cpu: from.cpu_own,
                mem: from.mem_own,
            };
            Graph::add_cost(to, &all, &own);
            to.requests = to.requests.saturating_add(from.requests);
            to.times.merge(&from.times);
        }
        for edge in &other.edges {
            let (caller, callee) = (places[edge.caller as usize], places[edge.callee as usize]);
            let to = self.edge(caller, callee);
            to.calls = to.calls.saturating_add(edge.calls);
            to.wall = to.wall.saturating_add(edge.wall);
            to.cpu = to.cpu.saturating_add(edge.cpu);
            to.mem = to.mem.saturating_add(edge.mem);
        }
        self.allocations.merge(&other.allocations, &places);
    }

    /// Returns the function with this name, and its index.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<(u32, &Function)> {
        let mut all = self.functions.iter().zip(0..);
        all.find_map(|(function, at)| (function.name == name).then_some((at, function)))
    }

    /// Returns whether the function is the root, which represents the request itself.
    #[must_use]
    pub fn is_request(function: &Function) -> bool {
        function.name == ROOT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::trace::TracedEdge;

    fn function(name: &str, calls: u64, wall: i64, own: i64) -> TracedFunction {
        TracedFunction {
            is_user: true,
            cost: Cost { calls, wall, cpu: wall, mem: 1 },
            own: Cost { calls, wall: own, cpu: own, mem: 1 },
            line: 3,
            file: "/a.php".into(),
            name: name.into(),
        }
    }

    fn trace(names: &[&str]) -> Trace {
        let mut functions = vec![function(ROOT, 1, 100, 10)];
        functions.extend(names.iter().map(|name| function(name, 2, 90, 90)));
        let cost = Cost { calls: 2, wall: 90, cpu: 80, mem: 1 };
        let edges = (1..functions.len()).map(|callee| TracedEdge { caller: 0, callee, cost });
        Trace { edges: edges.collect(), functions, ..Trace::default() }
    }

    #[test]
    fn graph_adds_requests_by_function_name() {
        let mut graph = Graph::default();
        graph.add(&trace(&["a", "b"]));
        graph.add(&trace(&["b"]));
        let (at, b) = graph.function("b").expect("b");
        assert_eq!((b.requests, b.calls, b.wall), (2, 4, 180));
        let edge = graph.edges.iter().find(|edge| edge.callee == at).expect("an edge");
        assert_eq!((edge.calls, edge.wall), (4, 180));
        // A stored graph that is read again can be merged with further ones.
        let text = serde_json::to_string(&graph).expect("JSON");
        let mut again: Graph = serde_json::from_str(&text).expect("a graph");
        assert!(again.is_sound());
        again.merge(&graph);
        assert_eq!(again.function("b").expect("b").1.calls, 8);
        assert_eq!((again.requests, again.functions.len(), again.edges.len()), (4, 3, 2));
    }

    #[test]
    fn graph_beyond_function_limit_counts_others() {
        let names: Vec<String> = (0..2 * FUNCTIONS_MAX).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut graph = Graph::default();
        graph.add(&trace(&names));
        assert!(graph.is_sound());
        let calls: u64 = graph.functions.iter().map(|function| function.calls).sum();
        assert_eq!(calls, 1 + 2 * names.len() as u64, "nothing is lost");
    }
}
