//! Exports call graphs for other tools: callgrind's format (`KCachegrind`, `QCacheGrind`) and
//! `XHProf`'s array.

// The casts are of means of times.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use super::graph::{Function, Graph};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns a graph in callgrind's format: <https://valgrind.org/docs/manual/cl-format.html>. Values
/// are sums over all requests; the costs are µs of wall time, µs of CPU time, and bytes.
#[must_use]
pub fn callgrind(graph: &Graph) -> String {
    let mut out = String::from(
        "# callgrind format\nversion: 1\ncreator: samovar\npositions: line\n\
         events: Wall Cpu Memory\n\
         event: Wall : Time (µs)\nevent: Cpu : CPU time (µs)\nevent: Memory : Memory (bytes)\n",
    );
    let root = graph.functions.first();
    let sum = |of: fn(&Function) -> i64| root.map_or(0, of).max(0);
    let _ = writeln!(
        out,
        "summary: {} {} {}",
        sum(|f| f.wall) / 1_000,
        sum(|f| f.cpu) / 1_000,
        sum(|f| f.mem)
    );
    let mut outgoing: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, edge) in graph.edges.iter().enumerate() {
        outgoing.entry(edge.caller).or_default().push(at);
    }
    for (function, at) in graph.functions.iter().zip(0..) {
        let _ = writeln!(out, "\nfl={}\nfn={}", file(function), name(function));
        let (wall, cpu) = (function.wall_own.max(0) / 1_000, function.cpu_own.max(0) / 1_000);
        let _ = writeln!(out, "{} {wall} {cpu} {}", function.line, function.mem_own.max(0));
        for edge in outgoing.get(&at).into_iter().flatten() {
            let edge = &graph.edges[*edge];
            let callee = &graph.functions[edge.callee as usize];
            let _ = writeln!(out, "cfl={}\ncfn={}", file(callee), name(callee));
            let _ = writeln!(out, "calls={} {}", edge.calls, callee.line);
            let (wall, cpu) = (edge.wall.max(0) / 1_000, edge.cpu.max(0) / 1_000);
            let _ = writeln!(out, "{} {wall} {cpu} {}", function.line, edge.mem.max(0));
        }
    }
    out
}

fn file(function: &Function) -> String {
    if function.file.is_empty() { "php:internal".to_owned() } else { word(&function.file) }
}

fn name(function: &Function) -> String {
    word(&function.name)
}

/// Makes a name safe for callgrind, which reads `(1) name` as an abbreviation and a line end as the
/// end of the name. Code generated at run time can have any name.
fn word(text: &str) -> String {
    let text = one_line(text);
    if text.starts_with('(') { format!("php{text}") } else { text }
}

fn one_line(text: &str) -> String {
    samovar_log::printable(text).into_owned()
}

/// Returns a graph as `XHProf`'s array, as `xhprof_disable()` returns it: `caller==>callee` → ct,
/// wt (µs), cpu (µs), mu (bytes). Values are per request.
#[must_use]
pub fn xhprof(graph: &Graph) -> Value {
    let mut all = Map::new();
    let per_request = |sum: i64| (sum as f64 / graph.requests.max(1) as f64).round() as i64;
    let row = |calls: u64, wall: i64, cpu: i64, mem: i64| {
        // At least 1: the function was called, even if by only one of many requests.
        let calls = (calls as f64 / graph.requests.max(1) as f64).round().max(1.0) as u64;
        let (wall, cpu) = (per_request(wall / 1_000), per_request(cpu / 1_000));
        json!({ "ct": calls, "wt": wall, "cpu": cpu, "mu": per_request(mem), "pmu": 0 })
    };
    for edge in &graph.edges {
        let caller = xhprof_name(graph, edge.caller);
        let callee = xhprof_name(graph, edge.callee);
        // XHProf marks recursive calls with their depth.
        let callee = if caller == callee { format!("{callee}@1") } else { callee };
        all.insert(format!("{caller}==>{callee}"), row(edge.calls, edge.wall, edge.cpu, edge.mem));
    }
    if let Some(root) = graph.functions.first() {
        let mut main = row(root.calls, root.wall, root.cpu, root.mem);
        main["pmu"] = json!(graph.peak_bytes / graph.requests.max(1));
        all.insert("main()".to_owned(), main);
    }
    Value::Object(all)
}

fn xhprof_name(graph: &Graph, at: u32) -> String {
    let function = &graph.functions[at as usize];
    match function.name.strip_prefix("{file} ") {
        _ if Graph::is_request(function) => "main()".to_owned(),
        Some(file) => {
            let file = one_line(file.trim_start_matches('/')).replace("==>", "=>");
            format!("run_init::{file}")
        }
        // Tools that read the array split a key at its first `==>`.
        None => one_line(&function.name).replace("==>", "=>"),
    }
}

/// Returns the array in the format of PHP's `serialize()`, which `XHProf`'s own pages read from
/// files.
#[must_use]
pub fn serialized(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, value);
    out
}

fn put(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(entries) => {
            out.extend(format!("a:{}:{{", entries.len()).bytes());
            for (key, value) in entries {
                put_text(out, key);
                put(out, value);
            }
            out.push(b'}');
        }
        Value::String(text) => put_text(out, text),
        number => out.extend(format!("i:{};", number.as_i64().unwrap_or(0)).bytes()),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(format!("s:{}:\"{text}\";", text.len()).bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::graph::Edge;

    const EVIL: [&str; 3] = ["(1) a\nfn=b\"<'", "x==>y\u{1b}", "{file} /srv/a==>b\n.php"];

    fn graph() -> Graph {
        let function = |(at, name): (u32, &&str)| Function {
            name: (*name).to_owned(),
            file: if at == 0 { String::new() } else { EVIL[0].to_owned() },
            calls: 1,
            ..Function::default()
        };
        let names = [&["(request)"][..], &EVIL].concat();
        let edge = |callee| Edge { caller: callee - 1, callee, calls: 1, ..Edge::default() };
        let mut graph = Graph::default();
        graph.requests = 1;
        graph.functions = (0..).zip(&names).map(function).collect();
        graph.edges = (1..4).map(edge).collect();
        graph
    }

    #[test]
    fn callgrind_output_escapes_function_names() {
        let text = callgrind(&graph());
        assert!(!text.contains("fn=b\"<'\n\n") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("fn=")).count(), 4, "{text}");
        for line in text.lines() {
            let (_, value) = line.split_once('=').unwrap_or_default();
            assert!(!value.starts_with('('), "no abbreviation: {line}");
        }
    }

    #[test]
    fn xhprof_keys_escape_function_names() {
        let all = xhprof(&graph());
        let all = all.as_object().expect("an array");
        assert_eq!(all.len(), 4, "{all:?}");
        for key in all.keys().filter(|key| *key != "main()") {
            assert_eq!(key.matches("==>").count(), 1, "{key}");
            assert!(!key.contains(char::is_control), "{key}");
        }
        let text = serialized(&xhprof(&graph()));
        assert!(text.starts_with(b"a:4:{s:"));
    }
}
