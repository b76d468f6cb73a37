//! What comes out: what is measured, and who is told.

use super::logs::LogFormat;
use crate::schema::address::Listen;
use crate::schema::log_target::LogTarget;
use crate::schema::sheet::Blank;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

sheet! {
/// What is measured of requests, and kept.
pub struct Insight {
    /// Whether it is.
    pub enabled: bool,
    /// Routes that are told apart.
    pub routes_max: usize,
    /// Time from which on a request's details are kept.
    pub slow_request: Duration,
    /// The history's file: absolute.
    pub store: Option<PathBuf>,
    /// Most bytes of it, at least 1 MiB.
    pub store_bytes_max: u64,
    /// Most days in it.
    pub days_max: usize,
    /// Where slow requests are logged.
    pub slow_log: LogTarget,
    /// How they are.
    pub slow_log_format: LogFormat,
    /// Most of them in one second.
    pub slow_log_per_second: usize,
    /// Words that make a tag's value secret, lower case; none: the usual ones.
    pub redact: Vec<String>,
    /// What others call this site.
    pub service: String,
    /// Where spans and figures go.
    pub otlp: Otlp,
    /// Whose `traceparent` is taken over.
    pub trace_from: TraceFrom,
    /// Of the requests that no trace was taken over for, how many begin one that is kept: of a million.
    pub trace_share_ppm: u32,
    /// Requests to the booted application that run as whole scripts, of a million.
    pub script_share_ppm: u32,
    /// The Pinba server that is told of each request: `host:port`.
    pub pinba: Option<String>,
    /// Where other machines' packets come in.
    pub pinba_listen: Option<Listen>,
}
}

sheet! {
/// How workers are looked at, and what is kept of that.
pub struct Profile {
    /// Looks per second at each busy worker; 0: none.
    pub hertz: usize,
    /// Most bytes of what is kept, at least 1 MiB.
    pub bytes_max: u64,
    /// Most days of it.
    pub days_max: usize,
    /// How many requests have their call graph taken down, of a million.
    pub trace_ppm: u32,
    /// Patterns of the paths of which that is so; none: of all.
    pub trace_paths: Vec<String>,
    /// With what a request is signed that is to be traced.
    pub trace_key: Option<String>,
    /// Workers that take down call graphs.
    pub trace_workers: usize,
    /// Where what is seen is sent, too.
    pub push: Push,
}
}

impl Profile {
    /// Whether there are workers that take down call graphs.
    #[must_use]
    pub fn traces(&self) -> bool {
        self.trace_ppm > 0 || self.trace_key.is_some()
    }
}

sheet! {
/// The way to Pyroscope.
pub struct Push {
    /// Its address, `http://127.0.0.1:4040`; `None`: nobody is sent profiles.
    pub endpoint: Option<String>,
    /// Headers of each request to it.
    pub headers: BTreeMap<String, String>,
    /// Labels of each profile.
    pub labels: BTreeMap<String, String>,
    /// How long each step of a request may take.
    pub timeout: Duration,
    /// Bytes of profiles that wait at most.
    pub bytes_max: u64,
    /// A file with the certificates that are trusted; absolute.
    pub roots: Option<PathBuf>,
}
}

sheet! {
/// The way to an OpenTelemetry collector.
pub struct Otlp {
    /// Its address, `http://127.0.0.1:4318`; `None`: nobody is told.
    pub endpoint: Option<String>,
    /// Headers of each request to it.
    pub headers: BTreeMap<String, String>,
    /// How long each step of a request may take.
    pub timeout: Duration,
    /// How long spans are collected before they are sent.
    pub every: Duration,
    /// How often figures are sent, 0: never.
    pub figures_every: Duration,
    /// Bytes of spans that wait at most.
    pub bytes_max: u64,
    /// A file with the certificates that are trusted; absolute.
    pub roots: Option<PathBuf>,
}
}

words! {
/// Whose `traceparent` is taken over.
pub enum TraceFrom {
    /// Nobody's.
    Nobody = "nobody",
    /// That of trusted proxies.
    #[default]
    Proxies = "proxies",
    /// Everybody's.
    All = "all",
}
}
