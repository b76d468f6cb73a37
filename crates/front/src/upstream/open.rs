//! submit: opens one connection to a php-fpm server: by its socket, its address, or the addresses
//! of its name.
//!
//! The addresses of a name are used in turn (round robin). Addresses that failed to accept a
//! connection recently come last. If an address does not accept, the next one is tried.

use super::endpoints::{Lead, Places};
use super::names::Names;
use crate::runtime::upstream_failure::UpstreamFailure;
use samovar_config::Upstream;
use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout_at};

/// Delay before a new attempt to connect to a socket whose queue is full. The kernel does not
/// report when there is room.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// A connection below the FastCGI layer.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Debug {}

impl Wire for TcpStream {}
impl Wire for UnixStream {}

pub(super) type AnyWire = Box<dyn Wire>;

/// Reason why there is no connection, and the system's error.
#[derive(Debug)]
pub(super) struct Failed(pub(super) UpstreamFailure, pub(super) Option<io::Error>);

/// Opens a connection; for a name, also returns the address used. `whole` is the time available for
/// all addresses, until `deadline`.
pub(super) async fn open(
    upstream: &Upstream,
    places: &Places,
    names: &Rc<Names>,
    whole: Duration,
    deadline: Instant,
) -> Result<(AnyWire, Option<Lead>), Failed> {
    match upstream {
        Upstream::Tcp(address) => in_time(open_tcp(*address), deadline).await.map(|w| (w, None)),
        Upstream::Unix(path) => in_time(open_unix(path), deadline).await.map(|w| (w, None)),
        Upstream::Name(name, port) => {
            let addresses = timeout_at(deadline, names.addresses(name, *port)).await;
            let addresses = addresses.map_err(|_| Failed(UpstreamFailure::Unaccepted, None))?;
            let mut addresses =
                addresses.map_err(|e| Failed(UpstreamFailure::Unresolved, Some(e)))?;
            places.put_down_last(&mut addresses, Instant::now().into_std());
            // An address that does not respond leaves time for the others.
            let each = whole / u32::try_from(addresses.len()).unwrap_or(1).max(1);
            open_one(&addresses, places, each, deadline).await
        }
    }
}

/// Tries the addresses one after another.
async fn open_one(
    addresses: &[SocketAddr],
    places: &Places,
    each: Duration,
    deadline: Instant,
) -> Result<(AnyWire, Option<Lead>), Failed> {
    let mut last = Failed(UpstreamFailure::Unaccepted, None);
    for at in addresses {
        let now = Instant::now();
        if now >= deadline {
            break;
        }
        let lead = places.address(*at);
        lead.to.down.is_tried(now.into_std());
        match in_time(open_tcp(*at), deadline.min(now + each)).await {
            Ok(wire) => {
                lead.to.down.was_reached();
                return Ok((wire, Some(lead)));
            }
            Err(Failed(trouble, error)) => {
                let words = error.as_ref().map(ToString::to_string);
                lead.to.is_away(trouble, words.as_deref());
                last = Failed(trouble, Some(named(*at, error)));
            }
        }
    }
    Err(last)
}

/// Adds the address to the error of a connection attempt, because a name may have several.
fn named(at: SocketAddr, error: Option<io::Error>) -> io::Error {
    let error = error.unwrap_or_else(|| io::ErrorKind::TimedOut.into());
    io::Error::new(error.kind(), format!("{at}: {error}"))
}

async fn in_time(
    opening: impl Future<Output = io::Result<AnyWire>>,
    until: Instant,
) -> Result<AnyWire, Failed> {
    let opened =
        timeout_at(until, opening).await.map_err(|_| Failed(UpstreamFailure::Unaccepted, None))?;
    opened.map_err(|error| {
        // The kernel's timeout may be shorter.
        let is_silent = error.kind() == io::ErrorKind::TimedOut;
        let trouble =
            if is_silent { UpstreamFailure::Unaccepted } else { UpstreamFailure::Unreachable };
        Failed(trouble, Some(error))
    })
}

async fn open_tcp(address: SocketAddr) -> io::Result<AnyWire> {
    let stream = TcpStream::connect(address).await?;
    // A request is written in a few pieces, and each must be sent immediately.
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

async fn open_unix(path: &Path) -> io::Result<AnyWire> {
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(AGAIN_AFTER).await,
            Err(error) => return Err(error),
        }
    }
}
