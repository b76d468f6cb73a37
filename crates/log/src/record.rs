//! Lines → datagrams for a log daemon: one datagram per record, with severity and sender, and
//! without a second time stamp.
//!
//! There are two notations:
//!
//! - syslog, as syslog(3) of the C library sends it to `/dev/log` (RFC 3164, section 4.1, without a
//!   host);
//! - journald's native one (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL>), with named fields.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum bytes of text per syslog record. By default, rsyslog accepts no longer messages.
pub(crate) const SYSLOG_TEXT_BYTES_MAX: usize = 7_900;
/// Maximum bytes of text per journal record, well below the default size of a socket buffer.
pub(crate) const JOURNAL_TEXT_BYTES_MAX: usize = 48 << 10;
/// Prefix of the continuation lines of a message (`line.rs`).
const CONTINUED: &[u8] = b"    ";
/// Length of `2026-11-21T07:00:00.000012Z`.
const TIME_BYTES: usize = 27;
const JSON_HEAD: &[u8] = b"{\"timestamp\":\"";
const JSON_LEVEL: &[u8] = b"\",\"level\":\"";

/// Severity, as numbered by syslog(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

impl Severity {
    fn of_level(word: &[u8]) -> Option<Severity> {
        Some(match word.to_ascii_lowercase().as_slice() {
            // PHP's lines use the PSR-3 levels. Those without an equivalent here map to the nearest
            // one.
            b"emergency" | b"alert" | b"critical" | b"error" => Severity::Error,
            b"warn" | b"warning" => Severity::Warning,
            b"notice" => Severity::Notice,
            b"info" => Severity::Info,
            b"debug" | b"trace" => Severity::Debug,
            _ => return None,
        })
    }

    /// Derives the severity from the first words of a PHP message.
    fn of_message(message: &[u8]) -> Severity {
        let begins = |words: &[&[u8]]| words.iter().any(|word| message.starts_with(word));
        if begins(&[
            b"PHP Fatal error",
            b"PHP Parse error",
            b"PHP Recoverable fatal error",
            b"PHP Core error",
            b"PHP Compile error",
        ]) {
            Severity::Error
        } else if begins(&[b"PHP Warning", b"PHP Core warning", b"PHP Compile warning"]) {
            Severity::Warning
        } else {
            Severity::Notice
        }
    }
}

/// Splits whole lines into records: a line together with its continuation lines, without the last
/// line end.
pub(crate) fn records(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = 0;
        loop {
            end = memchr::memchr(b'\n', &rest[end..]).map_or(rest.len(), |at| end + at + 1);
            if !rest[end..].starts_with(CONTINUED) {
                break;
            }
        }
        let (record, later) = rest.split_at(end);
        rest = later;
        Some(record.strip_suffix(b"\n").unwrap_or(record))
    })
}

/// Splits a record into pieces of at most `bytes_max` bytes, cut between characters.
pub(crate) fn pieces(record: &[u8], bytes_max: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = record;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = bytes_max.min(rest.len());
        if end < rest.len() {
            let is_inside = |at: usize| rest[at] & 0xc0 == 0x80;
            // A UTF-8 character has at most four bytes; bytes that are not UTF-8 are cut anywhere.
            end = (end - 3..=end).rev().find(|at| !is_inside(*at)).unwrap_or(end);
        }
        let (piece, later) = rest.split_at(end);
        rest = later;
        Some(piece)
    })
}

/// Returns the severity of a record from any of our logs, and its text without the time, which the
/// daemon adds. JSON stays complete.
pub(crate) fn dissect(record: &[u8]) -> (Severity, &[u8]) {
    if let Some(rest) = record.strip_prefix(JSON_HEAD) {
        let level = rest.get(TIME_BYTES..).and_then(|rest| rest.strip_prefix(JSON_LEVEL));
        let word = level.and_then(|rest| rest.split(|byte| *byte == b'"').next());
        return (word.and_then(Severity::of_level).unwrap_or(Severity::Info), record);
    }
    let Some(text) = after_time(record) else { return (Severity::Info, record) };
    let mut words = text.split(|byte| *byte == b' ');
    let first = words.next().unwrap_or_default();
    if let Some(severity) = Severity::of_level(first) {
        return (severity, text);
    }
    if !words.next().is_some_and(|word| word.starts_with(b"pid=")) {
        return (Severity::Info, text);
    }
    let after = words.next().unwrap_or_default();
    let word =
        if after.starts_with(b"request_id=") { words.next().unwrap_or_default() } else { after };
    let level = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
    if let Some(severity) = level.and_then(Severity::of_level) {
        return (severity, text);
    }
    let at = word.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    (Severity::of_message(text.get(at..).unwrap_or_default()), text)
}

fn after_time(record: &[u8]) -> Option<&[u8]> {
    let (time, rest) = record.split_at_checked(TIME_BYTES)?;
    let is_time = time.ends_with(b"Z") && time[4] == b'-' && time[10] == b'T' && time[13] == b':';
    let rest = rest.strip_prefix(b" ").filter(|_| is_time)?;
    // Levels are padded to one column width.
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

/// Formats as `<30>Nov 21 07:00:00 samovar[7]: text`.
pub(crate) fn syslog(facility: u8, tag: &str, severity: Severity, text: &[u8]) -> Vec<u8> {
    let priority = u32::from(facility) * 8 + severity as u32;
    let mut out = Vec::with_capacity(text.len() + 64);
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "<{priority}>{} {tag}[{}]: ",
        local_time(SystemTime::now()),
        std::process::id()
    );
    out.extend_from_slice(text);
    out
}

/// Formats `PRIORITY`, the sender, and the message with its length, since the message may have
/// several lines.
pub(crate) fn journal(tag: &str, severity: Severity, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 96);
    let _ = write!(out, "PRIORITY={}\nSYSLOG_IDENTIFIER={tag}\nMESSAGE\n", severity as u32);
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
    out.push(b'\n');
    out
}

/// Formats as `Nov 21 07:00:00`, in the machine's time zone, as readers of `/dev/log` expect.
fn local_time(at: SystemTime) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seconds = libc::time_t::try_from(seconds).unwrap_or(libc::time_t::MAX);
    // SAFETY: all fields of `tm` are numbers, or a pointer that may be null.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid during the call, which keeps neither. The call fails for
    // years that do not fit into an int; the zeros are then still a date.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut local) };
    let month = usize::try_from(local.tm_mon).ok().and_then(|n| MONTHS.get(n)).unwrap_or(&"Jan");
    let (day, hour, minute, second) = (local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
    format!("{month} {day:>2} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Format, Line, Process};

    fn line(
        level: Option<&str>,
        process: Option<Process<'_>>,
        message: &str,
        format: Format,
    ) -> Vec<u8> {
        let target = if process.is_some() { "php" } else { "samovar::front" };
        let line = Line {
            at: SystemTime::now(),
            level,
            target,
            process,
            message,
            details: &[],
            context: "",
        };
        line.render(format).into_bytes()
    }

    #[track_caller]
    fn check(lines: &[u8], severity: Severity, text: &str) {
        let all: Vec<_> = records(lines).collect();
        assert_eq!(all.len(), 1, "{:?}", String::from_utf8_lossy(lines));
        let (found, rest) = dissect(all[0]);
        assert_eq!((found, String::from_utf8_lossy(rest).as_ref()), (severity, text));
    }

    #[test]
    fn dissect_finds_severity_of_own_lines() {
        let php = |request_id| Some(Process { pid: 7, request_id });
        for (word, severity) in [
            ("error", Severity::Error),
            ("warn", Severity::Warning),
            ("info", Severity::Info),
            ("debug", Severity::Debug),
            ("trace", Severity::Debug),
        ] {
            let upper = word.to_uppercase();
            let own = line(Some(word), None, "a\nb", Format::Text);
            check(&own, severity, &format!("{upper} samovar::front: a\n    b"));
            let of_php = line(Some(word), php("id"), "m", Format::Text);
            check(&of_php, severity, &format!("php pid=7 request_id=id [{word}] m"));
            let of_php = line(Some(word), php(""), "m", Format::Text);
            check(&of_php, severity, &format!("php pid=7 [{word}] m"));
            for process in [None, php("id")] {
                let json = line(Some(word), process, "a\nb", Format::Json);
                let whole = String::from_utf8(json.clone()).unwrap();
                check(&json, severity, whole.trim_end());
            }
        }
    }

    #[test]
    fn dissect_finds_severity_of_php_messages() {
        let php = Some(Process { pid: 7, request_id: "id" });
        for (message, severity) in [
            ("PHP Fatal error:  Uncaught Error", Severity::Error),
            ("PHP Warning:  x", Severity::Warning),
            ("PHP Deprecated:  x", Severity::Notice),
            ("of the application", Severity::Notice),
        ] {
            let text = format!("php pid=7 request_id=id {message}");
            check(&line(None, php, message, Format::Text), severity, &text);
        }
    }

    #[test]
    fn dissect_keeps_unknown_lines_unchanged() {
        for raw in [
            "output of a program",
            "",
            "2026",
            "127.0.0.1 - - [21/Nov/2026] \"GET / HTTP/1.1\"",
            "{\"timestamp\":\"",
            "{\"timestamp\":\"2026-11-21T07:00:00.000012Z\",\"level\":\"",
        ] {
            let lines = format!("{raw}\n");
            check(lines.as_bytes(), Severity::Info, raw);
        }
        assert_eq!(
            dissect(b"2026-11-21T07:00:00.000012Z php pid=7"),
            (Severity::Notice, &b"php pid=7"[..])
        );
    }

    #[test]
    fn record_includes_continuation_lines() {
        let all = |lines: &'static str| -> Vec<_> {
            records(lines.as_bytes()).map(|one| std::str::from_utf8(one).unwrap()).collect()
        };
        assert_eq!(
            all("one\n    more\n    and more\ntwo\n"),
            ["one\n    more\n    and more", "two"]
        );
        assert_eq!(all("    begins like this\nno end"), ["    begins like this", "no end"]);
        assert_eq!(all("\n\n"), ["", ""]);
        assert_eq!(all(""), [""; 0]);
    }

    #[test]
    fn long_record_is_cut_between_characters() {
        let text = "äöü".repeat(10);
        let cut: Vec<_> =
            pieces(text.as_bytes(), 7).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
        assert_eq!(cut.concat(), text);
        assert!(cut.iter().all(|piece| piece.len() <= 7), "{cut:?}");
        let garbage = [0x80; 20];
        assert_eq!(pieces(&garbage, 8).map(<[u8]>::len).collect::<Vec<_>>(), [8, 8, 4]);
    }

    #[test]
    fn syslog_and_journal_notations_match_protocols() {
        let said =
            String::from_utf8(syslog(16, "samovar", Severity::Warning, b"a\n    b")).unwrap();
        let (head, text) = said.split_once(": ").unwrap();
        assert!(
            head.starts_with("<132>")
                && head.ends_with(&format!(" samovar[{}]", std::process::id())),
            "{said}"
        );
        assert_eq!(
            (head.len(), text),
            (5 + 15 + " samovar[]".len() + std::process::id().to_string().len(), "a\n    b")
        );
        let said = journal("samovar-access", Severity::Info, b"a\nb");
        assert_eq!(
            said,
            b"PRIORITY=6\nSYSLOG_IDENTIFIER=samovar-access\nMESSAGE\n\x03\0\0\0\0\0\0\0a\nb\n"
        );
    }
}
