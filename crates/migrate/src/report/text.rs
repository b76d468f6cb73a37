//! The report for people.

use super::numbers::{counts, package};
use crate::scan::Checked;
use crate::version::Range;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of files that are listed as not checked.
const SKIPPED_MAX: usize = 20;

pub(super) fn render(checked: &Checked, range: Range, known: usize) -> String {
    let mut out = String::new();
    for (path, findings) in &checked.files {
        let path = path.display();
        for finding in findings {
            let (line, column) = (finding.line, finding.column);
            let severity = finding.severity().word();
            let rule = finding.rule;
            let _ = writeln!(out, "{path}:{line}:{column} {severity} {rule} {}", finding.message);
            if !finding.action.is_empty() {
                let _ = writeln!(out, "    {}", finding.action);
            }
            let _ = writeln!(out, "    {}", finding.url);
        }
        out.push('\n');
    }
    out.push_str(&summary(checked, range, known));
    out
}

pub(super) fn summary(checked: &Checked, range: Range, known: usize) -> String {
    let mut out = String::new();
    let [errors, warnings, notices] = counts(checked);
    let mut rules: BTreeMap<(std::cmp::Reverse<&str>, &str), usize> = BTreeMap::new();
    let mut packages: BTreeMap<String, usize> = BTreeMap::new();
    for (path, findings) in &checked.files {
        for finding in findings {
            let severity = std::cmp::Reverse(finding.severity().word());
            *rules.entry((severity, finding.rule)).or_default() += 1;
        }
        if let Some(package) = package(path) {
            *packages.entry(package).or_default() += findings.len();
        }
    }
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by_key(|((severity, _), count)| (rank(severity.0), std::cmp::Reverse(*count)));
    for ((severity, rule), count) in rules {
        let _ = writeln!(out, "{count:>7} {} {rule}", severity.0);
    }
    let mut packages: Vec<_> = packages.into_iter().collect();
    packages.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if !packages.is_empty() {
        out.push_str("\nby package:\n");
    }
    for (package, count) in packages {
        let _ = writeln!(out, "{count:>7} {package}");
    }
    for skipped in checked.skipped.iter().take(SKIPPED_MAX) {
        let _ = writeln!(out, "not checked: {}: {}", skipped.path.display(), skipped.reason);
    }
    if checked.skipped.len() > SKIPPED_MAX {
        let _ = writeln!(out, "not checked: {} more files", checked.skipped.len() - SKIPPED_MAX);
    }
    if checked.is_truncated {
        out.push_str("not checked: files above the limit; --max-files sets it\n");
    }
    if checked.dropped > 0 {
        let _ = writeln!(out, "{} findings above the limit are not listed", checked.dropped);
    }
    if known > 0 {
        let _ = writeln!(out, "{known} findings are in the baseline");
    }
    let (files, lines) = (checked.file_count, checked.line_count);
    let Range { from, to } = range;
    let _ = writeln!(
        out,
        "PHP {from} to {to}: {errors} errors, {warnings} warnings, {notices} notices in {files} \
         files with {lines} lines"
    );
    out
}

fn rank(severity: &str) -> u8 {
    match severity {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    }
}
