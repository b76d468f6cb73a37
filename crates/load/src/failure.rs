//! Failures of requests, as `measure` counts them.

/// Why a request has no good response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection could be opened.
    Connect,
    /// The connection ended before any byte of a response.
    Io,
    /// The response is incomplete or invalid.
    Incomplete,
    /// The response would be too late; `drive` sets this.
    Timeout,
}
