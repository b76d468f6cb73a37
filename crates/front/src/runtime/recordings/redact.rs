//! Replaces secret values of a request: cookies, credentials, and values with secret names.
//!
//! Names are kept. Values are those of headers, of the query, of forms and of JSON. A value, or a
//! body of another type, that contains a secret name with its value is replaced as a whole. A path
//! stays as it is, because it selects the script.

mod body;
#[cfg(test)]
mod tests;

use super::recorded::RecordedInput;
use super::secret_names::{SecretNames, unescaped};
use samovar_insight::BLOT;
use samovar_ring::request::{Headers, RequestHead, decode, decode_variables, encode_with};
use std::borrow::Cow;

/// Maximum number of names that are reported.
const NAMES_MAX: usize = 64;
/// Maximum length of a reported name, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Names of fields whose value is the name of the next field.
const NAMES_OF_NAMES: [&str; 4] = ["name", "key", "field", "id"];

/// Fills the texts of the input, and replaces its secrets, unless `names` is `None`. Returns `None`
/// if the head is invalid, or too long after the replacement.
pub(crate) fn redact(input: RecordedInput, names: Option<&SecretNames>) -> Option<RecordedInput> {
    let (head, headers) = decode(&input.head)?;
    let variables = decode_variables(&input.head)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    let host = host.map_or_else(|| text(head.server_name), |(_, host)| text(host));
    let Some(names) = names else {
        let (method, target) = (text(head.method), text(head.target));
        return Some(RecordedInput { method, target, host, ..input });
    };
    let mut found = Found { names, redacted: Vec::new() };
    let is_coding = |name: &[u8]| name.eq_ignore_ascii_case(b"content-encoding");
    let codings = headers.iter().filter(|(name, _)| is_coding(name)).map(|(_, value)| *value);
    let kind = head.content_type.unwrap_or_default();
    let body = if body::is_readable(kind, codings) {
        found.body(kind, &input.body)
    } else {
        found.whole(&input.body)
    };
    let (target, query) = (found.target(head.target), found.pairs("query", head.query, b'&'));
    let cookie = head.cookie.map(|cookie| found.cookies(cookie));
    let authorization = head.authorization.map(|_| found.blot("header", b"authorization"));
    let changed_length = (body.len() != input.body.len()).then(|| body.len().to_string());
    let mut values = |all: Headers<'_>, kind: &'static str| -> Vec<(Vec<u8>, Vec<u8>)> {
        let value = |(name, value): (&[u8], &[u8])| {
            let new = match &changed_length {
                Some(length) if is_length(name) => Cow::Owned(length.clone().into_bytes()),
                _ => found.value(kind, name, value),
            };
            (name.to_vec(), new.into_owned())
        };
        all.into_iter().map(value).collect()
    };
    let headers = values(headers, "header");
    let variables = values(variables, "variable");
    let content_length = match &changed_length {
        Some(_) => Some(body.len() as u64),
        None => head.content_length,
    };
    let changed = RequestHead {
        target: &target,
        query: &query,
        cookie: cookie.as_deref(),
        authorization: authorization.as_deref(),
        content_length,
        ..head
    };
    let mut encoded = Vec::new();
    let (headers, variables) = (borrowed(&headers), borrowed(&variables));
    encode_with(&changed, headers, variables, &mut encoded).ok()?;
    let (method, target) = (text(head.method), text(&target));
    let redacted = found.redacted;
    let body = body.into_owned();
    Some(RecordedInput { method, target, host, head: encoded, body, cut: input.cut, redacted })
}

fn borrowed(all: &[(Vec<u8>, Vec<u8>)]) -> impl Iterator<Item = (&[u8], &[u8])> {
    all.iter().map(|(name, value)| (&name[..], &value[..]))
}

fn is_length(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content-length") || name == b"CONTENT_LENGTH"
}

/// The secrets that were found.
struct Found<'a> {
    names: &'a SecretNames,
    redacted: Vec<String>,
}

impl Found<'_> {
    fn blot(&mut self, kind: &str, name: &[u8]) -> Cow<'static, [u8]> {
        if self.redacted.len() >= NAMES_MAX {
            return Cow::Borrowed(BLOT.as_bytes());
        }
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
        let text = format!("{kind} {}", name.escape_debug());
        if !self.redacted.contains(&text) {
            self.redacted.push(text);
        }
        Cow::Borrowed(BLOT.as_bytes())
    }

    /// A header, or a variable of a web server.
    fn value<'v>(&mut self, kind: &str, name: &[u8], value: &'v [u8]) -> Cow<'v, [u8]> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let value = if is("cookie") || is("http_cookie") {
            return self.cookies(value);
        } else if self.names.has(name) {
            return self.blot(kind, name);
        } else if is("query_string") {
            self.pairs("query", value, b'&')
        } else {
            self.target(value)
        };
        if self.names.are_in(&value) { self.blot(kind, name) } else { value }
    }

    /// All cookies: also those whose names are not secret identify a visitor.
    fn cookies<'v>(&mut self, cookies: &'v [u8]) -> Cow<'v, [u8]> {
        let mut all = Vec::with_capacity(cookies.len());
        for cookie in cookies.split(|byte| *byte == b';') {
            if !all.is_empty() {
                all.extend_from_slice(b"; ");
            }
            let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            let blot = self.blot("cookie", name);
            all.extend_from_slice(name);
            all.push(b'=');
            all.extend_from_slice(&blot);
        }
        all.into()
    }

    /// A path or URL with a query.
    fn target<'v>(&mut self, target: &'v [u8]) -> Cow<'v, [u8]> {
        let Some(at) = memchr::memchr(b'?', target) else { return Cow::Borrowed(target) };
        match self.pairs("query", &target[at + 1..], b'&') {
            Cow::Borrowed(_) => Cow::Borrowed(target),
            Cow::Owned(query) => [&target[..=at], &query].concat().into(),
        }
    }

    /// Pairs `name=value`, as in a query or a form.
    fn pairs<'v>(&mut self, kind: &str, pairs: &'v [u8], between: u8) -> Cow<'v, [u8]> {
        let (mut has_changed, mut is_next) = (false, false);
        let mut all = Vec::with_capacity(pairs.len());
        for (at, pair) in pairs.split(|byte| *byte == between).enumerate() {
            if at > 0 {
                all.push(between);
            }
            let equals = memchr::memchr(b'=', pair);
            let (name, value) = pair.split_at(equals.map_or(pair.len(), |equals| equals + 1));
            let name = name.strip_suffix(b"=").unwrap_or(name);
            let replaces = std::mem::replace(&mut is_next, self.names_next(name, value));
            if equals.is_some() && (replaces || self.is_secret(name, value)) {
                has_changed = true;
                let blot = self.blot(kind, name);
                all.extend_from_slice(name);
                all.push(b'=');
                all.extend_from_slice(&blot);
            } else {
                all.extend_from_slice(pair);
            }
        }
        if has_changed { all.into() } else { Cow::Borrowed(pairs) }
    }

    /// Whether the value is the name of the next one: `0[name]=password&0[value]=…`.
    fn names_next(&self, name: &[u8], value: &[u8]) -> bool {
        let name = unescaped(name);
        let last = name.strip_suffix(b"]").unwrap_or(&name);
        let last = last.rsplit(|byte| *byte == b'[').next().unwrap_or_default();
        NAMES_OF_NAMES.iter().any(|known| last.eq_ignore_ascii_case(known.as_bytes()))
            && self.names.is_name(&unescaped(value))
    }

    fn is_secret(&self, name: &[u8], value: &[u8]) -> bool {
        self.names.has(&unescaped(name)) || self.names.are_in(value)
    }
}

/// Replaces values in the lines of a response's head: of cookies, which differ in each response, of
/// headers with secret names, and those that contain a secret value, such as URLs.
pub(crate) fn response_head(head: &[u8], names: &SecretNames) -> Vec<u8> {
    let mut all = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let kept = if name.eq_ignore_ascii_case(b"set-cookie") {
            memchr::memchr(b'=', line).map(|equals| &line[..=equals])
        } else if names.has(name) || names.are_in(value.strip_prefix(b":").unwrap_or(value)) {
            line.get(..=colon)
        } else {
            None
        };
        match kept {
            Some(kept) => {
                all.extend_from_slice(kept);
                if kept.ends_with(b":") {
                    all.push(b' ');
                }
                all.extend_from_slice(BLOT.as_bytes());
                all.push(b'\n');
            }
            None => all.extend_from_slice(line),
        }
    }
    all
}
