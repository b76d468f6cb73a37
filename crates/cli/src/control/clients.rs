//! The control socket's clients: several at once, on one thread, each within its time.
//!
//! Nobody here waits for a client: what one has said so far, and what it has not taken yet, is kept while others are
//! heard.

use super::server::{Line, Reply, Server};
use super::socket::Socket;
use super::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use samovar_supervisor::peer::Peer;
use samovar_wire::ReloadAnswer;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

/// Longest request line: a reload's may name a target.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// How long a client may take to ask, and again to take its answer.
const CLIENT_LIMIT: Duration = Duration::from_secs(2);
/// Beyond them the oldest that has not asked yet is let go.
const CLIENTS_MAX: usize = 32;
/// While no connection can be accepted (too many open files), this long nothing is tried.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often it is asked whether a reload holds in the front.
const SWITCH_LOOK: Duration = Duration::from_millis(5);

enum State {
    /// What it has said so far.
    Asking(Vec<u8>),
    /// Its reload is under way.
    Waiting(Receiver<ReloadAnswer>),
    /// What it asked for is looked up, or done.
    Expecting(Receiver<Line>),
    /// The new generation serves; the front has still to take over its options.
    Switching(ReloadAnswer),
    /// What it has not taken yet, and who waits until it has.
    Answering { rest: Vec<u8>, _until: Option<SyncSender<()>> },
}

struct Client {
    stream: UnixStream,
    state: State,
    since: Instant,
}

/// Lets clients in, or not: on the same socket another server may answer. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    is_open: Arc<AtomicBool>,
    waker: Waker,
}

impl Door {
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Who is told something after it was closed finds it closed.
    pub(crate) fn open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
        self.waker.wake();
    }
}

/// Answers clients, for the rest of the process's life, once the door is opened. Its threads are started here: what it does
/// later needs none.
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
    /// The oldest first.
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

    /// Answers for the rest of the process's life.
    fn serve(mut self) {
        loop {
            let (can_accept, ready) = self.wait();
            let server = &self.server;
            let mut ready = ready.into_iter();
            self.all.retain_mut(|client| {
                let is_ready = ready.next().unwrap_or(false);
                // Who has left, or has had its time, is gone; nobody is to be told.
                client.turn(server, is_ready).unwrap_or(false)
            });
            // Whoever has just been told that another server answers comes back to that one.
            if can_accept && self.door.is_open() {
                self.accept();
            }
        }
    }

    /// Whether there is somebody new, and which of the clients can go on.
    fn wait(&mut self) -> (bool, Vec<bool>) {
        let now = Instant::now();
        self.paused_until = self.paused_until.filter(|until| *until > now);
        let times = self.all.iter().filter_map(Client::deadline).chain(self.paused_until);
        let limit = times.min().map(|at| at.saturating_duration_since(now));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let is_open = self.door.is_open() && self.paused_until.is_none();
        let listens = if is_open { PollFlags::IN } else { PollFlags::empty() };
        let mut polled =
            vec![PollFd::new(&*self.waker.0, PollFlags::IN), PollFd::new(&self.listener, listens)];
        let of_clients = self.all.iter().filter_map(|client| {
            client.interest().map(|events| PollFd::new(&client.stream, events))
        });
        polled.extend(of_clients);
        // An interruption reads as "nothing": the caller loops.
        let is_ready = poll(&mut polled, limit.as_ref()).is_ok_and(|n| n > 0);
        let mut ready = polled.iter().map(|fd| is_ready && !fd.revents().is_empty());
        if ready.next() == Some(true) {
            // It does not block; one read empties it.
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
                tracing::debug!(%error, "the control socket cannot accept a client");
                self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
            }
        }
    }

    /// Silent clients do not keep out others. Whose reload is under way stays.
    fn make_room(&mut self) {
        if self.all.len() < CLIENTS_MAX {
            return;
        }
        let is_silent = |client: &Client| matches!(client.state, State::Asking(_));
        let is_slow = |client: &Client| matches!(client.state, State::Answering { .. });
        let oldest = self.all.iter().position(is_silent);
        if let Some(oldest) = oldest.or_else(|| self.all.iter().position(is_slow)) {
            self.all.remove(oldest);
        }
    }
}

impl Client {
    /// What it is waited for, if it is itself.
    fn interest(&self) -> Option<PollFlags> {
        match self.state {
            State::Asking(_) => Some(PollFlags::IN),
            State::Answering { .. } => Some(PollFlags::OUT),
            State::Waiting(_) | State::Expecting(_) | State::Switching(_) => None,
        }
    }

    /// When it is looked at in any case.
    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Asking(_) | State::Answering { .. } => Some(self.since + CLIENT_LIMIT),
            State::Switching(_) => Some(Instant::now() + SWITCH_LOOK),
            State::Waiting(_) | State::Expecting(_) => None,
        }
    }

    /// Goes on with it as far as that is possible now; false: its end.
    fn turn(&mut self, server: &Server, is_ready: bool) -> io::Result<bool> {
        if is_ready && let State::Asking(_) = self.state {
            self.hear(server)?;
        }
        self.look_at_reload(server);
        self.look_at_answer();
        if let State::Answering { rest, .. } = &mut self.state {
            // At once: most of them wait for it.
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
        let is_awaited =
            matches!(self.state, State::Waiting(_) | State::Expecting(_) | State::Switching(_));
        Ok(is_awaited || !self.is_late())
    }

    fn is_late(&self) -> bool {
        self.since.elapsed() >= CLIENT_LIMIT
    }

    /// Reads on; answers when the line is there, or cannot become one.
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
        self.state = match server.answer(line.trim(), &Peer::of(&self.stream)) {
            Reply::Now(answer) => {
                State::Answering { rest: format!("{answer}\n").into_bytes(), _until: None }
            }
            Reply::WhenReloaded(answer) => State::Waiting(answer),
            Reply::Later(answer) => State::Expecting(answer),
        };
        self.since = Instant::now();
        Ok(())
    }

    /// Whoever looks it up answers, or is gone.
    fn look_at_answer(&mut self) {
        if let State::Expecting(told) = &self.state {
            let line = match told.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => Line { text: String::new(), until: None },
            };
            let Line { text, until } = line;
            self.state = State::Answering { rest: format!("{text}\n").into_bytes(), _until: until };
            self.since = Instant::now();
        }
    }

    fn look_at_reload(&mut self, server: &Server) {
        if let State::Waiting(told) = &self.state {
            self.state = match told.try_recv() {
                Ok(answer) => State::Switching(answer),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    State::Switching(ReloadAnswer::refused("the server has ended".to_owned()))
                }
            };
            self.since = Instant::now();
        }
        if let State::Switching(answer) = &self.state
            && (server.has_switched() || self.is_late())
        {
            let line = samovar_wire::line(answer);
            self.state = State::Answering { rest: format!("{line}\n").into_bytes(), _until: None };
            self.since = Instant::now();
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
