//! record: one line per request, written by a thread of its own.
//!
//! The front never waits for the log: lines go through a bounded channel, and what finds it full is counted and lost.
//! Everything a client sent is escaped, so that nobody can forge a line.

use crate::connection::ConnectionState;
use crate::exchange::Lost;
use crate::front::StartError;
use crate::options::{AccessLog, AccessLogFormat};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, Uri, Version, header};
use samovar_ring::Ledger;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines that may wait for the disk.
const LINES_MAX: usize = 8_192;
/// What the log says of a client that left before its answer; nginx's number.
const CLIENT_GONE: u16 = 499;

/// Where finished requests go.
#[derive(Debug)]
pub(crate) struct Recorder {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    format: AccessLogFormat,
}

impl Recorder {
    /// Opens the log and starts its thread; does neither if it is off.
    pub(crate) fn start(
        log: &AccessLog,
        format: AccessLogFormat,
        reopens: Arc<AtomicBool>,
    ) -> Result<Recorder, StartError> {
        let out: Box<dyn Write + Send> = match log {
            AccessLog::Off => return Ok(Recorder { lines: None, writer: None, format }),
            AccessLog::Stdout => Box::new(io::stdout()),
            AccessLog::File(path) => Box::new(
                open(path).map_err(|source| StartError::Log { path: path.clone(), source })?,
            ),
        };
        let path = match log {
            AccessLog::File(path) => Some(path.clone()),
            AccessLog::Off | AccessLog::Stdout => None,
        };
        let (lines, received) = sync_channel(LINES_MAX);
        let writer = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write(&received, out, path.as_deref(), &reopens))?;
        Ok(Recorder { lines: Some(lines), writer: Some(writer), format })
    }

    fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    /// False: the line is lost.
    fn put(&self, line: String) -> bool {
        let Some(lines) = &self.lines else { return true };
        !matches!(lines.try_send(line), Err(TrySendError::Full(_)))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The writer thread: flushes whenever no line waits.
fn write(
    lines: &Receiver<String>,
    out: Box<dyn Write + Send>,
    path: Option<&Path>,
    reopens: &AtomicBool,
) {
    let mut out = BufWriter::new(out);
    let mut has_failed = false;
    while let Ok(first) = lines.recv() {
        if let (true, Some(path)) = (reopens.swap(false, Ordering::AcqRel), path) {
            match open(path) {
                Ok(file) => out = BufWriter::new(Box::new(file)),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "cannot reopen the access log");
                }
            }
        }
        let mut result = out.write_all(first.as_bytes());
        while let Ok(line) = lines.try_recv() {
            result = result.and_then(|()| out.write_all(line.as_bytes()));
        }
        result = result.and_then(|()| out.flush());
        if let (Err(error), false) = (&result, has_failed) {
            tracing::warn!(%error, "cannot write the access log (hint: is the disk full?)");
        }
        has_failed = result.is_err();
    }
}

/// A request on its way through the front. Dropping it is the end of the request.
#[derive(Debug)]
pub(crate) struct Passage {
    connection: Rc<ConnectionState>,
    status: u16,
    is_complete: bool,
    line: Option<Box<Line>>,
}

/// What a line of the log is made of.
#[derive(Debug)]
struct Line {
    started: Instant,
    at: SystemTime,
    method: Method,
    uri: Uri,
    version: Version,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    id: HeaderValue,
    remote: String,
    bytes: u64,
    attempts: u32,
    ledger: Option<Ledger>,
}

impl Passage {
    pub(crate) fn begin(
        connection: &Rc<ConnectionState>,
        parts: &Parts,
        id: &HeaderValue,
    ) -> Passage {
        let shared = &connection.shared;
        shared.counters.requests.add(1);
        shared.counters.in_flight.add(1);
        let line = shared.recorder.is_on().then(|| Box::new(Line::new(connection, parts, id)));
        Passage { connection: Rc::clone(connection), status: CLIENT_GONE, is_complete: false, line }
    }

    /// A worker died; it is run again.
    pub(crate) fn retried(&mut self) {
        if let Some(line) = &mut self.line {
            line.attempts += 1;
        }
    }

    pub(crate) fn costs(&mut self, ledger: Ledger) {
        if let Some(line) = &mut self.line {
            line.ledger = Some(ledger);
        }
    }

    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        if let Some(line) = &mut self.line {
            line.bytes += bytes;
        }
    }

    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// The answer broke off.
    pub(crate) fn cut(&self, lost: Lost) {
        let shared = &self.connection.shared;
        if let Some(suppressed) = shared.warnings.cut.pass() {
            tracing::warn!(
                ?lost,
                suppressed,
                "an answer broke off in the middle; the client's connection is cut (hint: the \
                 worker's log says why)"
            );
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.connection.end_request();
        let shared = &self.connection.shared;
        shared.counters.in_flight.sub(1);
        if self.status >= 500 {
            shared.counters.responses_5xx.add(1);
        }
        if let Some(line) = self.line.take() {
            let text = line.text(shared.recorder.format, self.status, !self.is_complete);
            if !shared.recorder.put(text) {
                shared.counters.log_lines_dropped.add(1);
            }
        }
    }
}

impl Line {
    fn new(connection: &ConnectionState, parts: &Parts, id: &HeaderValue) -> Line {
        let claimed = crate::forwarded::claims(connection, &parts.headers).address;
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

    fn text(&self, format: AccessLogFormat, status: u16, is_aborted: bool) -> String {
        let mut out = String::with_capacity(256);
        match format {
            AccessLogFormat::Combined => self.combined(status, &mut out),
            AccessLogFormat::Json => self.json(status, is_aborted, &mut out),
        }
        .expect("writing to a string cannot fail");
        out.push('\n');
        out
    }

    fn combined(&self, status: u16, out: &mut String) -> std::fmt::Result {
        let Line { remote, method, version, bytes, .. } = self;
        write!(out, "{remote} - - [{}] \"{method} ", clf_time(self.at))?;
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
        Ok(())
    }

    fn json(&self, status: u16, is_aborted: bool, out: &mut String) -> std::fmt::Result {
        let time = clf::rfc3339(self.at);
        write!(out, "{{\"time\":\"{time}\",\"remote\":\"{}\",\"method\":\"", self.remote)?;
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

fn clf_time(at: SystemTime) -> String {
    clf::common(at)
}

/// Times of the log, in UTC.
mod clf {
    use super::{Duration, SystemTime, UNIX_EPOCH};

    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

    struct Civil {
        year: i64,
        month: usize,
        day: u64,
        hour: u64,
        minute: u64,
        second: u64,
        ms: u32,
    }

    /// Howard Hinnant's `civil_from_days`, for days since 1970.
    fn civil(at: SystemTime) -> Civil {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let seconds = since.as_secs();
        let days = (seconds / 86_400).cast_signed() + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        Civil {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: month.cast_unsigned() as usize,
            day: (day_of_year - (153 * shifted + 2) / 5 + 1).cast_unsigned(),
            hour: seconds / 3_600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            ms: since.subsec_millis(),
        }
    }

    /// `10/Oct/2000:13:55:36 +0000`.
    pub(super) fn common(at: SystemTime) -> String {
        let Civil { year, month, day, hour, minute, second, .. } = civil(at);
        let month = MONTHS[month - 1];
        format!("{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} +0000")
    }

    /// `2000-10-10T13:55:36.000Z`.
    pub(super) fn rfc3339(at: SystemTime) -> String {
        let Civil { year, month, day, hour, minute, second, ms } = civil(at);
        format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (seconds, common, rfc) in [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z"),
            (951_782_400, "29/Feb/2000:00:00:00 +0000", "2000-02-29T00:00:00.000Z"),
            (1_735_689_599, "31/Dec/2024:23:59:59 +0000", "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "01/Mar/2100:00:00:00 +0000", "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!((clf::common(at).as_str(), clf::rfc3339(at).as_str()), (common, rfc));
        }
    }

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
