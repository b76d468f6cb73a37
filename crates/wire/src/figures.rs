//! What the server's requests came to: the answer to `figures`. All of it are sums since the start, so that whoever asks twice
//! knows what was between.

use serde::{Deserialize, Serialize};

/// Routes of an answer: those that took most CPU.
pub const ROUTES_MAX: usize = 250;
/// Peers of an answer: those that were waited for longest.
pub const WAITS_MAX: usize = 250;

/// All requests. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// When this was, µs since 1970.
    pub at_unix_us: u64,
    /// Whether requests are measured at all.
    pub measured: bool,
    /// How many there were.
    pub requests: u64,
    /// Of them, those with a status of 500 or above.
    pub errors: u64,
    /// CPU time of workers.
    pub cpu_ns: u64,
    /// Time that PHP waited.
    pub waiting_ns: u64,
    /// Time in the queue.
    pub queue_ns: u64,
    /// Half of the requests took no longer.
    pub p50_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// At most [`ROUTES_MAX`].
    pub routes: Vec<RouteLine>,
    /// Routes that are known and not among these.
    pub routes_left_out: u64,
    /// At most [`WAITS_MAX`], those of all routes together.
    pub waits: Vec<WaitLine>,
}

/// One route. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteLine {
    /// Its name.
    pub route: String,
    /// How many requests there were.
    pub requests: u64,
    /// Of them, those with a status of 500 or above.
    pub errors: u64,
    /// CPU time of workers.
    pub cpu_ns: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// Time in the queue.
    pub queue_ns: u64,
    /// Time that PHP waited.
    pub waiting_ns: u64,
    /// Half of the requests took no longer.
    pub p50_ns: u64,
    /// 95 of 100 took no longer.
    pub p95_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
}

/// What PHP waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitLine {
    /// `tcp`, `lock` …
    pub kind: String,
    /// Whom for.
    pub peer: String,
    /// How often.
    pub times: u64,
    /// How long together, ns.
    pub ns: u64,
}
