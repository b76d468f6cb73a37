//! One line of the access log.

use super::time;
use crate::connection::ConnectionState;
use crate::options::AccessLogFormat;
use http::request::Parts;
use http::{HeaderValue, Method, Uri, Version, header};
use samovar_ring::Ledger;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// What a line of the log is made of.
#[derive(Debug)]
pub(super) struct Line {
    started: Instant,
    at: SystemTime,
    method: Method,
    uri: Uri,
    version: Version,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    id: HeaderValue,
    remote: String,
    pub(super) bytes: u64,
    pub(super) attempts: u32,
    pub(super) ledger: Option<Ledger>,
}

impl Line {
    /// `claimed`: the client's address, by the word of a trusted proxy.
    pub(super) fn new(
        connection: &ConnectionState,
        parts: &Parts,
        id: &HeaderValue,
        claimed: Option<IpAddr>,
    ) -> Line {
        Line {
            started: Instant::now(),
            at: SystemTime::now(),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            referer: parts.headers.get(header::REFERER).cloned(),
            user_agent: parts.headers.get(header::USER_AGENT).cloned(),
            id: id.clone(),
            remote: claimed.map_or_else(|| connection.peer_text.clone(), |a| a.to_string()),
            bytes: 0,
            attempts: 1,
            ledger: None,
        }
    }

    fn target(&self) -> &str {
        self.uri.path_and_query().map_or("/", |p| p.as_str())
    }

    pub(super) fn text(&self, format: AccessLogFormat, status: u16, is_aborted: bool) -> String {
        let mut out = String::with_capacity(256);
        match format {
            AccessLogFormat::Combined => self.combined(status, &mut out),
            AccessLogFormat::Json => self.json(status, is_aborted, &mut out),
        }
        .expect("writing to a string cannot fail");
        out.push('\n');
        out
    }

    /// Apache's combined format, and behind it what a log reader of that format does not look at.
    fn combined(&self, status: u16, out: &mut String) -> std::fmt::Result {
        let Line { remote, method, version, bytes, .. } = self;
        write!(out, "{remote} - - [{}] \"{method} ", time::common(self.at))?;
        escape(self.target().as_bytes(), Quoting::Combined, out);
        write!(out, " {version:?}\" {status} {bytes}")?;
        for value in [&self.referer, &self.user_agent] {
            out.push_str(" \"");
            match value {
                Some(value) => escape(value.as_bytes(), Quoting::Combined, out),
                None => out.push('-'),
            }
            out.push('"');
        }
        write!(out, " {}ms", ms(self.started.elapsed()))?;
        if let Some(ledger) = &self.ledger {
            let cpu = ms(Duration::from_nanos(ledger.cpu_ns));
            write!(out, " cpu={cpu}ms memory={}", ledger.peak_bytes)?;
        }
        out.push_str(" id=");
        escape(self.id.as_bytes(), Quoting::Combined, out);
        Ok(())
    }

    fn json(&self, status: u16, is_aborted: bool, out: &mut String) -> std::fmt::Result {
        let at = time::rfc3339(self.at);
        write!(out, "{{\"time\":\"{at}\",\"remote\":\"{}\",\"method\":\"", self.remote)?;
        escape(self.method.as_str().as_bytes(), Quoting::Json, out);
        out.push_str("\",\"uri\":\"");
        escape(self.target().as_bytes(), Quoting::Json, out);
        write!(out, "\",\"protocol\":\"{:?}\",\"status\":{status}", self.version)?;
        write!(out, ",\"bytes\":{}", self.bytes)?;
        for (key, value) in [("referer", &self.referer), ("user_agent", &self.user_agent)] {
            if let Some(value) = value {
                write!(out, ",\"{key}\":\"")?;
                escape(value.as_bytes(), Quoting::Json, out);
                out.push('"');
            }
        }
        write!(out, ",\"duration_ms\":{}", ms(self.started.elapsed()))?;
        if let Some(ledger) = &self.ledger {
            let of = |ns| ms(Duration::from_nanos(ns));
            write!(out, ",\"queue_ms\":{},\"cpu_ms\":{}", of(ledger.queue_ns), of(ledger.cpu_ns))?;
            write!(out, ",\"memory_bytes\":{}", ledger.peak_bytes)?;
        }
        out.push_str(",\"request_id\":\"");
        escape(self.id.as_bytes(), Quoting::Json, out);
        write!(out, "\",\"attempts\":{},\"aborted\":{is_aborted}}}", self.attempts)
    }
}

/// Milliseconds with three decimals.
fn ms(span: Duration) -> String {
    format!("{}.{:03}", span.as_millis(), span.as_micros() % 1_000)
}

#[derive(Clone, Copy)]
enum Quoting {
    /// `\xHH`, as nginx does.
    Combined,
    /// `\u00HH`.
    Json,
}

/// Writes `bytes` as the inside of a quoted string: no quote, backslash, control character or invalid UTF-8.
fn escape(bytes: &[u8], quoting: Quoting, out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match (character, quoting) {
                ('"' | '\\', Quoting::Json) => out.extend(['\\', character]),
                ('"' | '\\' | '\0'..='\x1f' | '\x7f'..='\u{9f}', _) => {
                    escape_code(character as u32, quoting, out);
                }
                _ => out.push(character),
            }
        }
        for byte in chunk.invalid() {
            match quoting {
                Quoting::Combined => escape_code(u32::from(*byte), quoting, out),
                Quoting::Json => out.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }
}

fn escape_code(code: u32, quoting: Quoting, out: &mut String) {
    let result = match quoting {
        Quoting::Combined => write!(out, "\\x{code:02X}"),
        Quoting::Json => write!(out, "\\u{code:04x}"),
    };
    result.expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_forge_a_line() {
        for (bytes, combined, json) in [
            (&b"plain \xc3\xa4"[..], "plain ä", "plain ä"),
            (b"a\"b\\c", "a\\x22b\\x5Cc", "a\\\"b\\\\c"),
            (b"a\nb\tc\x7f", "a\\x0Ab\\x09c\\x7F", "a\\u000ab\\u0009c\\u007f"),
            (b"a\xffb", "a\\xFFb", "a\u{fffd}b"),
        ] {
            let escaped = |quoting| {
                let mut out = String::new();
                escape(bytes, quoting, &mut out);
                out
            };
            assert_eq!(escaped(Quoting::Combined), combined);
            assert_eq!(escaped(Quoting::Json), json);
        }
    }
}
