//! What the server's process holds of the kernel: descriptors by kind, threads, child processes, memory mappings.

use serde::{Deserialize, Serialize};

/// Counted when the status is made. A number that grows from day to day is a leak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Open descriptors.
    pub descriptors: Descriptors,
    /// Threads of the process.
    pub threads: u64,
    /// Child processes: templates, workers whose template died, and a server that takes over.
    pub children: u64,
    /// Memory mappings (`vm.max_map_count` limits them).
    pub mappings: u64,
}

/// Open descriptors by what they refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Descriptors {
    /// Sockets: listeners, clients, channels of templates, upstreams, operators.
    pub sockets: u64,
    /// Pipes: what templates and workers print.
    pub pipes: u64,
    /// `eventfd`, `epoll` and `timerfd`.
    pub events: u64,
    /// Memory files (`memfd`).
    pub memory: u64,
    /// Other processes' files below `/proc`, and `pidfd`: the sampler's and the supervisor's.
    pub processes: u64,
    /// Files of a file system: static files, spooled bodies, logs, the history.
    pub files: u64,
    /// All others.
    pub others: u64,
}
