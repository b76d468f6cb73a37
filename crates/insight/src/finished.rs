//! front → intake: one finished request, and a batch of them.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How PHP ran a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// No PHP: a static file, or an answer of the front's own.
    #[default]
    None,
    /// The whole script.
    Script,
    /// Below a checkpoint.
    Checkpoint,
    /// By a resident application's handler.
    Resident,
    /// On another machine, which told of it.
    Elsewhere,
}

impl Model {
    /// In the order of their numbers.
    pub const ALL: [Model; 5] =
        [Model::None, Model::Script, Model::Checkpoint, Model::Resident, Model::Elsewhere];

    /// Its name in logs, labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Model::None => "none",
            Model::Script => "script",
            Model::Checkpoint => "checkpoint",
            Model::Resident => "resident",
            Model::Elsewhere => "elsewhere",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The client has the whole answer.
    #[default]
    Answered,
    /// The client left before it had.
    Aborted,
    /// The answer broke off: its worker died or spoke nonsense.
    Cut,
    /// No worker in time, or no room: 503.
    Refused,
    /// A worker gave no byte in time: 504.
    TimedOut,
    /// A worker died, and the request could not be run again: 502.
    Died,
    /// PHP ended it with a fatal error.
    Fatal,
    /// It ran longer than `max_execution_time` allows.
    Overtime,
    /// The client has the whole answer of a script that has called `exit()`.
    Exit,
}

impl End {
    /// In the order of their numbers.
    pub const ALL: [End; 9] = [
        End::Answered,
        End::Aborted,
        End::Cut,
        End::Refused,
        End::TimedOut,
        End::Died,
        End::Fatal,
        End::Overtime,
        End::Exit,
    ];

    /// Its name in logs, labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            End::Answered => "answered",
            End::Aborted => "aborted",
            End::Cut => "cut",
            End::Refused => "refused",
            End::TimedOut => "timed_out",
            End::Died => "died",
            End::Fatal => "fatal",
            End::Overtime => "overtime",
            End::Exit => "exit",
        }
    }
}

/// The figures of one request. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)] // A history may be older than a figure.
pub struct Numbers {
    /// When its head was parsed, µs since 1970.
    pub began_unix_us: u64,
    /// HTTP's status of the answer; 499 if the client left without one.
    pub status: u16,
    /// How PHP ran it.
    pub model: Model,
    /// How it ended.
    pub end: End,
    /// The application's generation (reloads count it up).
    pub generation: u32,
    /// The worker's process number; 0 without one.
    pub worker: u32,
    /// Its place among the workers.
    pub cell: u16,
    /// Runs after the first, because workers died.
    pub retries: u32,
    /// From the parsed head to the last byte given to the kernel, or the client's leaving.
    pub wall_ns: u64,
    /// From submit to take.
    pub queue_ns: u64,
    /// From take to finish: beyond `wall_ns` where the worker goes on when its client has the answer.
    pub run_ns: u64,
    /// CPU of the worker since its previous request, the rollback before this one included.
    pub cpu_ns: u64,
    /// Of that: the rollback that made the worker ready for this request.
    pub rollback_ns: u64,
    /// Pages that rollback copied.
    pub rollback_pages: u32,
    /// Page faults without and with a disk.
    pub faults_minor: u32,
    /// See `faults_minor`.
    pub faults_major: u32,
    /// Context switches because it waited, and because others wanted the core.
    pub switches_voluntary: u32,
    /// See `switches_voluntary`.
    pub switches_involuntary: u32,
    /// Peak of PHP's memory, bytes.
    pub peak_bytes: u64,
    /// It came by HTTPS, as far as one can believe who passed it on.
    pub is_https: bool,
    /// Body received.
    pub bytes_in: u64,
    /// Body sent.
    pub bytes_out: u64,
    /// The trace it belongs to (W3C), all zero without one.
    pub trace_id: [u8; 16],
    /// Its own span in that trace.
    pub span_id: [u8; 8],
    /// The span that asked for it, all zero without one.
    pub parent_span_id: [u8; 8],
    /// Whether its spans are kept by whoever collects the trace.
    pub is_sampled: bool,
}

/// One finished request as the front knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished<'a> {
    /// Times, sizes, codes.
    pub numbers: Numbers,
    /// The request's method.
    pub method: &'a str,
    /// The target's path, percent-encoding as it came, no query string.
    pub path: &'a str,
    /// The script that ran, relative to the document root; empty without one.
    pub script: &'a str,
    /// The request's id.
    pub id: &'a str,
    /// Whose workers it was for; empty where there is one pool.
    pub pool: &'a str,
    /// What the worker has said beside its usage (`report.rs`): hostile bytes.
    pub report: &'a [u8],
}

/// Where something stands in a batch's texts or reports.
#[derive(Clone, Copy, Debug)]
struct Part {
    begin: u32,
    end: u32,
}

impl Part {
    fn range(self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    numbers: Numbers,
    method: Part,
    path: Part,
    script: Part,
    id: Part,
    pool: Part,
    report: Part,
}

/// Requests in a row, their texts in one buffer, what workers said of them in another.
#[derive(Debug, Default)]
pub struct Batch {
    rows: Vec<Row>,
    texts: String,
    reports: Vec<u8>,
}

/// Rows of a batch at which it is handed on.
pub(crate) const BATCH_ROWS_MAX: usize = 256;
/// Bytes of a batch at which it is handed on. One row more may stand beyond: the longest has
/// five texts of at most [`TEXT_BYTES_MAX`] and a report.
pub(crate) const BATCH_BYTES_MAX: usize = 64 * 1024;
/// What is kept of a path, a script's name, an id.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;

impl Batch {
    /// Adds a request; texts beyond their limits are cut.
    pub fn put(&mut self, finished: &Finished) {
        let row = Row {
            numbers: finished.numbers,
            method: self.text(finished.method),
            path: self.text(finished.path),
            script: self.text(finished.script),
            id: self.text(finished.id),
            pool: self.text(finished.pool),
            report: self.report(finished.report),
        };
        self.rows.push(row);
    }

    fn text(&mut self, text: &str) -> Part {
        let begin = self.texts.len() as u32;
        self.texts.push_str(cut(text, TEXT_BYTES_MAX));
        Part { begin, end: self.texts.len() as u32 }
    }

    fn report(&mut self, report: &[u8]) -> Part {
        let begin = self.reports.len() as u32;
        self.reports.extend_from_slice(&report[..report.len().min(super::REPORT_BYTES_MAX)]);
        Part { begin, end: self.reports.len() as u32 }
    }

    /// Whether it is to be handed on.
    pub(crate) fn is_full(&self) -> bool {
        let bytes = self.texts.len() + self.reports.len();
        self.rows.len() >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX
    }

    /// How many requests it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.texts.clear();
        self.reports.clear();
    }

    /// The requests, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = Finished<'_>> {
        self.rows.iter().map(|row| Finished {
            numbers: row.numbers,
            method: &self.texts[row.method.range()],
            path: &self.texts[row.path.range()],
            script: &self.texts[row.script.range()],
            id: &self.texts[row.id.range()],
            pool: &self.texts[row.pool.range()],
            report: &self.reports[row.report.range()],
        })
    }
}

/// The beginning of a text, at most so many bytes, in whole characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES_MAX, Batch, Finished, Numbers, TEXT_BYTES_MAX};

    #[test]
    fn what_is_put_comes_out_again() {
        let mut batch = Batch::default();
        let long = "ä".repeat(TEXT_BYTES_MAX);
        for n in 0..3 {
            let path = format!("/page/{n}");
            batch.put(&Finished {
                numbers: Numbers { status: 200 + n, ..Numbers::default() },
                method: "GET",
                path: &path,
                script: &long,
                id: "",
                pool: "api",
                report: b"\x01",
            });
        }
        let all: Vec<_> = batch.iter().collect();
        assert_eq!(all.len(), 3);
        for (n, one) in all.iter().enumerate() {
            assert_eq!((one.method, one.id, one.report), ("GET", "", &b"\x01"[..]));
            assert_eq!((one.path, one.pool), (&*format!("/page/{n}"), "api"));
            assert_eq!(usize::from(one.numbers.status), 200 + n);
            assert_eq!(one.script, "ä".repeat(TEXT_BYTES_MAX / 2));
        }
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn long_rows_fill_a_batch_before_many_do() {
        let mut batch = Batch::default();
        let text = "x".repeat(TEXT_BYTES_MAX);
        let finished = Finished { path: &text, script: &text, ..Finished::default() };
        while !batch.is_full() {
            batch.put(&finished);
        }
        assert_eq!(batch.len(), BATCH_BYTES_MAX / (2 * TEXT_BYTES_MAX));
    }
}
