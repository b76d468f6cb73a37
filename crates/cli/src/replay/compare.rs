//! Compares a replayed response with the recorded one.
//!
//! Status, head and body must be the same, after masked texts are replaced. A body that was too
//! long to be kept is compared by its length and hash, so it cannot have masks.

use crate::commands::record::decoded;
use samovar_wire::{RecordedRequest, ReplayResponse, ResponseCopy};

/// Headers about the time or the request, which are not compared.
const IGNORED: [&str; 2] = ["date", "x-request-id"];
/// Replaces a masked text.
const MASKED: &[u8] = b"(masked)";
/// Maximum number of different lines that are shown, and their length.
const LINES_MAX: usize = 10;
const LINE_BYTES_MAX: usize = 200;

/// A text to ignore: literal parts, with any characters of the same line between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask(Vec<Vec<u8>>);

impl Mask {
    /// Parses a pattern; `None` if it matches everything, or nothing because it has a line end.
    pub(crate) fn new(text: &str) -> Option<Mask> {
        if text.contains('\n') {
            return None;
        }
        let parts: Vec<Vec<u8>> = text.split('*').map(|part| part.as_bytes().to_vec()).collect();
        parts.iter().any(|part| !part.is_empty()).then_some(Mask(parts))
    }

    /// Returns the end of the shortest match that starts at the start of the line. A pattern that
    /// ends with `*` matches the rest of the line.
    fn end(&self, line: &[u8]) -> Match {
        let mut at = 0;
        for (number, part) in self.0.iter().enumerate() {
            let is_last = number + 1 == self.0.len();
            at += match number {
                0 if line.starts_with(part) => part.len(),
                0 => return Match::No,
                _ if is_last && part.is_empty() => line.len() - at,
                _ => match find(&line[at..], part) {
                    Some(found) => found + part.len(),
                    None => return Match::Never,
                },
            };
        }
        Match::End(at)
    }

    fn apply(&self, line: &[u8]) -> Vec<u8> {
        let mut masked = Vec::with_capacity(line.len());
        let mut at = 0;
        while at < line.len() {
            match self.end(&line[at..]) {
                Match::End(end) if end > 0 => {
                    masked.extend_from_slice(MASKED);
                    at += end;
                }
                Match::Never => break,
                Match::End(_) | Match::No => {
                    masked.push(line[at]);
                    at += 1;
                }
            }
        }
        masked.extend_from_slice(&line[at..]);
        masked
    }
}

/// Result of a search at a position of a line.
enum Match {
    /// End of the match.
    End(usize),
    /// There is none at this position.
    No,
    /// There is none at any later position either: a later part of the pattern is missing. So the
    /// time for a line is limited.
    Never,
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|window| window == part)
}

/// Whether the end of the recorded response is unknown, because the client left before it.
pub(super) fn is_partial(recorded: &RecordedRequest) -> bool {
    let response = recorded.details.as_ref().map(|details| &details.response);
    recorded.has_client_left && !response.is_some_and(|response| response.is_complete)
}

/// Result of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Compared(Vec<String>);

impl Compared {
    pub(super) fn of(response: &ReplayResponse, masks: &[Mask]) -> Compared {
        let before = response.recorded.details.clone().unwrap_or_default().response;
        let after = &response.response;
        let mut all = Compared::default();
        if is_partial(&response.recorded) {
            all.0.push(if before.head.is_empty() {
                "recorded: no response, because the client left before it".to_owned()
            } else {
                format!(
                    "recorded: the first {} bytes, because the client left before the end",
                    before.bytes
                )
            });
            all.starts(&before, after, masks);
            return all;
        }
        if before.status != after.status {
            all.0.push(format!("status: {} instead of {}", after.status, before.status));
        }
        if before.is_complete != after.is_complete {
            let words = |is_complete| if is_complete { "complete" } else { "incomplete" };
            all.0.push(format!(
                "response: {} instead of {}",
                words(after.is_complete),
                words(before.is_complete)
            ));
        }
        let heads = [&before, after].map(|of| head(&decoded(&of.head), masks));
        all.different("head", &heads[0], &heads[1]);
        if before.sha256 != after.sha256 || before.bytes != after.bytes {
            all.bodies(&before, after, masks);
        }
        all
    }

    /// Compares the response with the start of one whose client has left.
    fn starts(&mut self, before: &ResponseCopy, after: &ResponseCopy, masks: &[Mask]) {
        if before.head.is_empty() {
            return;
        }
        if before.status != after.status {
            self.0.push(format!("status: {} instead of {}", after.status, before.status));
        }
        let heads = [before, after].map(|of| head(&decoded(&of.head), masks));
        self.different("head", &heads[0], &heads[1]);
        let start = decoded(&before.body);
        let mut body = decoded(&after.body);
        body.truncate(start.len());
        // The last line may be cut within a masked text.
        let whole = |body: &[u8]| {
            let last = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let end = if masks.is_empty() { body.len() } else { last };
            lines(&body[..end], masks)
        };
        if body != start {
            let bodies = [whole(&start), whole(&body)];
            self.different("body", &bodies[0], &bodies[1]);
        }
    }

    pub(super) fn is_same(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.clone()
    }

    fn bodies(&mut self, before: &ResponseCopy, after: &ResponseCopy, masks: &[Mask]) {
        let bodies = [before, after].map(|of| decoded(&of.body));
        let is_whole = |of: &ResponseCopy, body: &[u8]| of.bytes == body.len() as u64;
        if !is_whole(before, &bodies[0]) || !is_whole(after, &bodies[1]) {
            let (now, then) = (after.bytes, before.bytes);
            self.0.push(format!("body: another one ({now} bytes, recorded {then} bytes)"));
            return;
        }
        let lines = bodies.map(|body| lines(&body, masks));
        self.different("body", &lines[0], &lines[1]);
    }

    /// Adds the lines between the common start and the common end.
    fn different(&mut self, part: &str, before: &[Vec<u8>], after: &[Vec<u8>]) {
        if before == after {
            return;
        }
        let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let (before, after) = (&before[start..], &after[start..]);
        let end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
        self.0.push(format!("{part}: differs from line {} on", start + 1));
        for (sign, lines) in [('-', before), ('+', after)] {
            let changed = &lines[..lines.len() - end];
            for line in changed.iter().take(LINES_MAX) {
                let line = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]);
                self.0.push(format!("  {sign} {}", line.trim_end()));
            }
            if changed.len() > LINES_MAX {
                self.0.push(format!("  {sign} … {} more lines", changed.len() - LINES_MAX));
            }
        }
    }
}

/// Returns a text of several lines with its masked parts replaced.
pub(crate) fn masked(text: &[u8], masks: &[Mask]) -> Vec<u8> {
    if masks.is_empty() { text.to_vec() } else { lines(text, masks).join(&b'\n') }
}

fn lines(text: &[u8], masks: &[Mask]) -> Vec<Vec<u8>> {
    let masked = |line: &[u8]| masks.iter().fold(line.to_vec(), |line, mask| mask.apply(&line));
    text.split(|byte| *byte == b'\n').map(masked).collect()
}

/// Returns the compared lines of a head.
fn head(text: &[u8], masks: &[Mask]) -> Vec<Vec<u8>> {
    let is_ignored = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
        IGNORED.iter().any(|ignored| name.eq_ignore_ascii_case(ignored.as_bytes()))
    };
    lines(text, masks).into_iter().filter(|line| !is_ignored(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use samovar_wire::RecordedDetails;

    fn copy(status: u16, head: &str, body: &str) -> ResponseCopy {
        ResponseCopy {
            status,
            head: STANDARD.encode(head),
            body: STANDARD.encode(body),
            bytes: body.len() as u64,
            sha256: body.to_owned(),
            is_complete: true,
        }
    }

    fn compared(before: ResponseCopy, after: ResponseCopy, masks: &[&str]) -> Vec<String> {
        let details = Some(RecordedDetails { response: before, ..RecordedDetails::default() });
        let recorded = RecordedRequest { details, ..RecordedRequest::default() };
        let response = ReplayResponse { recorded, response: after, ..ReplayResponse::default() };
        let masks: Vec<Mask> = masks.iter().filter_map(|text| Mask::new(text)).collect();
        Compared::of(&response, &masks).lines()
    }

    #[test]
    fn mask_matches_within_a_line() {
        let check = |pattern: &str, line: &str, expected: &str| {
            let masked = Mask::new(pattern).expect("a mask").apply(line.as_bytes());
            assert_eq!(String::from_utf8_lossy(&masked), expected, "{pattern} {line}");
        };
        check("id=\"*\"", "<a id=\"1\" b=\"2\"><b id=\"3\">", "<a (masked) b=\"2\"><b (masked)>");
        check("abc", "xabcabc", "x(masked)(masked)");
        check("at *", "made at 7 o'clock", "made (masked)");
        check("*ms", "12 ms, 7", "(masked), 7");
        check("a*b*c", "abb", "abb");
        let line = "a".repeat(256 << 10);
        for pattern in ["*b", "a*b", "a*a*a*b", "**b"] {
            check(pattern, &line, &line);
        }
        assert_eq!((Mask::new(""), Mask::new("**"), Mask::new("a\nb")), (None, None, None));
    }

    #[test]
    fn ignored_headers_and_masked_texts_are_no_difference() {
        let before = copy(200, "Date: 1\nA: b\nX-Request-Id: 1\n", "t=1\nsame");
        let after = copy(200, "Date: 2\nA: b\n", "t=22\nsame");
        assert_eq!(compared(before.clone(), after.clone(), &["t=*"]), Vec::<String>::new());
        let found = compared(before, after, &[]);
        assert_eq!(found, ["body: differs from line 1 on", "  - t=1", "  + t=22"]);
    }

    #[test]
    fn each_difference_is_reported() {
        let before = copy(200, "A: b\n", "one\ntwo\nthree");
        let mut after = copy(500, "A: c\n", "one\n2\nthree");
        after.is_complete = false;
        let found = compared(before.clone(), after, &[]);
        assert_eq!(
            found,
            [
                "status: 500 instead of 200",
                "response: incomplete instead of complete",
                "head: differs from line 1 on",
                "  - A: b",
                "  + A: c",
                "body: differs from line 2 on",
                "  - two",
                "  + 2",
            ]
        );
        let long = ResponseCopy { bytes: 1 << 30, sha256: "x".to_owned(), ..before.clone() };
        let found = compared(before, long, &["o*"]);
        assert_eq!(found, ["body: another one (1073741824 bytes, recorded 13 bytes)"]);
    }

    #[test]
    fn response_whose_client_has_left_is_compared_with_its_start() {
        let first = "recorded: the first 9 bytes, because the client left before the end";
        let none = "recorded: no response, because the client left before it";
        for (head, body, new_body, expected) in [
            ("A: b\n", "one\nt=1\nt", "one\nt=1\ntwo", &[first][..]),
            ("A: b\n", "one\nt=1\nt", "one\nt=2\ntwo", &[first]),
            (
                "A: b\n",
                "one\nt=1\nt",
                "1\nt=2\ntwo",
                &[first, "body: differs from line 1 on", "  - one", "  + 1"],
            ),
            ("", "", "one", &[none]),
        ] {
            let is_begun = !head.is_empty();
            let mut before = copy(if is_begun { 200 } else { 499 }, head, body);
            (before.is_complete, before.bytes) = (false, body.len() as u64);
            let details = Some(RecordedDetails { response: before, ..RecordedDetails::default() });
            let recorded =
                RecordedRequest { details, has_client_left: true, ..RecordedRequest::default() };
            let response = copy(200, "A: b\n", new_body);
            let response = ReplayResponse { recorded, response, ..ReplayResponse::default() };
            let mask = Mask::new("t=*").expect("a mask");
            assert_eq!(Compared::of(&response, &[mask]).lines(), expected, "{new_body}");
        }
    }

    #[test]
    fn number_of_shown_lines_is_limited() {
        let before = copy(200, "", &"a\n".repeat(1_000));
        let after = copy(200, "", &"b\n".repeat(1_000));
        let found = compared(before, after, &[]);
        assert_eq!(found.len(), 1 + 2 * (LINES_MAX + 1));
        assert!(found.contains(&"  - … 990 more lines".to_owned()), "{found:?}");
    }
}
