//! Stored data of a minute, and its encoding.

use super::route_minute::RouteMinute;
use crate::recent_requests::RecentRequest;
use crate::releases::Release;
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
    /// A canary serves a share of the requests.
    Canary,
    /// A kind that only another version knows.
    Unknown,
}

impl EventKind {
    pub(crate) const COUNT: usize = Self::NAMES.len();

    const NAMES: [(EventKind, &'static str); 11] = [
        (EventKind::Start, "start"),
        (EventKind::Reload, "reload"),
        (EventKind::ReloadFailed, "reload_failed"),
        (EventKind::Kill, "kill"),
        (EventKind::Crash, "crash"),
        (EventKind::Limit, "limit"),
        (EventKind::Recycle, "recycle"),
        (EventKind::Config, "config"),
        (EventKind::Stop, "stop"),
        (EventKind::Canary, "canary"),
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

impl Event {
    /// Returns whether another application may serve since the event: the server started, or a new
    /// generation took over.
    #[must_use]
    pub fn is_release(&self) -> bool {
        matches!(self.kind, EventKind::Start | EventKind::Reload)
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

/// All data of a minute.
#[derive(Clone, Debug, Default)]
pub struct Minute {
    /// Start of the minute, in seconds since 1970.
    pub at: u64,
    /// Figures by route, shared with the parts in memory.
    pub routes: Arc<Vec<(Box<str>, RouteMinute)>>,
    /// Events in it.
    pub events: Vec<Event>,
    /// Releases that began in it.
    pub releases: Vec<Release>,
    /// Slow and failed requests that ended in it.
    pub kept: Vec<Arc<RecentRequest>>,
}

/// Number of the row with the sum of all routes, in the tables of minutes and hours. It has no row
/// in the table of routes, so a join leaves it out.
pub(super) const ALL_ROUTES: i64 = 0;

/// Encodes a value for the last column of a row.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("numbers, texts and lists of them")
}

/// Decodes such a column. Returns `None` if another version wrote it or the disk is damaged.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
