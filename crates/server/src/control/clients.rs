//! Clients of the control socket: several at once, on one thread, each with a timeout.
//!
//! The thread never blocks on a client: partial requests and unsent responses are kept while it
//! serves others.

use super::server::{Line, Reply, Server};
use super::socket::Socket;
use super::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use samovar_supervisor::peer::Peer;
use samovar_wire::ReloadResponse;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

/// Maximum bytes of a request line; a reload's line may contain a target.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// Timeout for a client to send its request, and again to receive its response.
const CLIENT_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for the supervisors' publications. A status is older than its question only if a
/// supervisor is blocked for this long.
const PUBLICATION_LIMIT: Duration = Duration::from_millis(500);
/// Maximum number of clients; beyond it, the oldest one without a complete request is disconnected.
const CLIENTS_MAX: usize = 32;
/// Pause after a failed accept (for example, too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the thread checks whether the front has switched after a reload.
const SWITCH_LOOK: Duration = Duration::from_millis(5);

enum State {
    /// Bytes of the request line so far.
    Asking(Vec<u8>),
    /// Receives the status after the supervisors have published their states.
    Refreshing(Receiver<()>),
    /// Its reload is running.
    Waiting(Receiver<ReloadResponse>),
    /// Its request is being processed by another thread, which may need the guard.
    Expecting { told: Receiver<Line>, _guard: Option<Arc<()>> },
    /// The new generation serves; the front has not taken over its options yet.
    Switching(ReloadResponse),
    /// The unsent rest of the response, and a channel end that is dropped when the response is
    /// sent.
    Responding { rest: Vec<u8>, _until: Option<SyncSender<()>> },
}

struct Client {
    stream: UnixStream,
    state: State,
    since: Instant,
}

/// Allows or forbids new clients: another server may serve the same socket. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    is_open: Arc<AtomicBool>,
    waker: Waker,
}

impl Door {
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Allows new clients, or refuses them. A client that receives its response after the door was
    /// closed cannot reach this server with its next connection.
    pub(crate) fn open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
        self.waker.wake();
    }
}

/// Starts serving clients, for the rest of the process's life, once the door is opened. All threads
/// are started here, so that later work needs no new thread.
pub(crate) fn start(socket: &Socket, server: Server) -> io::Result<Door> {
    let waker = server.waker.clone();
    let door = Door { is_open: Arc::default(), waker: waker.clone() };
    let clients = Clients::new(socket.listener.try_clone()?, server, waker, door.clone())?;
    std::thread::Builder::new().name("control".into()).spawn(move || clients.serve())?;
    Ok(door)
}

struct Clients {
    listener: UnixListener,
    server: Server,
    waker: Waker,
    door: Door,
    /// Clients, oldest first.
    all: Vec<Client>,
    paused_until: Option<Instant>,
}

impl Clients {
    fn new(
        listener: UnixListener,
        server: Server,
        waker: Waker,
        door: Door,
    ) -> io::Result<Clients> {
        listener.set_nonblocking(true)?;
        Ok(Clients { listener, server, waker, door, all: Vec::new(), paused_until: None })
    }

    /// Serves clients for the rest of the process's life.
    fn serve(mut self) {
        loop {
            let (can_accept, ready) = self.wait();
            let server = &self.server;
            let mut ready = ready.into_iter();
            self.all.retain_mut(|client| {
                let is_ready = ready.next().unwrap_or(false);
                // A client that disconnected or timed out is removed without a message.
                client.turn(server, is_ready).unwrap_or(false)
            });
            // Accepting comes last. A client that has just received the response about a new server
            // must reach that server with its next connection.
            if can_accept && self.door.is_open() {
                self.accept();
            }
        }
    }

    /// Returns whether a connection is waiting, and which of the clients are ready.
    fn wait(&mut self) -> (bool, Vec<bool>) {
        let now = Instant::now();
        self.paused_until = self.paused_until.filter(|until| *until > now);
        let times = self.all.iter().filter_map(Client::deadline).chain(self.paused_until);
        let limit = times.min().map(|at| at.saturating_duration_since(now));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let is_open = self.door.is_open() && self.paused_until.is_none() && self.can_make_room();
        let listens = if is_open { PollFlags::IN } else { PollFlags::empty() };
        let mut polled =
            vec![PollFd::new(&*self.waker.0, PollFlags::IN), PollFd::new(&self.listener, listens)];
        let of_clients = self.all.iter().filter_map(|client| {
            client.interest().map(|events| PollFd::new(&client.stream, events))
        });
        polled.extend(of_clients);
        // After an interruption no client is ready; the caller loops.
        let is_ready = poll(&mut polled, limit.as_ref()).is_ok_and(|n| n > 0);
        let mut ready = polled.iter().map(|fd| is_ready && !fd.revents().is_empty());
        if ready.next() == Some(true) {
            // Reading does not block; one read resets the counter.
            let _ = rustix::io::read(&*self.waker.0, &mut [0; 8]);
        }
        let can_accept = ready.next() == Some(true);
        let of_client = |client: &Client| client.interest().is_some() && ready.next() == Some(true);
        (can_accept, self.all.iter().map(of_client).collect())
    }

    fn accept(&mut self) {
        match self.listener.accept() {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                self.make_room();
                if self.all.len() < CLIENTS_MAX {
                    let state = State::Asking(Vec::new());
                    self.all.push(Client { stream, state, since: Instant::now() });
                }
            }
            Ok(_) => {}
            Err(error) if is_later(&error) => {}
            Err(error) => {
                tracing::debug!(%error, "cannot accept a client on the control socket");
                self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
            }
        }
    }

    /// Whether a new client can be accepted now, or only refused. Without room, new clients wait in
    /// the listener's queue until a status is answered.
    fn can_make_room(&self) -> bool {
        let is_removable =
            |client: &Client| matches!(client.state, State::Asking(_) | State::Responding { .. });
        let is_short = |client: &Client| matches!(client.state, State::Refreshing(_));
        self.all.len() < CLIENTS_MAX
            || self.all.iter().any(is_removable)
            || !self.all.iter().any(is_short)
    }

    /// Removes a client to make room: the oldest without a request, otherwise a slow reader.
    /// Clients with a running request stay.
    fn make_room(&mut self) {
        if self.all.len() < CLIENTS_MAX {
            return;
        }
        let is_silent = |client: &Client| matches!(client.state, State::Asking(_));
        let is_slow = |client: &Client| matches!(client.state, State::Responding { .. });
        let oldest = self.all.iter().position(is_silent);
        if let Some(oldest) = oldest.or_else(|| self.all.iter().position(is_slow)) {
            self.all.remove(oldest);
        }
    }
}

impl Client {
    /// Returns the event on its socket that the client waits for, if any.
    fn interest(&self) -> Option<PollFlags> {
        match self.state {
            State::Asking(_) => Some(PollFlags::IN),
            State::Responding { .. } => Some(PollFlags::OUT),
            // Only its end is an event: it is reported in any case.
            State::Expecting { .. } => Some(PollFlags::empty()),
            State::Refreshing(_) | State::Waiting(_) | State::Switching(_) => None,
        }
    }

    /// Returns the time at which it is checked even without an event.
    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Asking(_) | State::Responding { .. } => Some(self.since + CLIENT_LIMIT),
            State::Refreshing(_) => Some(self.since + PUBLICATION_LIMIT),
            State::Switching(_) => Some(Instant::now() + SWITCH_LOOK),
            State::Waiting(_) | State::Expecting { .. } => None,
        }
    }

    /// Continues with the client as far as possible without blocking. Returns false when the client
    /// is finished.
    fn turn(&mut self, server: &Server, is_ready: bool) -> io::Result<bool> {
        match self.state {
            State::Asking(_) if is_ready => self.hear(server)?,
            State::Expecting { .. } if is_ready => return Ok(false),
            _ => {}
        }
        self.look_at_publication(server);
        self.look_at_reload(server);
        self.look_at_response();
        if let State::Responding { rest, .. } = &mut self.state {
            // Writes at once: most clients are waiting for the response.
            while !rest.is_empty() {
                match self.stream.write(rest) {
                    Ok(0) => return Ok(false),
                    Ok(n) => drop(rest.drain(..n)),
                    Err(error) if is_later(&error) => return Ok(!self.is_late()),
                    Err(error) => return Err(error),
                }
            }
            return Ok(false);
        }
        let is_awaited = !matches!(self.state, State::Asking(_) | State::Responding { .. });
        Ok(is_awaited || !self.is_late())
    }

    fn is_late(&self) -> bool {
        self.since.elapsed() >= CLIENT_LIMIT
    }

    /// Reads more of the request. Answers it when the line is complete, or too long.
    fn hear(&mut self, server: &Server) -> io::Result<()> {
        let State::Asking(line) = &mut self.state else { return Ok(()) };
        let mut bytes = [0; LINE_BYTES_MAX];
        let n = match self.stream.read(&mut bytes) {
            Err(error) if is_later(&error) => return Ok(()),
            read => read?,
        };
        line.extend_from_slice(&bytes[..n]);
        let end = line.iter().position(|byte| *byte == b'\n');
        if end.is_none() && n > 0 && line.len() < LINE_BYTES_MAX {
            return Ok(());
        }
        if line.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&line[..end.unwrap_or(line.len())]).into_owned();
        self.state = match server.respond(line.trim(), &Peer::of(&self.stream)) {
            Reply::Now(response) => {
                State::Responding { rest: format!("{response}\n").into_bytes(), _until: None }
            }
            Reply::WhenPublished(published) => State::Refreshing(published),
            Reply::WhenReloaded(response) => State::Waiting(response),
            Reply::Later(response) => State::Expecting { told: response, _guard: None },
            Reply::WhileAttended(response, guard) => {
                State::Expecting { told: response, _guard: Some(guard) }
            }
        };
        self.since = Instant::now();
        Ok(())
    }

    fn look_at_publication(&mut self, server: &Server) {
        if let State::Refreshing(published) = &self.state {
            let is_late = self.since.elapsed() >= PUBLICATION_LIMIT;
            if published.try_recv() == Err(TryRecvError::Empty) && !is_late {
                return;
            }
            let rest = format!("{}\n", server.status()).into_bytes();
            self.state = State::Responding { rest, _until: None };
            self.since = Instant::now();
        }
    }

    /// Takes the response from the thread that processes the request; empty if that thread dropped
    /// it.
    fn look_at_response(&mut self) {
        if let State::Expecting { told, .. } = &self.state {
            let line = match told.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => Line { text: String::new(), until: None },
            };
            let Line { text, until } = line;
            self.state =
                State::Responding { rest: format!("{text}\n").into_bytes(), _until: until };
            self.since = Instant::now();
        }
    }

    fn look_at_reload(&mut self, server: &Server) {
        if let State::Waiting(told) = &self.state {
            self.state = match told.try_recv() {
                Ok(response) => State::Switching(response),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    State::Switching(ReloadResponse::refused("the server has exited".to_owned()))
                }
            };
            self.since = Instant::now();
        }
        if let State::Switching(response) = &self.state
            && (server.has_switched() || self.is_late())
        {
            let line = samovar_wire::line(response);
            self.state = State::Responding { rest: format!("{line}\n").into_bytes(), _until: None };
            self.since = Instant::now();
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
