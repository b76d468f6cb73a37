//! The address of a FastCGI server that runs scripts, such as php-fpm. A pure notation.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The kernel's limit for the path of a socket, without the final NUL byte.
const PATH_BYTES_MAX: usize = 107;
/// The DNS limit for the length of a name.
const NAME_BYTES_MAX: usize = 253;
/// Prefix of a socket's path.
const UNIX: &str = "unix:";

/// The address of a php-fpm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Upstream {
    /// A socket in the file system; the path is absolute.
    Unix(PathBuf),
    /// An IP address and a port, over TCP.
    Tcp(SocketAddr),
    /// A host name and a port, over TCP.
    Name(String, u16),
}

impl Upstream {
    /// Reads `unix:/run/php/php-fpm.sock`, `127.0.0.1:9000` or `php.example:9000`.
    pub(crate) fn parse(text: &str) -> Result<Upstream, &'static str> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return if !path.starts_with('/') || path.contains('\0') {
                Err("the path of a socket must be absolute")
            } else if path.len() > PATH_BYTES_MAX {
                Err("the path of a socket has at most 107 bytes")
            } else {
                Ok(Upstream::Unix(Path::new(path).to_owned()))
            };
        }
        let found = match text.parse() {
            Ok(address) => Upstream::Tcp(address),
            Err(_) => named(text).ok_or("it is not an IP address or name with a port")?,
        };
        match found {
            Upstream::Tcp(address) if address.port() == 0 => Err("port 0 is not allowed"),
            Upstream::Name(_, 0) => Err("port 0 is not allowed"),
            found => Ok(found),
        }
    }
}

fn named(text: &str) -> Option<Upstream> {
    let (name, port) = text.split_once(':')?;
    let is_label = |label: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        !label.is_empty() && !label.starts_with('-') && label.chars().all(is_allowed)
    };
    let last = name.rsplit('.').next()?;
    // A name whose last label is a number is an invalid IP address.
    let is_name = name.len() <= NAME_BYTES_MAX
        && name.split('.').all(is_label)
        && !last.bytes().all(|b| b.is_ascii_digit());
    let is_number = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_number && is_name)?;
    Some(Upstream::Name(name.to_ascii_lowercase(), port))
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Unix(path) => write!(f, "{UNIX}{}", path.display()),
            Upstream::Tcp(address) => address.fmt(f),
            Upstream::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_only_fastcgi_addresses() {
        for text in [
            "unix:/run/php/php8.2-fpm.sock",
            "127.0.0.1:9000",
            "[::1]:9000",
            "localhost:9000",
            "php-1.my_net.example:9000",
        ] {
            assert_eq!(Upstream::parse(text).map(|found| found.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(Upstream::parse("PHP:1"), Ok(Upstream::Name("php".to_owned(), 1)));
        for text in [
            "",
            "9000",
            "localhost",
            "localhost:",
            "localhost:0",
            "localhost:+1",
            "localhost:65536",
            ":9000",
            "a..b:9000",
            "-a:9000",
            "ä.example:9000",
            "a/b:9000",
            "127.0.1:9000",
            "127.0.0.256:9000",
            "unix:a.sock",
            "/run/a.sock",
            "127.0.0.1",
            "127.0.0.1:0",
        ] {
            assert!(Upstream::parse(text).is_err(), "{text}");
        }
        assert!(Upstream::parse(&format!("unix:/{}", "a".repeat(107))).is_err());
        assert!(Upstream::parse(&format!("{}a:1", "a.".repeat(127))).is_err());
    }
}
