//! Failures of requests, as `measure` and `figures` count them.

/// Why a request has no good response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No connection could be opened.
    Connect,
    /// The connection ended before any byte of a response.
    Io,
    /// The connection ended within the response.
    Incomplete,
    /// The response is not valid HTTP/1.1, or longer than announced.
    Malformed,
    /// The head has more fields or bytes than this client reads: 128 fields, 64 KiB.
    HeadLimit,
    /// The response would be too late; the caller of the connection sets this.
    Timeout,
    /// Response with status 429 or from 500 on. Only `figures` counts it.
    Refused,
}
