//! The access log, opened: lines go to a thread of their own.
//!
//! The front never waits for the log: lines go through a bounded queue (crates/log), and what finds it full is counted
//! and lost. Everything a client sent is escaped, so that nobody can forge a line.

use super::line::{Client, LogLine};
use crate::exchange::Later;
use crate::runtime::counters::Counters;
use http::HeaderValue;
use http::request::Parts;
use samovar_config::{AccessLogFormat, LogTarget};
use samovar_insight::{End, Intake};
use samovar_log::Throttle;
use samovar_log::{Daemon, Log, Notation, Notice, Target};
use samovar_ring::Account;
use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long the end of the front waits for the log's disk or reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// Where lines go, for all threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog(Option<Log>);

impl AccessLog {
    /// Opens the log and starts its thread; does neither if it is off.
    pub(crate) fn start(log: &LogTarget) -> io::Result<AccessLog> {
        let Some(target) = target_of(log, "samovar-access") else { return Ok(AccessLog(None)) };
        let name = in_words("access log", log);
        let notice =
            Notice::Elsewhere(Box::new(move |trouble| tracing::warn!("{name}: {trouble}")));
        Log::start("access-log", target, notice).map(|log| AccessLog(Some(log)))
    }

    /// Lines that were lost, since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, Log::lost)
    }

    /// A file that was moved away is opened again with the next line.
    pub(crate) fn reopen(&self) {
        if let Some(log) = &self.0 {
            log.reopen();
        }
    }

    /// The end: what is there is written now or never.
    pub(crate) fn finish(&self) {
        if let Some(log) = &self.0 {
            log.flush(FLUSH_LIMIT);
        }
    }
}

/// Where lines go by a setting; `None`: nowhere. `tag` is who speaks, where the machine's own log is told.
pub fn target_of(log: &LogTarget, tag: &'static str) -> Option<Target> {
    let daemon = |socket: &Path, notation| {
        Target::Daemon(Daemon { socket: socket.to_owned(), tag, notation })
    };
    Some(match log {
        LogTarget::Off => return None,
        LogTarget::Stdout => Target::Stdout,
        LogTarget::Stderr => Target::Stderr,
        LogTarget::File(path) => Target::File(path.clone()),
        LogTarget::Syslog { facility, socket } => {
            daemon(socket, Notation::Syslog { facility: *facility })
        }
        LogTarget::Journal { socket } => daemon(socket, Notation::Journal),
    })
}

/// That log, as messages call it: with its path, if it has one.
pub fn in_words(what: &str, log: &LogTarget) -> String {
    match log.file().or(log.socket()) {
        Some(path) => format!("{what} `{}`", path.display()),
        None => what.to_owned(),
    }
}

/// Where the front's thread notes the requests that it has finished.
#[derive(Debug)]
pub(crate) struct Recorder {
    log: AccessLog,
    format: AccessLogFormat,
    pub(super) counters: Arc<Counters>,
    /// Of answers that broke off.
    pub(super) cut: Throttle,
    /// Where requests are added up, if they are.
    intake: Option<Rc<RefCell<Intake>>>,
    /// Lines of requests that are over, for those that come.
    #[allow(clippy::vec_box)] // The boxes are what is used again.
    spare: RefCell<Vec<Box<LogLine>>>,
    wall_clock: WallClock,
    /// Whose requests these are, where there are several pools.
    pool: OnceCell<Rc<str>>,
}

/// How a request has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub(super) status: u16,
    /// The client was given all it was promised.
    pub(super) is_complete: bool,
    pub(super) end: End,
}

/// A request that its worker has yet to account for. It is added up when it is dropped, with an account or without.
#[derive(Debug)]
struct Pending {
    recorder: Rc<Recorder>,
    line: Option<Box<LogLine>>,
    over: Over,
}

impl Pending {
    fn told(&mut self, account: Account) {
        if let Some(line) = &mut self.line {
            line.account = Some(account);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            self.recorder.hand_over(line, self.over);
        }
    }
}

/// Lines that are kept for others: as many as are in flight on a busy server.
const SPARE_MAX: usize = 256;
/// How long the distance of the two clocks is believed: who sets the time is heard that soon.
const DISTANCE_AGE_MAX: Duration = Duration::from_millis(500);

/// The time of the day for moments of the monotonic clock, so that a request asks one clock and not two.
#[derive(Debug)]
struct WallClock(Cell<(Instant, SystemTime)>);

impl WallClock {
    fn at(&self, moment: Instant) -> SystemTime {
        let (known, time) = self.0.get();
        match moment.checked_duration_since(known) {
            Some(since) if since < DISTANCE_AGE_MAX => time + since,
            _ => {
                let time = SystemTime::now();
                self.0.set((moment, time));
                time
            }
        }
    }
}

impl Recorder {
    pub(crate) fn new(
        log: AccessLog,
        format: AccessLogFormat,
        counters: Arc<Counters>,
        intake: Option<Intake>,
    ) -> Recorder {
        let intake = intake.map(|intake| Rc::new(RefCell::new(intake)));
        let wall_clock = WallClock(Cell::new((Instant::now(), SystemTime::now())));
        let (cut, spare) = (Throttle::default(), RefCell::default());
        let pool = OnceCell::new();
        Recorder { log, format, counters, cut, intake, spare, wall_clock, pool }
    }

    /// One that notes the requests of another pool, in the same places.
    pub(crate) fn beside(&self, counters: Arc<Counters>) -> Recorder {
        let recorder = Recorder::new(self.log.clone(), self.format, counters, None);
        Recorder { intake: self.intake.clone(), ..recorder }
    }

    /// Its pool is called so among others.
    pub(crate) fn call(&self, pool: &str) {
        let _ = self.pool.set(pool.into());
    }

    /// Opens a request's line.
    pub(super) fn open(&self, parts: &Parts, id: &HeaderValue, client: Client<'_>) -> Box<LogLine> {
        let started = Instant::now();
        let at = self.wall_clock.at(started);
        let mut line = self.spare.borrow_mut().pop().unwrap_or_default();
        line.pool = self.pool.get().cloned();
        line.begin(started, at, parts, id, client);
        if self.intake.is_some() {
            line.note_for_figures();
        }
        if self.log.0.is_some() {
            line.note_for_log(parts, client);
        }
        line
    }

    /// Whether anybody wants to know more of a request than the counters do.
    pub(super) fn is_on(&self) -> bool {
        self.log.0.is_some() || self.intake.is_some()
    }

    /// Whether anybody reads what workers say of their requests.
    pub(crate) fn wants_reports(&self) -> bool {
        self.intake.is_some()
    }

    /// Hands a line on to all who want it. Where the request's worker goes on, it is in the access log now, and added up
    /// when the worker is done: its route, and most of its cost, may come yet.
    pub(super) fn put(self: &Rc<Self>, mut line: Box<LogLine>, over: Over, later: Option<Later>) {
        line.end();
        if let Some(log) = &self.log.0
            && line.is_for_log()
        {
            log.put(line.text(self.format, over.status, !over.is_complete));
        }
        match later.filter(|_| self.intake.is_some()) {
            None => self.hand_over(line, over),
            Some(later) => {
                let mut pending = Pending { recorder: Rc::clone(self), line: Some(line), over };
                later.ask(move |account| pending.told(account));
            }
        }
    }

    fn hand_over(&self, mut line: Box<LogLine>, over: Over) {
        if let Some(intake) = &self.intake {
            line.hand_over(over.status, over.end, &mut intake.borrow_mut());
        }
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            line.let_go();
            spare.push(line);
        }
    }

    /// Requests that have ended are handed on, so that figures are no older than a sweep.
    pub(crate) fn flush(&self) {
        if let Some(intake) = &self.intake {
            intake.borrow_mut().flush();
        }
    }
}
