//! Decodes and normalizes paths, and finds the places where a script's name may end. Pure
//! functions.

use std::borrow::Cow;

/// Decodes percent escapes once, merges slashes, resolves `.` and `..`. The result starts with a
/// slash.
pub(super) fn normalise(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let decoded = decode(path)?;
    if decoded.first() != Some(&b'/') {
        return Err("path without a leading slash");
    }
    let mut out = Vec::with_capacity(decoded.len());
    let mut segments = decoded[1..].split(|b| *b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"" | b"." => {}
            b".." => {
                let up = out.iter().rposition(|b| *b == b'/').ok_or("path leads above the root")?;
                out.truncate(up);
            }
            name => {
                out.push(b'/');
                out.extend_from_slice(name);
                if is_last {
                    return Ok(out);
                }
            }
        }
    }
    out.push(b'/');
    Ok(out)
}

fn decode(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.iter();
    while let Some(&byte) = rest.next() {
        let byte = if byte == b'%' {
            let digits =
                (rest.next().copied().and_then(digit), rest.next().copied().and_then(digit));
            let (Some(high), Some(low)) = digits else { return Err("invalid percent escape") };
            high << 4 | low
        } else {
            byte
        };
        if byte == 0 {
            return Err("NUL byte in the path");
        }
        out.push(byte);
    }
    Ok(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|d| d as u8)
}

/// Offsets at which a script's name may end: after each `.php` that ends a non-empty component.
pub(super) fn script_ends(path: &[u8]) -> impl Iterator<Item = usize> + '_ {
    const EXTENSION: &[u8] = b".php";
    memchr::memmem::find_iter(path, EXTENSION).filter_map(move |at| {
        let end = at + EXTENSION.len();
        let is_named = at > 0 && path[at - 1] != b'/';
        let is_end = matches!(path.get(end), None | Some(b'/'));
        (is_named && is_end).then_some(end)
    })
}

/// Whether a component starts with a dot; `/.well-known/` (RFC 8615) is public.
pub(super) fn is_hidden(path: &[u8]) -> bool {
    let public = path.strip_prefix(b"/.well-known").filter(|r| r.is_empty() || r[0] == b'/');
    let path = public.unwrap_or(path);
    memchr::memmem::find(path, b"/.").is_some()
}

/// Percent-encodes `path` and appends a slash.
pub(super) fn with_slash(path: &[u8]) -> String {
    let mut out = encoded(path);
    out.push('/');
    out
}

/// Replaces each sequence of slashes in `path` by one slash.
pub(super) fn merge_slashes(path: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(path, b"//").is_none() {
        return Cow::Borrowed(path);
    }
    let mut out = path.to_vec();
    out.dedup_by(|next, last| *next == b'/' && *last == b'/');
    Cow::Owned(out)
}

/// Percent-encodes `path`.
pub(super) fn encoded(path: &[u8]) -> String {
    encoded_but(b"/-._~!$&'()*+,;=:@", path)
}

/// Percent-encodes `text` as a part of a query's value, so that it starts no other parameter and no
/// `+` is decoded as a space.
pub(super) fn encoded_in_query(text: &[u8]) -> String {
    encoded_but(b"/-._~!$'()*,:@", text)
}

/// Percent-encodes everything except letters, digits and the bytes in `plain`.
fn encoded_but(plain: &[u8], text: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len() + 1);
    for &byte in text {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn normalized_path_stays_below_root(path in "(/|[.]{1,2}|%2[eEfF]|%5c|a|%00|%zz){0,12}") {
            if let Ok(path) = normalise(path.as_bytes()) {
                prop_assert_eq!(path[0], b'/');
                prop_assert!(!path.contains(&0));
                let mut segments = path.split(|b| *b == b'/');
                prop_assert!(segments.all(|s| s != b"." && s != b".."));
                prop_assert!(memchr::memmem::find(&path, b"//").is_none());
            }
        }
    }
}
