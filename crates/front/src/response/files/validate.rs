//! Conditional requests for files (RFC 9110, 13). Pure functions.

use http::{HeaderMap, header};
use std::time::SystemTime;

/// Validators of a file's version.
#[derive(Clone, Debug)]
pub(crate) struct Validators {
    /// A strong entity tag, in quotes.
    pub(crate) etag: String,
    /// Time of the last change, in whole seconds.
    pub(crate) modified: SystemTime,
}

/// Result of a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send the file. Ranges may be used.
    Send,
    /// Send the whole file: `If-Range` names another version.
    SendWhole,
    /// The client has the current version: 304.
    NotModified,
    /// The condition names another version: 412.
    Failed,
}

impl Validators {
    /// Evaluates the conditions in the order of RFC 9110, 13.2.2.
    pub(crate) fn judge(&self, headers: &HeaderMap) -> Verdict {
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        let is_after = |date: &str| parse(date).is_some_and(|date| self.modified > date);
        // A list may be split over several header lines.
        let has = |name| headers.contains_key(name);
        let lists = |name| headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        if has(header::IF_MATCH) {
            if !lists(header::IF_MATCH).any(|tags| self.is_among(tags, false)) {
                return Verdict::Failed;
            }
        } else if text(header::IF_UNMODIFIED_SINCE).is_some_and(is_after) {
            return Verdict::Failed;
        }
        if has(header::IF_NONE_MATCH) {
            if lists(header::IF_NONE_MATCH).any(|tags| self.is_among(tags, true)) {
                return Verdict::NotModified;
            }
        } else if let Some(date) = text(header::IF_MODIFIED_SINCE).and_then(parse)
            && self.modified <= date
        {
            return Verdict::NotModified;
        }
        match text(header::IF_RANGE) {
            Some(tag) if tag.contains('"') && tag.trim() != self.etag => Verdict::SendWhole,
            Some(tag) if tag.contains('"') || parse(tag) == Some(self.modified) => Verdict::Send,
            Some(_) => Verdict::SendWhole,
            None => Verdict::Send,
        }
    }

    fn is_among(&self, tags: &str, is_weak: bool) -> bool {
        tags.split(',').map(str::trim).any(|tag| {
            let tag = if is_weak { tag.strip_prefix("W/").unwrap_or(tag) } else { tag };
            tag == "*" || tag == self.etag
        })
    }
}

fn parse(date: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(date.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::time::Duration;

    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn check(lines: &[(&str, &str)], expected: Verdict) {
        let validators = Validators {
            etag: "\"a-1\"".into(),
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: http::HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(validators.judge(&headers), expected, "{lines:?}");
    }

    #[test]
    fn request_conditions_lead_to_verdicts() {
        use Verdict::{Failed, NotModified, Send, SendWhole};
        check(&[], Send);
        check(&[("if-none-match", "\"a-1\"")], NotModified);
        check(&[("if-none-match", "W/\"a-1\"")], NotModified);
        check(&[("if-none-match", "\"x\", \"a-1\"")], NotModified);
        check(&[("if-none-match", "*")], NotModified);
        check(&[("if-none-match", "\"x\""), ("if-none-match", "\"a-1\"")], NotModified);
        check(&[("if-match", "\"x\""), ("if-match", "\"a-1\"")], Send);
        check(&[("if-match", "\"x\""), ("if-match", "\"y\"")], Failed);
        check(&[("if-none-match", "\"x\"")], Send);
        check(&[("if-none-match", "\"x\""), ("if-modified-since", THEN)], Send);
        check(&[("if-modified-since", THEN)], NotModified);
        check(&[("if-modified-since", AFTER)], NotModified);
        check(&[("if-modified-since", BEFORE)], Send);
        check(&[("if-modified-since", "yesterday")], Send);
        check(&[("if-match", "\"a-1\"")], Send);
        check(&[("if-match", "W/\"a-1\"")], Failed);
        check(&[("if-match", "\"x\"")], Failed);
        check(&[("if-unmodified-since", BEFORE)], Failed);
        check(&[("if-unmodified-since", THEN)], Send);
        check(&[("if-range", "\"a-1\"")], Send);
        check(&[("if-range", "\"x\"")], SendWhole);
        check(&[("if-range", THEN)], Send);
        check(&[("if-range", AFTER)], SendWhole);
    }
}
