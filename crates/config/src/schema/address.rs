//! A host and a port, as typed.

use std::fmt;

/// An address to listen on: the arguments of `TcpListener::bind((host, port))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An IP address without brackets, or a host name that is not resolved yet.
    pub host: String,
    /// Port; 0 selects any free port.
    pub port: u16,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
