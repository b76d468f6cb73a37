//! Secrets of bodies: forms, JSON, multipart forms, and other bodies as a whole.

use super::found::Found;
use crate::runtime::recordings::recorded::RECORDED_BODY_BYTES_MAX;
use crate::runtime::recordings::secret_names::unescaped;
use samovar_insight::BLOT;
use serde_json::Value;
use std::borrow::Cow;

/// Maximum number of parts of a multipart body that are examined; a body with more is dropped.
const PARTS_MAX: usize = 1_000;

/// Starts of the names of charsets that contain ASCII.
const CHARSETS: [&str; 6] = ["utf-8", "utf8", "us-ascii", "iso-8859", "windows-125", "latin"];

/// Whether a body with this `Content-Type` and these values of `Content-Encoding` can be searched.
pub(super) fn is_readable<'a>(kind: &[u8], codings: impl Iterator<Item = &'a [u8]>) -> bool {
    let charset = parameter(kind, b"charset=").map(<[u8]>::to_ascii_lowercase);
    let is_known =
        |charset: &Vec<u8>| CHARSETS.iter().any(|known| charset.starts_with(known.as_bytes()));
    let is_identity = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
    charset.as_ref().is_none_or(is_known)
        && codings
            .flat_map(|value| value.split(|byte| *byte == b','))
            .all(|coding| is_identity(coding.trim_ascii()))
}

impl Found<'_> {
    /// Returns the body without its secrets. `kind`: its `Content-Type`.
    pub(super) fn body<'v>(&mut self, kind: &[u8], body: &'v [u8]) -> Cow<'v, [u8]> {
        let media = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let media = media.to_ascii_lowercase();
        let redacted = if media == b"application/x-www-form-urlencoded" {
            self.pairs("field", body, b'&')
        } else if media == b"application/json" || media.ends_with(b"+json") {
            self.json(body)
        } else if media == b"multipart/form-data" {
            self.multipart(kind, body)
        } else {
            self.other(body)
        };
        // Many short values were replaced by a longer text.
        match redacted {
            Cow::Owned(long) if long.len() > RECORDED_BODY_BYTES_MAX => self.whole(body),
            redacted => redacted,
        }
    }

    /// A body that cannot be searched.
    pub(super) fn whole<'v>(&mut self, body: &'v [u8]) -> Cow<'v, [u8]> {
        if body.is_empty() { body.into() } else { self.blot("body", b"(all of it)") }
    }

    /// A body whose parts are unknown.
    fn other<'v>(&mut self, body: &'v [u8]) -> Cow<'v, [u8]> {
        if self.names.are_in(body) { self.whole(body) } else { body.into() }
    }

    fn json<'v>(&mut self, body: &'v [u8]) -> Cow<'v, [u8]> {
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
            return self.other(body);
        };
        if !self.members(&mut value, "") {
            return Cow::Borrowed(body);
        }
        serde_json::to_vec(&value).unwrap_or_default().into()
    }

    /// Replaces secret members, and texts with a secret in them. The depth of a value is limited by
    /// its parser. `name` is that of the value. Returns whether there were some.
    fn members(&mut self, value: &mut Value, name: &str) -> bool {
        let is_secret = match &*value {
            Value::String(text) => self.names.are_in(text.as_bytes()),
            _ => false,
        };
        if is_secret || self.names.has(name.as_bytes()) {
            return self.replace(value, name);
        }
        match value {
            Value::Object(members) => {
                // `{"name": "password", "value": …}`
                let is_named = |value: &Value| self.is_secret_name(value);
                let has_name = members.values().any(is_named);
                members.iter_mut().fold(false, |changed, (name, value)| {
                    let replaces = has_name && !self.is_secret_name(value);
                    let new = if replaces {
                        self.replace(value, name)
                    } else {
                        self.members(value, name)
                    };
                    new | changed
                })
            }
            Value::Array(all) => {
                // `["password", …]`
                let mut is_next = false;
                all.iter_mut().fold(false, |changed, value| {
                    let replaces = is_next;
                    is_next = self.is_secret_name(value);
                    let new =
                        if replaces { self.replace(value, "") } else { self.members(value, "") };
                    new | changed
                })
            }
            _ => false,
        }
    }

    fn is_secret_name(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.names.is_name(text.as_bytes()))
    }

    /// Replaces a value. Returns true: it has changed.
    fn replace(&mut self, value: &mut Value, name: &str) -> bool {
        self.blot("member", name.as_bytes());
        *value = Value::String(BLOT.to_owned());
        true
    }

    fn multipart<'v>(&mut self, kind: &[u8], body: &'v [u8]) -> Cow<'v, [u8]> {
        let Some(boundary) = parameter(kind, b"boundary=") else { return self.other(body) };
        let mark = [b"--", boundary].concat();
        if memchr::memmem::find(body, &mark).is_none() {
            return self.other(body);
        }
        let mut all = Vec::with_capacity(body.len());
        let (mut has_changed, mut from, mut parts) = (false, 0, 0);
        while let Some(at) = memchr::memmem::find(&body[from..], &mark) {
            let start = from + at + mark.len();
            all.extend_from_slice(&body[from..start]);
            let end = memchr::memmem::find(&body[start..], &mark);
            let end = end.map_or(body.len(), |end| start + end);
            let part = &body[start..end];
            from = end;
            parts += 1;
            if parts > PARTS_MAX {
                self.blot("field", b"(too many fields)");
                return Cow::Owned(Vec::new());
            }
            let head = memchr::memmem::find(part, b"\r\n\r\n").map_or(0, |at| at + 4);
            // Parsers differ about names in a head, so all of it counts.
            if self.names.has(&unescaped(&part[..head])) || self.names.are_in(&part[head..]) {
                has_changed = true;
                let name = [&b" name="[..], b"name="]
                    .iter()
                    .find_map(|mark| parameter(&part[..head], mark))
                    .unwrap_or(b"(without a name)");
                let blot = self.blot("field", name);
                all.extend_from_slice(&part[..head]);
                all.extend_from_slice(&blot);
                all.extend_from_slice(b"\r\n");
            } else {
                all.extend_from_slice(part);
            }
        }
        all.extend_from_slice(&body[from..]);
        if has_changed { all.into() } else { Cow::Borrowed(body) }
    }
}

/// Value of a parameter of a header, with or without quotes. `name` includes `=`.
fn parameter<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = header.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name))?;
    let value = &header[at + name.len()..];
    let value = match value.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|byte| *byte == b'"').next()?,
        None => value.split(|byte| b"; \r\n".contains(byte)).next()?,
    };
    (!value.is_empty()).then_some(value)
}
