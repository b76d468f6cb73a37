//! TLS connections in this process, so that many of them need no process each.

use crate::certificate::Certificate;
use crate::wait::WATCHDOG;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// A connection with a completed handshake.
pub type SecureStream = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts one authority.
#[derive(Debug)]
pub struct SecureClient(Arc<ClientConfig>);

impl SecureClient {
    /// Creates a client that supports only `protocol` (`h2`, `http/1.1`).
    pub fn new(authority: &Certificate, protocol: &str) -> SecureClient {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(&authority.chain).expect("a certificate");
        roots.add(root).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        SecureClient(Arc::new(config))
    }

    /// Connects and completes the handshake with the server named `localhost` at `address`.
    pub fn connect(&self, address: SocketAddr) -> SecureStream {
        let mut socket = TcpStream::connect(address).expect("somebody listens");
        socket.set_nodelay(true).expect("a TCP socket");
        socket.set_read_timeout(Some(WATCHDOG)).expect("a time");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).expect("a handshake");
        }
        StreamOwned::new(connection, socket)
    }
}
