//! Requests and responses of `samovar record` and `samovar replay`. Bytes are in base64.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action on recorded requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordAction {
    /// List them, and the recording.
    #[default]
    List,
    /// Start a recording.
    Start,
    /// End the recording.
    Stop,
    /// Show one.
    Show,
    /// Remove one; without an id, all.
    Remove,
}

/// A request about recorded requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordQuestion {
    /// The action.
    pub action: RecordAction,
    /// Show, remove: number of the request.
    pub id: Option<u64>,
    /// Start: pattern of the path.
    pub path: Option<String>,
    /// Start: minimum time of slow requests, ms.
    pub slow_ms: Option<u64>,
    /// Start: failed requests.
    pub failed: bool,
    /// Start: number of requests.
    pub count: usize,
    /// Start: time after which the recording ends, s.
    pub seconds: u64,
    /// Start: secret values are kept.
    pub with_secrets: bool,
}

impl RecordQuestion {
    /// Parses `record` or `record {…}`.
    pub(crate) fn parse(line: &str) -> Result<Box<RecordQuestion>, Misunderstood> {
        let text = line.strip_prefix("record").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Record)
    }
}

/// The recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingStatus {
    /// Pattern of the path.
    pub path: Option<String>,
    /// Minimum time of slow requests, ms.
    pub slow_ms: Option<u64>,
    /// Failed requests.
    pub failed: bool,
    /// Number of requests that are still wanted.
    pub left: usize,
    /// Time until it ends, s.
    pub seconds: u64,
    /// Secret values are kept.
    pub with_secrets: bool,
}

/// A recorded request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedRequest {
    /// Its number.
    pub id: u64,
    /// Its pool; empty if there is only one.
    pub pool: String,
    /// Time of its start, ms since 1970.
    pub at_ms: u64,
    /// Time until the end of its response, ms.
    pub milliseconds: f64,
    /// Method.
    pub method: String,
    /// Target without secret values.
    pub target: String,
    /// Host.
    pub host: String,
    /// Length of its body, bytes.
    pub body_bytes: u64,
    /// The body was too long to be kept.
    pub is_cut: bool,
    /// Kinds and names of the replaced values.
    pub redacted: Vec<String>,
    /// Status that the client got.
    pub status: u16,
    /// Length of the response's body, bytes.
    pub response_bytes: u64,
    /// The client left before it had the response.
    pub has_client_left: bool,
    /// Details, for one request.
    pub details: Option<RecordedDetails>,
}

/// Details of a recorded request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedDetails {
    /// Names and values of the headers that PHP gets.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: String,
    /// Response.
    pub response: ResponseCopy,
}

/// A response as its worker wrote it, without the values of cookies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseCopy {
    /// Status that a client gets.
    pub status: u16,
    /// Lines of the head; empty if no worker responded.
    pub head: String,
    /// Start of the body.
    pub body: String,
    /// Length of the whole body, bytes.
    pub bytes: u64,
    /// SHA-256 of the whole body, hexadecimal.
    pub sha256: String,
    /// The worker wrote all of the body.
    pub is_complete: bool,
}

/// Response to `record`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordResponse {
    /// Reason for a failure.
    pub error: Option<String>,
    /// The recording, if there is one.
    pub recording: Option<RecordingStatus>,
    /// The requests.
    pub requests: Vec<RecordedRequest>,
    /// Number of removed requests.
    pub removed: usize,
    /// Number of requests that the last recording wanted, but could not keep.
    pub missed: u64,
}

impl RecordResponse {
    /// Returns the response for an action that failed for this reason.
    pub fn refused(why: String) -> RecordResponse {
        RecordResponse { error: Some(why), ..RecordResponse::default() }
    }
}

/// Network traffic of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayNetwork {
    /// Allowed for the methods GET, HEAD and OPTIONS, and refused for others.
    #[default]
    Auto,
    /// Allowed.
    Allow,
    /// Refused.
    Refuse,
}

/// A request to replay a recorded request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayQuestion {
    /// Number of the recorded request.
    pub id: u64,
    /// Network traffic.
    pub network: ReplayNetwork,
    /// Record the call graph.
    pub trace: bool,
    /// Sample the stacks.
    pub profile: bool,
    /// Host and port of a client of Xdebug's step debugger.
    pub xdebug: Option<String>,
}

impl ReplayQuestion {
    /// Parses `replay {…}`.
    pub(crate) fn parse(line: &str) -> Result<Box<ReplayQuestion>, Misunderstood> {
        let text = line.strip_prefix("replay").unwrap_or(line).trim();
        serde_json::from_str(text).map_err(|_| Misunderstood::Replay)
    }
}

/// Response to `replay`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayResponse {
    /// Reason why it did not run.
    pub error: Option<String>,
    /// The recorded request.
    pub recorded: RecordedRequest,
    /// The new response.
    pub response: ResponseCopy,
    /// Reason why the new response is missing or incomplete.
    pub lost: Option<String>,
    /// Time until the end of the new response, ms.
    pub milliseconds: f64,
    /// Network traffic was refused.
    pub network_refused: bool,
    /// Process that ran it.
    pub pid: i32,
    /// The process was forked from an image of its own, booted for this replay.
    pub has_own_image: bool,
    /// Call graph; null: there is none.
    pub graph: Value,
    /// Packed profile; null: there is none.
    pub profile: Value,
}

impl ReplayResponse {
    /// Returns the response for a replay that did not run for this reason.
    pub fn refused(why: String) -> ReplayResponse {
        ReplayResponse { error: Some(why), ..ReplayResponse::default() }
    }
}
