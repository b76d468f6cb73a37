//! Kernel resources of the server's process: file descriptors by kind, threads, child processes,
//! memory mappings.

use serde::{Deserialize, Serialize};

/// Counts taken when the status is created. A count that grows from day to day is a leak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Open file descriptors.
    pub descriptors: Descriptors,
    /// Threads of the process.
    pub threads: u64,
    /// Child processes: templates, workers whose template died, and a server that takes over.
    pub children: u64,
    /// Memory mappings; limited by `vm.max_map_count`.
    pub mappings: u64,
}

/// Open file descriptors by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Descriptors {
    /// Sockets: listeners, clients, template channels, upstreams, operators.
    pub sockets: u64,
    /// Pipes that carry the output of templates and workers.
    pub pipes: u64,
    /// `eventfd`, `epoll` and `timerfd`.
    pub events: u64,
    /// Memory files (`memfd`).
    pub memory: u64,
    /// Files of other processes below `/proc`, and `pidfd`: used by the sampler and the supervisor.
    pub processes: u64,
    /// Files of a file system: static files, spooled bodies, logs, the history.
    pub files: u64,
    /// All other descriptors.
    pub others: u64,
}
