//! Pipes → queue: reads what processes print, always and at once, so that none of them ever waits for the log's reader.
//!
//! One thread reads all pipes, each in its turn. A pipe is read to its end, which comes when the last process that
//! holds it has gone: a program that a request has left behind may go on printing.

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
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is read of one pipe before the next one's turn.
const READ_BYTES_MAX: usize = 64 << 10;
/// The begin of a line is passed on as a line when its end does not come within this.
const UNFINISHED_LIMIT: Duration = Duration::from_secs(1);
/// Pipes whose process has ended, and which others hold open still; the oldest are closed beyond this.
const LEFT_OPEN_MAX: usize = 16;

/// What becomes of the bytes of one pipe.
pub trait Voice: Send {
    /// Bytes as they come, cut anywhere. False: it is in the middle of a line.
    fn hear(&mut self, bytes: &[u8]) -> bool;
    /// What is there is the end of a line.
    fn end_line(&mut self);
}

/// Whole lines go into the log as they are.
struct Plain {
    log: Log,
    lines: Lines,
}

impl Plain {
    fn put(&self, block: Option<Vec<u8>>) {
        if let Some(block) = block {
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

/// Held while the process lives that the pipe was made for.
#[derive(Debug)]
pub struct Speaker(Arc<AtomicBool>);

impl Drop for Speaker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Reads pipes on a thread of its own. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    log: Log,
    exchange: Mutex<Exchange>,
    is_drained: Condvar,
    wake: OwnedFd,
}

/// Between the thread and the others.
#[derive(Debug, Default)]
struct Exchange {
    new: Vec<Source>,
    /// Somebody waits until nothing is left to read.
    drains: bool,
}

struct Source {
    pipe: OwnedFd,
    voice: Box<dyn Voice>,
    share: Share,
    has_ended: Arc<AtomicBool>,
    /// Since when a line waits for its end.
    unfinished: Option<Instant>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}

impl Intake {
    /// Starts the thread, which lives as long as the process.
    pub fn start(log: Log) -> io::Result<Intake> {
        let inner = Inner {
            log,
            exchange: Mutex::default(),
            is_drained: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        let intake = Intake(Arc::new(inner));
        let own = intake.clone();
        spawn_deaf("log-intake", move || own.run())?;
        Ok(intake)
    }

    /// A pipe whose lines go into the log as they are: the end to write to.
    pub fn pipe(&self) -> io::Result<(OwnedFd, Speaker)> {
        let voice = Plain { log: self.0.log.clone(), lines: Lines::default() };
        self.pipe_to(Box::new(voice))
    }

    /// A pipe that somebody listens to, on the thread of this intake.
    pub fn pipe_to(&self, voice: Box<dyn Voice>) -> io::Result<(OwnedFd, Speaker)> {
        let (pipe, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // The reading end's own: the other side waits where the pipe is full.
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK)?;
        let has_ended = Arc::<AtomicBool>::default();
        let speaker = Speaker(Arc::clone(&has_ended));
        let (share, unfinished) = (Share::default(), None);
        self.lock().new.push(Source { pipe, voice, share, has_ended, unfinished });
        self.wake();
        Ok((writer, speaker))
    }

    /// Waits until all that was printed so far is in the log, for at most `limit`.
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
        // A full counter is awake already.
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

    /// Which of the sources can be read; returns too when there are new ones, or a line is old enough.
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
        // An interruption reads as "nothing": the caller loops.
        let is_ready = poll(&mut polled, limit.as_ref()).is_ok_and(|n| n > 0);
        let mut readable = polled.iter().map(|fd| is_ready && !fd.revents().is_empty());
        if readable.next() == Some(true) {
            // It does not block; one read empties it.
            let _ = rustix::io::read(&self.0.wake, &mut [0; 8]);
        }
        readable.collect()
    }
}

/// A time-out in whole milliseconds must not end before its time.
const MILLISECOND: Duration = Duration::from_millis(1);

impl Source {
    /// False: this was its end.
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
    fn what_is_printed_is_in_the_log_at_the_end() {
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
    fn nobody_waits_for_the_reader_of_the_log() {
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
    fn pipes_that_are_left_open_are_few() {
        let (_folder, _path, _log, intake) = intake();
        let pipes: Vec<_> = (0..LEFT_OPEN_MAX + 3).map(|_| intake.pipe().unwrap().0).collect();
        // Told of with the next thing that happens.
        let _last = intake.pipe().unwrap();
        intake.drain(LIMIT);
        intake.drain(LIMIT);
        let is_closed = |pipe: &OwnedFd| rustix::io::write(pipe, b"x\n") == Err(Errno::PIPE);
        assert_eq!(pipes.iter().filter(|pipe| is_closed(pipe)).count(), 3);
        assert!(is_closed(&pipes[0]));
    }
}
