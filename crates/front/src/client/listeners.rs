//! listen: addresses → sockets that queue connections, before any is accepted. Sockets may also
//! come from a service manager; these continue to queue while the server is down. Each has its
//! protocol and role ([`Bound`]).
#![allow(unsafe_code)] // Takes over inherited descriptors; see the SAFETY note.

use samovar_config::{Endpoint, Listen, Listener, Protocol, Role};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// First descriptor that a service manager passes (`sd_listen_fds`).
const FIRST_INHERITED: RawFd = 3;
/// Maximum number of inherited descriptors.
const INHERITED_MAX: usize = 64;
/// The kernel's own limit on the backlog of [`bind`].
const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
/// Default permissions of a Unix socket: its owner and group may connect.
const MODE: u32 = 0o660;

/// A socket that queues connections, with its protocol.
#[derive(Debug)]
pub struct Bound {
    pub(crate) socket: BoundSocket,
    pub(crate) protocol: Protocol,
    pub(crate) role: Role,
    pub(crate) has_proxy_header: bool,
    /// Name by which a successor of this server recognizes it: its entry in `listen`, without the
    /// protocol. Empty: it comes from a service manager.
    pub(crate) name: String,
}

/// A listener that is handed from one server to the next.
#[derive(Debug)]
pub struct Handed {
    /// Name as returned by [`name_of`]. Empty: a service manager has opened it.
    pub name: String,
    /// The socket. It queues connections for all servers that have a copy.
    pub socket: OwnedFd,
}

/// The parts of a listener that a server keeps in order to hand it over.
#[derive(Debug)]
pub(crate) struct RetainedListener {
    handed: Handed,
    is_ours: Option<Arc<AtomicBool>>,
}

impl RetainedListener {
    pub(crate) fn copy(&self) -> io::Result<Handed> {
        let Handed { name, socket } = &self.handed;
        Ok(Handed { name: name.clone(), socket: socket.try_clone()? })
    }

    /// Sets whether the file is removed with this server's socket.
    pub(crate) fn own_file(&self, is_ours: bool) {
        if let Some(flag) = self.is_ours.as_ref().filter(|_| !self.handed.name.is_empty()) {
            flag.store(is_ours, Ordering::Release);
        }
    }
}

#[derive(Debug)]
pub(crate) enum BoundSocket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a socket. It is removed with this value, if it was created here.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    is_ours: Arc<AtomicBool>,
}

impl SocketFile {
    fn new(path: PathBuf, is_ours: bool) -> SocketFile {
        SocketFile { path, is_ours: Arc::new(AtomicBool::new(is_ours)) }
    }
}

impl AsRef<Path> for SocketFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_ours.load(Ordering::Acquire) {
            // Without the right to remove it, the file stays. The next server replaces a socket on
            // which no server listens.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Bound {
    /// Opens an entry of `listen`. At most `backlog` connections wait to be accepted. The file of a
    /// Unix socket gets the user and group in `owner`, if present.
    pub fn open(
        listener: &Listener,
        backlog: usize,
        owner: Option<(u32, u32)>,
    ) -> io::Result<Bound> {
        let socket = match &listener.place {
            Endpoint::Tcp(Listen { host, port }) => BoundSocket::Tcp(bind(host, *port, backlog)?),
            Endpoint::Unix(path) => {
                let mode = listener.mode.unwrap_or(MODE);
                let socket = bind_unix(path, mode, owner, backlog)?;
                BoundSocket::Unix(socket, SocketFile::new(path.clone(), true))
            }
        };
        Ok(Bound::new(socket, listener))
    }

    fn new(socket: BoundSocket, listener: &Listener) -> Bound {
        let Listener { protocol, role, has_proxy_header, .. } = *listener;
        Bound { socket, protocol, role, has_proxy_header, name: name_of(listener) }
    }

    /// Creates an entry of `listen` from a socket that another server has handed over. The socket
    /// file belongs to that server until [`FrontHandle::begin`](crate::FrontHandle::begin).
    pub fn take(listener: &Listener, socket: OwnedFd) -> io::Result<Bound> {
        Ok(Bound::new(recognise(socket, "handed over by the old server")?, listener))
    }

    /// Takes over a service manager's socket that another server has handed over.
    pub fn take_inherited(socket: OwnedFd) -> io::Result<Bound> {
        Ok(Bound::plain(recognise(socket, "handed over by the old server")?))
    }

    /// Copies the parts needed to hand it over later.
    pub(crate) fn keep(&self) -> io::Result<RetainedListener> {
        let (socket, is_ours) = match &self.socket {
            BoundSocket::Tcp(socket) => (socket.as_fd(), None),
            BoundSocket::Unix(socket, file) => (socket.as_fd(), Some(Arc::clone(&file.is_ours))),
        };
        let handed = Handed { name: self.name.clone(), socket: socket.try_clone_to_owned()? };
        Ok(RetainedListener { handed, is_ours })
    }

    /// Configures a service manager's socket like the entry of `listen` with the same port or path.
    /// Without such an entry it serves plain HTTP.
    #[must_use]
    pub fn like(self, listeners: &[Listener]) -> Bound {
        let is_same = |listener: &&Listener| match (&listener.place, &self.socket) {
            (Endpoint::Tcp(at), BoundSocket::Tcp(socket)) => {
                socket.local_addr().is_ok_and(|found| found.port() == at.port)
            }
            (Endpoint::Unix(path), BoundSocket::Unix(_, file)) => *path == file.path,
            _ => false,
        };
        match listeners.iter().find(is_same) {
            Some(listener) => Bound { name: self.name, ..Bound::new(self.socket, listener) },
            None => self,
        }
    }

    /// Its port. `None`: it is a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            BoundSocket::Tcp(socket) => socket.local_addr().ok().map(|at| at.port()),
            BoundSocket::Unix(..) => None,
        }
    }

    /// Whether its connections use TLS.
    pub fn is_tls(&self) -> bool {
        self.protocol == Protocol::Https
    }

    /// Whether any peer that reaches it is trusted as a proxy.
    pub fn believes_strangers(&self) -> bool {
        match &self.socket {
            BoundSocket::Tcp(socket) => {
                let is_local = socket.local_addr().is_ok_and(|at| at.ip().is_loopback());
                (self.has_proxy_header || self.protocol == Protocol::FastCgi) && !is_local
            }
            BoundSocket::Unix(..) => false,
        }
    }
}

impl From<TcpListener> for Bound {
    /// Creates a listener for plain HTTP.
    fn from(socket: TcpListener) -> Bound {
        Bound::plain(BoundSocket::Tcp(socket))
    }
}

impl Bound {
    fn plain(socket: BoundSocket) -> Bound {
        let (protocol, role, name) = (Protocol::Http, Role::Site, String::new());
        Bound { socket, protocol, role, has_proxy_header: false, name }
    }
}

/// Returns the name under which a server hands a listener to the next server.
pub fn name_of(listener: &Listener) -> String {
    match &listener.place {
        Endpoint::Tcp(at) => at.to_string(),
        Endpoint::Unix(path) => format!("unix:{}", path.display()),
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            BoundSocket::Tcp(socket) => {
                let address = socket.local_addr().map_err(|_| fmt::Error)?;
                write!(f, "{}{address}", self.protocol.scheme(false))
            }
            BoundSocket::Unix(_, file) => {
                write!(f, "{}{}", self.protocol.scheme(true), file.path.display())
            }
        }
    }
}

/// Listens on the first address of `host` that can be bound. At most `backlog` connections wait to
/// be accepted.
pub fn bind(host: &str, port: u16, backlog: usize) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match bind_one(address, backlog) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_one(address: SocketAddr, backlog: usize) -> io::Result<TcpListener> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, Some(socket2::Protocol::TCP))?;
    // Allows a restarted server to bind while the last connections of its predecessor linger.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

/// Binds a Unix socket. The socket file of a dead server is replaced, that of a running one is not.
/// No client can connect before the permissions are set, because the socket does not listen yet.
fn bind_unix(
    path: &Path,
    mode: u32,
    owner: Option<(u32, u32)>,
    backlog: usize,
) -> io::Result<UnixListener> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    if let Some((user, group)) = owner {
        std::os::unix::fs::chown(path, Some(user), Some(group))?;
    }
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(UnixListener::from(OwnedFd::from(socket)))
}

/// The kernel's limit on the number of waiting connections, if it can be read.
pub fn backlog_max() -> Option<usize> {
    std::fs::read_to_string(SOMAXCONN).ok()?.trim().parse().ok()
}

/// Returns the listeners that a service manager has opened for this process. `None`: there are
/// none.
///
/// `pid` and `count` are `$LISTEN_PID` and `$LISTEN_FDS`. Must be called once, before the process
/// opens any descriptor that it closes again.
pub fn inherited(pid: Option<&str>, count: Option<&str>) -> io::Result<Option<Vec<Bound>>> {
    let (Some(pid), Some(count)) = (pid, count) else { return Ok(None) };
    // The variables are meant for the process that has started this one.
    if pid.parse() != Ok(std::process::id()) {
        return Ok(None);
    }
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let count = match count.parse() {
        Ok(0) => return Ok(None),
        Ok(count) if count <= INHERITED_MAX => count,
        _ => {
            return wrong(format!(
                "invalid LISTEN_FDS `{count}`: not a number from 1 to {INHERITED_MAX}"
            ));
        }
    };
    let descriptors = (FIRST_INHERITED..).take(count);
    descriptors.map(take_over).collect::<io::Result<Vec<_>>>().map(Some)
}

fn take_over(fd: RawFd) -> io::Result<Bound> {
    let wrong = |error: &str| {
        let error = format!("inherited descriptor {fd} {error}");
        io::Error::new(io::ErrorKind::InvalidInput, error)
    };
    if !is_open(fd) {
        return Err(wrong("is not open"));
    }
    // SAFETY: the descriptor is open (checked above). LISTEN_PID specifies that it was opened for
    // this process, and no other code in it uses the descriptor.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    match recognise_or_leave(owned) {
        Ok(socket) => Ok(Bound::plain(socket)),
        Err((owned, error)) => {
            // Not closed, because its owner is unknown.
            std::mem::forget(owned);
            Err(error.unwrap_or_else(|| wrong(NO_LISTENER)))
        }
    }
}

const NO_LISTENER: &str = "is not a listening TCP socket or a listening Unix socket with a path";

/// Identifies a listening socket that was opened elsewhere.
fn recognise(socket: OwnedFd, origin: &str) -> io::Result<BoundSocket> {
    recognise_or_leave(socket).map_err(|(_, error)| {
        let wrong = || format!("socket {origin} {NO_LISTENER}");
        error.unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, wrong()))
    })
}

fn recognise_or_leave(owned: OwnedFd) -> Result<BoundSocket, (OwnedFd, Option<io::Error>)> {
    let socket = SockRef::from(&owned);
    let listens = socket.is_listener().unwrap_or(false);
    let is_stream = socket.r#type().is_ok_and(|kind| kind == Type::STREAM);
    let domain = socket.domain().ok();
    let is_known = matches!(domain, Some(Domain::IPV4 | Domain::IPV6 | Domain::UNIX));
    if !(listens && is_stream && is_known) {
        return Err((owned, None));
    }
    if let Err(error) = socket.set_cloexec(true) {
        return Err((owned, Some(error)));
    }
    if domain != Some(Domain::UNIX) {
        return Ok(BoundSocket::Tcp(TcpListener::from(owned)));
    }
    let socket = UnixListener::from(owned);
    let address = socket.local_addr().ok();
    let path = address.and_then(|at| at.as_pathname().map(Path::to_owned)).unwrap_or_default();
    Ok(BoundSocket::Unix(socket, SocketFile::new(path, false)))
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: only the descriptor's flags are read. A descriptor that is not open causes an error,
    // and has no other effect.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listener_accepts_and_its_port_can_be_bound_again() {
        let listener = bind("127.0.0.1", 0, 16).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = std::net::TcpStream::connect(address).expect("a connection");
        drop(listener.accept().expect("the same"));
        drop((client, listener));
        bind("127.0.0.1", address.port(), 16)
            .expect("the port, although its last connection lingers");
    }

    #[test]
    fn descriptors_for_other_processes_are_ignored() {
        let own = std::process::id().to_string();
        assert!(inherited(None, None).expect("nothing").is_none());
        assert!(inherited(Some("1"), Some("1")).expect("another's").is_none());
        assert!(inherited(Some("x"), Some("1")).expect("nobody's").is_none());
        assert!(inherited(Some(&own), Some("0")).expect("none").is_none());
        for count in ["-1", "many", "65", "18446744073709551616"] {
            assert!(inherited(Some(&own), Some(count)).is_err(), "{count}");
        }
    }

    #[test]
    fn backlog_limit_of_the_kernel_is_read() {
        assert!(backlog_max().is_some_and(|most| most > 0));
    }
}
