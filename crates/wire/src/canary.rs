//! Request and response of `samovar reload --canary` and `samovar canary`.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum number of steps.
pub const CANARY_STEPS_MAX: usize = 32;

/// A command for a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryAction {
    /// Show the canary, or the last one.
    #[default]
    Status,
    /// Boot a canary.
    Start,
    /// Change its share.
    Share,
    /// Let it take over.
    Promote,
    /// End it.
    Abort,
}

/// Assignment of requests to a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryAssignment {
    /// By a cookie.
    #[default]
    Cookie,
    /// By the client's address.
    Client,
    /// At random, each request on its own.
    Random,
}

impl CanaryAssignment {
    /// All, in the order of the help.
    pub const ALL: [CanaryAssignment; 3] =
        [CanaryAssignment::Cookie, CanaryAssignment::Client, CanaryAssignment::Random];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CanaryAssignment::Cookie => "cookie",
            CanaryAssignment::Client => "client",
            CanaryAssignment::Random => "random",
        }
    }
}

/// Options of a canary command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryQuestion {
    /// The command.
    pub action: CanaryAction,
    /// Start: the pool; `None`: the only one.
    pub pool: Option<String>,
    /// Start: as of [`ReloadOptions`](crate::ReloadOptions).
    pub probe: Option<String>,
    /// Start: as of [`ReloadOptions`](crate::ReloadOptions).
    pub force: bool,
    /// Start: as of [`ReloadOptions`](crate::ReloadOptions).
    pub release: Option<String>,
    /// Start: the shares, ppm, ascending. Share: the new share.
    pub shares_ppm: Vec<u32>,
    /// Start: minimum time of each step, s.
    pub step_s: u64,
    /// Start: assignment of requests.
    pub by: CanaryAssignment,
    /// Start: document root, instead of the one in the settings.
    pub root: Option<PathBuf>,
}

impl CanaryQuestion {
    /// Parses `canary` or `canary {…}`.
    pub(crate) fn parse(line: &str) -> Result<Box<CanaryQuestion>, Misunderstood> {
        let text = line.strip_prefix("canary").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Canary)
    }
}

/// State of a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryState {
    /// It serves its share.
    #[default]
    Running,
    /// It takes over.
    Promoting,
    /// It has taken over.
    Promoted,
    /// It finishes its requests.
    Aborting,
    /// It has ended.
    Aborted,
}

impl CanaryState {
    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CanaryState::Running => "running",
            CanaryState::Promoting => "promoting",
            CanaryState::Promoted => "promoted",
            CanaryState::Aborting => "aborting",
            CanaryState::Aborted => "aborted",
        }
    }

    /// Whether it will not change any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, CanaryState::Promoted | CanaryState::Aborted)
    }
}

/// A canary, or the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryStatus {
    /// State of the canary.
    pub state: CanaryState,
    /// Why it ended; empty while it runs.
    pub reason: String,
    /// Its generation.
    pub generation: u64,
    /// Label of its release; empty: none was given.
    pub release: String,
    /// Its pool; empty if the server has one pool.
    pub pool: String,
    /// Its document root.
    pub root: PathBuf,
    /// Assignment of requests.
    pub by: CanaryAssignment,
    /// Its share, ppm.
    pub share_ppm: u32,
    /// The following shares, ppm.
    pub next_ppm: Vec<u32>,
    /// Minimum time of each step, s.
    pub step_s: u64,
    /// Time since its begin, or its duration, s.
    pub age_s: u64,
    /// Time of its end, s since 1970; 0 while it runs.
    pub ended_unix_s: u64,
    /// Requests of the serving generation and of the canary since its begin.
    pub requests: [u64; 2],
    /// Strongest evidence of a regression: 0 is none, 1 aborts the canary.
    pub evidence: f64,
    /// Figure of this evidence.
    pub evidence_figure: String,
    /// Route of this evidence; empty: all.
    pub evidence_route: String,
    /// Figures of all routes, and of single ones; the routes with the most requests of the canary.
    pub routes: Vec<CanaryRoute>,
    /// Errors that only the canary has reported.
    pub new_errors: Vec<CanaryError>,
}

/// The canary in the state of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryBrief {
    /// Its generation.
    pub generation: u64,
    /// Label of its release; empty: none was given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Its pool; empty if the server has one pool.
    pub pool: String,
    /// Its state: `running`, `promoting` or `aborting`.
    pub state: String,
    /// Assignment of requests: `cookie`, `client` or `random`.
    pub by: String,
    /// Its share of the visitors, ppm.
    pub share_ppm: u32,
    /// Time since its begin, s.
    pub age_s: u64,
    /// Strongest evidence of a regression: 0 is none, 1 aborts the canary.
    pub evidence: f64,
    /// Requests of the serving generation since its begin.
    pub requests_serving: u64,
    /// Requests of the canary.
    pub requests_canary: u64,
}

impl CanaryStatus {
    /// Returns the part for the state of the server.
    #[must_use]
    pub fn brief(&self) -> CanaryBrief {
        let [requests_serving, requests_canary] = self.requests;
        CanaryBrief {
            generation: self.generation,
            release: self.release.clone(),
            pool: self.pool.clone(),
            state: self.state.name().to_owned(),
            by: self.by.name().to_owned(),
            share_ppm: self.share_ppm,
            age_s: self.age_s,
            evidence: self.evidence,
            requests_serving,
            requests_canary,
        }
    }
}

/// Figures of one route: of the serving generation, and of the canary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryRoute {
    /// Name; empty: all routes.
    pub route: String,
    /// Number of requests.
    pub requests: [u64; 2],
    /// Share of requests with a fatal error.
    pub fatal: [f64; 2],
    /// Share of requests with a server error.
    pub failure: [f64; 2],
    /// Share of responses with a client error.
    pub rejection: [f64; 2],
    /// Mean CPU time, ns.
    pub cpu_ns: [f64; 2],
    /// Mean time in the worker, ns.
    pub latency_ns: [f64; 2],
    /// Mean peak of PHP's memory, bytes.
    pub memory_bytes: [f64; 2],
    /// Mean memory left in the worker, bytes.
    pub growth_bytes: [f64; 2],
}

/// An error that requests have reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryError {
    /// Class, message, place and stack.
    pub trace: String,
    /// Route of the first occurrence.
    pub route: String,
    /// Occurrences in the serving generation and in the canary.
    pub count: [u64; 2],
}

/// Response to a canary command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CanaryResponse {
    /// Reason why the command had no effect.
    pub error: Option<String>,
    /// Start: time until the canary served, ms.
    pub milliseconds: u64,
    /// The canary, or the last one.
    pub canary: Option<CanaryStatus>,
}

impl CanaryResponse {
    /// Returns the response for a command that was refused.
    pub fn refused(why: String) -> CanaryResponse {
        CanaryResponse { error: Some(why), ..CanaryResponse::default() }
    }
}
