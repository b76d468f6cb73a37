//! An event → one line of the server's log, as text or as JSON.
//!
//! All log lines are made here: those of the server, of the log itself and of PHP processes.
//! Therefore every key has the same name in all of them (docs/guide/logs.md lists the keys).
//! No content of a line can start another line or send control characters to a terminal.

use crate::unprintable::{is_unprintable, printable_json};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::Write;
use std::time::SystemTime;

/// Format of a log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The parts of a line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Time of the event.
    pub at: SystemTime,
    /// `error`, `warn`, `info`, `debug` or `trace`; `None` if only the text of the message shows
    /// it.
    pub level: Option<&'a str>,
    /// Component that logs the line: a part of the server, or `php`.
    pub target: &'a str,
    /// PHP process that logs the line, if it is one.
    pub process: Option<Process<'a>>,
    /// The message.
    pub message: &'a str,
    /// Additional fields, by name.
    pub details: &'a [(&'a str, Detail)],
    /// Context added by the script: a JSON object, or an empty string.
    pub context: &'a str,
}

/// A PHP process and its current request.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Process id.
    pub pid: u32,
    /// Id of the request; empty if there was none.
    pub request_id: &'a str,
}

/// Value of an additional field.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// Text that is quoted in the text format.
    Quoted(String),
    /// Text that needs no quotes.
    Plain(String),
    /// A number or a Boolean.
    Value(Value),
}

impl Line<'_> {
    /// Returns the line, including its line end.
    pub fn render(&self, format: Format) -> String {
        let mut line = match format {
            Format::Text => self.text(),
            Format::Json => self.json(),
        };
        line.push('\n');
        line
    }

    fn time(&self) -> String {
        // Fails only before the year -9999 or after 9999, which no clock returns.
        let at = jiff::Timestamp::try_from(self.at).unwrap_or_default();
        format!("{at:.6}")
    }

    /// Formats as `TIME  WARN target: message name=value`, or as `TIME php pid=7 request_id=…
    /// [warn] message {context}`.
    fn text(&self) -> String {
        let mut out = self.time();
        if let Some(Process { pid, request_id }) = self.process {
            put(&mut out, format_args!(" {} pid={pid}", self.target));
            if !request_id.is_empty() {
                put(&mut out, format_args!(" request_id={request_id}"));
            }
            if let Some(level) = self.level {
                put(&mut out, format_args!(" [{level}]"));
            }
            out.push(' ');
        } else {
            let level = self.level.unwrap_or_default().to_ascii_uppercase();
            put(&mut out, format_args!(" {level:>5} {}: ", self.target));
        }
        out.push_str(&harmless(self.message));
        for (name, detail) in self.details {
            let text = match detail {
                Detail::Quoted(text) => format!("{text:?}"),
                Detail::Plain(text) => harmless(text),
                Detail::Value(value) => value.to_string(),
            };
            put(&mut out, format_args!(" {name}={text}"));
        }
        if !self.context.is_empty() {
            put(&mut out, format_args!(" {}", harmless(self.context)));
        }
        out
    }

    fn json(&self) -> String {
        // Cannot fail: the fields are texts, numbers and valid JSON.
        printable_json(serde_json::to_string(self).unwrap_or_default())
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("timestamp", &self.time())?;
        if let Some(level) = self.level {
            map.serialize_entry("level", level)?;
        }
        map.serialize_entry("target", self.target)?;
        if let Some(Process { pid, request_id }) = self.process {
            map.serialize_entry("pid", &pid)?;
            map.serialize_entry("request_id", request_id)?;
        }
        map.serialize_entry("message", self.message)?;
        for (name, detail) in self.details {
            match detail {
                Detail::Quoted(text) | Detail::Plain(text) => map.serialize_entry(name, text)?,
                Detail::Value(value) => map.serialize_entry(name, value)?,
            }
        }
        match serde_json::from_str::<&RawValue>(self.context) {
            Ok(context) => map.serialize_entry("context", context)?,
            Err(_) if self.context.is_empty() => {}
            Err(_) => map.serialize_entry("context", self.context)?,
        }
        map.end()
    }
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(what);
}

/// Escapes unprintable characters. Line breaks stay visible, but are indented so that they cannot
/// start a forged line.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\n    "),
            '\t' => out.push(c),
            c if is_unprintable(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    const LINE: Line<'_> = Line {
        at: UNIX_EPOCH,
        level: Some("warn"),
        target: "samovar::log",
        process: None,
        message: "m",
        details: &[],
        context: "",
    };

    const PHP: Line<'_> = Line {
        level: None,
        target: "php",
        process: Some(Process { pid: 7, request_id: "id" }),
        ..LINE
    };

    fn check(line: &Line<'_>, text: &str, json: &str) {
        assert_eq!(line.render(Format::Text), format!("1970-01-01T00:00:00.000000Z {text}\n"));
        let json = format!("{{\"timestamp\":\"1970-01-01T00:00:00.000000Z\",{json}}}\n");
        assert_eq!(line.render(Format::Json), json);
    }

    #[test]
    fn server_line_renders_as_text_and_json() {
        check(
            &LINE,
            " WARN samovar::log: m",
            r#""level":"warn","target":"samovar::log","message":"m""#,
        );
        let details = [
            ("kind", Detail::Quoted("a \"b\"".into())),
            ("file", Detail::Plain("/a b".into())),
            ("n", Detail::Value(3.into())),
        ];
        check(
            &Line { details: &details, level: Some("error"), ..LINE },
            "ERROR samovar::log: m kind=\"a \\\"b\\\"\" file=/a b n=3",
            concat!(
                r#""level":"error","target":"samovar::log","message":"m","#,
                r#""kind":"a \"b\"","file":"/a b","n":3"#
            ),
        );
    }

    #[test]
    fn php_line_renders_as_text_and_json() {
        check(
            &PHP,
            "php pid=7 request_id=id m",
            r#""target":"php","pid":7,"request_id":"id","message":"m""#,
        );
        let context = r#"{"b":1.0,"a":2}"#;
        let process = Some(Process { pid: 7, request_id: "" });
        check(
            &Line { level: Some("info"), process, context, ..PHP },
            "php pid=7 [info] m {\"b\":1.0,\"a\":2}",
            r#""level":"info","target":"php","pid":7,"request_id":"","message":"m","context":{"b":1.0,"a":2}"#,
        );
    }

    #[test]
    fn message_with_control_characters_is_escaped() {
        check(
            &Line { message: "a\nb\tc\u{1b}[m\r\u{9b}\u{202e}", ..PHP },
            "php pid=7 request_id=id a\n    b\tc\\u{1b}[m\\r\\u{9b}\\u{202e}",
            r#""target":"php","pid":7,"request_id":"id","message":"a\nb\tc\u001b[m\r\u009b\u202e""#,
        );
        let details =
            [("kind", Detail::Plain("a\nb".into())), ("name", Detail::Quoted("\n".into()))];
        check(
            &Line { details: &details, ..LINE },
            " WARN samovar::log: m kind=a\n    b name=\"\\n\"",
            r#""level":"warn","target":"samovar::log","message":"m","kind":"a\nb","name":"\n""#,
        );
    }

    #[test]
    fn time_around_leap_days_is_correct() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_795_244_400, "2026-11-21T07:00:00"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(12);
            assert_eq!(Line { at, ..LINE }.time(), format!("{expected}.000012Z"));
        }
    }
}
