//! front → intake: one finished request.

use crate::hex_id;
use serde::{Deserialize, Serialize};

/// Execution model of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// No PHP: a static file, or a response of the front itself.
    #[default]
    None,
    /// A whole script.
    Script,
    /// A booted application, from its checkpoint.
    Checkpoint,
    /// The handler of a resident application.
    Resident,
    /// On another machine, which reported it.
    Elsewhere,
}

impl Model {
    /// All models, in the order of their numbers.
    pub const ALL: [Model; 5] =
        [Model::None, Model::Script, Model::Checkpoint, Model::Resident, Model::Elsewhere];

    /// Returns the name in logs, labels and pages.
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

/// Outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The client received the whole response.
    #[default]
    Completed,
    /// The client disconnected before the end of the response.
    Aborted,
    /// The response broke off: its worker died or sent invalid data.
    Cut,
    /// No worker in time, or the queue was full: 503.
    Refused,
    /// A worker sent no byte in time: 504.
    TimedOut,
    /// A worker died, and the request could not be run again: 502.
    Died,
    /// PHP ended with a fatal error.
    Fatal,
    /// The script exceeded `max_execution_time`.
    Overtime,
    /// The script called `exit()`, and the client received the whole response.
    Exit,
}

impl End {
    /// All outcomes, in the order of their numbers.
    pub const ALL: [End; 9] = [
        End::Completed,
        End::Aborted,
        End::Cut,
        End::Refused,
        End::TimedOut,
        End::Died,
        End::Fatal,
        End::Overtime,
        End::Exit,
    ];

    /// Returns the name in logs, labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            End::Completed => "completed",
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

/// Figures of one request. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)] // A history may have been written by an older version.
pub struct Numbers {
    /// Time when the head was parsed, µs since 1970.
    pub began_unix_us: u64,
    /// HTTP status of the response; 499 if the client disconnected before there was one.
    pub status: u16,
    /// Execution model.
    pub model: Model,
    /// Outcome.
    pub end: End,
    /// Generation of the application; reloads increase it.
    pub generation: u32,
    /// Process id of the worker; 0 without one.
    pub worker: u32,
    /// Index of the worker's cell in the ring.
    pub cell: u16,
    /// Number of runs after the first, because workers died.
    pub retries: u32,
    /// Time from the parsed head to the last byte passed to the kernel, or to the client's
    /// disconnect.
    pub wall_ns: u64,
    /// Time from submit to take.
    pub queue_ns: u64,
    /// Time from take to finish. It exceeds `wall_ns` if the worker continues after the response is
    /// complete.
    pub run_ns: u64,
    /// CPU time of the worker since its previous request, the rollback before this one included.
    pub cpu_ns: u64,
    /// Part of `cpu_ns`: the rollback that prepared the worker for this request.
    pub rollback_ns: u64,
    /// Pages that the rollback copied.
    pub rollback_pages: u32,
    /// Page faults without disk access.
    pub faults_minor: u32,
    /// Page faults with disk access.
    pub faults_major: u32,
    /// Context switches because the process waited.
    pub switches_voluntary: u32,
    /// Context switches because other processes needed the core.
    pub switches_involuntary: u32,
    /// Peak of PHP's memory, bytes.
    pub peak_bytes: u64,
    /// Memory of PHP that the request has left in a resident worker, bytes; negative if it has
    /// freed memory of earlier requests.
    pub grown_bytes: i64,
    /// Whether the client used HTTPS, as far as forwarded headers can be trusted.
    pub is_https: bool,
    /// Bytes of the received body.
    pub bytes_in: u64,
    /// Bytes of the sent body.
    pub bytes_out: u64,
    /// Id of its trace (W3C); all zero without one.
    #[serde(with = "hex_id")]
    pub trace_id: [u8; 16],
    /// Id of its own span.
    #[serde(with = "hex_id")]
    pub span_id: [u8; 8],
    /// Id of the calling span; all zero without one.
    #[serde(with = "hex_id")]
    pub parent_span_id: [u8; 8],
    /// Whether the trace is sampled.
    pub is_sampled: bool,
}

/// One finished request, as the front knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished<'a> {
    /// Times, sizes, codes.
    pub numbers: Numbers,
    /// Method of the request.
    pub method: &'a str,
    /// Path of the target, percent-encoded as received, without the query string.
    pub path: &'a str,
    /// Script that ran, relative to the document root; empty without one.
    pub script: &'a str,
    /// Id of the request.
    pub id: &'a str,
    /// Pool of the request; empty if the server has one pool.
    pub pool: &'a str,
    /// Report of the worker (`report.rs`), in addition to its usage: untrusted bytes.
    pub report: &'a [u8],
}
