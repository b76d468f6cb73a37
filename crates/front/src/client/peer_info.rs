//! accept: the two ends of a connection, first as reported by the kernel, then by a proxy and the
//! TLS handshake.

use super::proxy_header::ProxyHeader;
use crate::tls::client::Variables;
use std::net::SocketAddr;
use std::path::Path;

/// nginx's name for clients of a Unix socket.
const UNIX: &str = "unix:";

/// Client and server of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// `None`: the client uses a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    /// The peer's address as text, for `REMOTE_ADDR`.
    pub(crate) peer_text: String,
    /// Our own address as text, for `SERVER_ADDR`.
    pub(crate) local_text: String,
    /// The client uses TLS, to this server or to a proxy.
    pub(crate) is_tls: bool,
    /// TLS variables for PHP: the client's certificate and the encryption of the connection.
    pub(crate) variables: Variables,
}

impl Ends {
    /// Ends of a TCP connection.
    pub(crate) fn tcp(peer: SocketAddr, local: Option<SocketAddr>) -> Ends {
        let (peer, local) = (canonical(peer), local.map(canonical));
        Ends {
            peer: Some(peer),
            local,
            peer_text: peer.ip().to_string(),
            local_text: local.map_or_else(|| "0.0.0.0".to_owned(), |at| at.ip().to_string()),
            ..Ends::default()
        }
    }

    /// Ends of a connection to the Unix socket at `path`.
    pub(crate) fn unix(path: &Path) -> Ends {
        let local_text = format!("{UNIX}{}", path.display());
        Ends { peer_text: UNIX.to_owned(), local_text, ..Ends::default() }
    }

    /// Ends of a client's connection to a web server in front, as received over FastCGI.
    pub(super) fn told(
        peer: Option<SocketAddr>,
        [peer_text, local_text]: [String; 2],
        is_tls: bool,
    ) -> Ends {
        Ends { peer, peer_text, local_text, is_tls, ..Ends::default() }
    }

    /// Applies the header of a proxy in front.
    pub(super) fn believe(&mut self, header: &ProxyHeader) {
        if let Some((client, server)) = header.ends {
            *self = Ends::tcp(client, Some(server));
        }
        self.is_tls |= header.is_tls.unwrap_or(false);
    }

    /// Our port. `None`: there is none.
    pub(crate) fn port(&self) -> Option<u16> {
        self.local.map(|at| at.port())
    }
}

/// Treats IPv4 clients of a dual-stack listener as IPv4 clients.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_follow_kernel_then_proxy_header() {
        let at = |text: &str| text.parse().expect("an address");
        let mut ends = Ends::tcp(at("[::ffff:192.0.2.1]:1"), Some(at("127.0.0.1:80")));
        assert_eq!((ends.peer_text.as_str(), ends.port()), ("192.0.2.1", Some(80)));
        let header = ProxyHeader { ends: None, is_tls: Some(true) };
        ends.believe(&header);
        assert_eq!((ends.peer_text.as_str(), ends.is_tls), ("192.0.2.1", true));
        let mut ends = Ends::unix(Path::new("/run/s"));
        assert_eq!((ends.local_text.as_str(), ends.port()), ("unix:/run/s", None));
        let told = Some((at("[2001:db8::1]:7"), at("192.0.2.9:443")));
        ends.believe(&ProxyHeader { ends: told, is_tls: None });
        assert_eq!((ends.peer_text.as_str(), ends.port()), ("2001:db8::1", Some(443)));
        assert!(!ends.is_tls);
    }
}
