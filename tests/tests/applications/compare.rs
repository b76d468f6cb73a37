//! When two answers count as equal: everything must be, except what is named here.

use crate::visitor::Visitor;
use samovar_testkit::http::Response;
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

/// What differs between two runs of the same application: the text between `before` and `after`
/// becomes `<name>`.
pub(crate) struct Rule {
    /// The steps it is for; none: for all.
    pub(crate) steps: &'static [&'static str],
    /// What it is.
    pub(crate) name: &'static str,
    /// What stands before it.
    pub(crate) before: &'static str,
    /// What stands behind it.
    pub(crate) after: &'static str,
}

/// One side of the comparison.
pub(crate) struct Side<'a> {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Where its copy of the application lies.
    pub(crate) folder: &'a Path,
}

/// Makes the same walk on both sides; the answers must be equal.
pub(crate) fn compare(walk: fn(&mut Visitor), rules: &[Rule], ours: &Side, theirs: &Side) -> usize {
    let [ours, theirs] = [ours, theirs].map(|side| {
        let mut visitor = Visitor::new(side.address);
        walk(&mut visitor);
        let plain = |(step, response): &(String, Response)| {
            (step.clone(), normalise(step, response, side, rules))
        };
        visitor.steps.iter().map(plain).collect::<Vec<_>>()
    });
    let mut report = String::new();
    for ((step, our), (their_step, their)) in ours.iter().zip(&theirs) {
        assert_eq!(step, their_step, "the walks part");
        if our != their {
            let _ = writeln!(report, "== {step}\n{}", difference(our, their));
        }
    }
    assert!(report.is_empty(), "`-` is nginx + php-fpm, `+` is Samovar\n{report}");
    assert_eq!(ours.len(), theirs.len(), "one walk is longer");
    ours.len()
}

/// An answer as text: status, headers in the order of their names, body.
fn normalise(step: &str, response: &Response, side: &Side, rules: &[Rule]) -> String {
    let today = response.header("date").map(|date| date[..16].to_owned()).unwrap_or_default();
    let mut headers: Vec<(String, String)> = response
        .headers
        .iter()
        .filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()))
        .filter(|(name, value)| name != "content-length" || !is_framing(value, response))
        // Samovar says it with a part (206) or nothing (304) too, nginx with the whole alone.
        .filter(|(name, _)| name != "accept-ranges" || response.status == 200)
        .map(|(name, value)| (name.clone(), now(value, &today)))
        .collect();
    // A stable sort: the order of headers of one name is kept.
    headers.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut text = format!("{}\n", response.status);
    for (name, value) in headers {
        let _ = writeln!(text, "{name}: {value}");
    }
    let _ = write!(text, "\n{}", printable(&response.body));
    apply(step, &text, side, rules)
}

/// A length that only frames the body (the client has read by it: it is true); in an answer to HEAD
/// it tells something.
fn is_framing(length: &str, response: &Response) -> bool {
    !response.body.is_empty() || length == "0"
}

/// A point in time of today is a time of now.
fn now(value: &str, today: &str) -> String {
    let is_now = value.ends_with(" GMT") && !today.is_empty() && value.starts_with(today);
    if is_now { "<now>".to_owned() } else { value.to_owned() }
}

fn printable(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) => text.to_owned(),
        Err(_) => body.escape_ascii().to_string(),
    }
}

fn apply(step: &str, text: &str, side: &Side, rules: &[Rule]) -> String {
    let folder = side.folder.display().to_string();
    let text = text.replace(&folder, "<folder>");
    let text = text.replace(&format!("localhost:{}", side.address.port()), "localhost:<port>");
    let text = without_stamps(&text);
    let rules = rules.iter().filter(|rule| rule.steps.is_empty() || rule.steps.contains(&step));
    rules.fold(text, |text, rule| replace_all(&text, rule))
}

fn replace_all(text: &str, rule: &Rule) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once(rule.before) {
        out.push_str(head);
        out.push_str(rule.before);
        // A value never spans lines: without its end on the same line it is something else.
        let line_end = tail.find('\n').unwrap_or(tail.len());
        rest = match tail.get(..line_end + 1).unwrap_or(tail).find(rule.after) {
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

/// Points in time as applications print them; `0` stands for a digit.
const STAMPS: &[&str] = &["0000/00/00 00:00", "0000\\/00\\/00 00:00", "0000-00-00T00:00:00"];

/// Hides points in time: the printed ones, and seconds since 1970 that are about now.
fn without_stamps(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let stamp = STAMPS.iter().find(|stamp| is_like(rest, stamp)).map(|stamp| stamp.len());
        if let Some(len) = stamp {
            out.push_str("<time>");
            rest = &rest[len..];
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            out.push_str(if is_about_now(&rest[..end]) { "<seconds>" } else { &rest[..end] });
            rest = &rest[end..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn is_like(text: &str, stamp: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() >= stamp.len() && text.bytes().zip(stamp.bytes()).all(fits)
}

fn is_about_now(digits: &str) -> bool {
    const NEAR_SECONDS: u64 = 3600;
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs();
    digits.parse::<u64>().is_ok_and(|seconds| seconds.abs_diff(now) < NEAR_SECONDS)
}

/// The lines that differ, at most as many as one wants to read, each from shortly before that.
fn difference(our: &str, their: &str) -> String {
    const LINES_MAX: usize = 8;
    const CHARS_MAX: usize = 160;
    const CHARS_BEFORE: usize = 40;
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (our.lines().collect(), their.lines().collect());
    let mut out = String::new();
    let pairs = (0..ours.len().max(theirs.len())).map(|at| (theirs.get(at), ours.get(at)));
    for (their, our) in pairs.filter(|(a, b)| a != b).take(LINES_MAX) {
        let (their, our) = (their.copied().unwrap_or_default(), our.copied().unwrap_or_default());
        let same = their.chars().zip(our.chars()).take_while(|(a, b)| a == b).count();
        let shown = |line: &str| -> String {
            line.chars().skip(same.saturating_sub(CHARS_BEFORE)).take(CHARS_MAX).collect()
        };
        let _ = writeln!(out, "- {}\n+ {}", shown(their), shown(our));
    }
    out
}
