//! The address of a Redis: a URL, which may contain a password.

use crate::schema::secret::Secret;
use std::path::PathBuf;

const PORT: u16 = 6379;
/// Maximum number of a database; Redis has 16 unless it is configured.
const DATABASE_MAX: u32 = 9_999;

/// A database of a Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// Its socket.
    pub endpoint: RedisEndpoint,
    /// Number of the database.
    pub database: u32,
    /// User; empty: the default one.
    pub user: String,
    /// Password; empty: none.
    pub password: Secret,
}

/// A socket of a Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisEndpoint {
    /// Host and port.
    Tcp(String, u16),
    /// The same, with TLS.
    Tls(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl Redis {
    /// Parses a URL such as `redis://user:password@host:6379/0` or `unix:///run/redis.sock?db=1`.
    pub(crate) fn parse(text: &str) -> Option<Redis> {
        let (scheme, rest) = text.split_once("://")?;
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let (user, password, rest) = match rest.rsplit_once('@') {
            Some((account, rest)) => {
                let (user, password) = account.split_once(':').unwrap_or((account, ""));
                (decoded(user)?, decoded(password)?, rest)
            }
            None => (String::new(), String::new(), rest),
        };
        // A user without a password would be ignored.
        if !user.is_empty() && password.is_empty() {
            return None;
        }
        let (endpoint, database) = if scheme == "unix" {
            let (path, database) = rest.split_once("?db=").unwrap_or((rest, ""));
            let path = Some(path).filter(|path| path.starts_with('/') && !path.contains('?'))?;
            (RedisEndpoint::Unix(decoded(path)?.into()), database)
        } else {
            let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
            let (host, port) = authority_of(authority)?;
            let endpoint = match scheme {
                "redis" => RedisEndpoint::Tcp(host, port),
                "rediss" => RedisEndpoint::Tls(host, port),
                _ => return None,
            };
            (endpoint, database)
        };
        let database = match database {
            "" => 0,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|database| *database <= DATABASE_MAX)?
            }
            _ => return None,
        };
        Some(Redis { endpoint, database, user, password: password.into() })
    }
}

fn authority_of(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some(""))?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_allowed) || port.contains('+') {
        return None;
    }
    let port = if port.is_empty() { PORT } else { port.parse().ok().filter(|port| *port > 0)? };
    Some((host.to_owned(), port))
}

/// Replaces `%XX`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || (rest.next()? as char).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit()? * 16 + digit()?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(endpoint: RedisEndpoint, database: u32, user: &str, password: &str) -> Redis {
        Redis { endpoint, database, user: user.to_owned(), password: password.into() }
    }

    #[test]
    fn addresses_are_urls() {
        let tcp = |host: &str, port| RedisEndpoint::Tcp(host.to_owned(), port);
        for (text, expected) in [
            ("redis://cache", redis(tcp("cache", 6379), 0, "", "")),
            ("redis://127.0.0.1:7000/3", redis(tcp("127.0.0.1", 7000), 3, "", "")),
            ("redis://[::1]:7/", redis(tcp("::1", 7), 0, "", "")),
            ("redis://:p%40s@h/1", redis(tcp("h", 6379), 1, "", "p@s")),
            ("redis://u:p:q@h", redis(tcp("h", 6379), 0, "u", "p:q")),
            ("rediss://h", redis(RedisEndpoint::Tls("h".to_owned(), 6379), 0, "", "")),
            (
                "unix:///run/r.sock?db=2",
                redis(RedisEndpoint::Unix("/run/r.sock".into()), 2, "", ""),
            ),
            ("unix://:p@/r", redis(RedisEndpoint::Unix("/r".into()), 0, "", "p")),
        ] {
            assert_eq!(Redis::parse(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "cache",
            "http://h",
            "redis://",
            "redis://h:0",
            "redis://h:99999",
            "redis://h:+1",
            "redis://h/x",
            "redis://h/10000",
            "redis://h/0/1",
            "redis://h?db=1",
            "redis://u@h",
            "redis://h h",
            "redis://:%4@h",
            "redis://:%ff@h",
            "redis://[h]",
            "unix://r",
            "unix:///r?a=1",
        ] {
            assert_eq!(Redis::parse(text), None, "{text}");
        }
    }
}
