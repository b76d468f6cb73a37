//! The notations of values: sizes, durations, addresses, networks. Pure functions.

use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::schema::address::Listen;
use crate::schema::binary::PhpBinary;

const UNITS: [(char, u64); 3] = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];

/// Reads `4096`, `64K`, `128M`, `1G`: powers of 1024, as in php.ini.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    for (unit, factor) in UNITS {
        if let Some(number) = upper.strip_suffix(unit) {
            return digits(number)?.checked_mul(factor);
        }
    }
    digits(text)
}

/// Returns the shortest notation of a size: the inverse of [`bytes`].
pub(crate) fn show_bytes(size: u64) -> String {
    let fits = |&(_, factor): &(char, u64)| size >= factor && size.is_multiple_of(factor);
    match UNITS.into_iter().rev().find(fits) {
        Some((unit, factor)) => format!("{}{unit}", size / factor),
        None => size.to_string(),
    }
}

/// Reads a [`duration`] of at most a day.
pub(crate) fn timeout(text: &str) -> Option<Duration> {
    const TIMEOUT_MAX: Duration = Duration::from_hours(24); // A longer one is a mistyped unit.
    duration(text).filter(|span| *span <= TIMEOUT_MAX)
}

/// Reads `/export/*=10m`: a path pattern and its timeout.
pub(crate) fn path_time(text: &str) -> Option<(String, Duration)> {
    let (pattern, time) = text.rsplit_once('=')?;
    let (pattern, time) = (pattern.trim(), timeout(time.trim())?);
    path_pattern(pattern).then(|| (pattern.to_owned(), time))
}

/// Whether the text is a path pattern, such as `/export/*`.
pub(crate) fn path_pattern(text: &str) -> bool {
    target(text) && !text.contains(['?', '#'])
}

/// Reads `500ms`, `30s`, `2m`, `1h`, and `0` without a unit.
pub fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let number = digits(&text[..unit_at])?;
    let ms = match &text[unit_at..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

/// Reads `true` or `false`, and `1` or `0` as is usual in environment variables.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Reads a whole number without sign, underscores or spaces.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, and `:8080` for all IPv4 interfaces.
pub(crate) fn listen(text: &str) -> Option<Listen> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(Listen { host: address.ip().to_string(), port: address.port() });
    }
    let (host, port) = text.rsplit_once(':')?;
    let port = u16::try_from(digits(port)?).ok()?;
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    is_host_name(host).then(|| Listen { host: host.to_owned(), port })
}

fn is_host_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

/// Reads `10.0.0.0/8`, or one address.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Reads a file's name or path, with `*` and `?`.
pub(crate) fn pattern(text: &str) -> Option<String> {
    let is_some = !text.is_empty() && !text.contains(|c: char| c.is_control());
    is_some.then(|| text.to_owned())
}

/// Reads `8.2` or a path. A path that looks like a version needs a leading `./`.
pub(crate) fn php_binary(text: &str, base: &Path) -> Option<PhpBinary> {
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !text.contains("..") {
        let (major, minor) = text.split_once('.')?;
        return (digits(major).is_some() && digits(minor).is_some())
            .then(|| PhpBinary::Version(text.to_owned()));
    }
    Some(PhpBinary::Path(base.join(text)))
}

/// Whether the text is a version or a path with a slash, and so cannot be an ini directive.
pub(crate) fn is_php_binary(text: &str) -> bool {
    text.contains('/') || matches!(php_binary(text, Path::new("")), Some(PhpBinary::Version(_)))
}

/// Reads `key=value` of an ini directive. Control characters are refused: they could add a second
/// directive.
pub(crate) fn definition(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    (is_directive(key) && !value.contains(|c: char| c.is_control()))
        .then(|| (key.to_owned(), value.to_owned()))
}

/// Whether PHP accepts several values of this directive: extensions to load, and lists (`name[]`).
pub(crate) fn is_repeatable(key: &str) -> bool {
    matches!(key, "extension" | "zend_extension") || key.ends_with("[]")
}

/// Whether the text is a directive's name: `memory_limit`, or an element of a list, `list[key]` or
/// `list[]`.
pub(crate) fn is_directive(key: &str) -> bool {
    let is_plain =
        |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    let name = match key.strip_suffix(']').map(|rest| rest.split_once('[')) {
        None => key,
        Some(Some((name, element))) if is_plain(element) => name,
        Some(_) => return false,
    };
    !name.is_empty() && is_plain(name)
}

/// Whether the text is a request target, such as `/health?full=1`.
pub(crate) fn target(text: &str) -> bool {
    text.starts_with('/') && !text.contains(|c: char| c <= ' ' || c == '\u{7f}')
}

/// Maximum length of a release's label in bytes.
const RELEASE_BYTES_MAX: usize = 100;

/// Returns whether a text is the label of a release. No character of it has a meaning in HTML, in
/// a log or in a terminal.
#[must_use]
pub fn release(text: &str) -> bool {
    text.len() <= RELEASE_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+/:@~".contains(&b))
}

/// Whether the text is a media type: `text/html` or `text/*`.
pub(crate) fn media_type(text: &str) -> bool {
    let is_token = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    text.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && (sub == "*" || is_token(sub)))
}

/// Reads `/protected/=/srv/files`: a path and a folder, which starts at `base` if it is relative. A
/// slash is added to the end of the path.
pub(crate) fn sendfile(text: &str, base: &Path) -> Option<(String, PathBuf)> {
    let (path, folder) = text.split_once('=')?;
    let (path, folder) = (path.trim(), folder.trim());
    let path = format!("{}/", path.trim_end_matches('/'));
    let is_normal =
        !path.contains("//") && !path.split('/').any(|part| part == "." || part == "..");
    let is_sound = path_pattern(&path) && is_normal && !path.contains('*');
    (is_sound && !folder.is_empty()).then(|| (path, base.join(folder)))
}

/// Whether the text can be the name of a user or group. Does not check that it exists.
pub(crate) fn account(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.$@\\".contains(c);
    !text.is_empty() && text.len() <= 256 && !text.starts_with('-') && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_reads_sizes_with_units() {
        let check = |text, expected| assert_eq!(bytes(text), expected, "{text:?}");
        check("0", Some(0));
        check("4096", Some(4096));
        check("64K", Some(65_536));
        check("64k", Some(65_536));
        check("128M", Some(134_217_728));
        check("1G", Some(1 << 30));
        check("", None);
        check("K", None);
        check("-1", None);
        check("+1", None);
        check("1_000", None);
        check("1.5M", None);
        check("64KB", None);
        check("64 K", None);
        check("18446744073709551616", None);
        check("99999999999999999G", None);
    }

    #[test]
    fn show_bytes_is_inverse_of_bytes() {
        for text in ["0", "1", "1023", "1K", "1025", "64K", "128M", "3G", "1024G"] {
            assert_eq!(show_bytes(bytes(text).unwrap()), text);
        }
    }

    #[test]
    fn duration_needs_number_and_unit() {
        let check = |text, ms: Option<u64>| {
            assert_eq!(duration(text), ms.map(Duration::from_millis), "{text:?}");
        };
        check("0", Some(0));
        check("0s", Some(0));
        check("500ms", Some(500));
        check("30s", Some(30_000));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
        check("", None);
        check("30", None);
        check("s", None);
        check("1.5s", None);
        check("-1s", None);
        check("30 s", None);
        check("30S", None);
        check("1m30s", None);
        check("18446744073709551615h", None);
    }

    #[test]
    fn switch_reads_true_false_one_zero() {
        let check = |text, expected| assert_eq!(switch(text), expected, "{text:?}");
        check("true", Some(true));
        check("1", Some(true));
        check("false", Some(false));
        check("0", Some(false));
        check("", None);
        check("yes", None);
        check("TRUE", None);
    }

    #[test]
    fn listen_reads_host_and_port() {
        let check = |text, expected: Option<&str>| {
            let shown = listen(text).map(|listen| listen.to_string());
            assert_eq!(shown.as_deref(), expected, "{text:?}");
        };
        check("127.0.0.1:8080", Some("127.0.0.1:8080"));
        check("[::1]:0", Some("[::1]:0"));
        check("[::]:80", Some("[::]:80"));
        check("localhost:8080", Some("localhost:8080"));
        check("web-1.example:80", Some("web-1.example:80"));
        check(":8080", Some("0.0.0.0:8080"));
        check("8080", None);
        check("localhost", None);
        check("localhost:http", None);
        check("localhost:65536", None);
        check("http://localhost:80", None);
        check("::1:80", None);
        check("", None);
    }

    #[test]
    fn network_reads_address_or_prefix() {
        let check = |text, expected: Option<&str>| {
            let shown = network(text).map(|network| network.to_string());
            assert_eq!(shown.as_deref(), expected, "{text:?}");
        };
        check("10.0.0.0/8", Some("10.0.0.0/8"));
        check("127.0.0.1", Some("127.0.0.1/32"));
        check("::1", Some("::1/128"));
        check("fd00::/8", Some("fd00::/8"));
        check("10.0.0.0/33", None);
        check("localhost", None);
    }

    #[test]
    fn php_binary_reads_version_or_path() {
        let path = |text: &str| Some(PhpBinary::Path(text.into()));
        let check =
            |text, expected| assert_eq!(php_binary(text, Path::new("/app")), expected, "{text:?}");
        check("8.2", Some(PhpBinary::Version("8.2".to_owned())));
        check("10.12", Some(PhpBinary::Version("10.12".to_owned())));
        check("/usr/bin/samovar-php", path("/usr/bin/samovar-php"));
        check("bin/samovar-php", path("/app/bin/samovar-php"));
        check("../8.2", path("/app/../8.2"));
        check("8", None);
        check("8.", None);
        check("8.2.1", None);
        check("", None);
        for (text, expected) in [("8.2", true), ("./php", true), ("precision", false), ("", false)]
        {
            assert_eq!(is_php_binary(text), expected, "{text:?}");
        }
    }

    #[test]
    fn definition_reads_key_and_value() {
        let check = |text, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(definition(text), expected, "{text:?}");
        };
        check("memory_limit=256M", Some(("memory_limit", "256M")));
        check("opcache.enable = 1", Some(("opcache.enable", "1")));
        check("error_log=", Some(("error_log", "")));
        check("a=b=c", Some(("a", "b=c")));
        check("list[a]=1", Some(("list[a]", "1")));
        check("list[]=1", Some(("list[]", "1")));
        check("list[a][b]=1", None);
        check("[a]=1", None);
        check("list[a=1", None);
        check("a]=1", None);
        check("memory_limit", None);
        check("=1", None);
        check("a b=1", None);
        check("a=1\nb=2", None);
    }
}
