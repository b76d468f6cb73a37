//! The notations inside a `[[location]]`. Pure functions.

use crate::schema::location::{
    HEADER_BYTES_MAX, PATTERN_BYTES_MAX, SERVERS_HEADERS, SERVERS_VARIABLES, VARIABLE_BYTES_MAX,
};

/// A description of the mistake, as the end of a sentence.
pub(crate) type Wrong = &'static str;

/// Reads `/uploads/*` or `*.css`.
pub(crate) fn path(text: &str) -> Result<String, Wrong> {
    if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
        return Err("it is empty, or longer than 256 bytes");
    }
    if text.chars().any(char::is_control) {
        return Err("it has a control character");
    }
    if text.contains(['?', '#']) {
        return Err("a path has no `?` and no `#`: queries are not compared");
    }
    if has_escape(text) {
        return Err("paths are compared decoded: write the character, not `%` and digits");
    }
    if text.contains('/') && !text.starts_with('/') {
        return Err(
            "a path begins with `/`, a file name has none; regular expressions are not supported",
        );
    }
    if text.contains("//") || text.split('/').any(|part| part == "." || part == "..") {
        return Err("paths are compared without `//`, `/./` and `/../`");
    }
    Ok(text.to_owned())
}

fn has_escape(text: &str) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    (0..bytes.len())
        .any(|at| bytes[at] == b'%' && is_digit(bytes.get(at + 1)) && is_digit(bytes.get(at + 2)))
}

/// Reads `example.com`, `*.example.com` or `[::1]`; returns it in lower case.
pub(crate) fn host(text: &str) -> Result<String, Wrong> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    if name.is_empty() || text.len() > PATTERN_BYTES_MAX {
        return Err("it is empty, or longer than 256 bytes");
    }
    let is_address = name.starts_with('[') && name.ends_with(']');
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if name.contains(':') && !is_address {
        return Err("it must be a name without scheme and port");
    }
    if name.ends_with('.') || (!is_address && !name.chars().all(is_allowed)) {
        return Err("it is not a host name (write international names as `xn--…`)");
    }
    Ok(text.to_ascii_lowercase())
}

/// Reads `/new/*` or `https://example.com/*`.
pub(super) fn redirect(text: &str) -> Result<String, Option<Wrong>> {
    if text.len() > HEADER_BYTES_MAX || !text.bytes().all(|b| (b'!'..=b'~').contains(&b)) {
        return Err(Some(
            "it must be ASCII without spaces: write other characters as `%` and digits",
        ));
    }
    if text.matches('*').count() > 1 {
        return Err(Some("it has more than one `*`"));
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        // The client chooses the path, so the `*` must not be in the host.
        Some(rest) => match rest.split_once('/').unwrap_or((rest, "")) {
            ("", _) => Err(Some("it has no host")),
            (authority, _) if authority.contains('*') => Err(Some("the `*` is in its host")),
            _ => Ok(text.to_owned()),
        },
        None if text.starts_with("//") || !text.starts_with('/') => Err(None),
        None => Ok(text.to_owned()),
    }
}

/// Whether the target of the redirect matches the pattern again, which would be a loop.
pub(super) fn leads_back(pattern: &str, to: &str) -> bool {
    let to = to.split(['?', '#']).next().unwrap_or(to).replace('*', "x");
    match pattern.split_once('*') {
        _ if !pattern.starts_with('/') => false,
        None => pattern == to,
        Some((before, after)) => {
            to.len() >= before.len() + after.len() && to.starts_with(before) && to.ends_with(after)
        }
    }
}

pub(super) fn header(name: &str, value: &str) -> Result<(), Wrong> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("a name has a character that header names cannot have");
    }
    if SERVERS_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err("the server sets one of them itself");
    }
    if value.len() > HEADER_BYTES_MAX || !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Err("a value is longer than 4096 bytes, or has a character that is not printable");
    }
    Ok(())
}

/// Checks a variable, such as `MAGE_RUN_CODE`. Names that begin with `HTTP_` are the client's
/// headers.
pub(super) fn variable(name: &str, value: &str) -> Result<(), Wrong> {
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("a name has letters, digits and `_`, and does not begin with a digit");
    }
    if name.starts_with("HTTP_") || name.starts_with("SSL_") {
        return Err("names that begin with `HTTP_` or `SSL_` are reserved for client data");
    }
    if SERVERS_VARIABLES.contains(&name) {
        return Err("the server sets one of them itself");
    }
    if value.len() > VARIABLE_BYTES_MAX || value.chars().any(char::is_control) {
        return Err("a value is longer than 4096 bytes, or has a control character");
    }
    Ok(())
}

/// Reads `404` or `5xx`.
pub(super) fn statuses(key: &str) -> Result<(u16, u16), Wrong> {
    match key {
        "4xx" => return Ok((400, 499)),
        "5xx" => return Ok((500, 599)),
        _ => {}
    }
    let status = key.parse().ok().filter(|status| key.len() == 3 && (400..600).contains(status));
    status
        .map(|status| (status, status))
        .ok_or("a status is a number from 400 to 599, `4xx` or `5xx`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_accepts_only_path_patterns() {
        for good in ["/", "/*", "/a", "/a/*", "*.css", "/a*b", "x", "/é", "/100%", "/a.b/c"] {
            assert_eq!(path(good).as_deref(), Ok(good));
        }
        let long = "/".repeat(PATTERN_BYTES_MAX + 1);
        for bad in [
            "", "a/b", "^/a$", "/a?b", "/a#b", "/%61", "/a//b", "/a/../b", "/./a", "/a\n", "..",
            &long,
        ] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn host_accepts_only_host_patterns() {
        for (good, read) in
            [("A.example", "a.example"), ("*.a.example", "*.a.example"), ("[::1]", "[::1]")]
        {
            assert_eq!(host(good).as_deref(), Ok(read));
        }
        for bad in ["", "*", "*.", "a:80", "http://a", "a.", "ä.example", "a*b", "::1"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn redirect_loop_is_detected() {
        for good in ["/", "/*", "/a/*?b=c", "https://a.example", "http://a.example:81/*"] {
            assert_eq!(redirect(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "a",
            "//a.example",
            "/* *",
            "/**",
            "/ä",
            "https://*.a/",
            "https://a*",
            "https:///a",
        ] {
            assert!(redirect(bad).is_err(), "{bad}");
        }
        for (pattern, to, leads) in [
            ("/old/*", "/new/*", false),
            ("/old/*", "/old/new/*", true),
            ("/a", "/a", true),
            ("/a", "/a?b", true),
            ("/*", "/a", true),
            ("/a/*", "/a", false),
            ("*.htm", "/a.htm", false),
            ("/*.htm", "/*.html", false),
            ("/ab*ba", "/aba", false),
        ] {
            assert_eq!(leads_back(pattern, to), leads, "{pattern} {to}");
        }
    }

    #[test]
    fn statuses_headers_and_variables_are_checked() {
        assert_eq!(statuses("404"), Ok((404, 404)));
        assert_eq!(statuses("5xx"), Ok((500, 599)));
        for bad in ["", "0404", "200", "600", "+404", "3xx"] {
            assert!(statuses(bad).is_err(), "{bad}");
        }
        assert_eq!(header("Cache-Control", "max-age=1"), Ok(()));
        assert_eq!(header("X-Powered-By", ""), Ok(()));
        assert_eq!(variable("MAGE_RUN_CODE", "a b é"), Ok(()));
        assert_eq!(variable("_a1", ""), Ok(()));
        for (name, value) in [
            ("", "a"),
            ("1A", "a"),
            ("A-B", "a"),
            ("HTTP_HOST", "a"),
            ("SSL_CLIENT_VERIFY", "SUCCESS"),
            ("SCRIPT_FILENAME", "/etc/passwd"),
            ("PHP_VALUE", "a=b"),
            ("A", "a\0b"),
        ] {
            assert!(variable(name, value).is_err(), "{name}: {value}");
        }
        for (name, value) in
            [("", "a"), ("a b", "a"), ("Content-Length", "1"), ("a", "b\r\nc: d"), ("a", "ä")]
        {
            assert!(header(name, value).is_err(), "{name}: {value}");
        }
    }
}
