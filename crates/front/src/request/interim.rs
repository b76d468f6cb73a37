//! Interim responses of a worker (103 Early Hints, RFC 8297) on their way to the client.
//!
//! nginx before 1.29 mistakes them for the final response, so proxies get none unless the settings
//! enable it. hyper does not support interim responses in servers. `client/io_observer.rs` writes
//! them directly to the socket, between hyper's own bytes.

use super::context::ScriptRequest;
use crate::response::worker_response::read_lines;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use samovar_config::EarlyHints;

/// Headers that a proxy adds to the requests it forwards.
pub(crate) const PROXY_HEADERS: [&str; 4] = ["via", "forwarded", "x-forwarded-for", "x-real-ip"];

/// Sends an interim response if the client can accept it. 100 and 101 are reserved for the
/// connection.
pub(crate) fn send(request: &ScriptRequest<'_>, status: u16, lines: &Bytes) {
    let Some(status) = StatusCode::from_u16(status).ok().filter(|status| is_passed(*status)) else {
        return;
    };
    if !takes(request) {
        return;
    }
    let mut headers = HeaderMap::new();
    // Leaves out the length and the headers of the connection.
    read_lines(lines, lines.len(), &mut headers, |name| {
        request.shared().report_dropped(name, request.context.id);
    });
    request.context.connection.send_ahead(&encode(status, &headers));
}

fn takes(request: &ScriptRequest<'_>) -> bool {
    let is_proxy = || {
        let headers = &request.parts.headers;
        request.context.claims.is_trusted
            || PROXY_HEADERS.iter().any(|name| headers.contains_key(*name))
    };
    let is_wanted = match request.context.setup.settings.early_hints {
        EarlyHints::Auto => !is_proxy(),
        EarlyHints::On => true,
        EarlyHints::Off => false,
    };
    // HTTP/1.0 has no interim responses (RFC 9110 section 15.2), and hyper offers no way to send
    // those of HTTP/2. FastCGI allows only one response.
    is_wanted && request.parts.version == Version::HTTP_11 && request.context.told.is_none()
}

fn is_passed(status: StatusCode) -> bool {
    status.is_informational()
        && !matches!(status, StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS)
}

fn encode(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("Interim");
    let mut out = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interim_response_is_encoded_as_a_head() {
        let lines =
            Bytes::from_static(b"Link: </a.css>; rel=preload\nContent-Length: 3\nLink: </b>\n");
        let mut headers = HeaderMap::new();
        read_lines(&lines, lines.len(), &mut headers, |_| {});
        let text = String::from_utf8(encode(StatusCode::EARLY_HINTS, &headers)).expect("text");
        assert_eq!(
            text,
            "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nlink: </b>\r\n\r\n"
        );
    }

    #[test]
    fn interim_statuses_of_the_connection_are_not_passed() {
        let passed = |code| is_passed(StatusCode::from_u16(code).expect("a status"));
        assert_eq!(
            [100, 101, 102, 103, 199, 200].map(passed),
            [false, false, true, true, true, false]
        );
    }
}
