//! Response to `facts`: the data that `samovar doctor` checks, in addition to the status.

use crate::figures::WaitLine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of peers of one route.
pub const ROUTE_WAITS_MAX: usize = 16;
/// Maximum number of repeated statements of one route.
pub const ROUTE_STATEMENTS_MAX: usize = 8;

/// Facts about a server. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FactsResponse {
    /// PHP of each pool, the default pool first.
    pub php: Vec<PhpFacts>,
    /// Routes with the most CPU time; `null` without request accounting.
    pub routes: Option<Vec<RouteFacts>>,
    /// The machine, as the server sees it.
    pub machine: MachineFacts,
    /// The settings of the server.
    pub settings: SettingsFacts,
}

/// The started PHP of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhpFacts {
    /// Name of the pool; empty if the server has one pool.
    pub pool: String,
    /// PHP's version; empty while PHP starts.
    pub version: String,
    /// Document root; empty: unknown.
    pub root: String,
    /// Front controller; empty: there is none, or it is unknown.
    pub script: String,
    /// Directives by name. A directive that PHP does not know is left out.
    pub directives: BTreeMap<String, String>,
    /// Names of the loaded extensions; empty: unknown.
    pub extensions: Vec<String>,
    /// Variables of the environment that frameworks read; `null`: unknown.
    pub environment: Option<BTreeMap<String, String>>,
}

/// Requests of one route since the server's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteFacts {
    /// Name of the route.
    pub route: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that a worker ran.
    pub run: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Requests whose worker died, and that could not be run again.
    pub died: u64,
    /// Requests that PHP ended with a fatal error or at its time limit.
    pub fatal: u64,
    /// Requests whose client disconnected before the end of the response.
    pub aborted: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// Time in workers.
    pub run_ns: u64,
    /// CPU time of workers.
    pub cpu_ns: u64,
    /// Time in the queue.
    pub queue_ns: u64,
    /// Time that PHP spent waiting.
    pub waiting_ns: u64,
    /// Time in which requests could run, and other processes did.
    pub cpu_delay_ns: u64,
    /// Page faults with disk access.
    pub faults_major: u64,
    /// Highest peak of PHP's memory, bytes.
    pub peak_bytes_max: u64,
    /// Bytes of sent bodies.
    pub bytes_out: u64,
    /// Waits, the longest first, at most [`ROUTE_WAITS_MAX`].
    pub waits: Vec<WaitLine>,
    /// Statements that requests repeat from one position, those with the most time first, at most
    /// [`ROUTE_STATEMENTS_MAX`].
    pub repeated: Vec<StatementFacts>,
}

/// A statement that requests repeat from one position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementFacts {
    /// Text without literals.
    pub text: String,
    /// Number of executions.
    pub calls: u64,
    /// Number of requests that executed it.
    pub requests: u64,
    /// Number of requests that repeated it.
    pub repeating: u64,
    /// Highest number of executions in one request from one position.
    pub repeats_max: u32,
    /// Total time, ns.
    pub ns: u64,
    /// Position with the most executions, such as `src/ProductList.php:40`; empty: unknown.
    pub place: String,
}

/// The machine. `null`: unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// `net.core.somaxconn`: the kernel's limit of connections that wait to be accepted.
    pub somaxconn: Option<u64>,
    /// `vm.overcommit_memory`.
    pub overcommit: Option<u64>,
    /// Memory of the machine, or the limit of the control group if that is lower, bytes.
    pub memory_bytes: Option<u64>,
    /// Swapped memory of all workers, bytes.
    pub swapped_bytes: Option<u64>,
    /// Maximum number of open files of the server.
    pub files_max: Option<u64>,
    /// Maximum number of memory mappings of a process (`vm.max_map_count`).
    pub mappings_max: Option<u64>,
}

/// Settings of the server at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsFacts {
    /// `listen_backlog`.
    pub listen_backlog: u64,
    /// `limits.connections_max`.
    pub connections_max: u64,
    /// `compression.codings`.
    pub codings: Vec<String>,
    /// Whether a proxy is trusted: it may compress responses.
    pub has_proxy: bool,
    /// Settings that expose files, pages or addresses, each with a hint after `\nhint: `.
    pub exposures: Vec<String>,
    /// Workers that never get a request, each with a hint after `\nhint: `.
    pub surplus: Vec<String>,
}
