//! What a worker says ahead of its answer (103 Early Hints, RFC 8297), on its way to the client.
//!
//! nginx before 1.29 takes them for the final answer, so proxies get none unless the settings say so. hyper has no
//! interim answers for servers: they are written below it, by `client/watched.rs`, between its own bytes.

use super::context::ScriptRequest;
use crate::answer::worker::read_lines;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use samovar_config::EarlyHints;

/// What a proxy adds to the requests that it passes on.
pub(crate) const PROXY_HEADERS: [&str; 4] = ["via", "forwarded", "x-forwarded-for", "x-real-ip"];

/// Sends it, if the client can take it. 100 and 101 are the connection's own.
pub(crate) fn send(request: &ScriptRequest<'_>, status: u16, lines: &Bytes) {
    let Some(status) = StatusCode::from_u16(status).ok().filter(|status| is_passed(*status)) else {
        return;
    };
    if !takes(request) {
        return;
    }
    let mut headers = HeaderMap::new();
    // Without a length, and without what is the connection's.
    read_lines(lines, lines.len(), &mut headers, |name| {
        request.shared().report_dropped(name);
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
    // HTTP/1.0 knows none (RFC 9110 section 15.2), and hyper has no way for those of HTTP/2.
    // FastCGI has one answer.
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
    fn a_head_of_its_own() {
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
    fn what_is_the_connections_own_is_not_passed() {
        let passed = |code| is_passed(StatusCode::from_u16(code).expect("a status"));
        assert_eq!(
            [100, 101, 102, 103, 199, 200].map(passed),
            [false, false, true, true, true, false]
        );
    }
}
