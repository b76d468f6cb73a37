//! Who else runs scripts: an address where FastCGI is spoken. A pure notation.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The kernel's limit on the path of a socket, without the byte that ends it.
const PATH_BYTES_MAX: usize = 107;
/// What stands before a socket's path.
const UNIX: &str = "unix:";

/// The address of a php-fpm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Upstream {
    /// A socket in the file system; the path is absolute.
    Unix(PathBuf),
    /// TCP.
    Tcp(SocketAddr),
}

impl Upstream {
    /// `unix:/run/php/php-fpm.sock` or `127.0.0.1:9000`. Names are none: nobody resolves them while clients wait.
    pub(crate) fn parse(text: &str) -> Result<Upstream, &'static str> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return if !path.starts_with('/') || path.contains('\0') {
                Err("the path of a socket is absolute")
            } else if path.len() > PATH_BYTES_MAX {
                Err("the kernel knows no sockets with paths of more than 107 bytes")
            } else {
                Ok(Upstream::Unix(Path::new(path).to_owned()))
            };
        }
        let address = text.parse().map_err(|_| "it is no IP address with a port");
        address.and_then(|address: SocketAddr| match address.port() {
            0 => Err("nobody listens at port 0"),
            _ => Ok(Upstream::Tcp(address)),
        })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Unix(path) => write!(f, "{UNIX}{}", path.display()),
            Upstream::Tcp(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for text in ["unix:/run/php/php8.2-fpm.sock", "127.0.0.1:9000", "[::1]:9000"] {
            assert_eq!(Upstream::parse(text).map(|found| found.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "9000", "localhost:9000", "unix:a.sock", "/run/a.sock", "127.0.0.1", "127.0.0.1:0"]
        {
            assert!(Upstream::parse(text).is_err(), "{text}");
        }
        assert!(Upstream::parse(&format!("unix:/{}", "a".repeat(107))).is_err());
    }
}
