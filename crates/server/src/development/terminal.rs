//! Lines for people in the terminal: requests, changes, failed boots. Plain text if the output is
//! no terminal.

use super::boot_error::BootError;
use anyhow::{Context, Result};
use samovar_insight::{Entry, Fate, RecordedError, Seen, Sink, Tally, WaitKind};
use samovar_log::{Log, Notice, Target};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Ports of databases and of the stores that applications use like databases.
const DATABASE_PORTS: [&str; 8] =
    ["1433", "1521", "3306", "3307", "5432", "6432", "27017", "33060"];
/// Parts of the names of databases' sockets.
const DATABASE_SOCKETS: [&str; 4] = ["mysql", "maria", "postgres", ".s.PGSQL"];
const HTTP_PORTS: [&str; 5] = ["80", "443", "8000", "8080", "9200"];
/// Width of the column of paths.
const PATH_WIDTH: usize = 40;

/// The terminal. Lines are written by a thread, so that no request waits for it.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    log: Log,
    has_colors: bool,
}

/// Colour of a word, as an SGR parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Color {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
    Grey = 90,
}

impl Terminal {
    pub(super) fn open() -> Result<Terminal> {
        let notice =
            Notice::Elsewhere(Box::new(|trouble| tracing::warn!("request lines: {trouble}")));
        let log = Log::start("terminal", Target::Stdout, notice);
        let log = log.context("cannot write to the terminal")?;
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let has_colors = std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb;
        Ok(Terminal { log, has_colors })
    }

    fn paint(&self, color: Color, text: &str) -> String {
        if self.has_colors {
            format!("\x1b[{}m{text}\x1b[0m", color as u8)
        } else {
            text.to_owned()
        }
    }

    fn put(&self, text: String) {
        self.log.put(text + "\n");
    }

    /// Writes a message.
    pub(super) fn say(&self, text: &str) {
        self.put(format!("{} {text}", self.paint(Color::Cyan, "dev")));
    }

    /// Writes a warning.
    pub(super) fn warn(&self, text: &str) {
        self.put(format!("{} {text}", self.paint(Color::Yellow, "warning:")));
    }

    /// Reports changed files, and the time until the new version served.
    pub(super) fn changed(&self, files: &str, reload: Option<Duration>) {
        let mark = self.paint(Color::Green, "changed");
        self.put(match reload {
            Some(took) => format!("{mark} {files}: new version after {} ms", took.as_millis()),
            None => format!("{mark} {files}"),
        });
    }

    /// Reports a version that does not boot.
    pub(super) fn failed(&self, files: &str, why: &str, error: Option<&BootError>) {
        let mark = self.paint(Color::Red, "failed");
        let mut text = format!("{mark} {files}: the last good version keeps serving");
        // Writing to a string cannot fail.
        let _ = match error {
            None => write!(text, "\n  {}", why.replace('\n', "\n  ")),
            Some(BootError { class, message, file, line, stack }) => {
                let head = self.paint(Color::Red, &printable(class));
                let message = printable(message);
                let stack = stack.lines().map(|line| format!("\n  {}", printable(line)));
                let stack: String = stack.collect();
                write!(text, "\n  {head}: {message}\n  at {}:{line}{stack}", printable(file))
            }
        };
        self.put(text);
    }
}

/// Writes a line for each finished request.
pub(super) struct RequestLines {
    terminal: Terminal,
    project: PathBuf,
    tally: Arc<Tally>,
}

impl RequestLines {
    pub(super) fn new(terminal: Terminal, project: PathBuf) -> RequestLines {
        RequestLines { terminal, project, tally: Tally::new("terminal") }
    }
}

impl Sink for RequestLines {
    fn take(&mut self, seen: &Seen) {
        if seen.finished.path.starts_with("/_samovar/") {
            return;
        }
        self.terminal.put(line(&self.terminal, &self.project, seen));
        self.tally.add(Fate::Passed, 1);
    }

    fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }
}

/// `GET    /shop   200   12.3 ms  sql 4.1 ms (5)  http 80 ms (1)  6.0 MB`, then the errors.
fn line(terminal: &Terminal, project: &Path, seen: &Seen) -> String {
    let finished = seen.finished;
    let numbers = &finished.numbers;
    let color = match numbers.status {
        500.. => Color::Red,
        400..=499 => Color::Yellow,
        300..=399 => Color::Cyan,
        _ => Color::Green,
    };
    let mut text = format!(
        "{:<6} {:<PATH_WIDTH$} {} {:>9}",
        printable(finished.method),
        printable(finished.path),
        terminal.paint(color, &numbers.status.to_string()),
        milliseconds(numbers.wall_ns)
    );
    let waits = [("sql", Peer::Database), ("http", Peer::Http), ("wait", Peer::Other)];
    for (name, peer) in waits {
        let (mut ns, mut times) = (0, 0_u64);
        for entry in seen.entries {
            if let Entry::Wait(wait) = entry
                && Peer::of(wait.kind, wait.peer) == Some(peer)
            {
                ns += wait.ns;
                times += u64::from(wait.times);
            }
        }
        if times > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "  {name} {} ({times})", milliseconds(ns));
        }
    }
    if numbers.peak_bytes > 0 {
        let tenths = numbers.peak_bytes / 100_000;
        let _ = write!(text, "  {}.{} MB", tenths / 10, tenths % 10);
    }
    for error in RecordedError::of_entries(seen.entries) {
        let path = Path::new(&*error.file);
        let file = path.strip_prefix(project).unwrap_or(path).display().to_string();
        let class = terminal.paint(Color::Red, &printable(&error.class));
        let place = terminal.paint(Color::Grey, &format!("{}:{}", printable(&file), error.line));
        let _ = write!(text, "\n  {class}: {}  {place}", printable(&error.message));
    }
    text
}

/// Kind of a peer that a request has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Database,
    Http,
    Other,
}

impl Peer {
    /// Returns `None` for waits that are no work of the application.
    fn of(kind: WaitKind, peer: &str) -> Option<Peer> {
        let port = peer.rsplit_once(':').map_or("", |(_, port)| port);
        match kind {
            WaitKind::Client => None,
            WaitKind::Tcp if DATABASE_PORTS.contains(&port) => Some(Peer::Database),
            WaitKind::Unix if DATABASE_SOCKETS.iter().any(|part| peer.contains(part)) => {
                Some(Peer::Database)
            }
            WaitKind::Tcp if HTTP_PORTS.contains(&port) => Some(Peer::Http),
            _ => Some(Peer::Other),
        }
    }
}

fn milliseconds(ns: u64) -> String {
    let tenths = ns / 100_000;
    if tenths < 1_000 {
        format!("{}.{} ms", tenths / 10, tenths % 10)
    } else {
        format!("{} ms", tenths / 10)
    }
}

/// Escapes control characters: no text of a request or of PHP may control the terminal.
fn printable(text: &str) -> String {
    let escape = |character: char| match character {
        '\n' => vec![' '],
        character if character.is_control() => character.escape_default().collect(),
        character => vec![character],
    };
    text.chars().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_insight::{ErrorKind, Finished, Numbers, ReportedError, Wait};

    #[test]
    fn request_line_has_times_waits_memory_and_errors() {
        let notice = Notice::Elsewhere(Box::new(|_| ()));
        let log = Log::start("test", Target::Stdout, notice).expect("a thread");
        let terminal = Terminal { log, has_colors: false };
        let wait = |kind, peer, times, ns| Entry::Wait(Wait { kind, peer, times, ns });
        let error = ReportedError {
            kind: ErrorKind::Uncaught,
            class: "App\\Lost",
            file: "/srv/src/Shop.php",
            line: 9,
            message: "no \x1b[2J stock\n".into(),
            stack: "",
        };
        let entries = [
            wait(WaitKind::Tcp, "10.0.0.5:5432", 3, 4_000_000),
            wait(WaitKind::Unix, "/run/mysqld/mysqld.sock", 2, 100_000),
            wait(WaitKind::Tcp, "api.example:443", 1, 812_000_000),
            wait(WaitKind::Sleep, "", 1, 5_000_000),
            wait(WaitKind::Client, "", 1, 5_000_000),
            Entry::Error(error),
        ];
        let numbers = Numbers {
            status: 500,
            wall_ns: 823_400_000,
            peak_bytes: 6_000_000,
            ..Numbers::default()
        };
        let finished = Finished { numbers, method: "GET", path: "/shop", ..Finished::default() };
        let (route, now, scene) = ("shop", 0, None);
        let seen = Seen { finished: &finished, route, entries: &entries, now, scene };
        let path = format!("{:<PATH_WIDTH$}", "/shop");
        assert_eq!(
            line(&terminal, Path::new("/srv"), &seen),
            format!(
                "GET    {path} 500    823 ms  sql 4.1 ms (5)  http 812 ms (1)  wait 5.0 ms (1)  \
                 6.0 MB\n  App\\Lost: no \\u{{1b}}[2J stock   src/Shop.php:9"
            )
        );
    }
}
