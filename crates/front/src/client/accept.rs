//! accept: listeners → connection tasks. The cap on connections lives here.
//!
//! At the cap, where somebody waits to be let in, and when descriptors run out before it, the connection that has been idle for
//! longest is closed to make room; while there is none nothing is accepted, the kernel's backlog holds the newcomers, and
//! whoever leaves lets the next one in.

use super::ends::Ends;
use super::handler::Handler;
use super::mates::{Mates, Moved, Newcomer, Whose};
use super::registry::{Connections, Registered, close_idle, hold_place};
use super::serve::{self, Before};
use super::socket::Socket;
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

/// How long accepting pauses when the process has no memory left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// How often a full front looks for idle connections.
const FULL_PAUSE: Duration = Duration::from_millis(200);
/// How often it looks whether anybody waits.
const WAITING_LOOK: Duration = Duration::from_millis(25);

/// A socket of the runtime that queues connections.
pub(crate) trait Listening: 'static {
    /// What comes of it.
    type Stream: Socket;

    fn socket(&self) -> BorrowedFd<'_>;

    /// Whether a connection could be accepted at once. It stays where it is: whoever follows this server gets it, too.
    fn has_waiting(&self) -> bool {
        let socket = self.socket();
        let mut look = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        poll(&mut look, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// The next connection, and who is at its ends.
    async fn next(&self) -> io::Result<(Self::Stream, Ends)>;

    /// A connection that another thread is to serve.
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

/// And the path of its file.
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

/// What the connections of a listener are for, and what comes before their first request.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) role: Role,
    pub(crate) has_proxy_header: bool,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Web servers speak FastCGI there.
    pub(crate) is_fastcgi: bool,
}

impl Terms {
    fn before(&self) -> Before {
        let tls = self.tls.as_ref().map(|tls| tls.session());
        Before { has_proxy_header: self.has_proxy_header, tls, is_fastcgi: self.is_fastcgi }
    }
}

/// Who serves what is accepted.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// The connections of this thread.
    pub(crate) connections: Rc<Connections>,
    /// With the other ones of the front, if there are any.
    pub(crate) mates: Option<Rc<Mates>>,
}

impl Servers {
    fn count(&self) -> usize {
        self.mates.as_ref().map_or_else(|| self.connections.count(), |mates| mates.count())
    }
}

/// Accepts until the task is aborted; `handler` answers what is asked.
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
                    "the limit of connections is reached; new ones wait (hint: raise \
                     `connections_max`, or lower the idle time-out)"
                );
            }
            make_room(&shared, &servers).await;
        }
        match listener.next().await {
            Ok((stream, ends)) => {
                // A proxy is to say first whose connection it is, a web server whose request.
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
                        mates.hand_over(ticket, Newcomer { stream, ends, role, before, held });
                        continue;
                    }
                };
                // Registered here, so that the next round of this loop counts it.
                let connections = &servers.connections;
                let registered = Registered::new(&shared, connections, terms.role, (held, seat));
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

/// Has the connection closed that has been idle for longest; waits until one has ended, but not for long.
async fn make_room(shared: &Shared, servers: &Servers) {
    let is_made = close_idle(shared, &servers.connections);
    if let Some(mates) = servers.mates.as_ref().filter(|_| !is_made) {
        mates.make_room();
    }
    wait_for_room(servers, FULL_PAUSE).await;
}

/// Until a connection has ended, but not for long.
async fn wait_for_room(servers: &Servers, long: Duration) {
    let _ = tokio::time::timeout(long, servers.connections.room.notified()).await;
}

/// The client went away before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
