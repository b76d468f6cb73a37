//! One line of the access log.

use super::basic_user::basic_user;
use super::time;
use super::trace::Trace;
use crate::route::target::AsItCame;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Version, header};
use samovar_config::AccessLogFormat;
use samovar_insight::{End, Finished, Intake, Marks, Model, Numbers, id_mark, mark};
use samovar_log::is_unprintable;
use samovar_ring::{Account, Ending};
use std::fmt::Write;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// The client and its request, as described by the request head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client<'a> {
    /// The peer's address.
    pub(crate) peer: &'a str,
    /// The client's address as a trusted proxy reports it.
    pub(crate) claimed: Option<IpAddr>,
    /// Length of the body as declared in the head.
    pub(crate) body_bytes: u64,
    /// The trace of the request.
    pub(crate) trace: Option<Trace>,
    /// The request used HTTPS, to this server or to a trusted proxy.
    pub(crate) is_https: bool,
}

/// Data of a finished request. Lines are reused, so that their buffers serve the next request.
#[derive(Debug)]
pub(super) struct LogLine {
    started: Instant,
    at: SystemTime,
    /// Time from the head to the last byte.
    wall: Duration,
    /// `None`: there is no request, and the target is a whole request line.
    method: Option<Method>,
    /// Target as received. Copied, like the id: sharing the head's buffer would make it unavailable
    /// for reading the next head.
    target: Vec<u8>,
    id: Vec<u8>,
    /// Hashes for the statistics. `head_mark` covers method, path and pool; `marks` covers these
    /// and the script, and the id.
    head_mark: Option<u64>,
    marks: Marks,
    trace: Option<Trace>,
    is_https: bool,
    pub(super) bytes: u64,
    pub(super) attempts: u32,
    pub(super) account: Option<Account>,
    /// `SCRIPT_NAME` of the script that runs; empty if there is none.
    script: Vec<u8>,
    /// php-fpm server that runs it instead of a worker; empty if there is none.
    pub(super) upstream: String,
    /// Name of the pool, if there are several.
    pub(super) pool: Option<Rc<str>>,
    body_bytes: u64,
    logged: Option<Box<Logged>>,
}

/// Data that only the access log needs. Kept apart, so that requests that are only counted do not
/// carry it.
#[derive(Debug, Default)]
struct Logged {
    version: Version,
    host: Option<HeaderValue>,
    authorization: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    remote: String,
}

impl Default for LogLine {
    fn default() -> LogLine {
        LogLine {
            started: Instant::now(),
            at: SystemTime::UNIX_EPOCH,
            wall: Duration::ZERO,
            method: Some(Method::GET),
            target: Vec::new(),
            id: Vec::new(),
            head_mark: None,
            marks: Marks::default(),
            trace: None,
            is_https: false,
            bytes: 0,
            attempts: 1,
            account: None,
            script: Vec::new(),
            upstream: String::new(),
            pool: None,
            body_bytes: 0,
            logged: None,
        }
    }
}

/// Names of scripts and targets may be long; buffers larger than this are not kept.
const TEXT_ROOM_MAX: usize = 1024;

impl LogLine {
    pub(super) fn begin(
        &mut self,
        started: Instant,
        at: SystemTime,
        parts: &Parts,
        id: &HeaderValue,
        client: Client<'_>,
    ) {
        (self.started, self.at) = (started, at);
        self.method = Some(parts.method.clone());
        let path_and_query = || parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        put(
            &mut self.target,
            match parts.extensions.get() {
                Some(AsItCame(target)) => target,
                None => path_and_query().as_bytes(),
            },
        );
        put(&mut self.id, id.as_bytes());
        (self.trace, self.body_bytes) = (client.trace, client.body_bytes);
        self.is_https = client.is_https;
        (self.bytes, self.attempts, self.account) = (0, 1, None);
        self.script.clear();
        self.upstream.clear();
    }

    /// The line of a head that was refused: the request line as it came, instead of a method and a
    /// target.
    pub(super) fn refused(
        started: Instant,
        at: SystemTime,
        (remote, line, id): (&str, &[u8], &HeaderValue),
        bytes: u64,
    ) -> LogLine {
        let logged = Logged { remote: remote.to_owned(), ..Logged::default() };
        LogLine {
            started,
            at,
            method: None,
            target: if line.is_empty() { b"-".to_vec() } else { line.to_vec() },
            id: id.as_bytes().to_vec(),
            bytes,
            logged: Some(Box::new(logged)),
            ..LogLine::default()
        }
    }

    /// Records the script that runs.
    pub(super) fn runs(&mut self, script: &[u8]) {
        put(&mut self.script, script);
        if let Some(head) = self.head_mark {
            self.marks.texts = mark(head, &[script]);
        }
    }

    /// Computes the hashes that identify the request in the statistics, while its texts are
    /// available.
    pub(super) fn note_for_figures(&mut self) {
        let pool = self.pool.as_deref().unwrap_or_default();
        let texts = [self.method().as_bytes(), path_of(&self.target), pool.as_bytes()];
        let head = mark(0, &texts);
        self.head_mark = Some(head);
        self.marks = Marks { texts: head, id: id_mark(&self.id) };
    }

    /// Records the additional data of the access log.
    pub(super) fn note_for_log(&mut self, parts: &Parts, client: Client<'_>) {
        self.logged = Some(Box::new(Logged {
            version: parts.version,
            host: parts.headers.get(header::HOST).cloned(),
            authorization: parts.headers.get(header::AUTHORIZATION).cloned(),
            referer: parts.headers.get(header::REFERER).cloned(),
            user_agent: parts.headers.get(header::USER_AGENT).cloned(),
            remote: client.claimed.map_or_else(|| client.peer.to_owned(), |a| a.to_string()),
        }));
    }

    fn method(&self) -> &str {
        self.method.as_ref().map_or("", Method::as_str)
    }

    /// Method and target, and the id, for a message.
    pub(super) fn request_and_id(&self) -> [String; 2] {
        let [mut target, mut id] = [String::new(), String::new()];
        escape(&self.target, Quoting::Combined, &mut target);
        escape(&self.id, Quoting::Combined, &mut id);
        [format!("{} {target}", self.method()), id]
    }

    pub(super) fn keep_out_of_log(&mut self) {
        self.logged = None;
    }

    /// Whether the request is written to the access log.
    pub(super) fn is_for_log(&self) -> bool {
        self.logged.is_some()
    }

    /// Records the end: the client has its last byte, or has disconnected.
    pub(super) fn end(&mut self) {
        self.wall = self.started.elapsed();
    }

    /// Releases the data of a finished request that it shared with its head, and large buffers.
    pub(super) fn let_go(&mut self) {
        (self.method, self.account, self.logged) = (Some(Method::GET), None, None);
        for text in [&mut self.script, &mut self.target, &mut self.id] {
            text.shrink_to(TEXT_ROOM_MAX);
        }
    }

    /// Passes the request on to crates/insight.
    pub(super) fn hand_over(&self, status: u16, end: End, intake: &mut Intake) {
        let usage = self.account.as_ref().map(|account| account.usage).unwrap_or_default();
        let trace = self.trace.unwrap_or_default();
        let end = match (end, usage.ending) {
            (End::Completed, Ending::Fatal) => End::Fatal,
            (End::Completed, Ending::Overtime) => End::Overtime,
            (End::Completed, Ending::Exit) => End::Exit,
            (end, _) => end,
        };
        let model = match usage.model {
            _ if usage.worker.pid == 0 => Model::None,
            samovar_ring::Model::Script => Model::Script,
            samovar_ring::Model::Resident => Model::Resident,
            samovar_ring::Model::Checkpoint => Model::Checkpoint,
        };
        let numbers = Numbers {
            began_unix_us: since_1970_us(self.at),
            status,
            model,
            end,
            generation: usage.worker.generation.into(),
            worker: usage.worker.pid,
            cell: usage.worker.cell,
            retries: self.attempts - 1,
            wall_ns: ns(self.wall),
            queue_ns: usage.queue_ns,
            run_ns: usage.run_ns,
            cpu_ns: usage.cpu_ns,
            rollback_ns: usage.details.rollback_ns,
            rollback_pages: usage.details.rollback_pages,
            faults_minor: usage.details.faults_minor,
            faults_major: usage.details.faults_major,
            switches_voluntary: usage.details.switches_voluntary,
            switches_involuntary: usage.details.switches_involuntary,
            peak_bytes: usage.peak_bytes,
            is_https: self.is_https,
            bytes_in: self.body_bytes,
            bytes_out: self.bytes,
            trace_id: trace.id,
            span_id: trace.span,
            parent_span_id: trace.parent,
            is_sampled: trace.is_sampled(),
        };
        let report: &[u8] = self.account.as_ref().map_or(&[], |account| &account.report);
        if report.is_empty() && intake.pack(&numbers, self.marks) {
            return;
        }
        let finished = Finished {
            numbers,
            method: self.method(),
            path: &String::from_utf8_lossy(path_of(&self.target)),
            script: &String::from_utf8_lossy(&self.script),
            id: std::str::from_utf8(&self.id).unwrap_or_default(),
            pool: self.pool.as_deref().unwrap_or_default(),
            report,
        };
        intake.put_marked(&finished, self.marks);
    }

    pub(super) fn text(&self, format: AccessLogFormat, status: u16, is_aborted: bool) -> String {
        let mut out = String::with_capacity(256);
        let Some(logged) = &self.logged else { return out };
        match format {
            AccessLogFormat::Combined => self.combined(logged, status, &mut out),
            AccessLogFormat::Json => self.json(logged, status, is_aborted, &mut out),
        }
        .expect("writing to a string cannot fail");
        out.push('\n');
        out
    }

    /// Writes Apache's combined format, followed by fields that readers of that format ignore.
    fn combined(&self, logged: &Logged, status: u16, out: &mut String) -> std::fmt::Result {
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
        status: u16,
        is_aborted: bool,
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

/// Returns a target without its query.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|b| *b == b'?').next().unwrap_or_default()
}

/// Replaces a text and reuses its buffer.
fn put(to: &mut Vec<u8>, text: &[u8]) {
    to.clear();
    to.extend_from_slice(text);
}

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn since_1970_us(at: SystemTime) -> u64 {
    let span = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
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
