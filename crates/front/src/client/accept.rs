//! accept: listeners → connection tasks. The cap on connections lives here.
//!
//! At the cap, and when descriptors run out before it, the connection that has been idle for longest is closed to make
//! room; while there is none nothing is accepted, the kernel's backlog holds the newcomers, and whoever leaves lets the
//! next one in.

use super::ends::Ends;
use super::handler::Handler;
use super::registry::{Connections, Registered, hold_place};
use super::serve::{self, Before};
use super::socket::Socket;
use crate::runtime::disk;
use crate::shared::Shared;
use crate::tls::Tls;
use bytes::Bytes;
use hyper::body::Body;
use samovar_config::Role;
use std::error::Error;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// How long accepting pauses when the process has no memory left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// Connections idle for this long may be closed to make room for new ones: others may be about to ask again.
const RECLAIM_IDLE_MS: u64 = 1_000;
/// How often a full front looks for idle connections.
const FULL_PAUSE: Duration = Duration::from_millis(200);

/// A socket of the runtime that queues connections.
pub(crate) trait Listening: 'static {
    /// What comes of it.
    type Stream: Socket;

    /// The next connection, and who is at its ends.
    async fn next(&self) -> io::Result<(Self::Stream, Ends)>;
}

impl Listening for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Ends)> {
        let (stream, peer) = self.accept().await?;
        let _ = stream.set_nodelay(true);
        let ends = Ends::tcp(peer, stream.local_addr().ok());
        Ok((stream, ends))
    }
}

/// And the path of its file.
impl<P: AsRef<Path> + 'static> Listening for (UnixListener, P) {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Ends)> {
        let (stream, _) = self.0.accept().await?;
        Ok((stream, Ends::unix(self.1.as_ref())))
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

/// Accepts until the task is aborted; `handler` answers what is asked.
pub(crate) async fn accept<L, H, B>(
    shared: Rc<Shared>,
    connections: Rc<Connections>,
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
        while is_full(&shared, &connections) {
            if let Some(suppressed) = shared.warnings.connections.pass() {
                tracing::warn!(
                    connections_max = shared.setup().settings.limits.connections_max,
                    suppressed,
                    "the limit of connections is reached; new ones wait (hint: raise \
                     `connections_max`, or lower the idle time-out)"
                );
            }
            make_room(&shared, &connections).await;
        }
        match listener.next().await {
            Ok((stream, ends)) => {
                // A proxy is to say first whose connection it is, a web server whose request.
                let is_proxied = terms.has_proxy_header || terms.is_fastcgi;
                let client = ends.peer.filter(|_| !is_proxied);
                let Ok(held) = hold_place(&shared, client) else { continue };
                // Registered here, so that the next round of this loop counts it.
                let registered = Registered::new(&shared, &connections, terms.role, held);
                let serving = serve::serve(registered, stream, ends, terms.before(), handler);
                tokio::task::spawn_local(serving);
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                if let Some(suppressed) = shared.warnings.accept.pass() {
                    tracing::warn!(
                        %error,
                        suppressed,
                        "cannot accept connections (hint: raise the limit of open files: \
                         `ulimit -Hn`, or LimitNOFILE= in the unit)"
                    );
                }
                if disk::is_out_of_descriptors(&error) {
                    make_room(&shared, &connections).await;
                } else {
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
    }
}

fn is_full(shared: &Shared, connections: &Connections) -> bool {
    connections.count() >= shared.setup().settings.limits.connections_max
}

/// Has the connection closed that has been idle for longest; waits until one has ended, but not for long.
async fn make_room(shared: &Shared, connections: &Connections) {
    let idle = connections.idlest(RECLAIM_IDLE_MS, shared.clock.now_ms());
    if let Some(idle) = idle {
        idle.finish();
    }
    let _ = tokio::time::timeout(FULL_PAUSE, connections.room.notified()).await;
}

/// The client went away before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
