//! Resolved settings: measurements, and the systems that receive them.

use super::logs::LogFormat;
use crate::schema::address::Listen;
use crate::schema::log_target::LogTarget;
use crate::schema::macros::Blank;
use crate::schema::secret::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

sheet! {
/// Measurements of requests and their storage.
pub struct Insight {
    /// Whether requests are measured.
    pub enabled: bool,
    /// Maximum number of distinct routes.
    pub routes_max: usize,
    /// Time from which on a request's details are kept.
    pub slow_request: Duration,
    /// Bounds of exported histograms, ascending; empty: the usual ones.
    pub buckets: Vec<Duration>,
    /// File of the history: absolute.
    pub store: Option<PathBuf>,
    /// Maximum bytes of the history, at least 1 MiB.
    pub store_bytes_max: u64,
    /// Maximum days of the history.
    pub days_max: usize,
    /// Destination of the log of slow requests.
    pub slow_log: LogTarget,
    /// Format of the log of slow requests.
    pub slow_log_format: LogFormat,
    /// Maximum number of slow requests logged per second.
    pub slow_log_per_second: usize,
    /// Words that make a tag's value secret, in lower case; empty: the default words.
    pub redact: Vec<String>,
    /// Name of this site in external systems.
    pub service: String,
    /// Export of spans and metrics.
    pub otlp: Otlp,
    /// Clients whose `traceparent` is accepted.
    pub trace_from: TraceFrom,
    /// Share of the requests without an accepted trace that begin a recorded one, in millionths.
    pub trace_share_ppm: u32,
    /// Share of the requests to the booted application that run as whole scripts, in millionths.
    pub script_share_ppm: u32,
    /// The Pinba server that receives a packet per request: `host:port`.
    pub pinba: Option<String>,
    /// Address that receives the Pinba packets of other machines.
    pub pinba_listen: Option<Listen>,
}
}

sheet! {
/// Sampling and tracing of workers, and the storage of profiles.
pub struct Profile {
    /// Samples per second of each busy worker; 0: none.
    pub hertz: usize,
    /// Maximum bytes of stored profiles, at least 1 MiB.
    pub bytes_max: u64,
    /// Maximum days of stored profiles.
    pub days_max: usize,
    /// Share of the requests whose call graph is recorded, in millionths.
    pub trace_ppm: u32,
    /// Patterns of the paths to which that share applies; empty: all paths.
    pub trace_paths: Vec<String>,
    /// Key for signing a request that must be traced.
    pub trace_key: Option<Secret>,
    /// Number of workers that record call graphs.
    pub trace_workers: usize,
    /// Export of profiles.
    pub push: Push,
}
}

impl Profile {
    /// Whether there are workers that record call graphs.
    #[must_use]
    pub fn traces(&self) -> bool {
        self.trace_ppm > 0 || self.trace_key.is_some()
    }
}

sheet! {
/// Export to Pyroscope.
pub struct Push {
    /// Pyroscope's address, `http://127.0.0.1:4040`; `None`: no profiles are sent.
    pub endpoint: Option<String>,
    /// Headers of each request to it.
    pub headers: BTreeMap<String, Secret>,
    /// Labels of each profile.
    pub labels: BTreeMap<String, String>,
    /// Timeout for each step of a request.
    pub timeout: Duration,
    /// Maximum bytes of profiles waiting to be sent.
    pub bytes_max: u64,
    /// File with the trusted certificates; absolute.
    pub ca_file: Option<PathBuf>,
}
}

sheet! {
/// Export to an OpenTelemetry collector.
pub struct Otlp {
    /// The collector's address, `http://127.0.0.1:4318`; `None`: nothing is sent.
    pub endpoint: Option<String>,
    /// Headers of each request to it.
    pub headers: BTreeMap<String, Secret>,
    /// Timeout for each step of a request.
    pub timeout: Duration,
    /// Time for which spans are collected before they are sent.
    pub interval: Duration,
    /// Interval at which metrics are sent; 0: never.
    pub metrics_interval: Duration,
    /// Form of histograms.
    pub histograms: OtlpHistograms,
    /// Maximum bytes of spans waiting to be sent.
    pub bytes_max: u64,
    /// File with the trusted certificates; absolute.
    pub ca_file: Option<PathBuf>,
}
}

words! {
/// Clients whose `traceparent` is accepted.
pub enum TraceFrom {
    /// No clients.
    Nobody = "nobody",
    /// Trusted proxies.
    #[default]
    Proxies = "proxies",
    /// All clients.
    All = "all",
}
}

words! {
/// Form of the histograms that a collector receives.
pub enum OtlpHistograms {
    /// With the bounds of `insight.buckets`.
    #[default]
    Explicit = "explicit",
    /// With exponential buckets.
    Exponential = "exponential",
}
}
