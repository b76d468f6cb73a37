//! The target as the client sent it: hyper's, or the original that `client/head_filter.rs` stored
//! in the request.

use bytes::Bytes;
use http::request::Parts;

/// The original target, from its path on, of a request for which hyper received a masked copy.
/// Stored in the request's extensions.
#[derive(Clone, Debug)]
pub(crate) struct AsItCame(pub(crate) Bytes);

/// The parts of a target as received, percent-encoded or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// `REQUEST_URI`: path, query and fragment.
    pub(crate) whole: &'a [u8],
    pub(crate) path: &'a [u8],
    /// Without the `?`; `None` if there is no `?`.
    pub(crate) query: Option<&'a [u8]>,
}

impl<'a> Target<'a> {
    pub(crate) fn of(parts: &'a Parts) -> Target<'a> {
        if let Some(AsItCame(bytes)) = parts.extensions.get() {
            return Target::split(bytes);
        }
        Target {
            whole: parts.uri.path_and_query().map_or("/", |p| p.as_str()).as_bytes(),
            path: parts.uri.path().as_bytes(),
            query: parts.uri.query().map(str::as_bytes),
        }
    }

    /// Splits a target. A fragment is part neither of the path nor of the query. Browsers send
    /// none; nginx passes it on in `REQUEST_URI`.
    fn split(whole: &'a [u8]) -> Target<'a> {
        let end = memchr::memchr(b'#', whole).unwrap_or(whole.len());
        let (path, query) = match memchr::memchr(b'?', &whole[..end]) {
            Some(at) => (&whole[..at], Some(&whole[at + 1..end])),
            None => (&whole[..end], None),
        };
        Target { whole, path, query }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_split_into_path_and_query() {
        for (whole, path, query) in [
            ("/", "/", None),
            ("/a\"b?c=<d>", "/a\"b", Some("c=<d>")),
            ("/a?", "/a", Some("")),
            ("/a?b?c", "/a", Some("b?c")),
            ("/a#b?c", "/a", None),
            ("/a?b#c?d", "/a", Some("b")),
        ] {
            let query = query.map(str::as_bytes);
            let expected = Target { whole: whole.as_bytes(), path: path.as_bytes(), query };
            assert_eq!(Target::split(whole.as_bytes()), expected);
        }
    }
}
