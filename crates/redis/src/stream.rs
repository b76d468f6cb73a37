//! A connection with time limits: TCP, TLS or a Unix socket.

use crate::address::{Endpoint, Options};
use crate::lookup::lookup;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Error, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where distributions have the certificates of the authorities.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// A connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

impl Stream {
    /// Opens one, with the time limits of the options.
    pub(crate) fn open(options: &Options) -> io::Result<Stream> {
        let stream = match &options.address.endpoint {
            Endpoint::Tcp(host, port) => Stream::Tcp(tcp(host, *port, options.connect_limit)?),
            Endpoint::Tls(host, port) => {
                let socket = tcp(host, *port, options.connect_limit)?;
                let name = ServerName::try_from(host.clone()).map_err(Error::other)?;
                let config = trusting(options.roots.as_deref())?;
                let client = ClientConnection::new(config, name).map_err(Error::other)?;
                Stream::Tls(Box::new(StreamOwned::new(client, socket)))
            }
            Endpoint::Unix(path) => Stream::Unix(unix(path, options.connect_limit)?),
        };
        stream.limit_waits(options.wait_limit)?;
        Ok(stream)
    }

    /// Sets the maximum wait for a part of a response.
    pub(crate) fn limit_waits(&self, limit: Duration) -> io::Result<()> {
        let limit = Some(limit.max(Duration::from_millis(1)));
        match self {
            Stream::Tcp(socket) => {
                socket.set_read_timeout(limit)?;
                socket.set_write_timeout(limit)
            }
            Stream::Tls(stream) => {
                stream.sock.set_read_timeout(limit)?;
                stream.sock.set_write_timeout(limit)
            }
            Stream::Unix(socket) => {
                socket.set_read_timeout(limit)?;
                socket.set_write_timeout(limit)
            }
        }
    }
}

/// Tries each address of the host. The limit is for the lookup and all addresses together.
fn tcp(host: &str, port: u16, limit: Duration) -> io::Result<TcpStream> {
    let until = Instant::now() + limit;
    let mut failure = Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in lookup(host, port, limit)? {
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, rest) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Connects to a Unix socket. A server that accepts no connection makes `connect()` wait when its
/// queue of connections is full.
fn unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit.max(Duration::from_millis(1))))?;
    let address = SocketAddrUnix::new(path)?;
    match retry_on_intr(|| connect(&socket, &address)) {
        Ok(()) => Ok(UnixStream::from(socket)),
        Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}

fn trusting(roots: Option<&Path>) -> io::Result<Arc<ClientConfig>> {
    let system = || SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists());
    let path = roots.or_else(system).unwrap_or(Path::new(SYSTEM_ROOTS[0]));
    let unusable = |why: String| {
        Error::other(format!("cannot read the certificates `{}`: {why}", path.display()))
    };
    let mut store = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    store.add_parsable_certificates(all.flatten());
    if store.is_empty() {
        return Err(unusable("there is none".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::other)?;
    Ok(Arc::new(config.with_root_certificates(store).with_no_client_auth()))
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.read(to),
            Stream::Tls(stream) => stream.read(to),
            Stream::Unix(socket) => socket.read(to),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.write(from),
            Stream::Tls(stream) => stream.write(from),
            Stream::Unix(socket) => socket.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(socket) => socket.flush(),
            Stream::Tls(stream) => stream.flush(),
            Stream::Unix(socket) => socket.flush(),
        }
    }
}
