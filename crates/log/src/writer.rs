//! Queue → descriptor: the thread that writes and may wait.
//!
//! If a write fails (no reader, no room, beyond a limit), its lines are lost and counted. The next
//! lines are tried again.

use crate::queue::{Batch, LogProblem, Queue, Work, count_lines};
use crate::record::records;
use crate::signals::spawn_deaf;
use crate::target::{Kind, Out, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines are joined into writes of up to this size (`PIPE_BUF`): writes of this size are atomic on
/// a pipe shared with other processes.
const WRITE_BYTES_MAX: usize = 4096;
/// While a pipe is full, the writer checks at this interval whether the pipe is still in use and
/// whether a loss must be reported.
const ROOM_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Pause after a write that finds no room although `poll` reported some.
const AGAIN_PAUSE: Duration = Duration::from_millis(1);
/// Minimum time between two reports of lost lines.
const TELL_PERIOD: Duration = Duration::from_secs(5);

/// Reports problems of a log.
pub enum Notice {
    /// Makes a line for the log itself.
    Line(Box<dyn FnMut(&LogProblem) -> String + Send>),
    /// Calls a function, which reports the problem in another log.
    Elsewhere(Box<dyn FnMut(&LogProblem) + Send>),
}

/// A log whose callers never wait. Cheap to clone. When the last clone is dropped, the thread
/// writes all queued lines and ends.
#[derive(Clone, Debug)]
pub struct Log(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: Arc<Queue>,
    reopens: Arc<AtomicBool>,
    next: Next,
}

/// The writer's next target, already open.
type Next = Arc<Mutex<Option<(Target, Out)>>>;

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl Log {
    /// Opens the target and starts the thread, which gets that name.
    pub fn start(name: &str, target: Target, notice: Notice) -> io::Result<Log> {
        let (queue, reopens) = (Arc::<Queue>::default(), Arc::<AtomicBool>::default());
        let next = Next::default();
        let mut writer = Writer {
            out: target.open()?,
            target,
            next: Arc::clone(&next),
            queue: Arc::clone(&queue),
            reopens: Arc::clone(&reopens),
            notice,
            told: 0,
            told_at: None,
            lost_since: None,
            error: None,
            is_mid_line: false,
        };
        spawn_deaf(name, move || writer.run())?;
        Ok(Log(Arc::new(Inner { queue, reopens, next })))
    }

    /// Queues whole lines, each with its line end. Returns false if they are lost. Never waits.
    pub fn put(&self, lines: impl Into<Vec<u8>>) -> bool {
        self.0.queue.put(lines.into())
    }

    /// Number of lines lost since the start.
    pub fn lost(&self) -> u64 {
        self.0.queue.lost()
    }

    /// Reopens the file before the next line, because it was moved away.
    pub fn reopen(&self) {
        self.0.reopens.store(true, Ordering::Release);
    }

    /// Switches to another target at the next line. Returns an error if that cannot be opened.
    pub fn redirect(&self, target: Target) -> io::Result<()> {
        let out = target.open()?;
        *lock(&self.0.next) = Some((target, out));
        self.reopen();
        Ok(())
    }

    /// Waits until all lines are written or lost, and losses are reported, for at most `limit`.
    /// Returns false if that has not happened by then.
    pub fn flush(&self, limit: Duration) -> bool {
        self.0.queue.flush(limit)
    }
}

impl io::Write for Log {
    /// Takes whole lines. It never fails: lost lines are counted.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.put(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is consistent even after a panic of another thread.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer {
    out: Out,
    target: Target,
    next: Next,
    queue: Arc<Queue>,
    reopens: Arc<AtomicBool>,
    notice: Notice,
    /// Number of lost lines reported so far.
    told: u64,
    told_at: Option<Instant>,
    /// Time since which a loss is waiting to be reported.
    lost_since: Option<Instant>,
    /// Error of a write since then, if one failed.
    error: Option<String>,
    /// The last write stopped in the middle of a line.
    is_mid_line: bool,
}

impl Writer {
    fn run(&mut self) {
        loop {
            match self.queue.next(self.tell_at()) {
                Work::Write(batches) => {
                    self.write_batches(&batches);
                    // A loss is reported after the lines queued at that time. The report is forced
                    // here if the queue never gets empty.
                    if self.is_overdue() {
                        self.tell();
                    }
                }
                Work::Tell => self.tell(),
                Work::End => return,
            }
        }
    }

    /// Time of the next loss report, if there is a loss to report.
    fn tell_at(&self) -> Option<Instant> {
        if self.queue.lost() == self.told {
            return None;
        }
        Some(self.told_at.map_or_else(Instant::now, |at| at + TELL_PERIOD))
    }

    fn is_overdue(&mut self) -> bool {
        if self.queue.lost() == self.told {
            return false;
        }
        self.lost_since.get_or_insert_with(Instant::now).elapsed() > TELL_PERIOD
    }

    fn tell(&mut self) {
        let lines = self.queue.lost() - self.told;
        (self.told_at, self.lost_since) = (Some(Instant::now()), None);
        if self.say(&LogProblem::Lost { lines, error: self.error.clone() }) {
            self.told += lines;
            self.error = None;
        }
    }

    fn say(&mut self, trouble: &LogProblem) -> bool {
        match &mut self.notice {
            Notice::Line(line) => {
                let line = line(trouble);
                self.write(line.as_bytes()).is_ok()
            }
            Notice::Elsewhere(say) => {
                say(trouble);
                true
            }
        }
    }

    /// Joins batches into writes of whole lines.
    fn write_batches(&mut self, batches: &[Batch]) {
        let mut rest = batches;
        while !rest.is_empty() {
            // For a daemon, batches of different sources stay separate.
            let bytes_max = if self.out.kind == Kind::Daemon { 0 } else { WRITE_BYTES_MAX };
            let mut text = Vec::with_capacity(WRITE_BYTES_MAX);
            let mut count = 0;
            for batch in rest {
                if count > 0 && text.len() + batch.text.len() > bytes_max {
                    break;
                }
                text.extend_from_slice(&batch.text);
                count += 1;
            }
            let (done, later) = rest.split_at(count);
            if let Err(lines) = self.write(&text) {
                self.queue.lose(lines);
            }
            self.queue.release(done);
            rest = later;
        }
    }

    /// Writes whole lines. The error is the number of lines that were not written completely.
    fn write(&mut self, lines: &[u8]) -> Result<(), u64> {
        if self.reopens.swap(false, Ordering::AcqRel) {
            self.open_again();
        }
        if self.out.kind == Kind::Daemon {
            return self.tell_daemon(lines);
        }
        if self.is_mid_line {
            self.write_all(b"\n").map_err(|_| count_lines(lines))?;
            self.is_mid_line = false;
        }
        let (written, result) = match self.write_all(lines) {
            Ok(()) => (lines.len(), Ok(())),
            Err(written) => (written, Err(count_lines(&lines[written..]))),
        };
        if written > 0 {
            self.is_mid_line = lines[written - 1] != b'\n';
        }
        result
    }

    /// Sends each record. The error is the number of lines that the daemon did not receive.
    fn tell_daemon(&mut self, lines: &[u8]) -> Result<(), u64> {
        let Target::Daemon(daemon) = self.target.clone() else { return Err(count_lines(lines)) };
        let mut lost = 0;
        for record in records(lines) {
            let is_told = daemon.datagrams(record).all(|datagram| self.send(&datagram));
            if !is_told {
                lost += 1 + count_lines(record);
            }
        }
        if lost > 0 { Err(lost) } else { Ok(()) }
    }

    /// Sends a datagram, and waits as long as needed. A restarted daemon has another socket with
    /// the same name, so this reconnects once.
    fn send(&mut self, datagram: &[u8]) -> bool {
        let mut was_opened = false;
        loop {
            match rustix::net::send(&self.out.fd, datagram, SendFlags::NOSIGNAL) {
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !self.wait_for_room() {
                        return false;
                    }
                }
                Err(Errno::CONNREFUSED | Errno::CONNRESET | Errno::NOTCONN | Errno::PIPE)
                    if !was_opened =>
                {
                    was_opened = true;
                    match self.target.open() {
                        Ok(out) => self.out = out,
                        Err(error) => {
                            self.error = Some(error.to_string());
                            return false;
                        }
                    }
                }
                Err(error) => {
                    self.error = Some(error.to_string());
                    return false;
                }
            }
        }
    }

    fn open_again(&mut self) {
        if let Some((target, out)) = lock(&self.next).take() {
            (self.target, self.out, self.is_mid_line) = (target, out, false);
            return;
        }
        match self.target.open() {
            Ok(out) => (self.out, self.is_mid_line) = (out, false),
            // The old file stays in use; only the operator triggers another attempt.
            Err(error) => {
                self.say(&LogProblem::NotReopened { error: error.to_string() });
            }
        }
    }

    /// Writes all bytes, and waits as long as needed. The error is the number of bytes written
    /// before a failure.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut written = 0;
        while written < bytes.len() {
            if self.out.kind != Kind::File && !self.wait_for_room() {
                return Err(written);
            }
            let end = match self.out.kind {
                Kind::File => bytes.len(),
                _ => written + WRITE_BYTES_MAX,
            };
            match rustix::io::write(&self.out.fd, &bytes[written..end.min(bytes.len())]) {
                Ok(n) if n > 0 => written += n,
                Err(Errno::INTR) => {}
                // Another process that shares the pipe used the room first.
                Err(Errno::AGAIN) => std::thread::sleep(AGAIN_PAUSE),
                other => {
                    self.error = Some(other.err().unwrap_or(Errno::IO).to_string());
                    return Err(written);
                }
            }
        }
        Ok(())
    }

    /// Waits until there is room. A write to a full pipe would wait too, but could not report
    /// losses meanwhile. Returns false if the target is no longer in use.
    fn wait_for_room(&mut self) -> bool {
        loop {
            let mut out = [PollFd::new(&self.out.fd, PollFlags::OUT)];
            // If the descriptor has an error, the write reports it.
            if poll(&mut out, Some(&ROOM_LOOK)) != Ok(0) {
                return true;
            }
            if self.reopens.load(Ordering::Acquire) || self.queue.is_over() {
                return false;
            }
            if matches!(self.notice, Notice::Elsewhere(_)) && self.is_overdue() {
                self.tell();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{BATCH_BYTES, QUEUE_BYTES_MAX};
    use std::io::Read;
    use std::path::Path;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Starts a log whose notices are lines of its own.
    fn log_to(path: &Path) -> Log {
        let notice = Notice::Line(Box::new(|trouble| format!("log: {trouble}\n")));
        Log::start("test-log", Target::File(path.to_owned()), notice).expect("a log")
    }

    #[test]
    fn log_writes_lines_in_order_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = log_to(&path);
        let much = "x".repeat(3 * WRITE_BYTES_MAX);
        for n in 0..1000 {
            assert!(log.put(format!("line {n}\n")));
        }
        assert!(log.put(format!("{much}\nthe last\n")));
        assert!(log.flush(LIMIT));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut expected: Vec<_> = (0..1000).map(|n| format!("line {n}")).collect();
        expected.extend([much, "the last".to_owned()]);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn reopen_after_move_creates_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| folder.path().join(name));
        let log = log_to(&path);
        log.put("one\n");
        assert!(log.flush(LIMIT));
        std::fs::rename(&path, &moved).unwrap();
        log.reopen();
        log.put("two\n");
        assert!(log.flush(LIMIT));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        log.reopen();
        log.put("three\n");
        assert!(log.flush(LIMIT));
        let text = std::fs::read_to_string(&moved).unwrap();
        assert!(text.starts_with("two\nlog: cannot be reopened: "), "{text}");
        assert!(text.ends_with("three\n"), "{text}");
    }

    #[test]
    fn redirect_switches_target_if_it_opens() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["log", "other"].map(|name| folder.path().join(name));
        let log = log_to(&path);
        log.put("one\n");
        assert!(log.flush(LIMIT));
        assert!(log.redirect(Target::File(folder.path().join("no/such/log"))).is_err());
        log.put("two\n");
        assert!(log.flush(LIMIT));
        log.redirect(Target::File(other.clone())).unwrap();
        log.put("three\n");
        assert!(log.flush(LIMIT));
        // A reopen applies to the new target.
        std::fs::remove_file(&other).unwrap();
        log.reopen();
        log.put("four\n");
        assert!(log.flush(LIMIT));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "four\n");
    }

    #[test]
    fn full_disk_counts_and_reports_lost_lines() {
        let (told, hear) = std::sync::mpsc::channel();
        let notice =
            Notice::Elsewhere(Box::new(move |trouble| drop(told.send(trouble.to_string()))));
        let log = Log::start("test-log", Target::File("/dev/full".into()), notice).unwrap();
        log.put("one\ntwo\n");
        assert!(log.flush(LIMIT));
        assert_eq!(log.lost(), 2);
        let text = hear.recv_timeout(LIMIT).unwrap();
        assert_eq!(text, "2 lines were lost: No space left on device (os error 28)");
    }

    #[test]
    fn put_does_not_wait_for_unread_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, 0o600.into(), 0).unwrap();
        let log = log_to(&path);
        let line = format!("{}\n", "x".repeat(999));
        let kept = (0..20_000).filter(|_| log.put(line.as_str())).count() as u64;
        // The writer may not have taken any line yet.
        let queue = (QUEUE_BYTES_MAX / (line.len() + BATCH_BYTES)) as u64;
        assert!((queue..5000).contains(&kept), "{kept}");
        let lost = 20_000 - kept;
        assert_eq!(log.lost(), lost);
        assert!(!log.flush(Duration::from_millis(1)));
        let mut reader = std::fs::File::open(&path).unwrap();
        let (mut text, mut bytes) = (Vec::new(), vec![0; 65536]);
        while !text.ends_with(b"the log queue was full\n") {
            let n = reader.read(&mut bytes).unwrap();
            text.extend_from_slice(&bytes[..n]);
        }
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches(&line).count() as u64, kept);
        let told = format!("log: {},{:03} ", lost / 1000, lost % 1000);
        assert!(text.contains(&told), "{told}: {}", &text[text.len() - 200..]);
    }

    #[test]
    fn line_after_partial_write_starts_on_new_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let queue = Arc::<Queue>::default();
        let target = Target::File(path.clone());
        let mut writer = Writer {
            out: target.open().unwrap(),
            target,
            next: Next::default(),
            queue,
            reopens: Arc::default(),
            notice: Notice::Elsewhere(Box::new(|_| ())),
            told: 0,
            told_at: None,
            lost_since: None,
            error: None,
            is_mid_line: false,
        };
        writer.write_all(b"half").unwrap();
        writer.is_mid_line = true;
        writer.write(b"whole\n").unwrap();
        writer.write(b"whole too\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "half\nwhole\nwhole too\n");
    }
}
