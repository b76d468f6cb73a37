//! What of an answer is compared: all of it, except what is named here.

use crate::http::Response;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Headers that belong to the server and to the connection, not to the application.
const NOT_COMPARED: &[&str] = &[
    // nginx says its name, Samovar none.
    "server",
    // Each server tells its own time, and its own id.
    "date",
    "x-request-id",
    // Both servers keep connections open without saying so, or say so.
    "connection",
    "keep-alive",
    // nginx sends in chunks what PHP gave no length for, Samovar knows a short answer's length.
    "transfer-encoding",
];

/// What differs between two runs of the same application: the text between `before` and `after`, on
/// one line, becomes `<name>`.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What it is.
    pub name: &'static str,
    /// What stands before it.
    pub before: &'static str,
    /// What stands behind it.
    pub after: &'static str,
}

/// A server that is asked.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its application lies.
    pub folder: &'a Path,
    /// Where its sessions and uploads lie.
    pub own: &'a Path,
}

/// An answer as text: status, headers in the order of their names, body; without what may differ.
pub fn masked(response: &Response, side: &Side, rules: &[Rule]) -> String {
    let is_compared = |name: &str| !NOT_COMPARED.contains(&name);
    let mut headers: Vec<&(String, String)> = response
        .headers
        .iter()
        .filter(|(name, _)| is_compared(name))
        .filter(|(name, value)| name != "content-length" || !is_framing(value, response))
        // Samovar says it with a part (206) or nothing (304) too, nginx with the whole alone.
        .filter(|(name, _)| name != "accept-ranges" || !matches!(response.status, 206 | 304))
        .collect();
    // A stable sort: the order of headers of one name is kept.
    headers.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut text = format!("{}\n", response.status);
    for (name, value) in headers {
        let _ = writeln!(text, "{name}: {value}");
    }
    let body = std::str::from_utf8(&response.body).map(str::to_owned);
    let _ = write!(text, "\n{}", body.unwrap_or_else(|_| response.body.escape_ascii().to_string()));
    let text = text.replace(&side.folder.display().to_string(), "<folder>");
    let text = text.replace(&side.own.display().to_string(), "<own>");
    let text = text.replace(&format!("localhost:{}", side.address.port()), "localhost:<port>");
    let text = without_now(&text, response.header("date").unwrap_or_default());
    rules.iter().fold(text, |text, rule| replace_all(&text, rule))
}

/// A length that only frames the body (the client has read by it: it is true); in an answer to HEAD
/// it tells something.
fn is_framing(length: &str, response: &Response) -> bool {
    !response.body.is_empty() || length == "0"
}

fn replace_all(text: &str, rule: &Rule) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once(rule.before) {
        out.push_str(head);
        out.push_str(rule.before);
        let line_end = tail.find('\n').map_or(tail.len(), |at| at + 1);
        rest = match tail[..line_end].find(rule.after) {
            Some(end) => {
                let _ = write!(out, "<{}>", rule.name);
                &tail[end..]
            }
            None => tail,
        };
    }
    out.push_str(rest);
    out
}

/// Hides points in time of today, as applications print them, and seconds since 1970 that are about
/// now. `date` is the answer's own: `Sat, 21 Nov 2026 09:18:17 GMT`.
fn without_now(text: &str, date: &str) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (Some(day), Some(month), Some(year)) = (date.get(5..7), date.get(8..11), date.get(12..16))
    else {
        return without_seconds(text);
    };
    let month = MONTHS.find(month).map_or(0, |at| at / 3 + 1);
    let mut text = text.to_owned();
    for (before, clock) in [
        (date[..17].to_owned(), "00:00:00"),
        (format!("{year}-{month:02}-{day}T"), "00:00:00"),
        (format!("{year}-{month:02}-{day} "), "00:00:00"),
        (format!("{year}/{month:02}/{day} "), "00:00"),
        (format!("{year}\\/{month:02}\\/{day} "), "00:00"),
    ] {
        text = without_clock(&text, &before, clock);
    }
    without_seconds(&text)
}

/// `before` and what looks like `clock`, whose zeros are digits, become `<now>`.
fn without_clock(text: &str, before: &str, clock: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let fits =
            |(byte, wanted): (u8, u8)| byte == wanted || (wanted == b'0' && byte.is_ascii_digit());
        if part.len() >= clock.len() && part.bytes().zip(clock.bytes()).all(fits) {
            out.push_str("<now>");
            out.push_str(&part[clock.len()..]);
        } else {
            out.push_str(before);
            out.push_str(part);
        }
    }
    out
}

fn without_seconds(text: &str) -> String {
    const NEAR_SECONDS: u64 = 3600;
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs();
    let is_now = |digits: &str| digits.parse::<u64>().is_ok_and(|s| s.abs_diff(now) < NEAR_SECONDS);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, digits) = rest.split_at(start);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        out.push_str(before);
        out.push_str(if is_now(&digits[..end]) { "<seconds>" } else { &digits[..end] });
        rest = &digits[end..];
    }
    out.push_str(rest);
    out
}

/// The lines that differ, at most as many as one wants to read, each from shortly before that.
pub fn difference(expected: &str, got: &str) -> String {
    const LINES_MAX: usize = 8;
    const CHARS_MAX: usize = 160;
    const CHARS_BEFORE: usize = 40;
    let (expected, got): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), got.lines().collect());
    let pairs = (0..expected.len().max(got.len())).map(|at| (expected.get(at), got.get(at)));
    let mut out = String::new();
    for (expected, got) in pairs.filter(|(a, b)| a != b).take(LINES_MAX) {
        let (expected, got) =
            (expected.copied().unwrap_or("(no line)"), got.copied().unwrap_or("(no line)"));
        let same = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
        let shown = |line: &str| -> String {
            line.chars().skip(same.saturating_sub(CHARS_BEFORE)).take(CHARS_MAX).collect()
        };
        let _ = writeln!(out, "- {}\n+ {}", shown(expected), shown(got));
    }
    out
}
