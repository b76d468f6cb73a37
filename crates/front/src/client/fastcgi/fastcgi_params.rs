//! parse: the parameters of a request from a web server. [`super::params`] reads them.
//!
//! Parameters that are headers (`HTTP_…`) are converted back to headers. All others are kept
//! unchanged, for `$_SERVER`.

use crate::client::peer_info::Ends;
use bytes::Bytes;
use std::str;

/// Prefix of a header's parameter.
const HEADER: &[u8] = b"HTTP_";
/// Maximum length of a header name without the prefix. The head for PHP holds no longer names.
pub(super) const NAME_BYTES_MAX: usize = 249;

/// The requested script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// File of the script. Empty: there is none.
    pub(crate) filename: Bytes,
    /// Path in the site by which it was requested.
    pub(crate) name: Bytes,
    /// Part of the path after the script's name. May be empty.
    pub(crate) path_info: Bytes,
}

/// Parameters of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FastcgiParams {
    /// Ends of the client's connection to the web server.
    pub(crate) ends: Ends,
    /// Parameters that are not headers.
    pub(crate) variables: Vec<(Bytes, Bytes)>,
    /// The requested script.
    pub(crate) script: Named,
    /// The disk lookup of its file has failed.
    pub(crate) is_unfound: bool,
    /// Its parameters are too many or too long. No other field is set.
    pub(crate) is_too_large: bool,
}

impl FastcgiParams {
    /// Returns a parameter that is not a header.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.variables.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| &value[..])
    }

    /// Returns a parameter as a number.
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

impl FastcgiParams {
    /// Headers with invalid values, by their lower-case names. php-fpm passes these on too.
    pub(crate) fn odd_headers(&self) -> impl Iterator<Item = (Vec<u8>, &[u8])> {
        self.variables.iter().filter_map(|(name, value)| {
            let lower = |b: &u8| if *b == b'_' { b'-' } else { b.to_ascii_lowercase() };
            Some((header_name(name)?.iter().map(lower).collect(), &value[..]))
        })
    }

    /// Adds or replaces a parameter.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Bytes>) {
        self.put(name, value.into());
    }

    /// Removes a parameter.
    pub(super) fn remove(&mut self, name: &str) -> Option<Bytes> {
        let at = self.variables.iter().position(|(found, _)| found == name)?;
        Some(self.variables.remove(at).1)
    }

    /// Length of the body. `None`: unknown. Requests whose method has no body often do not set it.
    pub(super) fn body_bytes(&self) -> Option<u64> {
        let is_bodiless =
            || matches!(self.get("REQUEST_METHOD"), Some(b"GET" | b"HEAD" | b"OPTIONS"));
        self.number("CONTENT_LENGTH").or_else(|| is_bodiless().then_some(0))
    }
}

/// Returns the name of a parameter's header, in capitals. `None`: it is not a header.
pub(super) fn header_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(HEADER).filter(|name| name.len() <= NAME_BYTES_MAX)?;
    let is_plain = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    (!name.is_empty() && name.iter().all(is_plain)).then_some(name)
}
