//! Texts without query strings, passwords in URLs, and values of secret names.

use std::borrow::Cow;

/// Replacement for a secret value.
pub const BLOT: &str = "(redacted)";

/// Replaces the secrets of a text. Other characters stay.
pub(super) fn without_secrets(text: &str, is_secret: impl Fn(&str) -> bool) -> Cow<'_, str> {
    // Most texts have no secrets: they have no character that could begin one.
    if !text.contains(['?', '=', ':']) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['?', '=', ':']) {
        at += found;
        let secret = match text.as_bytes()[at] {
            b'?' => query(text, at),
            b':' if text[at..].starts_with("://") => credentials(text, at + 3),
            _ if is_secret(name_before(text, at)) => value(text, at + 1),
            _ => None,
        };
        at += 1;
        if let Some((from, to)) = secret
            && text[from..to] != *BLOT
        {
            clean.push_str(&text[copied..from]);
            clean.push_str(BLOT);
            (copied, at) = (to, to);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
}

/// Returns the query string after a question mark: the first parameter has a name and a value.
pub(super) fn query(text: &str, mark: usize) -> Option<(usize, usize)> {
    let from = mark + 1;
    let rest = &text[from..];
    let len = rest.find(|c: char| is_end(c) || c == '#').unwrap_or(rest.len());
    let name = rest[..len].split_once('=')?.0;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-.~[]%&+".contains(&b);
    (!name.is_empty() && name.bytes().all(is_name)).then_some((from, from + len))
}

/// Returns the user and the password of a URL whose authority begins at `from`.
pub(super) fn credentials(text: &str, from: usize) -> Option<(usize, usize)> {
    let rest = &text[from..];
    let len = rest.find(|c: char| is_end(c) || matches!(c, '/' | '?' | '#')).unwrap_or(rest.len());
    let at = rest[..len].rfind('@')?;
    Some((from, from + at))
}

/// Returns the name that ends before a `=` or `:`, without quotes and spaces.
fn name_before(text: &str, end: usize) -> &str {
    let name = text[..end].trim_end_matches([' ', '"', '\'']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    &name[name.trim_end_matches(is_name).len()..]
}

/// Returns the value after a `=` or `:`. `::` is PHP's operator, and begins no value.
fn value(text: &str, from: usize) -> Option<(usize, usize)> {
    if text[from..].starts_with(':') || text[..from].ends_with("::") {
        return None;
    }
    let skipped = text[from..].len() - text[from..].trim_start_matches([' ', '"', '\'']).len();
    let begin = from + skipped;
    if text[begin..].starts_with(BLOT) {
        return None;
    }
    let is_last = |c: char| is_end(c) || matches!(c, '&' | ';' | ',' | '/' | ')' | ']' | '}');
    let word = |from: usize| text[from..].find(is_last).map_or(text.len(), |len| from + len);
    let mut end = word(begin);
    if matches!(text[begin..end].to_ascii_lowercase().as_str(), "bearer" | "basic" | "digest") {
        end = text[end..].find(['"', '\'', ',', '\n']).map_or(text.len(), |len| end + len);
    }
    (end > begin).then_some((begin, end))
}
