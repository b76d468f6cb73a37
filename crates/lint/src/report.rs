//! The result for people, for programs and for GitHub Actions.

use crate::run::{Message, Results};
use samovar_migrate::{Annotation, annotation};
use serde_json::json;
use std::fmt::Write as _;

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: a line for each message, and a summary.
    Text,
    /// One JSON object.
    Json,
    /// Commands of GitHub Actions, and the summary.
    Github,
}

impl Format {
    /// Names of the forms.
    pub const NAMES: [&'static str; 3] = ["text", "json", "github"];

    /// Returns the form of this name.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "text" => Some(Format::Text),
            "json" => Some(Format::Json),
            "github" => Some(Format::Github),
            _ => None,
        }
    }
}

/// Returns the report, with the end of its last line.
pub fn render(results: &Results, format: Format) -> String {
    match format {
        Format::Text => {
            let mut out = String::new();
            for message in &results.messages {
                let _ = writeln!(
                    out,
                    "{}:{}: {}",
                    message.path.display(),
                    message.line,
                    text_of(results, message)
                );
            }
            out + &summary(results)
        }
        Format::Json => {
            let messages: Vec<_> = results.messages.iter().map(json_of).collect();
            let report = json!({
                "php": results.versions,
                "files": results.files,
                "errors": results.errors(),
                "messages": messages,
            });
            format!("{report:#}\n")
        }
        Format::Github => {
            let mut out = String::new();
            for message in &results.messages {
                out.push_str(&annotation(&Annotation {
                    level: level(message),
                    path: &message.path,
                    line: message.line.max(1),
                    column: None,
                    title: &message.kind,
                    message: &text_of(results, message),
                }));
            }
            out + &summary(results)
        }
    }
}

fn json_of(message: &Message) -> serde_json::Value {
    json!({
        "file": message.path.to_string_lossy(),
        "line": message.line,
        "severity": level(message),
        "kind": message.kind,
        "message": message.text,
        "php": message.versions,
    })
}

fn level(message: &Message) -> &'static str {
    if message.is_error { "error" } else { "warning" }
}

/// With the versions, unless all agree.
fn text_of(results: &Results, message: &Message) -> String {
    let text = format!("{}: {}", message.kind, message.text);
    if message.versions.len() == results.versions.len() {
        return text;
    }
    format!("{text} (PHP {})", joined(&message.versions))
}

fn summary(results: &Results) -> String {
    let files =
        |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let (errors, all) = (results.errors(), results.messages.len());
    let counted = |count: usize, word: &str| {
        if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
    };
    let mut found = counted(errors, "error");
    if all > errors {
        let _ = write!(found, " and {}", counted(all - errors, "warning"));
    }
    format!("{found} in {}, compiled by PHP {}\n", files(results.files), joined(&results.versions))
}

fn joined(versions: &[String]) -> String {
    match versions {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => versions.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_versions_where_they_differ() {
        let message = |line, is_error, kind: &str, text: &str, versions: &[&str]| Message {
            path: "src/a.php".into(),
            line,
            is_error,
            kind: kind.to_owned(),
            text: text.to_owned(),
            versions: versions.iter().map(|version| (*version).to_owned()).collect(),
        };
        let results = Results {
            files: 3,
            versions: vec!["8.2.31".to_owned(), "8.4.5".to_owned()],
            messages: vec![
                message(3, true, "Parse error", "syntax error, 100%", &["8.2.31"]),
                message(7, false, "Deprecated", "old", &["8.2.31", "8.4.5"]),
            ],
        };
        let summary = "1 error and 1 warning in 3 files, compiled by PHP 8.2.31 and 8.4.5\n";
        assert_eq!(
            render(&results, Format::Text),
            format!(
                "src/a.php:3: Parse error: syntax error, 100% (PHP 8.2.31)\n\
                 src/a.php:7: Deprecated: old\n{summary}"
            )
        );
        let github = render(&results, Format::Github);
        assert!(
            github.starts_with(
                "::error file=src/a.php,line=3,title=Parse error::Parse error: syntax error, \
                 100%25 (PHP 8.2.31)\n::warning file="
            ) && github.ends_with(summary),
            "{github}"
        );
        let json = render(&results, Format::Json);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(
            (&json["errors"], &json["messages"][1]["severity"]),
            (&1.into(), &"warning".into())
        );
        let none = Results { files: 1, versions: vec!["8.2.31".to_owned()], messages: vec![] };
        assert_eq!(render(&none, Format::Text), "0 errors in 1 file, compiled by PHP 8.2.31\n");
    }
}
