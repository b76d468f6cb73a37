//! The secrets of a request that were found, and the values of headers and queries.

use crate::runtime::recordings::secret_names::{SecretNames, unescaped};
use samovar_insight::BLOT;
use std::borrow::Cow;

/// Maximum number of names that are reported.
pub(super) const NAMES_MAX: usize = 64;
/// Maximum length of a reported name, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Names of fields whose value is the name of the next field.
const NAMES_OF_NAMES: [&str; 4] = ["name", "key", "field", "id"];

/// The secrets that were found.
pub(super) struct Found<'a> {
    pub(super) names: &'a SecretNames,
    pub(super) redacted: Vec<String>,
}

impl Found<'_> {
    pub(super) fn blot(&mut self, kind: &str, name: &[u8]) -> Cow<'static, [u8]> {
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
    pub(super) fn value<'v>(&mut self, kind: &str, name: &[u8], value: &'v [u8]) -> Cow<'v, [u8]> {
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
    pub(super) fn cookies<'v>(&mut self, cookies: &'v [u8]) -> Cow<'v, [u8]> {
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
    pub(super) fn target<'v>(&mut self, target: &'v [u8]) -> Cow<'v, [u8]> {
        let Some(at) = memchr::memchr(b'?', target) else { return Cow::Borrowed(target) };
        match self.pairs("query", &target[at + 1..], b'&') {
            Cow::Borrowed(_) => Cow::Borrowed(target),
            Cow::Owned(query) => [&target[..=at], &query].concat().into(),
        }
    }

    /// Pairs `name=value`, as in a query or a form.
    pub(super) fn pairs<'v>(&mut self, kind: &str, pairs: &'v [u8], between: u8) -> Cow<'v, [u8]> {
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
