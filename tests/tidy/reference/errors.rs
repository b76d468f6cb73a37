//! `docs/reference/errors.md`: messages that come with a hint, from the string literals of the
//! server and its commands.

use super::rust::literals;
use super::{cell, check};
use crate::tree::{files, is_kind, read};
use std::collections::BTreeMap;
use std::fmt::Write;

const INTRODUCTION: &str = "Errors of the server and its commands have two parts: the failure with \
its value, and a hint with an action. `…` replaces values. Search this page for the fixed \
words of a message.\n\n";

/// Shorter messages consist of values only.
const LETTERS_MIN: usize = 6;

#[test]
fn errors_page_lists_every_message_with_hint() {
    let mut parts: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for file in files() {
        let is_server = file.starts_with("crates/") && file.contains("/src/");
        if !is_server || !is_kind(&file, &["rs"]) || file.contains("testkit") || is_test(&file) {
            continue;
        }
        let part = file.split('/').nth(1).unwrap_or_default().to_owned();
        for literal in literals(&read(&file)) {
            if let Some((message, hint)) = literal.split_once("\nhint: ") {
                let (message, hint) = (placeholders(message), placeholders(hint));
                if message.chars().filter(|c| c.is_alphabetic()).count() < LETTERS_MIN {
                    continue;
                }
                parts.entry(part.clone()).or_default().insert(message, hint);
            }
        }
    }
    let mut page = INTRODUCTION.to_owned();
    for (part, messages) in &parts {
        let _ = writeln!(page, "## {part}\n\n| message | hint |\n|---|---|");
        for (message, hint) in messages {
            let _ = writeln!(page, "| {} | {} |", cell(message), cell(hint));
        }
        page.push('\n');
    }
    check("docs/reference/errors.md", "Error messages", &page);
}

fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/")
}

/// Format arguments → `…`.
fn placeholders(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        let Some(end) = rest[begin..].find('}') else { break };
        shown.push_str(&rest[..begin]);
        shown.push('…');
        rest = &rest[begin + end + 1..];
    }
    shown + rest
}

#[test]
fn format_arguments_become_placeholders() {
    assert_eq!(placeholders("cannot read `{path}`: {}"), "cannot read `…`: …");
}
