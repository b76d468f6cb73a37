//! The target as the client wrote it: hyper's, or the one that `client/screen.rs` kept beside it.

use bytes::Bytes;
use http::request::Parts;

/// A target of which hyper got to see a covered copy, from its path on. Stands in the request's extensions.
#[derive(Clone, Debug)]
pub(crate) struct AsItCame(pub(crate) Bytes);

/// The parts of a target, percent-encoded or not, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// `REQUEST_URI`: path, query and fragment.
    pub(crate) whole: &'a [u8],
    pub(crate) path: &'a [u8],
    /// Without its `?`; `None`: there is no `?`.
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

    /// A fragment belongs neither to the path nor to the query. Browsers send none; nginx passes it on in
    /// `REQUEST_URI`.
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
    fn parts() {
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
