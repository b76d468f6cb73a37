//! parse: heads that hyper refuses, and heads that do not arrive in time.
//!
//! There is no request then, so no later stage sees it. This file makes the response, the line of
//! the access log and the count.

use super::connection::ConnectionState;
use http::StatusCode;

/// Maximum length of a request line in the access log.
const LINE_BYTES_MAX: usize = 1024;

/// Reason why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedHead {
    Invalid,
    TooLarge,
    TooManyHeaders,
    UriTooLong,
    Slow,
    /// Plain HTTP on a port of HTTPS.
    InTheClear,
}

impl RefusedHead {
    /// The reason for hyper's own response, by its status.
    pub(super) fn of(status: u16, has_too_many_headers: bool) -> RefusedHead {
        match status {
            431 if has_too_many_headers => RefusedHead::TooManyHeaders,
            431 => RefusedHead::TooLarge,
            414 => RefusedHead::UriTooLong,
            _ => RefusedHead::Invalid,
        }
    }

    fn status(self) -> StatusCode {
        match self {
            RefusedHead::Invalid | RefusedHead::InTheClear => StatusCode::BAD_REQUEST,
            RefusedHead::TooLarge | RefusedHead::TooManyHeaders => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            RefusedHead::UriTooLong => StatusCode::URI_TOO_LONG,
            RefusedHead::Slow => StatusCode::REQUEST_TIMEOUT,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            RefusedHead::Invalid => "The server could not understand the request.",
            RefusedHead::TooLarge => {
                "The headers of the request are larger than this server accepts \
                 (limits.head_bytes_max)."
            }
            RefusedHead::TooManyHeaders => {
                "The request has more headers than this server accepts (limits.headers_max)."
            }
            RefusedHead::UriTooLong => "The address is longer than this server accepts.",
            RefusedHead::Slow => "The request head did not arrive in time.",
            RefusedHead::InTheClear => {
                "This port accepts only HTTPS. Use an address that starts with https://."
            }
        }
    }
}

/// Counts and logs a refused head of which `begun` has arrived. Returns the bytes of the response,
/// after which the connection is closed.
pub(super) fn refuse(
    state: &ConnectionState,
    peer: &str,
    cause: RefusedHead,
    begun: &[u8],
) -> Vec<u8> {
    let shared = &state.shared;
    let status = cause.status();
    let id = shared.ids.of(None);
    let text = format!("{status}: {}\n", cause.sentence());
    shared.counters.server.heads_refused_total.add(1);
    let line = first_line(begun);
    shared.recorder.refused(peer, line, &id, (status, text.len() as u64));
    tracing::debug!(?cause, peer, line = %line.escape_ascii(), "request head refused");
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nX-Request-Id: {}\r\n\r\n{text}",
        text.len(),
        id.to_str().unwrap_or_default(),
    )
    .into_bytes()
}

/// The request line, as far as it has arrived.
fn first_line(begun: &[u8]) -> &[u8] {
    let begun = begun.trim_ascii_start();
    let end = memchr::memchr2(b'\r', b'\n', begun).unwrap_or(begun.len());
    &begun[..end.min(LINE_BYTES_MAX)]
}
