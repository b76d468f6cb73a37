//! Call graph of one request, as its worker wrote it (`crates/worker/csrc/graph/report.c`). A
//! worker may be controlled by the code it runs, so its output is not trusted: the result is a
//! graph within limits, or none.

use crate::fields::{self, Fields};

/// Maximum number of lines of one graph: more than a worker's tables hold.
const LINES_MAX: usize = 64 * 1_024;
/// Maximum bytes of a stored function name or file name.
const TEXT_BYTES_MAX: usize = 512;
const BEGIN: &str = "samovar-graph 1";

/// Cost of calls in ns and bytes, without the tracer's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) calls: u64,
    pub(super) wall: i64,
    pub(super) cpu: i64,
    pub(super) mem: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TracedFunction {
    pub(super) is_user: bool,
    pub(super) cost: Cost,
    /// Cost without callees.
    pub(super) own: Cost,
    pub(super) line: u32,
    pub(super) file: String,
    pub(super) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracedEdge {
    pub(super) caller: usize,
    pub(super) callee: usize,
    pub(super) cost: Cost,
}

/// Memory allocated in one stack of calls, without callees. Estimated from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracedStack {
    /// Index of the stack that made the call: a smaller one. The first stack is the request.
    pub(super) caller: usize,
    /// Index of the function.
    pub(super) function: usize,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// Call graph of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) path: String,
    pub(super) script: String,
    /// Name that the application gave; empty: none.
    pub(super) route: String,
    pub(super) peak_bytes: u64,
    /// Overhead of the tracer per call in ns, for functions written in PHP and for internal ones.
    pub(super) costs: Vec<u64>,
    /// Number of functions and edges that did not fit into the worker's tables.
    pub(super) lost: u64,
    pub(super) functions: Vec<TracedFunction>,
    pub(super) edges: Vec<TracedEdge>,
    /// Mean number of allocated bytes between two samples; 0: nothing was sampled.
    pub(super) sample_bytes: u64,
    pub(super) stacks: Vec<TracedStack>,
}

fn cost(fields: &mut Fields<'_>) -> Option<Cost> {
    let (calls, wall) = (fields.number()?, fields.number()?);
    Some(Cost { calls, wall, cpu: fields.number()?, mem: fields.number()? })
}

fn cut(text: &str) -> String {
    fields::cut(text, TEXT_BYTES_MAX)
}

impl Trace {
    /// Parses a graph. Returns `None` if it is invalid or truncated.
    pub(super) fn read(bytes: &[u8]) -> Option<Trace> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().take(LINES_MAX);
        if lines.next()? != BEGIN {
            return None;
        }
        let mut trace = Trace::default();
        for line in lines {
            if line == "end" {
                let functions = trace.functions.len();
                let is_whole = trace
                    .edges
                    .iter()
                    .all(|edge| edge.caller < functions && edge.callee < functions);
                let are_known = trace.stacks.iter().all(|stack| stack.function < functions);
                return (is_whole && are_known && functions > 0).then_some(trace);
            }
            trace.take(line)?;
        }
        None
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut fields = Fields::of(line);
        match fields.text()? {
            "q" => {
                let (_id, _method) = (fields.text()?, fields.text()?);
                // The query string may contain private data, so it is not stored.
                self.path = cut(fields.text()?.split('?').next()?);
                self.script = cut(fields.text()?);
                self.route = cut(fields.text()?);
            }
            "c" if self.costs.len() < 2 => {
                let (inside, outside): (u64, u64) = (fields.number()?, fields.number()?);
                self.costs.push(inside.saturating_add(outside));
            }
            "r" => {
                self.peak_bytes = fields.number()?;
                let (_calls, functions, edges): (u64, u64, u64) =
                    (fields.number()?, fields.number()?, fields.number()?);
                self.lost = functions.saturating_add(edges);
            }
            "f" => self.functions.push(function(&mut fields)?),
            "e" => {
                let (caller, callee) = (fields.number()?, fields.number()?);
                self.edges.push(TracedEdge { caller, callee, cost: cost(&mut fields)? });
            }
            "m" => {
                self.sample_bytes = fields.number()?;
                self.lost = self.lost.saturating_add(fields.number()?);
            }
            "a" => {
                let (caller, function) = (fields.number()?, fields.number()?);
                if caller >= self.stacks.len().max(1) {
                    return None;
                }
                let (bytes, count) = (fields.number()?, fields.number()?);
                self.stacks.push(TracedStack { caller, function, bytes, count });
            }
            // Lines of later versions are ignored.
            _ => {}
        }
        Some(())
    }
}

fn function(fields: &mut Fields<'_>) -> Option<TracedFunction> {
    let is_user = fields.number::<u8>()? == 0;
    let calls = fields.number()?;
    let mut pair = || Some((fields.number::<i64>()?, fields.number::<i64>()?));
    let ((wall, wall_own), (cpu, cpu_own), (mem, mem_own)) = (pair()?, pair()?, pair()?);
    let line = fields.number()?;
    let (file, name) = (cut(fields.text()?), cut(fields.text()?));
    Some(TracedFunction {
        is_user,
        cost: Cost { calls, wall, cpu, mem },
        own: Cost { calls, wall: wall_own, cpu: cpu_own, mem: mem_own },
        line,
        file,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = "samovar-graph 1\nq\tid\tGET\t/a?b=c\t/index.php\t\nc\t40\t50\n\
        r\t4096\t2\t0\t1\nf\t0\t1\t100\t40\t90\t30\t5\t5\t0\t\t(request)\n\
        f\t1\t2\t60\t60\t60\t60\t0\t0\t7\t/a.php\tstrlen\ne\t0\t1\t2\t60\t60\t0\n\
        m\t8192\t0\na\t0\t0\t0\t0\na\t0\t1\t900\t3\nend\n";

    #[test]
    fn trace_with_valid_lines_is_parsed() {
        let trace = Trace::read(GRAPH.as_bytes()).expect("a graph");
        assert_eq!((trace.path.as_str(), trace.peak_bytes, trace.lost), ("/a", 4_096, 1));
        assert_eq!(trace.functions[0].own.wall, 40);
        assert_eq!((trace.functions[1].line, trace.functions[1].name.as_str()), (7, "strlen"));
        assert_eq!(trace.sample_bytes, 8_192);
        let stack = TracedStack { caller: 0, function: 1, bytes: 900, count: 3 };
        assert_eq!(trace.stacks[1], stack);
        let cost = Cost { calls: 2, wall: 60, cpu: 60, mem: 0 };
        assert_eq!(trace.edges, [TracedEdge { caller: 0, callee: 1, cost }]);
    }

    #[test]
    fn trace_truncated_or_with_bad_edge_is_rejected() {
        for len in 0..GRAPH.len() - 1 {
            assert_eq!(Trace::read(&GRAPH.as_bytes()[..len]), None, "{len}");
        }
        let astray = GRAPH.replace("e\t0\t1", "e\t0\t2");
        assert_eq!(Trace::read(astray.as_bytes()), None);
        for wrong in ["a\t0\t2\t900", "a\t1\t1\t900", "a\t0\t1\t-9"] {
            let astray = GRAPH.replace("a\t0\t1\t900", wrong);
            assert_eq!(Trace::read(astray.as_bytes()), None, "{wrong}");
        }
        let garbled = GRAPH.replace("f\t1\t2", "f\t1\t-2");
        assert_eq!(Trace::read(garbled.as_bytes()), None);
    }
}
