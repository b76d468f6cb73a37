//! accept: listeners → connection tasks. Enforces the limit on connections.
//!
//! If a client waits at the limit, or if descriptors run out before it, the connection that has
//! been idle longest is closed to make room, or one with an unfinished request. While there is
//! neither, no connection is accepted: new ones wait in the kernel's backlog, and each connection
//! that ends lets in the next one.

use super::handler::Handler;
use super::peer_info::Ends;
use super::registry::{Connections, Registered, attributed, close_one, hold_place};
use super::serve::{self, Before};
use super::socket::Socket;
use super::thread_balancer::{Mates, Moved, Newcomer, Whose};
use crate::exchange::shares::Held;
use crate::runtime::disk;
use crate::shared::Shared;
use crate::tls::Tls;
use bytes::Bytes;
use hyper::body::Body;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use samovar_config::Role;
use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Pause of accepting when the process is out of memory.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which a full front looks for idle connections.
const FULL_PAUSE: Duration = Duration::from_millis(200);
/// Interval at which a full front checks whether a client waits.
const WAITING_LOOK: Duration = Duration::from_millis(25);

/// A listening socket of the runtime.
pub(crate) trait Listening: 'static {
    /// Type of an accepted connection.
    type Stream: Socket;

    fn socket(&self) -> BorrowedFd<'_>;

    /// Whether a connection could be accepted immediately. It stays in the queue, where a successor
    /// of this server can also accept it.
    fn has_waiting(&self) -> bool {
        let socket = self.socket();
        let mut look = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        poll(&mut look, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Accepts the next connection. Also returns its ends.
    async fn next(&self) -> io::Result<(Self::Stream, Ends)>;

    /// Converts a connection for another thread.
    fn part_with(stream: Self::Stream) -> io::Result<Moved>;
}

impl Listening for TcpListener {
    type Stream = TcpStream;

    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    async fn next(&self) -> io::Result<(TcpStream, Ends)> {
        let (stream, peer) = self.accept().await?;
        let _ = stream.set_nodelay(true);
        let ends = Ends::tcp(peer, stream.local_addr().ok());
        Ok((stream, ends))
    }

    fn part_with(stream: TcpStream) -> io::Result<Moved> {
        stream.into_std().map(Moved::Tcp)
    }
}

/// A listener with the path of its socket file.
impl<P: AsRef<Path> + 'static> Listening for (UnixListener, P) {
    type Stream = UnixStream;

    fn socket(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    async fn next(&self) -> io::Result<(UnixStream, Ends)> {
        let (stream, _) = self.0.accept().await?;
        Ok((stream, Ends::unix(self.1.as_ref())))
    }

    fn part_with(stream: UnixStream) -> io::Result<Moved> {
        stream.into_std().map(Moved::Unix)
    }
}

/// Purpose of a listener's connections, and the steps before their first request.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) role: Role,
    pub(crate) has_proxy_header: bool,
    pub(crate) tls: Option<Arc<Tls>>,
    /// The clients are web servers that speak FastCGI.
    pub(crate) is_fastcgi: bool,
}

impl Terms {
    fn before(&self) -> Before {
        let tls = self.tls.as_ref().map(|tls| tls.session());
        Before { has_proxy_header: self.has_proxy_header, tls, is_fastcgi: self.is_fastcgi }
    }
}

/// The threads that serve accepted connections.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// Connections of this thread.
    pub(crate) connections: Rc<Connections>,
    /// All threads of the front, if there are several.
    pub(crate) mates: Option<Rc<Mates>>,
}

impl Servers {
    fn count(&self) -> usize {
        self.mates.as_ref().map_or_else(|| self.connections.count(), |mates| mates.count())
    }
}

/// Accepts connections until the task is aborted. `handler` answers their requests.
pub(crate) async fn accept<L, H, B>(
    shared: Rc<Shared>,
    servers: Servers,
    listener: L,
    terms: Terms,
    handler: H,
) where
    L: Listening,
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    loop {
        while is_full(&shared, &servers) {
            if !listener.has_waiting() {
                wait_for_room(&servers, WAITING_LOOK).await;
                continue;
            }
            if let Some(suppressed) = shared.common.warnings.connections.pass() {
                tracing::warn!(
                    connections_max = shared.setup().settings.limits.connections_max,
                    suppressed,
                    "connection limit reached; new connections wait (hint: raise \
                     `connections_max`, or lower `timeouts.idle`)"
                );
            }
            make_room(&shared, &servers).await;
        }
        match listener.next().await {
            Ok((stream, ends)) => {
                // The client is not known yet: a proxy or a web server first has to send its
                // address.
                let is_proxied = terms.has_proxy_header || terms.is_fastcgi;
                let client = ends.peer.filter(|_| !is_proxied);
                let Ok(held) = hold_place(&shared, client) else { continue };
                let seat = match servers.mates.as_ref().map(|mates| (mates, mates.choose())) {
                    None => None,
                    Some((_, Whose::Own(seat))) => Some(seat),
                    Some((mates, Whose::Others(ticket))) => {
                        let Ok(stream) = L::part_with(stream) else { continue };
                        let held = held.map(Held::let_go);
                        let (role, before) = (terms.role, terms.before());
                        let newcomer = Newcomer { stream, ends, role, before, held };
                        mates.hand_over(ticket, newcomer);
                        continue;
                    }
                };
                // Registered here, so that the next iteration of this loop counts it.
                let connections = &servers.connections;
                let client = attributed(&shared, ends.peer).filter(|_| !terms.is_fastcgi);
                let places = (held, seat);
                let registered = Registered::new(&shared, connections, terms.role, client, places);
                let serving = serve::serve(registered, stream, ends, terms.before(), handler);
                tokio::task::spawn_local(serving);
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                if let Some(suppressed) = shared.common.warnings.accept.pass() {
                    tracing::warn!(
                        %error,
                        suppressed,
                        "cannot accept connections (hint: raise the limit of open files: \
                         `ulimit -Hn`, or LimitNOFILE= in the unit)"
                    );
                }
                if disk::is_out_of_descriptors(&error) {
                    make_room(&shared, &servers).await;
                } else {
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
    }
}

fn is_full(shared: &Shared, servers: &Servers) -> bool {
    servers.count() >= shared.setup().settings.limits.connections_max
}

/// Closes an idle or unfinished connection, then waits a short time for a connection to end.
async fn make_room(shared: &Shared, servers: &Servers) {
    let is_made = close_one(shared, &servers.connections);
    if let Some(mates) = servers.mates.as_ref().filter(|_| !is_made) {
        mates.make_room();
    }
    wait_for_room(servers, FULL_PAUSE).await;
}

/// Waits until a connection has ended, at most for `long`.
async fn wait_for_room(servers: &Servers, long: Duration) {
    let _ = tokio::time::timeout(long, servers.connections.room.notified()).await;
}

/// The client disconnected before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
