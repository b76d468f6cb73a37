//! listen: addresses → sockets that queue connections, before anything is accepted. Or sockets that a service manager
//! has opened: these go on queueing while the server is away. What is spoken there, and what for, goes with each
//! ([`Bound`]).
#![allow(unsafe_code)] // A descriptor that was inherited is taken over; the block says why it is sound.

use samovar_config::{Listen, Listener, Place, Protocol, Role};
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

/// The first descriptor that a service manager hands over (`sd_listen_fds`).
const FIRST_INHERITED: RawFd = 3;
/// Most that are looked at.
const INHERITED_MAX: usize = 64;
/// The kernel's own limit on what [`bind`] is told.
const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
/// Who may connect to a socket in the file system, where nobody says: its owner and group.
const MODE: u32 = 0o660;

/// A socket that queues connections, and what is spoken there.
#[derive(Debug)]
pub struct Bound {
    pub(crate) socket: BoundSocket,
    pub(crate) protocol: Protocol,
    pub(crate) role: Role,
    pub(crate) has_proxy_header: bool,
    /// By which a successor of this server knows it again: what `listen` says, without what is spoken there. Empty: a
    /// service manager's.
    pub(crate) name: String,
}

/// A listener on its way from one server to the next.
#[derive(Debug)]
pub struct Handed {
    /// As [`name_of`] says; empty: a service manager has opened it.
    pub name: String,
    /// It queues connections, whoever accepts them.
    pub socket: OwnedFd,
}

/// What a server keeps of a listener to hand it over.
#[derive(Debug)]
pub(crate) struct Kept {
    handed: Handed,
    is_ours: Option<Arc<AtomicBool>>,
}

impl Kept {
    pub(crate) fn copy(&self) -> io::Result<Handed> {
        let Handed { name, socket } = &self.handed;
        Ok(Handed { name: name.clone(), socket: socket.try_clone()? })
    }

    /// Whether its file goes with this server's socket.
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

/// The file of a socket. It goes with this, if it was made here.
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
            // A user who may not remove it leaves it: who comes next replaces what nobody answers at.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Bound {
    /// Opens an entry of `listen`, with room for `backlog` connections that wait to be accepted. The file of a socket
    /// is given to `owner`, a user and a group, if there is one.
    pub fn open(
        listener: &Listener,
        backlog: usize,
        owner: Option<(u32, u32)>,
    ) -> io::Result<Bound> {
        let socket = match &listener.place {
            Place::Tcp(Listen { host, port }) => BoundSocket::Tcp(bind(host, *port, backlog)?),
            Place::Unix(path) => {
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

    /// An entry of `listen` whose socket another server has handed over. Its file stays that server's until
    /// [`FrontHandle::begin`](crate::FrontHandle::begin).
    pub fn take(listener: &Listener, socket: OwnedFd) -> io::Result<Bound> {
        Ok(Bound::new(recognise(socket, "that was handed over")?, listener))
    }

    /// A service manager's socket that another server has handed over.
    pub fn take_inherited(socket: OwnedFd) -> io::Result<Bound> {
        Ok(Bound::plain(recognise(socket, "that was handed over")?))
    }

    /// What is needed to hand it over later.
    pub(crate) fn keep(&self) -> io::Result<Kept> {
        let (socket, is_ours) = match &self.socket {
            BoundSocket::Tcp(socket) => (socket.as_fd(), None),
            BoundSocket::Unix(socket, file) => (socket.as_fd(), Some(Arc::clone(&file.is_ours))),
        };
        let handed = Handed { name: self.name.clone(), socket: socket.try_clone_to_owned()? };
        Ok(Kept { handed, is_ours })
    }

    /// A socket of a service manager, which is what the entry of `listen` with its port or path says, else plain HTTP.
    #[must_use]
    pub fn like(self, listeners: &[Listener]) -> Bound {
        let is_same = |listener: &&Listener| match (&listener.place, &self.socket) {
            (Place::Tcp(at), BoundSocket::Tcp(socket)) => {
                socket.local_addr().is_ok_and(|found| found.port() == at.port)
            }
            (Place::Unix(path), BoundSocket::Unix(_, file)) => *path == file.path,
            _ => false,
        };
        match listeners.iter().find(is_same) {
            Some(listener) => Bound { name: self.name, ..Bound::new(self.socket, listener) },
            None => self,
        }
    }

    /// Its port; `None`: it is a socket in the file system.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            BoundSocket::Tcp(socket) => socket.local_addr().ok().map(|at| at.port()),
            BoundSocket::Unix(..) => None,
        }
    }

    /// Whether TLS is spoken there.
    pub fn is_tls(&self) -> bool {
        self.protocol == Protocol::Https
    }

    /// Whether anybody who reaches it is believed to be a proxy.
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
    /// Plain HTTP.
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

/// What one server calls a listener when it hands it to the next.
pub fn name_of(listener: &Listener) -> String {
    match &listener.place {
        Place::Tcp(at) => at.to_string(),
        Place::Unix(path) => format!("unix:{}", path.display()),
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

/// Listens on the first address of `host` that can be had, with room for `backlog` connections that wait to be accepted.
pub fn bind(host: &str, port: u16, backlog: usize) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
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
    // A server that is started again does not wait for the last connections of its predecessor.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

/// A socket that a dead server has left is replaced, a living server's is not. Nobody can connect before its rights are
/// set: it does not listen yet.
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

/// How many waiting connections the kernel allows at most, if it says so.
pub fn backlog_max() -> Option<usize> {
    std::fs::read_to_string(SOMAXCONN).ok()?.trim().parse().ok()
}

/// The listeners that a service manager has opened for this process; `None`: there are none.
///
/// `pid` and `count` are `$LISTEN_PID` and `$LISTEN_FDS`. Call it once, before the process opens anything that it closes again.
pub fn inherited(pid: Option<&str>, count: Option<&str>) -> io::Result<Option<Vec<Bound>>> {
    let (Some(pid), Some(count)) = (pid, count) else { return Ok(None) };
    // Meant for a process that has started this one.
    if pid.parse() != Ok(std::process::id()) {
        return Ok(None);
    }
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let count = match count.parse() {
        Ok(0) => return Ok(None),
        Ok(count) if count <= INHERITED_MAX => count,
        _ => return wrong(format!("LISTEN_FDS={count} is no number from 1 to {INHERITED_MAX}")),
    };
    let descriptors = (FIRST_INHERITED..).take(count);
    descriptors.map(take_over).collect::<io::Result<Vec<_>>>().map(Some)
}

fn take_over(fd: RawFd) -> io::Result<Bound> {
    let wrong = |what: &str| {
        let what = format!("the inherited descriptor {fd} {what}");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    };
    if !is_open(fd) {
        return Err(wrong("is not open"));
    }
    // SAFETY: open (just asked); LISTEN_PID says that it was opened for this process, which nobody else here knows of.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    match recognise_or_leave(owned) {
        Ok(socket) => Ok(Bound::plain(socket)),
        Err((owned, error)) => {
            // Not closed: whose it is instead, nobody knows.
            std::mem::forget(owned);
            Err(error.unwrap_or_else(|| wrong(NO_LISTENER)))
        }
    }
}

const NO_LISTENER: &str = "is no listening TCP socket, nor one in the file system";

/// A listening socket, whoever has opened it.
fn recognise(socket: OwnedFd, what: &str) -> io::Result<BoundSocket> {
    recognise_or_leave(socket).map_err(|(_, error)| {
        let wrong = || format!("the descriptor {what} {NO_LISTENER}");
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
    // SAFETY: only asked for its flags; a descriptor that is not open is an error, nothing else.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_accepts_and_its_port_can_be_had_again() {
        let listener = bind("127.0.0.1", 0, 16).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = std::net::TcpStream::connect(address).expect("a connection");
        drop(listener.accept().expect("the same"));
        drop((client, listener));
        bind("127.0.0.1", address.port(), 16)
            .expect("the port, although its last connection lingers");
    }

    #[test]
    fn what_is_not_meant_for_this_process_is_left_alone() {
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
    fn the_kernel_says_its_limit() {
        assert!(backlog_max().is_some_and(|most| most > 0));
    }
}
