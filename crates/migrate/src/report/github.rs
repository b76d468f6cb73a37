//! Commands of GitHub Actions: annotations of lines.

use super::text;
use crate::scan::Checked;
use crate::version::Range;
use std::fmt::Write as _;
use std::path::Path;

/// An annotation of a line.
#[derive(Clone, Copy, Debug)]
pub struct Annotation<'a> {
    /// `error`, `warning` or `notice`.
    pub level: &'a str,
    /// The file.
    pub path: &'a Path,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, if it is known.
    pub column: Option<u32>,
    /// Heading.
    pub title: &'a str,
    /// Text.
    pub message: &'a str,
}

/// Returns the command for an annotation, with the end of the line.
pub fn annotation(of: &Annotation<'_>) -> String {
    let Annotation { level, line, title, message, .. } = *of;
    let column = of.column.map(|column| format!(",col={column}")).unwrap_or_default();
    format!(
        "::{level} file={},line={line}{column},title={}::{}\n",
        property(&of.path.to_string_lossy()),
        property(title),
        escape(message)
    )
}

pub(super) fn render(checked: &Checked, range: Range, known: usize) -> String {
    let mut out = String::new();
    for (path, findings) in &checked.files {
        for finding in findings {
            let mut message = finding.message.clone();
            if !finding.action.is_empty() {
                let _ = write!(message, "\n{}", finding.action);
            }
            let _ = write!(message, "\n{}", finding.url);
            out.push_str(&annotation(&Annotation {
                level: finding.severity().word(),
                path,
                line: finding.line,
                column: Some(finding.column),
                title: finding.rule,
                message: &message,
            }));
        }
    }
    out.push_str(&text::summary(checked, range, known));
    out
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}
