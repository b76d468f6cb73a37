//! worker → aggregation thread: the worker's report on its request, in addition to its usage.
//!
//! The worker writes entries into its slot, the front copies them unread, and they are parsed here.
//! The bytes are not trusted, because a worker's memory may be corrupt. An entry is a tag, the
//! payload's length (u16, little-endian) and the payload; all numbers are little-endian.
//! `worker/csrc/insight/report.c` is the writing side.
//!
//! | tag | payload |
//! |---|---|
//! | 1 route | the name, UTF-8 |
//! | 2 wait | kind u8, times u32, ns u64, then the peer: UTF-8, may be empty; a file's class |
//! | 3 timer | hits u32, wall ns u64, user ns u64, system ns u64, then tags, each as in row 4 |
//! | 4 tag of the request | name and value, each a length u8 and UTF-8 |
//! | 5 place | position of PHP during its longest wait, UTF-8: `App\Foo::bar() src/Foo.php:12` |
//! | 6 dropped | number of entries that did not fit, u32 |
//! | 7 boot | ns u64 from its start to the take (0: at the take, in the run), duration ns u64 |
//! | 8 error | kind u8, line u32, class and file as in row 4, message and stack with u16 lengths |
//! | 9 statement | kind u8, calls u32, ns u64, rows u64, place calls u32, line u32, file, text |
//! | 10 spans | for each: kind u8, entry u16, start µs u32, duration µs u32 |
//! | 11 CPU delay | ns u64 in which the request could run, and other processes did |
//!
//! The file of a statement is as in row 4. Its text is UTF-8 up to the end, without literals. The
//! entry of a span is the number of its statement or wait, counted from 0 for each kind. Its start
//! is the time after the take.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Maximum bytes of a report.
pub const REPORT_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes of a name: of a route, a peer, a tag.
const NAME_BYTES_MAX: usize = 255;
/// Maximum bytes of the message of an error.
const MESSAGE_BYTES_MAX: usize = 512;
/// Maximum bytes of the stack of an error.
const STACK_BYTES_MAX: usize = 1536;

/// Bytes of a span.
const SPAN_BYTES: usize = 11;
/// Maximum bytes of the text of a statement, and of the mark of a text that was cut off.
const TEXT_BYTES_MAX: usize = samovar_log::STATEMENT_BYTES_MAX + 8;

/// Maximum number of boots of one request: its worker's and its script's.
pub(crate) const BOOTS_MAX: usize = 2;

/// Kind of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A TCP peer: `10.0.0.5:5432`.
    Tcp = 0,
    /// A unix socket: `/run/mysqld/mysqld.sock`.
    Unix = 1,
    /// A UDP peer.
    Udp = 2,
    /// A file lock or a System V lock: the file's class, if there is one.
    Lock = 3,
    /// Name resolution: `getaddrinfo` and similar functions.
    Dns = 4,
    /// `sleep`, `usleep`, `time_nanosleep` …
    Sleep = 5,
    /// A pipe, a terminal, the end of a child process.
    Pipe = 6,
    /// A file on a disk.
    File = 7,
    /// The client: receiving its body, or sending the response to it.
    Client = 8,
    /// Several descriptors at once, of which none was ready first.
    Poll = 9,
    /// Any other wait.
    Other = 10,
}

impl WaitKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [WaitKind; 11] = [
        WaitKind::Tcp,
        WaitKind::Unix,
        WaitKind::Udp,
        WaitKind::Lock,
        WaitKind::Dns,
        WaitKind::Sleep,
        WaitKind::Pipe,
        WaitKind::File,
        WaitKind::Client,
        WaitKind::Poll,
        WaitKind::Other,
    ];

    /// Returns the name in labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Tcp => "tcp",
            WaitKind::Unix => "unix",
            WaitKind::Udp => "udp",
            WaitKind::Lock => "lock",
            WaitKind::Dns => "dns",
            WaitKind::Sleep => "sleep",
            WaitKind::Pipe => "pipe",
            WaitKind::File => "file",
            WaitKind::Client => "client",
            WaitKind::Poll => "poll",
            WaitKind::Other => "other",
        }
    }
}

/// Total wait for one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    /// Kind of the wait.
    pub kind: WaitKind,
    /// Peer: an address or the class of a file; empty if the kind has none.
    pub peer: &'a str,
    /// Number of waits.
    pub times: u32,
    /// Total time in ns.
    pub ns: u64,
}

/// A boot of the worker, before the first request that it took, or of the script itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Time from its start to the take. 0: it began at the take and is the first part of the run.
    pub ago_ns: u64,
    /// Duration.
    pub ns: u64,
}

impl Boot {
    /// Returns the part of the boot within the request: its start after the request's start, and
    /// its duration. Returns `None` if the boot ended before the request arrived.
    #[must_use]
    pub fn within(self, queue_ns: u64) -> Option<(u64, u64)> {
        if self.ago_ns == 0 {
            return Some((queue_ns, self.ns));
        }
        let end_ns = queue_ns.checked_sub(self.ago_ns.saturating_sub(self.ns))?;
        let begin_ns = queue_ns.saturating_sub(self.ago_ns);
        (end_ns > begin_ns).then_some((begin_ns, end_ns - begin_ns))
    }

    /// Returns whether the boot is a part of the run.
    #[must_use]
    pub fn is_of_run(self) -> bool {
        self.ago_ns == 0
    }
}

/// Kind of an error: its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// PHP ended the request.
    Fatal = 0,
    /// No code caught the exception.
    Uncaught = 1,
    /// The application caught the exception, and its response has a status of 500 or above.
    Rendered = 2,
    /// The application reported the exception.
    Reported = 3,
    /// The cause of the error before it.
    Previous = 4,
}

impl ErrorKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [ErrorKind; 5] = [
        ErrorKind::Fatal,
        ErrorKind::Uncaught,
        ErrorKind::Rendered,
        ErrorKind::Reported,
        ErrorKind::Previous,
    ];

    /// Returns the name in labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Fatal => "fatal",
            ErrorKind::Uncaught => "uncaught",
            ErrorKind::Rendered => "rendered",
            ErrorKind::Reported => "reported",
            ErrorKind::Previous => "previous",
        }
    }
}

/// An exception or a fatal error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedError<'a> {
    /// Its fate.
    pub kind: ErrorKind,
    /// Class of the exception, or the name of PHP's error level, such as `E_ERROR`.
    pub class: &'a str,
    /// File; a long path is cut at its start.
    pub file: &'a str,
    /// Line.
    pub line: u32,
    /// Message.
    pub message: Cow<'a, str>,
    /// Stack, one line per frame, innermost first, without arguments.
    pub stack: &'a str,
}

/// Kind of a statement: its language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementKind {
    /// SQL, without literals.
    #[default]
    Sql = 0,
    /// A HTTP request: method, host and pattern of the path.
    Http = 1,
    /// A command of Redis, without its arguments.
    Redis = 2,
}

impl StatementKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [StatementKind; 3] =
        [StatementKind::Sql, StatementKind::Http, StatementKind::Redis];

    /// Returns the name in labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StatementKind::Sql => "sql",
            StatementKind::Http => "http",
            StatementKind::Redis => "redis",
        }
    }
}

/// All executions of one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its language.
    pub kind: StatementKind,
    /// Text without literals.
    pub text: &'a str,
    /// Number of executions.
    pub calls: u32,
    /// Total time in ns.
    pub ns: u64,
    /// Rows read or changed; 0: none, or not known.
    pub rows: u64,
    /// Number of executions from the position in PHP that executed it most often.
    pub place_calls: u32,
    /// File of this position; a long path is cut at its start, and empty without a position.
    pub file: &'a str,
    /// Line.
    pub line: u32,
}

/// Kind of a span in the timeline of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// One execution of a statement.
    Statement = 0,
    /// One wait.
    Wait = 1,
}

/// One execution of a statement, or one wait. Times in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedSpan {
    /// Its kind.
    pub kind: SpanKind,
    /// Index in the list of statements or of waits.
    pub index: u16,
    /// Start after the take.
    pub from_us: u32,
    /// Duration.
    pub us: u32,
}

/// Spans of a report, not parsed yet: most requests are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSpans<'a>(&'a [u8]);

impl<'a> TimedSpans<'a> {
    /// Returns the spans in the order of their ends. Spans of an unknown kind are skipped.
    pub fn iter(self) -> impl Iterator<Item = TimedSpan> + 'a {
        self.0.chunks_exact(SPAN_BYTES).filter_map(|bytes| {
            let mut fields = Fields(bytes);
            Some(TimedSpan {
                kind: match fields.u8()? {
                    0 => SpanKind::Statement,
                    1 => SpanKind::Wait,
                    _ => return None,
                },
                index: fields.array().map(u16::from_le_bytes)?,
                from_us: fields.u32()?,
                us: fields.u32()?,
            })
        })
    }

    /// Encodes spans as a worker does, for tests.
    #[must_use]
    pub fn encode(spans: &[TimedSpan]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for span in spans {
            bytes.push(span.kind as u8);
            bytes.extend(span.index.to_le_bytes());
            bytes.extend([span.from_us.to_le_bytes(), span.us.to_le_bytes()].concat());
        }
        bytes
    }

    /// Reads encoded spans. Returns `None` if their length is impossible.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Option<TimedSpans<'a>> {
        bytes.len().is_multiple_of(SPAN_BYTES).then_some(TimedSpans(bytes))
    }
}

/// Tags as (name, value).
pub type Tags<'a> = Vec<(&'a str, &'a str)>;

/// One entry of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Route name that the application gave.
    Route(&'a str),
    /// A wait.
    Wait(Wait<'a>),
    /// A timer's hits, wall, user and system time in ns.
    Timer {
        /// Number of times it was started and stopped.
        hits: u32,
        /// Wall time.
        wall_ns: u64,
        /// CPU time in user mode.
        user_ns: u64,
        /// CPU time in the kernel.
        system_ns: u64,
        /// Tags of the timer.
        tags: Tags<'a>,
    },
    /// A tag of the whole request.
    Tag(&'a str, &'a str),
    /// Position of PHP during its longest wait.
    Place(&'a str),
    /// Number of entries that did not fit.
    Dropped(u32),
    /// A boot before the application's own work.
    Boot(Boot),
    /// An exception or a fatal error.
    Error(ReportedError<'a>),
    /// A statement.
    Statement(Statement<'a>),
    /// The order of the statements and waits.
    Spans(TimedSpans<'a>),
    /// Time in ns in which the request could run, and other processes did.
    CpuDelay(u64),
}

impl Entry<'_> {
    /// Encodes the entry as a worker does, for tests and benchmarks. Names are truncated to 255
    /// bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = |text: &str| {
            let length = text.floor_char_boundary(NAME_BYTES_MAX);
            [&[length as u8], &text.as_bytes()[..length]].concat()
        };
        let (tag, payload) = match self {
            Entry::Route(route) => (1, name(route)[1..].to_vec()),
            Entry::Wait(Wait { kind, peer, times, ns }) => {
                let numbers = [&times.to_le_bytes()[..], &ns.to_le_bytes()].concat();
                (2, [&[*kind as u8], &numbers[..], &name(peer)[1..]].concat())
            }
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                let mut payload = hits.to_le_bytes().to_vec();
                for ns in [wall_ns, user_ns, system_ns] {
                    payload.extend(ns.to_le_bytes());
                }
                payload.extend(tags.iter().flat_map(|(n, v)| [name(n), name(v)].concat()));
                (3, payload)
            }
            Entry::Tag(n, v) => (4, [name(n), name(v)].concat()),
            Entry::Place(place) => (5, name(place)[1..].to_vec()),
            Entry::Dropped(n) => (6, n.to_le_bytes().to_vec()),
            Entry::Boot(Boot { ago_ns, ns }) => {
                (7, [ago_ns.to_le_bytes(), ns.to_le_bytes()].concat())
            }
            Entry::Error(ReportedError { kind, class, file, line, message, stack }) => {
                let long = |text: &str, max: usize| {
                    let length = text.floor_char_boundary(max);
                    [&(length as u16).to_le_bytes()[..], &text.as_bytes()[..length]].concat()
                };
                let mut payload = vec![*kind as u8];
                payload.extend(line.to_le_bytes());
                payload.extend([name(class), name(file)].concat());
                payload.extend(long(message, MESSAGE_BYTES_MAX));
                payload.extend(long(stack, STACK_BYTES_MAX));
                (8, payload)
            }
            Entry::Statement(s) => {
                let mut payload = vec![s.kind as u8];
                payload.extend(s.calls.to_le_bytes());
                payload.extend([s.ns.to_le_bytes(), s.rows.to_le_bytes()].concat());
                payload.extend([s.place_calls.to_le_bytes(), s.line.to_le_bytes()].concat());
                payload.extend(name(s.file));
                payload.extend(&s.text.as_bytes()[..s.text.floor_char_boundary(TEXT_BYTES_MAX)]);
                (9, payload)
            }
            Entry::Spans(spans) => (10, spans.0.to_vec()),
            Entry::CpuDelay(ns) => (11, ns.to_le_bytes().to_vec()),
        };
        [&[tag], &(payload.len() as u16).to_le_bytes()[..], &payload[..]].concat()
    }
}

/// Error: a report is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed worker report at byte {at}")]
pub struct Malformed {
    /// Offset of the malformed entry.
    pub at: usize,
}

/// Iterator over the entries of a report. Ends after the first malformed entry.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Report<'a> {
    /// Reads `bytes`, at most [`REPORT_BYTES_MAX`] of them.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Report<'a> {
        Report { bytes: &bytes[..bytes.len().min(REPORT_BYTES_MAX)], at: 0 }
    }

    /// Reads entries that this process has encoded, without a limit.
    pub(crate) fn of_own(bytes: &'a [u8]) -> Report<'a> {
        Report { bytes, at: 0 }
    }
}

impl<'a> Iterator for Report<'a> {
    type Item = Result<Entry<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let mut rest = Fields(&self.bytes[self.at..]);
        let Some(entry) = rest.entry() else {
            let at = std::mem::replace(&mut self.at, self.bytes.len());
            return Some(Err(Malformed { at }));
        };
        self.at = self.bytes.len() - rest.0.len();
        Some(Ok(entry))
    }
}

/// The unread rest. Each method returns `None` if there are not enough bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn entry(&mut self) -> Option<Entry<'a>> {
        let tag = self.u8()?;
        let length = self.array().map(u16::from_le_bytes)?;
        let mut payload = Fields(self.bytes(length.into())?);
        let entry = match tag {
            1 => Entry::Route(payload.rest()?),
            2 => Entry::Wait(Wait {
                kind: *WaitKind::ALL.get(usize::from(payload.u8()?))?,
                times: payload.u32()?,
                ns: payload.u64()?,
                peer: payload.rest()?,
            }),
            3 => Entry::Timer {
                hits: payload.u32()?,
                wall_ns: payload.u64()?,
                user_ns: payload.u64()?,
                system_ns: payload.u64()?,
                tags: payload.tags()?,
            },
            4 => Entry::Tag(payload.name()?, payload.name()?),
            5 => Entry::Place(payload.rest()?),
            6 => Entry::Dropped(payload.u32()?),
            7 => Entry::Boot(Boot { ago_ns: payload.u64()?, ns: payload.u64()? }),
            8 => Entry::Error(payload.error()?),
            9 => Entry::Statement(payload.statement()?),
            10 => Entry::Spans(TimedSpans::of(payload.bytes(payload.0.len())?)?),
            11 => Entry::CpuDelay(payload.u64()?),
            _ => return None,
        };
        payload.0.is_empty().then_some(entry)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a name up to the end of the payload.
    fn rest(&mut self) -> Option<&'a str> {
        self.rest_of(NAME_BYTES_MAX)
    }

    /// Reads a text of at most `max` bytes up to the end of the payload.
    fn rest_of(&mut self, max: usize) -> Option<&'a str> {
        let all = self.bytes(self.0.len())?;
        (all.len() <= max).then(|| std::str::from_utf8(all).ok())?
    }

    /// Reads a text that is preceded by its length.
    fn name(&mut self) -> Option<&'a str> {
        let length = self.u8()?;
        std::str::from_utf8(self.bytes(length.into())?).ok()
    }

    /// Reads a text of at most `max` bytes that is preceded by its length as a u16.
    fn long_text(&mut self, max: usize) -> Option<&'a str> {
        let length = usize::from(self.array().map(u16::from_le_bytes)?);
        let text = self.bytes(length)?;
        (length <= max).then(|| std::str::from_utf8(text).ok())?
    }

    fn error(&mut self) -> Option<ReportedError<'a>> {
        Some(ReportedError {
            kind: *ErrorKind::ALL.get(usize::from(self.u8()?))?,
            line: self.u32()?,
            class: self.name()?,
            file: self.name()?,
            message: Cow::Borrowed(self.long_text(MESSAGE_BYTES_MAX)?),
            stack: self.long_text(STACK_BYTES_MAX)?,
        })
    }

    fn statement(&mut self) -> Option<Statement<'a>> {
        Some(Statement {
            kind: *StatementKind::ALL.get(usize::from(self.u8()?))?,
            calls: self.u32()?,
            ns: self.u64()?,
            rows: self.u64()?,
            place_calls: self.u32()?,
            line: self.u32()?,
            file: self.name()?,
            text: self.rest_of(TEXT_BYTES_MAX)?,
        })
    }

    fn tags(&mut self) -> Option<Tags<'a>> {
        let mut tags = Vec::new();
        while !self.0.is_empty() {
            tags.push((self.name()?, self.name()?));
        }
        Some(tags)
    }
}

#[cfg(test)]
mod tests;
