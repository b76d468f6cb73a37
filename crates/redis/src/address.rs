//! Where a Redis is, and how to reach it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Host and port.
    Tcp(String, u16),
    /// The same, with TLS.
    Tls(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// A database of a Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its socket.
    pub endpoint: Endpoint,
    /// Number of the database.
    pub database: u32,
    /// User; empty: the default one.
    pub user: String,
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp(host, port) | Endpoint::Tls(host, port) => write!(to, "{host}:{port}"),
            Endpoint::Unix(path) => write!(to, "{}", path.display()),
        }
    }
}

/// How to use an address.
#[derive(Clone)]
pub struct Options {
    /// The address.
    pub address: Address,
    /// Password; empty: none.
    pub password: String,
    /// File with the certificates that TLS trusts; `None`: those of the system.
    pub roots: Option<PathBuf>,
    /// Maximum time until a connection is open.
    pub connect_limit: Duration,
    /// Maximum wait for a part of a response, and for sending a part of a request.
    pub wait_limit: Duration,
}

impl fmt::Debug for Options {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Options").field("address", &self.address).finish_non_exhaustive()
    }
}
