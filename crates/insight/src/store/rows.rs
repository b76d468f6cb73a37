//! What is stored of a minute, and how.

use crate::histogram::Histogram;
use crate::kept::Kept;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// What happened to the server. Names are stored: they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It started.
    Start,
    /// A new generation took over.
    Reload,
    /// A reload that changed nothing.
    ReloadFailed,
    /// A worker was killed by the server.
    Kill,
    /// A worker crashed.
    Crash,
    /// A limit was reached.
    Limit,
    /// A worker made room for a fresh one.
    Recycle,
    /// A reload has changed settings.
    Config,
    /// It ended.
    Stop,
    /// Something that another version knows.
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

    /// All there are, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = EventKind> {
        Self::NAMES.iter().map(|(kind, _)| *kind)
    }

    /// Its name, for people and in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    pub(super) fn of_name(name: &str) -> EventKind {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map_or(EventKind::Unknown, |(kind, _)| *kind)
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    /// What.
    pub kind: EventKind,
    /// To whom, and why.
    pub text: String,
}

/// Time spent waiting for one peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWait {
    /// `tcp`, `lock` …
    pub kind: String,
    /// Whom for.
    pub peer: String,
    /// How often.
    pub times: u64,
    /// How long, ns.
    pub ns: u64,
}

/// A timer's set of tags. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTimer {
    /// What it is called by.
    pub tags: Vec<(String, String)>,
    /// How often it was started and stopped.
    pub hits: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time.
    pub cpu_ns: u64,
}

/// One route's minute. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RouteMinute {
    /// Requests that ended in it.
    pub requests: u64,
    /// Those with a status of 500 or above.
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
    /// Time on the way back to the image.
    pub rollback_ns: u64,
    /// Highest peak of PHP's memory.
    pub peak_bytes_max: u64,
    /// Bodies sent.
    pub bytes_out: u64,
    /// What it waited for.
    pub waits: Vec<StoredWait>,
    /// Its timers.
    pub timers: Vec<StoredTimer>,
}

impl RouteMinute {
    /// Takes the figures of another part of the same minute: a server was started anew in it.
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

/// What a route's minutes come to: what of a [`RouteMinute`] is compared. Times in ns.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RouteSum {
    /// Requests.
    pub requests: u64,
    /// Those with a status of 500 or above.
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

/// One minute of all routes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteTotal {
    /// When it began, seconds since 1970.
    pub at: u64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Those with a status of 500 or above.
    pub errors: u64,
}

/// What a minute brought.
#[derive(Clone, Debug, Default)]
pub struct Minute {
    /// When it began, seconds since 1970.
    pub at: u64,
    /// By route.
    pub routes: Vec<(Box<str>, RouteMinute)>,
    /// What happened in it.
    pub events: Vec<Event>,
    /// Slow and failed requests that ended in it.
    pub kept: Vec<Arc<Kept>>,
}

/// As a row's last column holds it.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("numbers, texts and lists of them")
}

/// `None`: another version wrote it, or a disk forgot.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
