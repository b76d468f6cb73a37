//! Commands of GitHub Actions: annotations of lines.

use super::text;
use crate::scan::Checked;
use crate::version::Range;
use std::fmt::Write as _;

pub(super) fn render(checked: &Checked, range: Range, known: usize) -> String {
    let mut out = String::new();
    for (path, findings) in &checked.files {
        let file = property(&path.to_string_lossy());
        for finding in findings {
            let mut message = finding.message.clone();
            if !finding.action.is_empty() {
                let _ = write!(message, "\n{}", finding.action);
            }
            let _ = write!(message, "\n{}", finding.url);
            let _ = writeln!(
                out,
                "::{} file={file},line={},col={},title={}::{}",
                finding.severity().word(),
                finding.line,
                finding.column,
                property(finding.rule),
                escape(&message)
            );
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
