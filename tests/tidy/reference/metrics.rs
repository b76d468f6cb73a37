//! `docs/reference/metrics.md`: every metric family with its type and help, from the code that
//! writes `/metrics`. `suite::admin` compares the page with a running server.

use super::rust::{counters, literals};
use super::{cell, check};
use crate::tree::{files, read};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where families are declared: a name, a `Kind` and a help text, in any order of the last two.
const SOURCES: [&str; 3] = [
    "crates/admin/src/pages/metrics.rs",
    "crates/server/src/serve/operators",
    "crates/insight/src/export/metrics.rs",
];

const INTRODUCTION: &str = "`GET /metrics` of the [admin listener](../guide/observability.md) \
has these families. Counters have the suffix `_total` in the text format, histograms `_bucket`, \
`_sum` and `_count`. Families of a feature that is not in use are absent.\n\n";

#[test]
fn metrics_page_lists_every_family() {
    let mut families: BTreeMap<String, (String, String)> = BTreeMap::new();
    for file in files().into_iter().filter(|file| SOURCES.iter().any(|s| file.starts_with(s))) {
        let text = read(&file);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (at, _) in code.match_indices("\"samovar_") {
            let rest = &code[at..];
            let end = rest.char_indices().nth(600).map_or(rest.len(), |(end, _)| end);
            let found = literals(&rest[..end]);
            let (name, help) = match &found[..] {
                [name, help, ..] if help.contains(' ') => (name.clone(), help.clone()),
                _ => {
                    panic!("{file}: `{}` has no help text", rest.lines().next().unwrap_or_default())
                }
            };
            let span = name.len() + help.len() + 60;
            let near: String = rest.chars().take(span).collect();
            let kind = near.split("Kind::").nth(1).unwrap_or("Counter");
            let kind = kind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let kind = kind.to_lowercase();
            let suffix = if kind == "counter" { "_total" } else { "" };
            families.insert(format!("{name}{suffix}"), (kind, help));
        }
    }
    for counter in counters(&read("crates/wire/src/counters.rs")) {
        let suffix = if counter.kind == "counter" { "_total" } else { "" };
        let mut add = |prefix: &str, help: String| {
            families.insert(
                format!("{prefix}{}{suffix}", counter.metric),
                (counter.kind.clone(), help),
            );
        };
        add("samovar_", counter.doc.clone());
        if counter.table == "pool_counters" {
            add("samovar_pool_", format!("{} Of each of several pools.", counter.doc));
        }
    }
    let mut page = format!("{INTRODUCTION}| family | type | meaning |\n|---|---|---|\n");
    for (name, (kind, help)) in &families {
        let _ = writeln!(page, "| `{name}` | {kind} | {} |", cell(help));
    }
    check("docs/reference/metrics.md", "Metrics", &page);
}
