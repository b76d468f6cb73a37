//! Stored data of a minute, and its encoding.

use crate::histogram::Histogram;
use crate::recent_requests::RecentRequest;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// Kind of an event. The names are stored in the file: they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The server started.
    Start,
    /// A new generation took over.
    Reload,
    /// A reload failed and changed nothing.
    ReloadFailed,
    /// The server killed a worker.
    Kill,
    /// A worker crashed.
    Crash,
    /// A limit was reached.
    Limit,
    /// A worker was replaced by a fresh one.
    Recycle,
    /// A reload changed settings.
    Config,
    /// The server stopped.
    Stop,
    /// A kind that only another version knows.
    Unknown,
}

impl EventKind {
    pub(crate) const COUNT: usize = Self::NAMES.len();

    const NAMES: [(EventKind, &'static str); 10] = [
        (EventKind::Start, "start"),
        (EventKind::Reload, "reload"),
        (EventKind::ReloadFailed, "reload_failed"),
        (EventKind::Kill, "kill"),
        (EventKind::Crash, "crash"),
        (EventKind::Limit, "limit"),
        (EventKind::Recycle, "recycle"),
        (EventKind::Config, "config"),
        (EventKind::Stop, "stop"),
        (EventKind::Unknown, "unknown"),
    ];

    /// Returns all kinds, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = EventKind> {
        Self::NAMES.iter().map(|(kind, _)| *kind)
    }

    /// Returns the name for people and in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    pub(super) fn of_name(name: &str) -> EventKind {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map_or(EventKind::Unknown, |(kind, _)| *kind)
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time in seconds since 1970.
    pub at: u64,
    /// Kind.
    pub kind: EventKind,
    /// Subject and reason.
    pub text: String,
}

/// Total wait for one peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWait {
    /// Kind of wait: `tcp`, `lock` …
    pub kind: String,
    /// Peer of the wait.
    pub peer: String,
    /// Number of waits.
    pub times: u64,
    /// Total time, ns.
    pub ns: u64,
}

/// Sums of a timer with one set of tags. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTimer {
    /// Tags of the timer.
    pub tags: Vec<(String, String)>,
    /// Number of times it was started and stopped.
    pub hits: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time.
    pub cpu_ns: u64,
}

/// One minute of a route. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RouteMinute {
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Wall time.
    pub wall: Histogram,
    /// CPU time.
    pub cpu: Histogram,
    /// Time in the queue.
    pub queue_ns: u64,
    /// Time in a worker.
    pub run_ns: u64,
    /// Time that PHP waited.
    pub waiting_ns: u64,
    /// Time spent in rollbacks.
    pub rollback_ns: u64,
    /// Highest peak of PHP's memory.
    pub peak_bytes_max: u64,
    /// Bytes of sent bodies.
    pub bytes_out: u64,
    /// Waits of its requests.
    pub waits: Vec<StoredWait>,
    /// Timers of its requests.
    pub timers: Vec<StoredTimer>,
}

impl RouteMinute {
    /// Adds another part of the same minute, from before a restart of the server.
    pub(super) fn merge(&mut self, other: RouteMinute) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.wall.merge(&other.wall);
        self.cpu.merge(&other.cpu);
        self.queue_ns = self.queue_ns.saturating_add(other.queue_ns);
        self.run_ns = self.run_ns.saturating_add(other.run_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(other.rollback_ns);
        self.peak_bytes_max = self.peak_bytes_max.max(other.peak_bytes_max);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        for wait in other.waits {
            let is_same = |w: &&mut StoredWait| w.kind == wait.kind && w.peer == wait.peer;
            match self.waits.iter_mut().find(is_same) {
                Some(known) => {
                    known.times += wait.times;
                    known.ns = known.ns.saturating_add(wait.ns);
                }
                None => self.waits.push(wait),
            }
        }
        for timer in other.timers {
            match self.timers.iter_mut().find(|known| known.tags == timer.tags) {
                Some(known) => {
                    known.hits += timer.hits;
                    known.wall_ns = known.wall_ns.saturating_add(timer.wall_ns);
                    known.cpu_ns = known.cpu_ns.saturating_add(timer.cpu_ns);
                }
                None => self.timers.push(timer),
            }
        }
    }
}

/// Sums of a route over several minutes: the parts of [`RouteMinute`] that are compared. Times in
/// ns.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RouteSum {
    /// Number of requests.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Wall time.
    pub wall: Histogram,
    /// CPU time.
    pub cpu: Histogram,
    /// Time that PHP waited.
    pub waiting_ns: u64,
}

impl RouteSum {
    pub(super) fn merge(&mut self, other: &RouteSum) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.wall.merge(&other.wall);
        self.cpu.merge(&other.cpu);
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
    }
}

/// Costs of a route in one minute. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct MinuteCosts {
    /// Number of requests.
    pub requests: u64,
    /// CPU time of workers.
    #[serde(rename = "cpu", deserialize_with = "sum_of")]
    pub cpu_ns: u64,
    /// Time in workers.
    pub run_ns: u64,
}

/// Reads the sum of a histogram without its buckets.
fn sum_of<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    <(u64, IgnoredAny)>::deserialize(from).map(|(sum, _)| sum)
}

/// Totals of all routes in one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteTotal {
    /// Start of the minute, in seconds since 1970.
    pub at: u64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
}

/// All data of a minute.
#[derive(Clone, Debug, Default)]
pub struct Minute {
    /// Start of the minute, in seconds since 1970.
    pub at: u64,
    /// Figures by route.
    pub routes: Vec<(Box<str>, RouteMinute)>,
    /// Events in it.
    pub events: Vec<Event>,
    /// Slow and failed requests that ended in it.
    pub kept: Vec<Arc<RecentRequest>>,
}

/// Encodes a value for the last column of a row.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("numbers, texts and lists of them")
}

/// Decodes such a column. Returns `None` if another version wrote it or the disk is damaged.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
