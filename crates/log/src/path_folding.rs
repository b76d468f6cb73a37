//! Replaces the variable parts of a path: numbers, UUIDs, hashes, tokens, addresses of mail.
//!
//! If the application does not name its routes, the paths are used. A part of a path that looks
//! like a value is replaced by its kind.

use std::borrow::Cow;

/// Maximum number of parts; the rest of the path becomes `…`.
const PARTS_MAX: usize = 12;
/// Maximum number of characters of a word; a longer part counts as a value.
const WORD_CHARS_MAX: usize = 40;
/// Minimum number of hexadecimal digits of a hash.
const HASH_DIGITS_MIN: usize = 16;
/// Minimum number of characters of a token.
const TOKEN_CHARS_MIN: usize = 20;

/// Folds a path: `/users/42/orders/6fa459ea-ee8a-3ca4-894e-db77e160355e` →
/// `/users/{n}/orders/{uuid}`
#[must_use]
pub fn fold(path: &str) -> Cow<'_, str> {
    if !path.split('/').skip(1).enumerate().any(|(n, part)| n >= PARTS_MAX || value(part).is_some())
    {
        return Cow::Borrowed(path);
    }
    let mut folded = String::with_capacity(path.len());
    for (n, part) in path.split('/').enumerate() {
        if n > 0 {
            folded.push('/');
        }
        if n > PARTS_MAX {
            folded.push('…');
            break;
        }
        folded.push_str(value(part).unwrap_or(part));
    }
    Cow::Owned(folded)
}

/// Returns the placeholder of a part that is a value; `None` for a word.
fn value(part: &str) -> Option<&'static str> {
    let (stem, extension) = part.rsplit_once('.').unwrap_or((part, ""));
    let is_page = matches!(extension, "html" | "htm" | "php" | "json" | "xml");
    let text = if is_page { stem } else { part };
    if text.is_empty() {
        None
    } else if text.bytes().all(|b| b.is_ascii_digit()) {
        Some("{n}")
    } else if is_uuid(text) {
        Some("{uuid}")
    } else if is_hash(text) {
        Some("{hash}")
    } else if text.bytes().next().is_some_and(|b| b.is_ascii_digit()) && is_dated(text) {
        Some("{date}")
    } else if text.contains(['%', '='])
        || text.chars().count() > WORD_CHARS_MAX
        || is_token(text)
        || text.split_once('@').is_some_and(|(user, _)| !user.is_empty())
    {
        Some("{…}")
    } else {
        None
    }
}

/// RFC 9562: 8-4-4-4-12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Returns whether a part has many hexadecimal digits, at least one of them 0 to 9:
/// `deadbeefdeadbeef` could be a word.
fn is_hash(text: &str) -> bool {
    text.len() >= HASH_DIGITS_MIN
        && text.bytes().all(|b| b.is_ascii_hexdigit())
        && text.bytes().any(|b| b.is_ascii_digit())
}

/// Returns whether a part is random text, such as the token of a link in a mail: it has digits and
/// letters of both cases, and no separators.
fn is_token(text: &str) -> bool {
    text.len() >= TOKEN_CHARS_MIN
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_uppercase())
        && text.bytes().any(|b| b.is_ascii_lowercase())
}

/// Returns whether a part is a date, with or without a time: `2026-11-22`, `2026-11-22T10:00:00`
fn is_dated(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits >= 6 && text.bytes().all(|b| b.is_ascii_digit() || b"-:TZ+.".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::fold;
    use std::borrow::Cow;

    #[test]
    fn fold_replaces_values_and_keeps_words() {
        for (path, expected) in [
            ("/", "/"),
            ("/products", "/products"),
            ("/products/42", "/products/{n}"),
            ("/products/42.html", "/products/{n}"),
            ("/p/6fa459ea-ee8a-3ca4-894e-db77e160355e/x", "/p/{uuid}/x"),
            ("/blob/d41d8cd98f00b204e9800998ecf8427e", "/blob/{hash}"),
            ("/blog/2026-11-22/a-word", "/blog/{date}/a-word"),
            ("/v2/users", "/v2/users"),
            ("/index.php", "/index.php"),
            ("/a%20b/c", "/{…}/c"),
            ("/cart;token=abc/c", "/{…}/c"),
            ("/users/bob.smith@a.example/orders", "/users/{…}/orders"),
            ("/@bob", "/@bob"),
            ("/reset/7XbVq2mKpZr9TnWc4LhY", "/reset/{…}"),
            ("/reset/7xbvq2mkpzr9tnwc4lhy", "/reset/7xbvq2mkpzr9tnwc4lhy"),
            ("/wiki/World_War_2_History", "/wiki/World_War_2_History"),
            ("//double//", "//double//"),
            ("", ""),
            (
                "/1/2/3/4/5/6/7/8/9/10/11/12/13/14",
                "/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/…",
            ),
        ] {
            assert_eq!(fold(path), expected, "{path}");
        }
        let long = format!("/{}", "ä".repeat(41));
        assert_eq!(fold(&long), "/{…}");
    }

    #[test]
    fn fold_of_words_does_not_copy() {
        assert!(matches!(fold("/blog/what-we-learned"), Cow::Borrowed(_)));
    }
}
