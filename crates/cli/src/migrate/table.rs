//! `samovar migrate rules`: the changes between two versions.

use anyhow::Result;
use samovar_migrate::{Range, Rule, Version, rules};
use samovar_server::terminal;
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Serialize)]
struct Item<'a> {
    rule: &'a str,
    changes: Vec<Change>,
    message: &'a str,
    action: &'a str,
    url: &'a str,
    selects: Vec<String>,
}

#[derive(Serialize)]
struct Change {
    version: String,
    kind: &'static str,
}

pub(super) fn print(from: Option<Version>, to: Version, is_json: bool) -> Result<ExitCode> {
    let range = Range { from: from.unwrap_or(Version::oldest()), to };
    let is_part = |rule: &&Rule| rule.events.iter().any(|(_, version)| range.contains(*version));
    let found: Vec<&Rule> = rules().iter().filter(is_part).collect();
    let text = if is_json { json(&found)? } else { text(&found, range) };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn json(found: &[&Rule]) -> Result<String> {
    let items: Vec<Item<'_>> = found
        .iter()
        .map(|rule| Item {
            rule: rule.id,
            changes: rule
                .events
                .iter()
                .map(|(kind, version)| Change { version: version.to_string(), kind: kind.word() })
                .collect(),
            message: rule.says,
            action: rule.action,
            url: &rule.url,
            selects: rule.selectors().map(|(kind, names)| format!("{kind} {names}")).collect(),
        })
        .collect();
    Ok(serde_json::to_string_pretty(&items)? + "\n")
}

fn text(found: &[&Rule], range: Range) -> String {
    let mut out = String::new();
    for rule in found {
        let mut changes: Vec<String> = rule
            .events
            .iter()
            .map(|(kind, version)| format!("{} {version}", kind.word()))
            .collect();
        changes.reverse();
        let _ = writeln!(out, "{}: {}", rule.id, changes.join(", "));
        for (kind, names) in rule.selectors().filter(|(kind, _)| !matches!(*kind, "code" | "nulls"))
        {
            let _ = writeln!(out, "    {kind} {names}");
        }
        if !rule.says.is_empty() {
            let _ = writeln!(out, "    {}", rule.says);
        }
        let _ = writeln!(out, "    {}", rule.url);
    }
    let Range { from, to } = range;
    let _ = writeln!(out, "{} rules from PHP {from} to {to}", found.len());
    out
}
