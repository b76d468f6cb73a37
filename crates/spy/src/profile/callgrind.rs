//! A profile in callgrind's format, for `KCachegrind` and `QCachegrind`:
//! <https://valgrind.org/docs/manual/cl-format.html>.
//!
//! Samples do not know how often a function was called: the number of calls is that of the samples.

use super::measure::Measure;
use super::stacks::{Call, Profile, Weight};
use crate::stack::Function;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

/// Costs of a function by line, and of its calls by line and callee.
#[derive(Default)]
struct Costs {
    own: BTreeMap<u32, Weight>,
    calls: BTreeMap<(u32, u32), Weight>,
}

/// The profile. The costs are samples, µs of wall time, and µs of CPU time.
pub fn render(profile: &Profile) -> String {
    let events = "events: Samples Wall Cpu\n\
        event: Samples : Samples\nevent: Wall : Time (µs)\nevent: Cpu : CPU time (µs)\n";
    document(profile, events, costs)
}

/// The profile of a measure in bytes. The costs are samples and bytes.
pub fn render_bytes(profile: &Profile, measure: Measure) -> String {
    let (_, name) = measure.name_of_bytes();
    let events =
        format!("events: Samples Bytes\nevent: Samples : Samples\nevent: Bytes : {name}\n");
    document(profile, &events, |weight| format!("{} {}", weight.samples, weight.wall_ns))
}

fn document(profile: &Profile, events: &str, costs: fn(Weight) -> String) -> String {
    let mut functions: BTreeMap<u32, Costs> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (calls, weight) in profile.stacks() {
        seen.clear();
        for pair in calls.windows(2) {
            let (outer, inner) = (pair[0], pair[1]);
            // A recursive call counts once per stack; otherwise it would exceed the whole.
            if seen.insert((outer, inner.function)) {
                let costs = functions.entry(outer.function).or_default();
                costs.calls.entry((outer.line, inner.function)).or_default().add(weight);
            }
        }
        if let Some(Call { function, line }) = calls.last() {
            functions.entry(*function).or_default().own.entry(*line).or_default().add(weight);
        }
    }
    let mut out =
        String::from("# callgrind format\nversion: 1\ncreator: samovar\npositions: line\n");
    out.push_str(events);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "summary: {}", costs(profile.total()));
    for (function, of) in functions {
        let function = &profile.functions()[function as usize];
        let _ = writeln!(out, "\nfl={}\nfn={}", file(function), name(function));
        for (line, weight) in of.own {
            let _ = writeln!(out, "{line} {}", costs(weight));
        }
        for ((line, callee), weight) in of.calls {
            let callee = &profile.functions()[callee as usize];
            let _ = writeln!(out, "cfl={}\ncfn={}", file(callee), name(callee));
            let _ = writeln!(out, "calls={} {}", weight.samples, callee.line);
            let _ = writeln!(out, "{line} {}", costs(weight));
        }
    }
    out
}

fn costs(weight: Weight) -> String {
    format!("{} {} {}", weight.samples, weight.wall_ns / 1_000, weight.cpu_ns / 1_000)
}

fn file(function: &Function) -> String {
    if function.file.is_empty() { "php:internal".to_owned() } else { word(&function.file) }
}

fn name(function: &Function) -> String {
    word(&function.label())
}

/// Makes a name safe for callgrind, which reads `(1) name` as an abbreviation and a line end as the
/// end of the name. Code generated at run time can have any name.
fn word(text: &str) -> String {
    let text = samovar_log::printable(text);
    if text.starts_with('(') { format!("php{text}") } else { text.into_owned() }
}
