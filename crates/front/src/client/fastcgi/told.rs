//! parse: what a web server has told of a request ([`super::params`] reads it).
//!
//! Parameters that are headers (`HTTP_…`) become headers again; all others stay as they are, for `$_SERVER`.

use crate::client::ends::Ends;
use bytes::Bytes;
use std::str;

/// What stands before a header's name.
const HEADER: &[u8] = b"HTTP_";
/// Longest name of a header, without the prefix: what PHP is given keeps no more.
pub(super) const NAME_BYTES_MAX: usize = 249;

/// The script that is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Its file; empty: there is none.
    pub(crate) filename: Bytes,
    /// By which path of the site it was asked for.
    pub(crate) name: Bytes,
    /// What stands behind that; empty for nothing.
    pub(crate) path_info: Bytes,
}

/// What a web server has told of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Who is at the ends of the client's connection to the web server.
    pub(crate) ends: Ends,
    /// Parameters that are no headers.
    pub(crate) variables: Vec<(Bytes, Bytes)>,
    /// The script that is asked for.
    pub(crate) script: Named,
    /// The disk did not say which file it is.
    pub(crate) is_unfound: bool,
    /// Its parameters are too many, or too long: nothing else is known.
    pub(crate) is_too_large: bool,
}

impl Told {
    /// A parameter, if there is one of this name that is no header.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.variables.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| &value[..])
    }

    /// The same as a number.
    pub(crate) fn number<T: str::FromStr>(&self, name: &str) -> Option<T> {
        str::from_utf8(self.get(name)?).ok()?.parse().ok()
    }

    pub(super) fn put(&mut self, name: &'static str, value: Bytes) {
        match self.variables.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => *old = value,
            None => self.variables.push((Bytes::from_static(name.as_bytes()), value)),
        }
    }
}

impl Told {
    /// Headers with values that no header may have, by their lower-case names: php-fpm passes them on.
    pub(crate) fn odd_headers(&self) -> impl Iterator<Item = (Vec<u8>, &[u8])> {
        self.variables.iter().filter_map(|(name, value)| {
            let lower = |b: &u8| if *b == b'_' { b'-' } else { b.to_ascii_lowercase() };
            Some((header_name(name)?.iter().map(lower).collect(), &value[..]))
        })
    }

    /// Changes a parameter, or adds it.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Bytes>) {
        self.put(name, value.into());
    }

    /// Takes a parameter out.
    pub(super) fn remove(&mut self, name: &str) -> Option<Bytes> {
        let at = self.variables.iter().position(|(found, _)| found == name)?;
        Some(self.variables.remove(at).1)
    }

    /// The length of the body; `None`: it is not known. Methods that have none mostly do not say so.
    pub(super) fn body_bytes(&self) -> Option<u64> {
        let is_bodiless =
            || matches!(self.get("REQUEST_METHOD"), Some(b"GET" | b"HEAD" | b"OPTIONS"));
        self.number("CONTENT_LENGTH").or_else(|| is_bodiless().then_some(0))
    }
}

/// The name of the header that a parameter was, in capitals; `None`: it was none.
pub(super) fn header_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(HEADER).filter(|name| name.len() <= NAME_BYTES_MAX)?;
    let is_plain = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    (!name.is_empty() && name.iter().all(is_plain)).then_some(name)
}
