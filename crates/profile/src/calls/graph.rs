//! Call graphs of many requests, added up: functions by name, edges by the names at their ends.

use super::times::Times;
use super::trace::{Cost, Trace, TracedFunction};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Functions of one graph; the rest is [`OTHER`].
const FUNCTIONS_MAX: usize = 4_000;
/// Edges of one graph, likewise.
const EDGES_MAX: usize = 16_000;
const OTHER: &str = "(other)";
/// What the graph begins with.
pub(super) const ROOT: &str = "(request)";

/// Whose function it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Written in PHP.
    #[default]
    User,
    /// PHP's own, or an extension's.
    Internal,
}

/// A function of all requests that were traced. Times in ns, memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// `App\Basket::total`, `{file} /srv/a.php` for a file's own code.
    pub name: String,
    /// Where it is declared.
    pub file: String,
    /// Likewise.
    pub line: u32,
    /// Whose it is.
    pub kind: Kind,
    /// Requests that called it.
    pub requests: u64,
    /// How often it was called.
    pub calls: u64,
    /// By the clock, with all that it called.
    pub wall: i64,
    /// By the clock, without.
    pub wall_own: i64,
    /// CPU time, with all that it called.
    pub cpu: i64,
    /// CPU time, without.
    pub cpu_own: i64,
    /// How far memory grew, with all that it called.
    pub mem: i64,
    /// Without.
    pub mem_own: i64,
    /// `wall` of each request that called it.
    pub times: Times,
}

/// Who called whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The caller's place among the functions.
    pub caller: u32,
    /// The callee's.
    pub callee: u32,
    /// How often.
    pub calls: u64,
    /// What the callee took, ns.
    pub wall: i64,
    /// Of the CPU, ns.
    pub cpu: i64,
    /// How far memory grew, bytes.
    pub mem: i64,
}

/// What the requests of a route have called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Requests that were traced.
    pub requests: u64,
    /// The peak of their memory, all added up.
    pub peak_bytes: u64,
    /// What the instrument was found to take for a call, which is not in the times, ns: of functions written in PHP, and of PHP's
    /// own. The latest.
    pub costs: Vec<u64>,
    /// Functions and edges that workers had no room for.
    pub lost: u64,
    /// The first is the request itself.
    pub functions: Vec<Function>,
    /// In no order.
    pub edges: Vec<Edge>,
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

    /// What was read from somewhere: edges lead to functions.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let count = self.functions.len();
        let is_in = |at: u32| (at as usize) < count;
        count <= FUNCTIONS_MAX + 2
            && self.edges.len() <= EDGES_MAX + 1
            && self.edges.iter().all(|edge| is_in(edge.caller) && is_in(edge.callee))
    }

    fn place(&mut self, name: &str, file: &str, line: u32, kind: Kind) -> u32 {
        if let Some(at) = self.named.get(name) {
            return *at;
        }
        // The last place is for the others.
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
        // What a calibration has taken too much of a short call is not less than nothing.
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

    /// One more request.
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
    }

    /// All that another one has.
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
    }

    /// The function of that name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<(u32, &Function)> {
        let mut all = self.functions.iter().zip(0..);
        all.find_map(|(function, at)| (function.name == name).then_some((at, function)))
    }

    /// Whether the function is PHP's way of finding classes.
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
    fn requests_add_up_by_names() {
        let mut graph = Graph::default();
        graph.add(&trace(&["a", "b"]));
        graph.add(&trace(&["b"]));
        let (at, b) = graph.function("b").expect("b");
        assert_eq!((b.requests, b.calls, b.wall), (2, 4, 180));
        let edge = graph.edges.iter().find(|edge| edge.callee == at).expect("an edge");
        assert_eq!((edge.calls, edge.wall), (4, 180));
        // What is kept and read again goes on as it was.
        let text = serde_json::to_string(&graph).expect("JSON");
        let mut again: Graph = serde_json::from_str(&text).expect("a graph");
        assert!(again.is_sound());
        again.merge(&graph);
        assert_eq!(again.function("b").expect("b").1.calls, 8);
        assert_eq!((again.requests, again.functions.len(), again.edges.len()), (4, 3, 2));
    }

    #[test]
    fn names_without_end_become_others() {
        let names: Vec<String> = (0..2 * FUNCTIONS_MAX).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut graph = Graph::default();
        graph.add(&trace(&names));
        assert!(graph.is_sound());
        let calls: u64 = graph.functions.iter().map(|function| function.calls).sum();
        assert_eq!(calls, 1 + 2 * names.len() as u64, "nothing is lost");
    }
}
