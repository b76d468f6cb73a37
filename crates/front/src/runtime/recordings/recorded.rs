//! A recorded request: its input and its response.

use std::time::Duration;

/// Maximum length of a recorded request body, and of a recorded response body, bytes. Of a longer
/// response only the start is kept; a longer request cannot be replayed.
pub const RECORDED_BODY_BYTES_MAX: usize = 256 << 10;
/// A recorded request and its response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Number of the request, from 1.
    pub id: u64,
    /// Pool that served it; empty if there is only one.
    pub pool: String,
    /// Time of its start, ms since 1970.
    pub at_ms: u64,
    /// Time until the end of its response.
    pub took: Duration,
    /// Its input.
    pub input: RecordedInput,
    /// Its response.
    pub response: RecordedResponse,
    /// The client left before it had the response.
    pub has_client_left: bool,
}

/// Input of a recorded request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedInput {
    /// Method.
    pub method: String,
    /// Target without secret values.
    pub target: String,
    /// Host.
    pub host: String,
    /// Head as PHP gets it, encoded for the ring.
    pub head: Vec<u8>,
    /// Body; empty if it was not kept.
    pub body: Vec<u8>,
    /// Length of a body that was not kept; zero: unknown.
    pub cut: Option<u64>,
    /// Kinds and names of the values that were replaced.
    pub redacted: Vec<String>,
}

/// Response of a recorded or replayed request, as its worker wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedResponse {
    /// Status of the worker's response, or else the one that the client got.
    pub status: u16,
    /// Lines of the worker's head; empty if there is no response of a worker.
    pub head: Vec<u8>,
    /// Start of the body.
    pub body: Vec<u8>,
    /// Length of the whole body, bytes.
    pub bytes: u64,
    /// SHA-256 of the whole body.
    pub hash: [u8; 32],
    /// The worker wrote all of the body.
    pub is_complete: bool,
}
