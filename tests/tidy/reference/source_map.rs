//! `docs/internals/source-map.md`: every source file with its opening sentence.

use super::{cell, check, sentence};
use crate::tree::{exists, files, is_kind, read};
use std::collections::BTreeMap;
use std::fmt::Write;

const ROOTS: [&str; 4] = ["crates/", "tests/", "bench/", "php/src/"];
/// Folders with applications and data of tests.
const LEFT_OUT: [&str; 4] = ["tests/apps/", "bench/apps/", "bench/results/", "bench/peers/"];

const INTRODUCTION: &str = "[ARCHITECTURE.md](../../ARCHITECTURE.md) explains the parts and their \
order. This page lists the files of each folder with their opening sentences.\n\n";

#[test]
fn source_map_lists_every_file() {
    let mut folders: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for file in files() {
        let is_source = ROOTS.iter().any(|root| file.starts_with(root))
            && !LEFT_OUT.iter().any(|folder| file.starts_with(folder))
            && is_kind(&file, &["rs", "c", "h", "py", "php"]);
        // A header's sentence is that of its C file.
        let is_header = is_kind(&file, &["h"]);
        let is_twin = is_header && exists(&file.replace(".h", ".c"));
        if !is_source || is_twin {
            continue;
        }
        let opening = sentence(&opening(&read(&file)));
        if opening.is_empty() {
            continue;
        }
        let (folder, name) = file.rsplit_once('/').expect("sources are in folders");
        folders.entry(folder.to_owned()).or_default().push((name.to_owned(), opening));
    }
    let mut page = INTRODUCTION.to_owned();
    for (folder, files) in &folders {
        let _ = writeln!(page, "## `{folder}`\n\n| file | role |\n|---|---|");
        for (name, opening) in files {
            let _ = writeln!(page, "| `{name}` | {} |", cell(opening));
        }
        page.push('\n');
    }
    check("docs/internals/source-map.md", "Source map", &page);
}

/// The text of the first comment of a file.
fn opening(text: &str) -> String {
    let text = text.trim_start();
    if text.starts_with("//!") {
        let lines = text.lines().take_while(|line| line.starts_with("//!"));
        return lines.map(|line| line.trim_start_matches("//!")).collect::<Vec<_>>().join("\n");
    }
    let begin =
        ["/**", "/*", "\"\"\""].iter().filter_map(|mark| Some((text.find(mark)?, *mark))).min();
    let Some((at, mark)) = begin.filter(|(at, _)| *at < 400) else { return String::new() };
    let end = if mark == "\"\"\"" { "\"\"\"" } else { "*/" };
    let rest = &text[at + mark.len()..];
    let inside = rest.find(end).map_or("", |end| &rest[..end]);
    let lines = inside.lines().map(|line| line.trim().trim_start_matches('*'));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn opening_comment_is_found_in_each_language() {
    assert_eq!(opening("//! One.\n//! Two.\nuse a;").trim(), "One.\n Two.");
    assert_eq!(opening("/* One.\n * Two. */\nint a;").trim(), "One.\n Two.");
    assert_eq!(opening("#!/usr/bin/python3\n\"\"\"One.\"\"\"\n"), "One.");
    assert_eq!(opening("int a;"), "");
}
