//! submit: makes one connection to a php-fpm: by its socket, by its address, or by those that its name stands for.
//!
//! Of several addresses each is the first in turn, but for those that took no connection a short while ago; the others are tried if it takes
//! none.

use super::names::Names;
use super::places::{Lead, Places};
use crate::runtime::trouble::Trouble;
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

/// How long to wait before a socket whose queue is full is asked again: the kernel says nothing when there is room.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// A connection, below FastCGI.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Debug {}

impl Wire for TcpStream {}
impl Wire for UnixStream {}

pub(super) type AnyWire = Box<dyn Wire>;

/// Where there is no connection: why, and what the system said.
#[derive(Debug)]
pub(super) struct Failed(pub(super) Trouble, pub(super) Option<io::Error>);

/// A connection, and to which of a name's addresses. `whole`: the time that there is for all of them, until `deadline`.
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
            let addresses = addresses.map_err(|_| Failed(Trouble::Unaccepted, None))?;
            let mut addresses = addresses.map_err(|e| Failed(Trouble::Unresolved, Some(e)))?;
            places.put_down_last(&mut addresses, Instant::now().into_std());
            // One that says nothing leaves time for the others.
            let each = whole / u32::try_from(addresses.len()).unwrap_or(1).max(1);
            open_one(&addresses, places, each, deadline).await
        }
    }
}

/// Tries one after the other.
async fn open_one(
    addresses: &[SocketAddr],
    places: &Places,
    each: Duration,
    deadline: Instant,
) -> Result<(AnyWire, Option<Lead>), Failed> {
    let mut last = Failed(Trouble::Unaccepted, None);
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

/// Whoever is told of a name's failure is told which address it was.
fn named(at: SocketAddr, error: Option<io::Error>) -> io::Error {
    let error = error.unwrap_or_else(|| io::ErrorKind::TimedOut.into());
    io::Error::new(error.kind(), format!("{at}: {error}"))
}

async fn in_time(
    opening: impl Future<Output = io::Result<AnyWire>>,
    until: Instant,
) -> Result<AnyWire, Failed> {
    let opened = timeout_at(until, opening).await.map_err(|_| Failed(Trouble::Unaccepted, None))?;
    opened.map_err(|error| {
        // The kernel may have less patience.
        let is_silent = error.kind() == io::ErrorKind::TimedOut;
        let trouble = if is_silent { Trouble::Unaccepted } else { Trouble::Unreachable };
        Failed(trouble, Some(error))
    })
}

async fn open_tcp(address: SocketAddr) -> io::Result<AnyWire> {
    let stream = TcpStream::connect(address).await?;
    // A request is written in few pieces, each of which has to go out.
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
