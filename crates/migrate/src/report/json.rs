//! The report as one JSON object.

use super::numbers::{counts, package};
use crate::finding::{Kind, Severity};
use crate::scan::Checked;
use crate::version::Range;
use serde::Serialize;

#[derive(Serialize)]
struct Report<'a> {
    from: String,
    to: String,
    files: usize,
    lines: usize,
    errors: usize,
    warnings: usize,
    notices: usize,
    in_baseline: usize,
    not_listed: usize,
    is_truncated: bool,
    skipped: Vec<Skipped<'a>>,
    findings: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Skipped<'a> {
    file: String,
    reason: &'a str,
}

#[derive(Serialize)]
struct Item<'a> {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<String>,
    line: u32,
    column: u32,
    severity: Severity,
    kind: Kind,
    rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    message: &'a str,
    action: &'a str,
    url: &'a str,
    is_fixable: bool,
}

pub(super) fn render(checked: &Checked, range: Range, known: usize) -> String {
    let [errors, warnings, notices] = counts(checked);
    let findings = checked.files.iter().flat_map(|(path, findings)| {
        findings.iter().map(|finding| Item {
            file: path.to_string_lossy().into_owned(),
            package: package(path),
            line: finding.line,
            column: finding.column,
            severity: finding.severity(),
            kind: finding.kind,
            rule: finding.rule,
            version: finding.version.map(|version| version.to_string()),
            message: &finding.message,
            action: &finding.action,
            url: finding.url,
            is_fixable: !finding.edits.is_empty(),
        })
    });
    let skipped = checked.skipped.iter().map(|skipped| Skipped {
        file: skipped.path.to_string_lossy().into_owned(),
        reason: &skipped.reason,
    });
    let report = Report {
        from: range.from.to_string(),
        to: range.to.to_string(),
        files: checked.file_count,
        lines: checked.line_count,
        errors,
        warnings,
        notices,
        in_baseline: known,
        not_listed: checked.dropped,
        is_truncated: checked.is_truncated,
        skipped: skipped.collect(),
        findings: findings.collect(),
    };
    let mut text = serde_json::to_string_pretty(&report).expect("texts and numbers");
    text.push('\n');
    text
}
