//! `docs/reference/status.md`: all keys of `samovar status --json`, from crates/wire.

use super::rust::{Field, Struct, counters, structs};
use super::{cell, check};
use crate::tree::read;
use std::collections::BTreeMap;
use std::fmt::Write;

const FILES: [&str; 10] = [
    "status",
    "finding",
    "capacity",
    "resources",
    "shared",
    "schedules",
    "upstreams",
    "queues",
    "php",
    "canary",
];

/// Structs that the tables of counters declare.
const TABLES: [(&str, &str); 2] =
    [("PoolCounters", "pool_counters"), ("ServerCounters", "server_counters")];

const INTRODUCTION: &str = "`samovar status --json` prints one object, and so does `/api/status` \
of the admin listener. Times are in the unit that a key ends with. Keys that end with `_total` \
only grow while the server runs. New versions add keys; they do not change existing ones without \
an entry in the changelog.\n\n";

#[test]
fn status_page_lists_every_key() {
    let texts = FILES.map(|file| read(&format!("crates/wire/src/{file}.rs")));
    let mut all: Vec<Struct> = texts.iter().flat_map(|text| structs(text)).collect();
    let counters = counters(&read("crates/wire/src/counters.rs"));
    for (name, table) in TABLES {
        let of_table = counters.iter().filter(|counter| counter.table == table);
        let fields = of_table.map(|counter| Field {
            name: counter.key.clone(),
            kind: "u64".to_owned(),
            doc: counter.doc.clone(),
            is_flattened: false,
        });
        let fields = fields.collect();
        all.push(Struct { name: name.to_owned(), doc: String::new(), fields });
    }
    let by_name: BTreeMap<&str, &Struct> = all.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut page = INTRODUCTION.to_owned();
    let mut waiting = vec!["Status"];
    let mut known: Vec<&str> = waiting.clone();
    while let Some(name) = waiting.pop() {
        let one = by_name.get(name).unwrap_or_else(|| panic!("struct `{name}` in crates/wire"));
        let _ = writeln!(page, "## {}\n\n{}\n", heading(name), one.doc.trim_end());
        page.push_str("| key | type | meaning |\n|---|---|---|\n");
        let mut found = Vec::new();
        rows(one, &by_name, &mut page, &mut found);
        page.push('\n');
        let new: Vec<&str> = found.into_iter().filter(|name| !known.contains(name)).collect();
        known.extend(&new);
        waiting.extend(new.into_iter().rev());
    }
    check("docs/reference/status.md", "Status keys", &page);
}

fn rows<'a>(
    one: &'a Struct,
    all: &BTreeMap<&'a str, &'a Struct>,
    page: &mut String,
    found: &mut Vec<&'a str>,
) {
    for field in &one.fields {
        let inner = all.iter().find(|(name, _)| innermost(&field.kind) == **name);
        if let (true, Some((_, inner))) = (field.is_flattened, inner) {
            rows(inner, all, page, found);
            continue;
        }
        if let Some((name, _)) = inner.filter(|(name, _)| !found.contains(*name)) {
            found.push(name);
        }
        let kind = kind(&field.kind);
        let _ = writeln!(page, "| `{}` | {kind} | {} |", field.name, cell(&field.doc));
    }
}

/// The type inside `Option`, `Vec` and maps.
fn innermost(kind: &str) -> &str {
    let inner = kind.rsplit(['<', ' ']).next().unwrap_or(kind);
    inner.trim_end_matches('>')
}

fn kind(rust: &str) -> String {
    let inside = |outer: &str| rust.strip_prefix(outer)?.strip_suffix('>');
    if let Some(inner) = inside("Option<") {
        return format!("{} or null", kind(inner));
    }
    if let Some(inner) = inside("Vec<") {
        return format!("array of {}", kind(inner));
    }
    if let Some(inner) = inside("BTreeMap<String, ") {
        return format!("object: name → {}", kind(inner));
    }
    match rust {
        "String" | "About" | "Severity" => "string".to_owned(),
        "bool" => "boolean".to_owned(),
        "f64" => "number".to_owned(),
        number if number.starts_with(['u', 'i']) => "integer".to_owned(),
        name => {
            let heading = heading(name);
            let anchor = heading.to_lowercase().replace(' ', "-");
            format!("[{}](#{anchor})", heading.to_lowercase())
        }
    }
}

/// `ConsoleStatus` → `Console status`.
fn heading(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push(' ');
            text.extend(c.to_lowercase());
        } else {
            text.push(c);
        }
    }
    text
}
