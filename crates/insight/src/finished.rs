//! front → intake: one finished request.

use serde::{Deserialize, Serialize};

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
