//! Functions of a replay: its call graph, or its profile; as a table or for other tools.

use anyhow::{Context, Result, bail};
use samovar_log::printable;
use samovar_profile::calls::table::{Order, rows};
use samovar_profile::calls::{Graph, export};
use samovar_spy::profile::packed::{Packed, unpack};
use samovar_spy::profile::{Profile, callgrind, collapsed, speedscope, svg};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// Number of functions in a table.
const FUNCTIONS_MAX: usize = 15;
const NS_PER_MS: f64 = 1_000_000.0;
/// Error for a graph or profile that is missing or invalid.
const MISSING: &str =
    "there are no functions\nhint: the worker may have died; see the server's log";

#[derive(Debug)]
pub(super) enum Costs {
    Graph(Graph),
    Profile(Profile),
}

impl Costs {
    pub(super) fn of_graph(value: &Value) -> Result<Costs> {
        let graph: Graph = serde_json::from_value(value.clone()).context(MISSING)?;
        if !graph.is_sound() {
            bail!(MISSING);
        }
        Ok(Costs::Graph(graph))
    }

    pub(super) fn of_profile(value: &Value) -> Result<Costs> {
        let packed: Packed = serde_json::from_value(value.clone()).context(MISSING)?;
        unpack(packed).map(Costs::Profile).context(MISSING)
    }

    /// Returns the content of a file. Its extension selects the format.
    pub(super) fn exported(&self, file: &Path, title: &str) -> Result<Vec<u8>> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let end = name.rsplit_once('.').map(|(_, end)| end);
        let is_callgrind = name.contains("callgrind");
        Ok(match (self, end) {
            (Costs::Graph(graph), _) if is_callgrind => export::callgrind(graph).into_bytes(),
            (Costs::Graph(graph), Some("xhprof")) => export::serialized(&export::xhprof(graph)),
            (Costs::Graph(graph), Some("json")) => serde_json::to_vec(graph)?,
            (Costs::Profile(profile), _) if is_callgrind => callgrind::render(profile).into_bytes(),
            (Costs::Profile(profile), Some("svg")) => {
                svg::render(profile, &printable(title), svg::Measure::Wall).into_bytes()
            }
            (Costs::Profile(profile), Some("collapsed")) => collapsed::render(profile).into_bytes(),
            (Costs::Profile(profile), Some("json")) => {
                speedscope::render(profile, &printable(title)).into_bytes()
            }
            (Costs::Graph(_), _) => bail!(
                "cannot infer the format from the file name `{name}`\nhint: use a name with \
                 `callgrind`, .xhprof or .json"
            ),
            (Costs::Profile(_), _) => bail!(
                "cannot infer the format from the file name `{name}`\nhint: use a name with \
                 `callgrind`, .svg, .collapsed or .json (speedscope)"
            ),
        })
    }

    /// Returns the functions with the longest time of their own.
    pub(super) fn table(&self) -> String {
        match self {
            Costs::Graph(graph) => calls(graph),
            Costs::Profile(profile) => samples(profile),
        }
    }
}

fn calls(graph: &Graph) -> String {
    let mut text = format!("\n{:>9} {:>11} {:>12}  function\n", "calls", "own ms", "with callees");
    for row in rows(graph, &Graph::default(), Order::default()).iter().take(FUNCTIONS_MAX) {
        let (own, total) = (row.own / NS_PER_MS, row.total / NS_PER_MS);
        let name = printable(&row.function.name);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>9} {own:>11.3} {total:>12.3}  {name}", row.calls);
    }
    text.push('\n');
    text
}

#[expect(clippy::cast_precision_loss, reason = "times of a request are far below 2^52 ns")]
fn samples(profile: &Profile) -> String {
    if profile.is_empty() {
        return "\nno samples: the request is too short\n\n".to_owned();
    }
    let ms = |ns: u64| ns as f64 / NS_PER_MS;
    let mut text =
        format!("\n{:>9} {:>11} {:>12}  function\n", "samples", "own ms", "with callees");
    for share in profile.shares().iter().take(FUNCTIONS_MAX) {
        let (own, total) = (ms(share.own.wall_ns), ms(share.total.wall_ns));
        let name = share.function.full_name();
        let name = printable(&name);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>9} {own:>11.1} {total:>12.1}  {name}", share.own.samples);
    }
    text.push('\n');
    text
}
