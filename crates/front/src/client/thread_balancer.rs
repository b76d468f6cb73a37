//! accept, for a front with several threads: one of them accepts, and each connection goes to the
//! thread with the fewest.
//!
//! This way, limits on connections are counted in one place, and a listener is one socket with one
//! queue, which can be handed over. A connection stays with its thread. The accepting thread also
//! serves connections.

use super::handler::Handler;
use super::peer_info::Ends;
use super::registry::{Connections, Registered, Seat, attributed, close_one};
use super::serve::{self, Before};
use crate::exchange::shares::Unheld;
use crate::shared::Shared;
use bytes::Bytes;
use hyper::body::Body;
use samovar_config::Role;
use std::cell::Cell;
use std::error::Error;
use std::io;
use std::net::TcpStream as PlainTcp;
use std::os::unix::net::UnixStream as PlainUnix;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A socket that is not registered with a runtime.
#[derive(Debug)]
pub(crate) enum Moved {
    Tcp(PlainTcp),
    Unix(PlainUnix),
}

/// A connection for another thread.
pub(crate) struct Newcomer {
    pub(crate) stream: Moved,
    pub(crate) ends: Ends,
    pub(crate) role: Role,
    pub(crate) before: Before,
    pub(crate) held: Option<Unheld>,
}

/// A message from the accepting thread to another one. The queue contains at most
/// `limits.connections_max` newcomers, and one call for room each time that this number is reached.
enum Word {
    Serve(Box<Newcomer>, Seat),
    /// New connections wait for room.
    MakeRoom,
}

/// All threads as seen by the accepting thread, which is the first.
#[derive(Debug)]
pub(crate) struct Mates {
    loads: Vec<Arc<AtomicUsize>>,
    others: Vec<UnboundedSender<Word>>,
    /// Number of the thread that was last asked to make room, plus one.
    asked: Cell<usize>,
}

/// Source of another thread's connections, until no more follow.
pub(crate) struct Calls(UnboundedReceiver<Word>);

/// The thread that serves a connection.
pub(crate) enum Whose {
    Own(Seat),
    Others(Ticket),
}

/// A place in another thread.
pub(crate) struct Ticket(usize, Seat);

impl Mates {
    /// Creates the view of the first of `threads` threads, and the receivers of the others.
    pub(crate) fn of(threads: usize) -> (Mates, Vec<Calls>) {
        let loads = (0..threads).map(|_| Arc::default()).collect();
        let (others, calls) = (1..threads).map(|_| unbounded_channel()).unzip::<_, _, _, Vec<_>>();
        (Mates { loads, others, asked: Cell::default() }, calls.into_iter().map(Calls).collect())
    }

    /// Number of connections of all threads.
    pub(crate) fn count(&self) -> usize {
        self.loads.iter().map(|load| load.load(Ordering::Relaxed)).sum()
    }

    /// Chooses the thread with the fewest connections. Of several, it is the last one, because the
    /// first one also accepts.
    pub(crate) fn choose(&self) -> Whose {
        let count = |load: &Arc<AtomicUsize>| load.load(Ordering::Relaxed);
        let fewest = self.loads.iter().enumerate().rev().min_by_key(|(_, load)| count(load));
        match fewest {
            Some((at @ 1.., load)) => Whose::Others(Ticket(at - 1, Seat::take(load))),
            _ => Whose::Own(Seat::take(&self.loads[0])),
        }
    }

    /// Hands a connection over. A connection whose thread has ended is closed.
    pub(crate) fn hand_over(&self, Ticket(at, seat): Ticket, newcomer: Newcomer) {
        let _ = self.others[at].send(Word::Serve(Box::new(newcomer), seat));
    }

    /// Has one of the other threads close an idle or unfinished connection. Each call selects the
    /// next thread, because it is unknown which of them have such connections.
    pub(crate) fn make_room(&self) {
        let at = self.asked.get() % self.others.len().max(1);
        self.asked.set(at + 1);
        if let Some(other) = self.others.get(at) {
            let _ = other.send(Word::MakeRoom);
        }
    }
}

/// Serves the connections that are handed over, until no more follow.
pub(crate) async fn join<H, B>(
    shared: Rc<Shared>,
    connections: Rc<Connections>,
    mut calls: Calls,
    handler: H,
) where
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    while let Some(word) = calls.0.recv().await {
        let taken = match word {
            Word::Serve(newcomer, seat) => take(&shared, &connections, *newcomer, seat, handler),
            Word::MakeRoom => {
                close_one(&shared, &connections);
                Ok(())
            }
        };
        if let Err(error) = taken
            && let Some(suppressed) = shared.common.warnings.accept.pass()
        {
            tracing::warn!(%error, suppressed, "cannot serve an accepted connection; it is closed");
        }
    }
}

fn take<H, B>(
    shared: &Rc<Shared>,
    connections: &Rc<Connections>,
    newcomer: Newcomer,
    seat: Seat,
    handler: H,
) -> io::Result<()>
where
    H: Handler<B>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let Newcomer { stream, ends, role, before, held } = newcomer;
    let held = held.map(|place| shared.connection_shares.go_on(&place));
    let client = attributed(shared, ends.peer).filter(|_| !before.is_fastcgi);
    let registered = Registered::new(shared, connections, role, client, (held, Some(seat)));
    match stream {
        Moved::Tcp(stream) => {
            let stream = TcpStream::from_std(stream)?;
            tokio::task::spawn_local(serve::serve(registered, stream, ends, before, handler));
        }
        Moved::Unix(stream) => {
            let stream = UnixStream::from_std(stream)?;
            tokio::task::spawn_local(serve::serve(registered, stream, ends, before, handler));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_connection_goes_to_thread_with_fewest() {
        let (mates, calls) = Mates::of(3);
        assert_eq!(calls.len(), 2);
        let mut seats = Vec::new();
        let mut order = Vec::new();
        for _ in 0..6 {
            let (at, seat) = match mates.choose() {
                Whose::Own(seat) => (0, seat),
                Whose::Others(Ticket(at, seat)) => (at + 1, seat),
            };
            order.push(at);
            seats.push(seat);
        }
        assert_eq!((order, mates.count()), (vec![2, 1, 0, 2, 1, 0], 6));
        // A connection of the second thread ends.
        drop(seats.remove(1));
        assert!(matches!(mates.choose(), Whose::Others(Ticket(0, _))));
        drop(seats);
        assert_eq!(mates.count(), 0);
    }
}
