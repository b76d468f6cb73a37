//! Pipes → queue: reads the output of processes continuously, so that no process waits for the
//! log's reader.
//!
//! One thread reads all pipes in turn. It reads a pipe to end of file, which comes when the last
//! process that holds the pipe has ended. A program that a request started may still print after
//! the request.

use crate::lines::Lines;
use crate::queue::{Share, on_account};
use crate::signals::spawn_deaf;
use crate::writer::Log;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes read from one pipe before the next pipe is read.
const READ_BYTES_MAX: usize = 64 << 10;
/// Maximum wait for the end of a line. After that, its beginning is logged as a line of its own.
const UNFINISHED_LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of pipes whose process has ended but which other processes hold open. The oldest
/// ones beyond this limit are closed.
const LEFT_OPEN_MAX: usize = 16;

/// Handles the bytes of one pipe.
pub trait Voice: Send {
    /// Takes bytes as they arrive, cut at any position. Returns false if they end in the middle of
    /// a line.
    fn hear(&mut self, bytes: &[u8]) -> bool;
    /// Treats the bytes received so far as a complete line.
    fn end_line(&mut self);
}

/// Receives whole lines of processes, before the log. Called on the thread of the intake; must not
/// block.
pub type Tap = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Puts whole lines into the log unchanged.
struct Plain {
    log: Log,
    tap: Arc<OnceLock<Tap>>,
    lines: Lines,
}

impl Plain {
    fn put(&self, block: Option<Vec<u8>>) {
        if let Some(block) = block {
            if let Some(tap) = self.tap.get() {
                tap(&block);
            }
            self.log.put(block);
        }
    }
}

impl Voice for Plain {
    fn hear(&mut self, bytes: &[u8]) -> bool {
        let block = self.lines.take(bytes);
        self.put(block);
        self.lines.is_empty()
    }

    fn end_line(&mut self) {
        let block = self.lines.end();
        self.put(block);
    }
}

/// Guard for the process that the pipe was made for: held while that process is alive.
#[derive(Debug)]
pub struct Speaker(Arc<AtomicBool>);

impl Drop for Speaker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Reads pipes on its own thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake(Arc<Inner>);

struct Inner {
    log: Log,
    tap: Arc<OnceLock<Tap>>,
    exchange: Mutex<Exchange>,
    is_drained: Condvar,
    wake: OwnedFd,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("log", &self.log).finish_non_exhaustive()
    }
}

/// State shared between the reading thread and its callers.
#[derive(Debug, Default)]
struct Exchange {
    new: Vec<Source>,
    /// A caller of `drain` waits until nothing is left to read.
    drains: bool,
}

struct Source {
    pipe: OwnedFd,
    voice: Box<dyn Voice>,
    share: Share,
    has_ended: Arc<AtomicBool>,
    /// Time of the last read, if the line read so far has no end yet.
    unfinished: Option<Instant>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}

impl Intake {
    /// Starts the thread, which runs as long as the process.
    pub fn start(log: Log) -> io::Result<Intake> {
        let inner = Inner {
            log,
            tap: Arc::default(),
            exchange: Mutex::default(),
            is_drained: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        let intake = Intake(Arc::new(inner));
        let own = intake.clone();
        spawn_deaf("log-intake", move || own.run())?;
        Ok(intake)
    }

    /// Passes the lines of all processes to `tap` as well. Only the first call has an effect.
    pub fn tap(&self, tap: Tap) {
        let _only_once = self.0.tap.set(tap);
    }

    /// Creates a pipe whose lines are logged unchanged, and returns its write end.
    pub fn pipe(&self) -> io::Result<(OwnedFd, Speaker)> {
        let (log, tap) = (self.0.log.clone(), Arc::clone(&self.0.tap));
        let voice = Plain { log, tap, lines: Lines::default() };
        self.pipe_to(Box::new(voice))
    }

    /// Creates a pipe whose bytes go to `voice`, on the thread of this intake.
    pub fn pipe_to(&self, voice: Box<dyn Voice>) -> io::Result<(OwnedFd, Speaker)> {
        let (pipe, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Only the read end is non-blocking: a writer waits when the pipe is full.
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK)?;
        let has_ended = Arc::<AtomicBool>::default();
        let speaker = Speaker(Arc::clone(&has_ended));
        let (share, unfinished) = (Share::default(), None);
        self.lock().new.push(Source { pipe, voice, share, has_ended, unfinished });
        self.wake();
        Ok((writer, speaker))
    }

    /// Waits until everything printed so far is in the log, for at most `limit`.
    pub fn drain(&self, limit: Duration) {
        self.lock().drains = true;
        self.wake();
        let result =
            self.0.is_drained.wait_timeout_while(self.lock(), limit, |exchange| exchange.drains);
        drop(result);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Exchange> {
        self.0.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // The write fails only if the counter is full, and then the thread is already woken.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }

    fn run(&self) {
        let mut sources: VecDeque<Source> = VecDeque::new();
        let mut buffer = vec![0; READ_BYTES_MAX];
        loop {
            let drains = {
                let mut exchange = self.lock();
                sources.extend(exchange.new.drain(..));
                exchange.drains
            };
            let readable = self.wait(&sources, drains);
            if drains && !readable.contains(&true) {
                sources.iter_mut().for_each(Source::end_line);
                self.lock().drains = false;
                self.0.is_drained.notify_all();
            }
            let mut readable = readable.into_iter();
            sources
                .retain_mut(|source| !readable.next().unwrap_or(false) || source.read(&mut buffer));
            sources.iter_mut().for_each(Source::look_at_line);
            close_oldest(&mut sources);
        }
    }

    /// Waits until a source is readable, a new source is added, or an unfinished line reaches its
    /// limit. Returns one flag per source: whether it is readable.
    fn wait(&self, sources: &VecDeque<Source>, drains: bool) -> Vec<bool> {
        let oldest = sources.iter().filter_map(|source| source.unfinished).min();
        let limit = if drains {
            Some(Duration::ZERO)
        } else {
            oldest.map(|since| UNFINISHED_LIMIT.saturating_sub(since.elapsed()) + MILLISECOND)
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let wake = std::iter::once(&self.0.wake);
        let fds = wake.chain(sources.iter().map(|source| &source.pipe));
        let mut polled: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // An interrupted poll counts as "nothing is readable": the caller loops.
        let is_ready = poll(&mut polled, limit.as_ref()).is_ok_and(|n| n > 0);
        let mut readable = polled.iter().map(|fd| is_ready && !fd.revents().is_empty());
        if readable.next() == Some(true) {
            // The descriptor does not block; one read resets its counter.
            let _ = rustix::io::read(&self.0.wake, &mut [0; 8]);
        }
        readable.collect()
    }
}

/// Rounding margin: a timeout in whole milliseconds must not expire too early.
const MILLISECOND: Duration = Duration::from_millis(1);

impl Source {
    /// Reads once. Returns false when the pipe has ended.
    fn read(&mut self, buffer: &mut [u8]) -> bool {
        match rustix::io::read(&self.pipe, &mut *buffer) {
            Ok(n) if n > 0 => {
                let voice = &mut self.voice;
                let is_whole = on_account(&self.share, || voice.hear(&buffer[..n]));
                self.unfinished = (!is_whole).then(Instant::now);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            _ => {
                self.end_line();
                false
            }
        }
    }

    fn look_at_line(&mut self) {
        if self.unfinished.is_some_and(|since| since.elapsed() >= UNFINISHED_LIMIT) {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let voice = &mut self.voice;
        on_account(&self.share, || voice.end_line());
        self.unfinished = None;
    }
}

fn close_oldest(sources: &mut VecDeque<Source>) {
    let has_ended = |source: &Source| source.has_ended.load(Ordering::Acquire);
    let mut surplus =
        sources.iter().filter(|source| has_ended(source)).count().saturating_sub(LEFT_OPEN_MAX);
    sources.retain(|source| {
        let goes = surplus > 0 && has_ended(source);
        surplus -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Notice, Target};
    use std::path::PathBuf;

    const LIMIT: Duration = Duration::from_secs(20);

    fn intake() -> (tempfile::TempDir, PathBuf, Log, Intake) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log =
            Log::start("test-log", Target::File(path.clone()), Notice::Elsewhere(Box::new(|_| ())))
                .unwrap();
        let intake = Intake::start(log.clone()).unwrap();
        (folder, path, log, intake)
    }

    fn write(to: &OwnedFd, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let n = rustix::io::write(to, bytes).unwrap();
            bytes = &bytes[n..];
        }
    }

    #[test]
    fn drain_logs_all_printed_bytes() {
        let (_folder, path, log, intake) = intake();
        let ((one, _one), (two, _two)) = (intake.pipe().unwrap(), intake.pipe().unwrap());
        write(&one, b"a line of o");
        write(&two, b"all of two\n");
        write(&one, b"ne\nand no end");
        drop(one);
        write(&two, b"nor here");
        intake.drain(LIMIT);
        assert!(log.flush(LIMIT));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a line of one", "all of two", "and no end", "nor here"]);
    }

    #[test]
    fn pipe_writer_does_not_wait_for_reader_of_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, 0o600.into(), 0).unwrap();
        let log = Log::start("test-log", Target::File(path), Notice::Elsewhere(Box::new(|_| ())))
            .unwrap();
        let intake = Intake::start(log.clone()).unwrap();
        let (pipe, _speaker) = intake.pipe().unwrap();
        write(&pipe, "a long line of many\n".repeat(1 << 20).as_bytes());
        intake.drain(LIMIT);
        assert!(log.lost() > 500_000, "{}", log.lost());
        assert!(log.put("the server's own\n"));
    }

    #[test]
    fn intake_closes_oldest_pipes_left_open() {
        let (_folder, _path, _log, intake) = intake();
        let pipes: Vec<_> = (0..LEFT_OPEN_MAX + 3).map(|_| intake.pipe().unwrap().0).collect();
        // The thread notices dropped speakers at its next event: this new pipe.
        let _last = intake.pipe().unwrap();
        intake.drain(LIMIT);
        intake.drain(LIMIT);
        let is_closed = |pipe: &OwnedFd| rustix::io::write(pipe, b"x\n") == Err(Errno::PIPE);
        assert_eq!(pipes.iter().filter(|pipe| is_closed(pipe)).count(), 3);
        assert!(is_closed(&pipes[0]));
    }
}
