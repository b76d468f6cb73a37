//! Response to `figures`: request statistics. All values are sums since the server's start, so a
//! client computes the figures of an interval from two responses.

use serde::{Deserialize, Serialize};

/// Maximum number of routes in a response; those with the most CPU time are kept.
pub const ROUTES_MAX: usize = 250;
/// Maximum number of peers in a response; those with the longest wait time are kept.
pub const WAITS_MAX: usize = 250;

/// Figures of all requests. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Time of the response, in µs since 1970.
    pub at_unix_us: u64,
    /// Whether request accounting is enabled.
    pub measured: bool,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests with a status of 500 or above.
    pub errors: u64,
    /// CPU time of the workers.
    pub cpu_ns: u64,
    /// Time that PHP spent waiting.
    pub waiting_ns: u64,
    /// Time that requests spent in the queue.
    pub queue_ns: u64,
    /// Median duration.
    pub p50_ns: u64,
    /// 99th percentile of the duration.
    pub p99_ns: u64,
    /// Routes, at most [`ROUTES_MAX`].
    pub routes: Vec<RouteLine>,
    /// Number of known routes that are not in `routes`.
    pub routes_left_out: u64,
    /// Waits of all routes together, at most [`WAITS_MAX`].
    pub waits: Vec<WaitLine>,
}

/// Figures of one route. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteLine {
    /// Name of the route.
    pub route: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests with a status of 500 or above.
    pub errors: u64,
    /// CPU time of the workers.
    pub cpu_ns: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// Time that requests spent in the queue.
    pub queue_ns: u64,
    /// Time that PHP spent waiting.
    pub waiting_ns: u64,
    /// Median duration.
    pub p50_ns: u64,
    /// 95th percentile of the duration.
    pub p95_ns: u64,
    /// 99th percentile of the duration.
    pub p99_ns: u64,
}

/// Wait time of PHP for one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitLine {
    /// Kind of wait: `tcp`, `lock` …
    pub kind: String,
    /// Peer of the wait.
    pub peer: String,
    /// Number of waits.
    pub times: u64,
    /// Total wait time in ns.
    pub ns: u64,
}
