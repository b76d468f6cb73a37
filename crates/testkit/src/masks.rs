//! Comparison of responses: everything is compared except the parts named here.

use crate::http::Response;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Headers that belong to the server and to the connection, not to the application.
const NOT_COMPARED: &[&str] = &[
    // nginx sends its name, Samovar none.
    "server",
    // Each server has its own time and its own id.
    "date",
    "x-request-id",
    // Both servers keep connections open, with or without a header for it.
    "connection",
    "keep-alive",
    // nginx sends chunks if PHP set no length; Samovar knows the length of a short response.
    "transfer-encoding",
];

/// A difference between two runs of the same application: the text between `before` and `after`, on
/// one line, becomes `<name>`.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name of the masked text.
    pub name: &'static str,
    /// Text before it.
    pub before: &'static str,
    /// Text after it.
    pub after: &'static str,
}

/// A server in a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Address it listens on.
    pub address: SocketAddr,
    /// Folder of its application.
    pub folder: &'a Path,
    /// Folder of its sessions and uploads.
    pub own: &'a Path,
}

/// A response as text: status, headers sorted by name, body; without the parts that may differ.
pub fn masked(response: &Response, side: &Side, rules: &[Rule]) -> String {
    let is_compared = |name: &str| !NOT_COMPARED.contains(&name);
    let mut headers: Vec<&(String, String)> = response
        .headers
        .iter()
        .filter(|(name, _)| is_compared(name))
        .filter(|(name, value)| name != "content-length" || !is_framing(value, response))
        // Samovar also sends it with a part (206) or nothing (304), nginx only with the whole.
        .filter(|(name, _)| name != "accept-ranges" || !matches!(response.status, 206 | 304))
        .collect();
    // A stable sort keeps the order of headers with the same name.
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

/// Whether a length only frames the body. The client has read the body by it, so it is correct. In
/// a response to HEAD it is information and is compared.
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

/// Hides times of today, as applications print them, and seconds since 1970 that are close to now.
/// `date` is the response's own: `Sat, 21 Nov 2026 09:18:17 GMT`.
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

/// Replaces `before` and a following text with the shape of `clock`, whose zeros stand for digits,
/// by `<now>`.
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

/// The lines that differ, up to a readable number, each starting shortly before the difference.
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
