//! Aggregation thread → Pinba server: one packet per request that PHP ran, sent without blocking.
//!
//! UDP is unreliable, and so is this exporter: a packet that the kernel does not accept at once is
//! lost, and counted. A separate thread resolves the server's name each minute, because a resolver
//! may be slow.

use crate::finished::Model;
use crate::observation::Seen;
use crate::pinba::packet::{Sender, encode};
use crate::sink::{Fate, Sink, Tally};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time for which an address is used before the name is resolved again.
const RESOLVE_EVERY: Duration = Duration::from_mins(1);
/// Pause before a failed lookup is repeated.
const RESOLVE_AGAIN: Duration = Duration::from_secs(5);

/// Target, and identity of the sender.
#[derive(Clone, Debug)]
pub struct PinbaOutOptions {
    /// Address of the Pinba server, `host:port`.
    pub server: String,
    /// Identity that the packets contain.
    pub sender: Sender,
}

/// Sends packets.
#[derive(Debug)]
pub struct PinbaOut {
    sockets: Sockets,
    sender: Sender,
    address: Arc<Mutex<Option<SocketAddr>>>,
    tally: Arc<Tally>,
    /// Dropping it ends the resolver.
    _resolver: Option<SyncSender<()>>,
}

#[derive(Debug)]
struct Sockets {
    v4: UdpSocket,
    /// `None` if the machine has no IPv6.
    v6: Option<UdpSocket>,
}

impl Sockets {
    fn open() -> std::io::Result<Sockets> {
        let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        v4.set_nonblocking(true)?;
        let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok();
        let v6 = v6.filter(|socket| socket.set_nonblocking(true).is_ok());
        Ok(Sockets { v4, v6 })
    }

    fn send(&self, packet: &[u8], to: SocketAddr) -> bool {
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        socket.is_some_and(|socket| socket.send_to(packet, to).is_ok())
    }
}

impl PinbaOut {
    /// Opens the sockets, and starts the resolver if the server is given by name.
    pub fn start(options: PinbaOutOptions) -> std::io::Result<PinbaOut> {
        let known: Option<SocketAddr> = options.server.parse().ok();
        let address = Arc::new(Mutex::new(known));
        let resolver = match known {
            Some(_) => None,
            None => Some(start_resolver(options.server, Arc::clone(&address))?),
        };
        Ok(PinbaOut {
            sockets: Sockets::open()?,
            sender: options.sender,
            address,
            tally: Tally::new("pinba_out"),
            _resolver: resolver,
        })
    }
}

impl Sink for PinbaOut {
    fn take(&mut self, seen: &Seen) {
        let numbers = &seen.finished.numbers;
        // Pinba counts only requests that PHP ran. Other machines send their own packets.
        if numbers.worker == 0 || numbers.model == Model::Elsewhere {
            return;
        }
        let to = *self.address.lock().unwrap_or_else(PoisonError::into_inner);
        let packet = || encode(&self.sender, seen.finished, seen.route, seen.entries);
        let is_sent = to.is_some_and(|to| self.sockets.send(&packet(), to));
        self.tally.add(if is_sent { Fate::Passed } else { Fate::Lost }, 1);
    }

    fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }
}

/// Starts the resolver. It ends with the channel, after its current lookup; no thread waits for it.
fn start_resolver(
    server: String,
    address: Arc<Mutex<Option<SocketAddr>>>,
) -> std::io::Result<SyncSender<()>> {
    let (held, ended) = sync_channel(0);
    std::thread::Builder::new()
        .name("pinba-resolver".to_owned())
        .spawn(move || resolve(&server, &address, &ended))?;
    Ok(held)
}

fn resolve(server: &str, address: &Mutex<Option<SocketAddr>>, ended: &Receiver<()>) {
    loop {
        // The old address is kept while the lookup fails: most failures are temporary.
        let found = server.to_socket_addrs().ok().and_then(|mut all| all.next());
        if found.is_some() {
            *address.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
        let pause = if found.is_some() { RESOLVE_EVERY } else { RESOLVE_AGAIN };
        if ended.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}
