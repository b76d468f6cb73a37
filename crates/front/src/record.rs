//! record: one line per request, written by a thread of its own.
//!
//! The front never waits for the log: lines go through a bounded channel, and what finds it full is counted and lost.
//! Everything a client sent is escaped, so that nobody can forge a line.

mod line;
mod time;

use crate::connection::ConnectionState;
use crate::exchange::Lost;
use crate::front::StartError;
use crate::options::{AccessLog, AccessLogFormat};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use line::Line;
use samovar_ring::Ledger;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Lines that may wait for the disk.
const LINES_MAX: usize = 8_192;
/// What the log says of a client that left before its answer; nginx's number.
const CLIENT_GONE: u16 = 499;

/// Where finished requests go.
#[derive(Debug)]
pub(crate) struct Recorder {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    format: AccessLogFormat,
}

impl Recorder {
    /// Opens the log and starts its thread; does neither if it is off.
    pub(crate) fn start(
        log: &AccessLog,
        format: AccessLogFormat,
        reopens: Arc<AtomicBool>,
    ) -> Result<Recorder, StartError> {
        let out: Box<dyn Write + Send> = match log {
            AccessLog::Off => return Ok(Recorder { lines: None, writer: None, format }),
            AccessLog::Stdout => Box::new(io::stdout()),
            AccessLog::File(path) => Box::new(
                open(path).map_err(|source| StartError::Log { path: path.clone(), source })?,
            ),
        };
        let path = match log {
            AccessLog::File(path) => Some(path.clone()),
            AccessLog::Off | AccessLog::Stdout => None,
        };
        let (lines, received) = sync_channel(LINES_MAX);
        let writer = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write(&received, out, path.as_deref(), &reopens))?;
        Ok(Recorder { lines: Some(lines), writer: Some(writer), format })
    }

    fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    /// False: the line is lost.
    fn put(&self, line: String) -> bool {
        let Some(lines) = &self.lines else { return true };
        !matches!(lines.try_send(line), Err(TrySendError::Full(_)))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The writer thread: flushes whenever no line waits.
fn write(
    lines: &Receiver<String>,
    out: Box<dyn Write + Send>,
    path: Option<&Path>,
    reopens: &AtomicBool,
) {
    let mut out = BufWriter::new(out);
    let mut has_failed = false;
    while let Ok(first) = lines.recv() {
        if let (true, Some(path)) = (reopens.swap(false, Ordering::AcqRel), path) {
            match open(path) {
                Ok(file) => out = BufWriter::new(Box::new(file)),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "cannot reopen the access log");
                }
            }
        }
        let mut result = out.write_all(first.as_bytes());
        while let Ok(line) = lines.try_recv() {
            result = result.and_then(|()| out.write_all(line.as_bytes()));
        }
        result = result.and_then(|()| out.flush());
        if let (Err(error), false) = (&result, has_failed) {
            tracing::warn!(%error, "cannot write the access log (hint: is the disk full?)");
        }
        has_failed = result.is_err();
    }
}

/// A request on its way through the front. Dropping it is the end of the request.
#[derive(Debug)]
pub(crate) struct Passage {
    connection: Rc<ConnectionState>,
    status: u16,
    is_complete: bool,
    line: Option<Box<Line>>,
}

impl Passage {
    pub(crate) fn begin(
        connection: &Rc<ConnectionState>,
        parts: &Parts,
        id: &HeaderValue,
        claimed: Option<IpAddr>,
    ) -> Passage {
        let shared = &connection.shared;
        shared.counters.requests.add(1);
        shared.counters.in_flight.add(1);
        let line = || Box::new(Line::new(connection, parts, id, claimed));
        let line = shared.recorder.is_on().then(line);
        Passage { connection: Rc::clone(connection), status: CLIENT_GONE, is_complete: false, line }
    }

    /// A worker died; it is run again.
    pub(crate) fn retried(&mut self) {
        if let Some(line) = &mut self.line {
            line.attempts += 1;
        }
    }

    pub(crate) fn costs(&mut self, ledger: Ledger) {
        if let Some(line) = &mut self.line {
            line.ledger = Some(ledger);
        }
    }

    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        if let Some(line) = &mut self.line {
            line.bytes += bytes;
        }
    }

    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// The answer broke off.
    pub(crate) fn cut(&self, lost: Lost) {
        let shared = &self.connection.shared;
        if let Some(suppressed) = shared.warnings.cut.pass() {
            tracing::warn!(
                ?lost,
                suppressed,
                "an answer broke off in the middle; the client's connection is cut (hint: the \
                 worker's log says why)"
            );
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.connection.end_request();
        let shared = &self.connection.shared;
        shared.counters.in_flight.sub(1);
        if self.status >= 500 {
            shared.counters.responses_5xx.add(1);
        }
        if let Some(line) = self.line.take() {
            let text = line.text(shared.recorder.format, self.status, !self.is_complete);
            if !shared.recorder.put(text) {
                shared.counters.log_lines_dropped.add(1);
            }
        }
    }
}
