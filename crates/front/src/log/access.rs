//! The open access log: its lines are written by a separate thread.
//!
//! The front never waits for the log: lines go through a bounded queue (crates/log). A line that
//! finds the queue full is counted and lost. All bytes sent by a client are escaped, so a client
//! cannot forge a line.

use super::line::{Client, LogLine};
use super::text::LineFormat;
use crate::exchange::Later;
use crate::runtime::counters::Counters;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use samovar_config::{LogTarget, Settings};
use samovar_insight::{End, Intake, Redaction};
use samovar_log::Throttle;
use samovar_log::{Daemon, Log, Notation, Notice, Target};
use samovar_ring::Account;
use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Maximum time that the front waits at its end for the log's disk or reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// Destination of the lines of all threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog(Option<Log>);

impl AccessLog {
    /// Opens the log and starts its thread. Does nothing if the log is off.
    pub(crate) fn start(log: &LogTarget) -> io::Result<AccessLog> {
        let Some(target) = target_of(log, "samovar-access") else { return Ok(AccessLog(None)) };
        let name = in_words("access log", log);
        let notice =
            Notice::Elsewhere(Box::new(move |trouble| tracing::warn!("{name}: {trouble}")));
        Log::start("access-log", target, notice).map(|log| AccessLog(Some(log)))
    }

    /// Number of lines lost since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, Log::lost)
    }

    /// Has the file opened again with the next line, because it was moved.
    pub(crate) fn reopen(&self) {
        if let Some(log) = &self.0 {
            log.reopen();
        }
    }

    /// Writes the remaining lines at the end of the front. Lines not written within [`FLUSH_LIMIT`]
    /// are lost.
    pub(crate) fn finish(&self) {
        if let Some(log) = &self.0 {
            log.flush(FLUSH_LIMIT);
        }
    }
}

/// Returns the destination of a log setting; `None` if the log is off. `tag` identifies the sender
/// in syslog or the journal.
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

/// Returns the log's name for messages, with its path if it has one.
pub fn in_words(what: &str, log: &LogTarget) -> String {
    match log.file().or(log.socket()) {
        Some(path) => format!("{what} `{}`", path.display()),
        None => what.to_owned(),
    }
}

/// Records the finished requests of one pool on the front's thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    log: AccessLog,
    form: Rc<LineFormat>,
    pub(super) counters: Arc<Counters>,
    /// Throttle of the log line about incomplete responses.
    pub(super) cut: Throttle,
    /// Receiver of finished requests for the statistics, if these are enabled.
    intake: Option<Rc<RefCell<Intake>>>,
    /// Lines of finished requests, kept for reuse.
    #[allow(clippy::vec_box)] // The boxes themselves are reused.
    spare: RefCell<Vec<Box<LogLine>>>,
    wall_clock: WallClock,
    /// Name of the requests' pool, if there are several.
    pool: OnceCell<Rc<str>>,
}

/// How a request has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub(super) status: u16,
    /// The client has received the whole promised response.
    pub(super) is_complete: bool,
    pub(super) end: End,
}

/// A request whose worker has not reported its usage yet. It is added to the statistics on drop,
/// with usage or without.
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

/// Maximum number of lines kept for reuse: as many as are in flight on a busy server.
const SPARE_MAX: usize = 256;
/// Maximum age of the known difference between the clocks. A change of the system time is noticed
/// after this time.
const DISTANCE_AGE_MAX: Duration = Duration::from_millis(500);

/// Converts moments of the monotonic clock to the time of day, so that a request reads one clock
/// instead of two.
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
        settings: &Settings,
        counters: Arc<Counters>,
        intake: Option<Intake>,
    ) -> Recorder {
        let form = Rc::new(LineFormat {
            format: settings.access_log_format,
            redaction: Redaction::of_setting(&settings.insight.redact),
            has_reports: intake.is_some(),
        });
        let intake = intake.map(|intake| Rc::new(RefCell::new(intake)));
        let wall_clock = WallClock(Cell::new((Instant::now(), SystemTime::now())));
        let (cut, spare) = (Throttle::default(), RefCell::default());
        let pool = OnceCell::new();
        Recorder { log, form, counters, cut, intake, spare, wall_clock, pool }
    }

    /// Creates a recorder for another pool, with the same log and statistics.
    pub(crate) fn beside(&self, counters: Arc<Counters>) -> Recorder {
        Recorder {
            log: self.log.clone(),
            form: Rc::clone(&self.form),
            counters,
            cut: Throttle::default(),
            intake: self.intake.clone(),
            spare: RefCell::default(),
            wall_clock: WallClock(Cell::new(self.wall_clock.0.get())),
            pool: OnceCell::new(),
        }
    }

    /// Sets the name of its pool.
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

    /// Writes the line of a head that was refused before there was a request.
    pub(crate) fn refused(
        &self,
        remote: &str,
        line: &[u8],
        id: &HeaderValue,
        (status, bytes): (StatusCode, u64),
    ) {
        let Some(log) = &self.log.0 else { return };
        let started = Instant::now();
        let text =
            LogLine::refused(started, self.wall_clock.at(started), (remote, line, id), bytes).text(
                &self.form,
                status.as_u16(),
                false,
            );
        log.put(text);
    }

    /// Whether lines are needed, for the access log or the statistics. Counters do not need them.
    pub(super) fn is_on(&self) -> bool {
        self.log.0.is_some() || self.intake.is_some()
    }

    /// Whether the workers' reports about requests are used.
    pub(crate) fn wants_reports(&self) -> bool {
        self.intake.is_some()
    }

    /// Writes a line to the access log and adds it to the statistics. If the request's worker is
    /// still running, only the access log gets it now. The statistics get it when the worker has
    /// finished, because its route and most of its usage may not be known yet.
    pub(super) fn put(self: &Rc<Self>, mut line: Box<LogLine>, over: Over, later: Option<Later>) {
        line.end();
        if let Some(log) = &self.log.0
            && line.is_for_log()
        {
            log.put(line.text(&self.form, over.status, !over.is_complete));
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

    /// Passes finished requests on, so that the statistics are at most one sweep old.
    pub(crate) fn flush(&self) {
        if let Some(intake) = &self.intake {
            intake.borrow_mut().flush();
        }
    }
}
