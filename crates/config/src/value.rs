//! The notations inside values: sizes, spans of time, addresses, networks. Pure functions.

use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::settings::{Listen, Php};

const UNITS: [(char, u64); 3] = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];

/// `4096`, `64K`, `128M`, `1G`: powers of 1024, as in php.ini.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    for (unit, factor) in UNITS {
        if let Some(number) = upper.strip_suffix(unit) {
            return digits(number)?.checked_mul(factor);
        }
    }
    digits(text)
}

/// The shortest notation of a size: the inverse of [`bytes`].
pub(crate) fn show_bytes(size: u64) -> String {
    let fits = |&(_, factor): &(char, u64)| size >= factor && size.is_multiple_of(factor);
    match UNITS.into_iter().rev().find(fits) {
        Some((unit, factor)) => format!("{}{unit}", size / factor),
        None => size.to_string(),
    }
}

/// `500ms`, `30s`, `2m`, `1h`, and `0` without a unit.
pub(crate) fn duration(text: &str) -> Option<Duration> {
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

/// A whole number without sign, underscores or spaces.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, and `:8080` for all IPv4 interfaces.
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

/// `10.0.0.0/8`, or one address.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// `8.2` or a path; a path that could be mistaken for a version needs a `./`.
pub(crate) fn php(text: &str, base: &Path) -> Option<Php> {
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !text.contains("..") {
        let (major, minor) = text.split_once('.')?;
        return (digits(major).is_some() && digits(minor).is_some())
            .then(|| Php::Version(text.to_owned()));
    }
    Some(Php::Path(base.join(text)))
}

/// `key=value` of an ini directive. Control characters could smuggle in a second directive.
pub(crate) fn definition(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let is_key =
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    (is_key && !value.contains(|c: char| c.is_control()))
        .then(|| (key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
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
    fn sizes_are_shown_as_they_are_typed() {
        for text in ["0", "1", "1023", "1K", "1025", "64K", "128M", "3G", "1024G"] {
            assert_eq!(show_bytes(bytes(text).unwrap()), text);
        }
    }

    #[test]
    fn durations() {
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
    fn addresses_to_listen_on() {
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
    fn networks() {
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
    fn worker_binaries() {
        let path = |text: &str| Some(Php::Path(text.into()));
        let check = |text, expected| assert_eq!(php(text, Path::new("/app")), expected, "{text:?}");
        check("8.2", Some(Php::Version("8.2".to_owned())));
        check("10.12", Some(Php::Version("10.12".to_owned())));
        check("/usr/bin/samovar-php", path("/usr/bin/samovar-php"));
        check("bin/samovar-php", path("/app/bin/samovar-php"));
        check("../8.2", path("/app/../8.2"));
        check("8", None);
        check("8.", None);
        check("8.2.1", None);
        check("", None);
    }

    #[test]
    fn definitions() {
        let check = |text, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(definition(text), expected, "{text:?}");
        };
        check("memory_limit=256M", Some(("memory_limit", "256M")));
        check("opcache.enable = 1", Some(("opcache.enable", "1")));
        check("error_log=", Some(("error_log", "")));
        check("a=b=c", Some(("a", "b=c")));
        check("memory_limit", None);
        check("=1", None);
        check("a b=1", None);
        check("a=1\nb=2", None);
    }
}
