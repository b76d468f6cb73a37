//! A host and a port, as they are typed.

use std::fmt;

/// An address to listen on: what `TcpListener::bind((host, port))` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An IP address without brackets, or a host name that is not resolved yet.
    pub host: String,
    /// Port; 0: any free one.
    pub port: u16,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
