//! accept: listeners → connection tasks. The cap on connections lives here.
//!
//! At the cap nothing is accepted: the kernel's backlog holds the newcomers, idle keep-alive connections are
//! closed to make room, and whoever leaves lets the next one in.

use crate::connection::{self, Registered};
use crate::shared::Shared;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long accepting pauses when the process has no descriptors or memory left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// Connections idle for this long may be closed to make room for new ones.
const RECLAIM_IDLE_MS: u64 = 1_000;
/// How often a full front looks for idle connections.
const FULL_PAUSE: Duration = Duration::from_millis(200);

/// Accepts until the task is aborted.
pub(crate) async fn accept(shared: Rc<Shared>, listener: TcpListener) {
    loop {
        while is_full(&shared) {
            make_room(&shared).await;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Registered here, so that the next round of this loop counts it.
                let registered = Registered::new(&shared, &stream, peer);
                tokio::task::spawn_local(connection::serve(registered, stream));
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                if let Some(suppressed) = shared.warnings.accept.pass() {
                    tracing::warn!(
                        %error,
                        suppressed,
                        "cannot accept connections (hint: raise the limit of open files, `ulimit -n`)"
                    );
                }
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

fn is_full(shared: &Shared) -> bool {
    shared.connections.borrow().len() >= shared.setup().options.limits.connections_max
}

async fn make_room(shared: &Shared) {
    if let Some(suppressed) = shared.warnings.connections.pass() {
        tracing::warn!(
            connections_max = shared.setup().options.limits.connections_max,
            suppressed,
            "the limit of connections is reached; new ones wait (hint: raise `connections_max`, or \
             lower the idle time-out)"
        );
    }
    let now_ms = shared.now_ms.get();
    if let Some(idle) =
        shared.connections.borrow().iter().find(|c| c.is_idle_for(RECLAIM_IDLE_MS, now_ms))
    {
        idle.finish();
    }
    let _ = tokio::time::timeout(FULL_PAUSE, shared.room.notified()).await;
}

/// The client went away before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
