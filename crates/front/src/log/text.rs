//! A finished request → its line of the access log, in both formats.

use super::basic_user::basic_user;
use super::line::{LogLine, Logged, model_of};
use super::time;
use http::HeaderValue;
use samovar_config::AccessLogFormat;
use samovar_insight::{Glance, Numbers, Redaction};
use samovar_log::is_unprintable;
use samovar_ring::Account;
use std::fmt::Write;
use std::time::Duration;

/// Form of the lines.
#[derive(Clone, Debug)]
pub(super) struct LineFormat {
    pub(super) format: AccessLogFormat,
    /// Removes secrets from the names of routes, as for the statistics.
    pub(super) redaction: Redaction,
    /// Whether workers report on their requests: the application's names of routes and the waits
    /// are known.
    pub(super) has_reports: bool,
}

impl LogLine {
    /// Method and target, and the id, for a message.
    pub(super) fn request_and_id(&self) -> [String; 2] {
        let [target, id] = [&self.target, &self.id].map(|bytes| escaped(bytes));
        [format!("{} {target}", self.method()), id]
    }

    /// Returns the line with its line break; an empty text for a request that is not logged.
    pub(super) fn text(&self, form: &LineFormat, status: u16, is_aborted: bool) -> String {
        let mut out = String::with_capacity(384);
        let Some(logged) = &self.logged else { return out };
        let glance = self.glance(form, status);
        match form.format {
            AccessLogFormat::Combined => self.combined(logged, &glance, status, &mut out),
            AccessLogFormat::Json => self.json(logged, &glance, (status, is_aborted), &mut out),
        }
        .expect("writing to a string cannot fail");
        out.push('\n');
        out
    }

    /// Returns the route and the waits of the request.
    fn glance(&self, form: &LineFormat, status: u16) -> Glance {
        if self.method.is_none() {
            return Glance::default();
        }
        let model = self.account.as_ref().map(|account| model_of(&account.usage));
        let numbers = Numbers { status, model: model.unwrap_or_default(), ..Numbers::default() };
        let glance = self.with_texts(numbers, |finished| Glance::of(finished, &form.redaction));
        // Without reports, no wait is known, not even that there was none.
        let is_known = form.has_reports && self.account.is_some();
        Glance { waiting_ns: glance.waiting_ns.filter(|_| is_known), ..glance }
    }

    /// Writes Apache's combined format, followed by fields that readers of that format ignore.
    fn combined(
        &self,
        logged: &Logged,
        glance: &Glance,
        status: u16,
        out: &mut String,
    ) -> std::fmt::Result {
        let Logged { remote, version, authorization, referer, user_agent, .. } = logged;
        write!(out, "{remote} - ")?;
        match authorization.as_ref().and_then(|value| basic_user(value.as_bytes())) {
            Some(user) if !user.is_empty() => escape(&user, Quoting::Word, out),
            _ => out.push('-'),
        }
        write!(out, " [{}] \"", time::common(self.at))?;
        if let Some(method) = &self.method {
            write!(out, "{method} ")?;
        }
        escape(&self.target, Quoting::Combined, out);
        if self.method.is_some() {
            write!(out, " {version:?}")?;
        }
        write!(out, "\" {status} {}", self.bytes)?;
        for value in [referer, user_agent] {
            out.push_str(" \"");
            match value {
                Some(value) => escape(value.as_bytes(), Quoting::Combined, out),
                None => out.push('-'),
            }
            out.push('"');
        }
        write!(out, " {}ms", ms(self.wall))?;
        if let Some(Account { usage, .. }) = &self.account {
            let cpu = ms(Duration::from_nanos(usage.cpu_ns));
            write!(out, " cpu={cpu}ms memory={}", usage.peak_bytes)?;
            if let Some(ns) = glance.waiting_ns {
                write!(out, " wait={}ms", ms(Duration::from_nanos(ns)))?;
            }
            write!(out, " model={}", model_of(usage).name())?;
        }
        if !glance.route.is_empty() {
            out.push_str(" route=\"");
            escape(glance.route.as_bytes(), Quoting::Combined, out);
            out.push('"');
        }
        if !self.upstream.is_empty() {
            out.push_str(" upstream=");
            escape(self.upstream.as_bytes(), Quoting::Combined, out);
        }
        if let Some(pool) = &self.pool {
            write!(out, " pool={pool}")?;
        }
        out.push_str(" id=");
        escape(&self.id, Quoting::Combined, out);
        match &self.trace {
            Some(trace) => write!(out, " trace={}", trace.id_text()),
            None => Ok(()),
        }
    }

    fn json(
        &self,
        logged: &Logged,
        glance: &Glance,
        (status, is_aborted): (u16, bool),
        out: &mut String,
    ) -> std::fmt::Result {
        let Logged { remote, version, host, authorization, referer, user_agent } = logged;
        let at = time::rfc3339(self.at);
        write!(out, "{{\"time\":\"{at}\",\"remote\":\"{remote}\",\"")?;
        if self.method.is_some() {
            out.push_str("method\":\"");
            escape(self.method().as_bytes(), Quoting::Json, out);
            out.push_str("\",\"uri\":\"");
            escape(&self.target, Quoting::Json, out);
            write!(out, "\",\"protocol\":\"{version:?}\"")?;
        } else {
            out.push_str("refused\":\"");
            escape(&self.target, Quoting::Json, out);
            out.push('"');
        }
        write!(out, ",\"status\":{status}")?;
        let user = authorization.as_ref().and_then(|value| basic_user(value.as_bytes()));
        let host = host.as_ref().map(HeaderValue::as_bytes);
        for (key, value) in [("host", host), ("user", user.as_deref())] {
            if let Some(value) = value {
                write!(out, ",\"{key}\":\"")?;
                escape(value, Quoting::Json, out);
                out.push('"');
            }
        }
        write!(out, ",\"bytes\":{}", self.bytes)?;
        for (key, value) in [("referer", referer), ("user_agent", user_agent)] {
            if let Some(value) = value {
                write!(out, ",\"{key}\":\"")?;
                escape(value.as_bytes(), Quoting::Json, out);
                out.push('"');
            }
        }
        write!(out, ",\"duration_ms\":{}", ms(self.wall))?;
        if let Some(Account { usage, .. }) = &self.account {
            let of = |ns| ms(Duration::from_nanos(ns));
            write!(out, ",\"queue_ms\":{},\"cpu_ms\":{}", of(usage.queue_ns), of(usage.cpu_ns))?;
            write!(out, ",\"memory_bytes\":{}", usage.peak_bytes)?;
            if let Some(ns) = glance.waiting_ns {
                write!(out, ",\"wait_ms\":{}", of(ns))?;
            }
            write!(out, ",\"model\":\"{}\"", model_of(usage).name())?;
        }
        if !glance.route.is_empty() {
            out.push_str(",\"route\":\"");
            escape(glance.route.as_bytes(), Quoting::Json, out);
            out.push('"');
        }
        if !self.upstream.is_empty() {
            out.push_str(",\"upstream\":\"");
            escape(self.upstream.as_bytes(), Quoting::Json, out);
            out.push('"');
        }
        if let Some(pool) = &self.pool {
            write!(out, ",\"pool\":\"{pool}\"")?;
        }
        out.push_str(",\"request_id\":\"");
        escape(&self.id, Quoting::Json, out);
        if let Some(trace) = &self.trace {
            write!(out, "\",\"trace_id\":\"{}", trace.id_text())?;
        }
        write!(out, "\",\"attempts\":{},\"aborted\":{is_aborted}}}", self.attempts)
    }
}

/// Milliseconds with three decimals.
fn ms(span: Duration) -> String {
    format!("{}.{:03}", span.as_millis(), span.as_micros() % 1_000)
}

/// Escape syntax for bytes that could end the string, forge a line, or control the reader's
/// terminal. JSON itself requires less: `serde_json` passes on DEL and the control characters from
/// U+0080 on, which terminals interpret.
#[derive(Clone, Copy)]
enum Quoting {
    /// `\xHH`, as nginx does.
    Combined,
    /// The same without spaces, for a field without quotes.
    Word,
    /// `\u00HH`.
    Json,
}

/// Returns `bytes` for a message.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    escape(bytes, Quoting::Combined, &mut out);
    out
}

/// Writes `bytes` as the content of a quoted string, without quotes, backslashes, unprintable
/// characters or invalid UTF-8.
fn escape(bytes: &[u8], quoting: Quoting, out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match (character, quoting) {
                ('"' | '\\', Quoting::Json) => out.extend(['\\', character]),
                ('"' | '\\' | '\0'..='\x1f' | '\x7f'..='\u{9f}', _) | (' ', Quoting::Word) => {
                    escape_code(character as u32, quoting, out);
                }
                (c, Quoting::Json) if is_unprintable(c) => escape_code(c as u32, quoting, out),
                (c, _) if is_unprintable(c) => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        escape_code(u32::from(byte), quoting, out);
                    }
                }
                _ => out.push(character),
            }
        }
        for byte in chunk.invalid() {
            match quoting {
                Quoting::Combined | Quoting::Word => {
                    escape_code(u32::from(*byte), quoting, out);
                }
                Quoting::Json => out.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }
}

fn escape_code(code: u32, quoting: Quoting, out: &mut String) {
    let result = match quoting {
        Quoting::Combined | Quoting::Word => write!(out, "\\x{code:02X}"),
        Quoting::Json => write!(out, "\\u{code:04x}"),
    };
    result.expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_quotes_are_escaped() {
        for (bytes, combined, json) in [
            (&b"plain \xc3\xa4"[..], "plain ä", "plain ä"),
            (b"a\"b\\c", "a\\x22b\\x5Cc", "a\\\"b\\\\c"),
            (b"a\nb\tc\x7f", "a\\x0Ab\\x09c\\x7F", "a\\u000ab\\u0009c\\u007f"),
            (b"a\xe2\x80\xaeb", "a\\xE2\\x80\\xAEb", "a\\u202eb"),
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
