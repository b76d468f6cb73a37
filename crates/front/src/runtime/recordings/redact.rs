//! Replaces secret values of a request: cookies, credentials, and values with secret names.
//!
//! Names are kept. Values are those of headers, of the query, of forms and of JSON. A value, or a
//! body of another type, that contains a secret name with its value is replaced as a whole. A path
//! stays as it is, because it selects the script.

mod body;
mod found;
#[cfg(test)]
mod tests;

use super::recorded::RecordedInput;
use super::secret_names::SecretNames;
use found::Found;
use samovar_insight::BLOT;
use samovar_ring::request::{Headers, RequestHead, decode, decode_variables, encode_with};
use std::borrow::Cow;

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
