//! Converts a worker's response to a hyper response.
//!
//! Each header line of the worker is checked. Invalid headers are dropped, and so are headers of
//! the connection (`Connection`, `Transfer-Encoding` …), because the front owns the connection. A
//! complete body is sent with its length. For a longer body, `relay` delivers the next bytes when
//! hyper polls for them.

use crate::client::connection::ConnectionState;
use crate::exchange::relay::Relay;
use crate::exchange::{Exchange, ResponseReader};
use crate::log::RequestLogEntry;
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::setup::Setup;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;
use std::net::IpAddr;
use std::rc::Rc;

/// Builds the response for a worker's response. `headers` is a map whose memory is reused; its
/// contents are cleared.
pub(crate) fn respond(
    (connection, client): (&Rc<ConnectionState>, IpAddr),
    setup: &Rc<Setup>,
    mut headers: HeaderMap,
    response: ResponseReader,
    exchange: Option<Exchange>,
    is_head: bool,
    (id, entry): (&HeaderValue, &mut RequestLogEntry),
) -> Result<Response<ResponseBody>, Failure> {
    let ResponseReader { status: code, bytes, head_bytes, cost, .. } = response;
    entry.costs(cost);
    let status = StatusCode::from_u16(code).map_err(|_| Failure::BrokenResponse)?;
    if status.is_informational() {
        tracing::debug!(%status, "a script returned an interim status as its final status");
        return Err(Failure::BrokenResponse);
    }
    headers.clear();
    let Declared { length: declared, reason } =
        read_lines(&bytes, head_bytes, &mut headers, |name| {
            connection.shared.report_dropped(name, id);
        });
    let is_bodiless = is_head || matches!(code, 204 | 304);
    if let Some(length) = declared.filter(|_| is_head || !is_bodiless) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let bytes = bytes.slice(head_bytes..);
    let body = match exchange {
        _ if is_bodiless => ResponseBody::empty(),
        Some(exchange) => {
            let shared = &connection.shared;
            let charges = shared.budgets.charges(client, &connection.cutter());
            let relay = Rc::new(Relay::new(&shared.disk, setup, exchange, charges));
            ResponseBody::stream(connection, bytes, relay, declared)
        }
        None => whole(bytes, declared),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    set_reason(&mut response, reason);
    Ok(response)
}

/// Sets the reason phrase of HTTP/1 if the status does not imply it. A status without a known
/// phrase has an empty one.
pub(crate) fn set_reason<B>(response: &mut Response<B>, reason: Option<Bytes>) {
    let usual = response.status().canonical_reason();
    let own = reason.filter(|reason| usual.is_none_or(|usual| usual.as_bytes() != reason));
    let own = own.and_then(|reason| ReasonPhrase::try_from(reason).ok());
    let unknown = || usual.is_none().then(|| ReasonPhrase::from_static(b""));
    if let Some(reason) = own.or_else(unknown) {
        response.extensions_mut().insert(reason);
    }
}

/// Compares a complete body with the length that its script declared. A longer body is truncated,
/// as in nginx; after a shorter one the connection is cut.
fn whole(bytes: Bytes, declared: Option<u64>) -> ResponseBody {
    let length = bytes.len() as u64;
    match declared {
        Some(declared) if declared < length => {
            ResponseBody::whole(bytes.slice(..declared as usize))
        }
        Some(declared) if declared > length => ResponseBody::short(bytes),
        _ => ResponseBody::whole(bytes),
    }
}

/// Values of a head that are not copied to the headers of the response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// A valid `Content-Length`.
    pub(crate) length: Option<u64>,
    /// Reason phrase after the code of `Status`; empty ones are left out.
    pub(crate) reason: Option<Bytes>,
}

/// Reads `Name: value\n` lines into `headers`.
pub(crate) fn read_lines(
    bytes: &Bytes,
    head_bytes: usize,
    headers: &mut HeaderMap,
    report: impl Fn(&[u8]),
) -> Declared {
    let mut declared = Declared::default();
    let mut at = 0;
    while at < head_bytes {
        let rest = &bytes[at..head_bytes];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let start = at;
        at += end + 1;
        let Some(colon) = memchr::memchr(b':', line) else {
            if !line.trim_ascii().is_empty() {
                report(line);
            }
            continue;
        };
        let value = trimmed(line, colon + 1);
        let value = bytes.slice(start + value.start..start + value.end);
        let name = HeaderName::from_bytes(&line[..colon]);
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value)) else {
            report(&line[..colon]);
            continue;
        };
        if name == header::CONTENT_LENGTH {
            declared.length = value.to_str().ok().and_then(|v| v.parse().ok());
        } else if name == header::CONTENT_TYPE && value.is_empty() {
            // `header('Content-Type:')` removes the header in PHP.
        } else if name.as_str() == "status" {
            let text = value.as_bytes();
            let code = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let reason = text[code..].trim_ascii();
            declared.reason = (!reason.is_empty()).then(|| bytes.slice_ref(reason));
        } else if !is_ours(&name) {
            headers.append(name, value);
        }
    }
    declared
}

/// Range of `line` from `from` on, without surrounding white space.
fn trimmed(line: &[u8], from: usize) -> std::ops::Range<usize> {
    let value = line[from..].trim_ascii_start();
    let start = line.len() - value.len();
    start..start + value.trim_ascii_end().len()
}

/// Headers of the connection.
fn is_ours(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::CONNECTION
            | header::TRANSFER_ENCODING
            | header::UPGRADE
            | header::TE
            | header::TRAILER
    ) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn check(lines: &str, expected: &[(&str, &str)], length: Option<u64>, dropped: &[&str]) {
        let bytes = Bytes::copy_from_slice(format!("{lines}BODY").as_bytes());
        let mut headers = HeaderMap::new();
        let reported = RefCell::new(Vec::new());
        let report = |name: &[u8]| {
            reported.borrow_mut().push(String::from_utf8_lossy(name).into_owned());
        };
        assert_eq!(
            read_lines(&bytes, lines.len(), &mut headers, report).length,
            length,
            "{lines:?}"
        );
        let found: Vec<_> =
            headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap_or("?"))).collect();
        assert_eq!(found, expected, "{lines:?}");
        assert_eq!(reported.into_inner(), dropped, "{lines:?}");
    }

    #[test]
    fn reason_phrase_follows_the_code_of_status() {
        for (line, code, expected) in [
            ("Status: 418 Short And Stout\n", 418, Some(&b"Short And Stout"[..])),
            ("Status: 404 Not Found\n", 404, None),
            ("Status: 404 Nothing\n", 404, Some(b"Nothing")),
            ("Status: 404\n", 404, None),
            ("", 404, None),
            ("", 599, Some(b"")),
            ("Status: 599 Odd\n", 599, Some(b"Odd")),
        ] {
            let bytes = Bytes::from(line);
            let declared = read_lines(&bytes, bytes.len(), &mut HeaderMap::new(), |_| {});
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::from_u16(code).expect("a status");
            set_reason(&mut response, declared.reason);
            let found = response.extensions().get::<ReasonPhrase>().map(ReasonPhrase::as_bytes);
            assert_eq!(found, expected, "{line:?}");
        }
    }

    #[test]
    fn header_lines_are_checked_and_dropped_if_invalid() {
        check("Content-type: text/html\n", &[("content-type", "text/html")], None, &[]);
        check("A:1\nB:  2 \r\nA: 3\n", &[("a", "1"), ("a", "3"), ("b", "2")], None, &[]);
        check("Empty:\nContent-Type:\n", &[("empty", "")], None, &[]);
        check("No-Newline: x", &[("no-newline", "x")], None, &[]);
        check("\n\r\n", &[], None, &[]);
        check("Content-Length: 12\n", &[], Some(12), &[]);
        check("Content-Length: -1\n", &[], None, &[]);
        check("Content-Length: 1, 1\n", &[], None, &[]);
        check(
            "Transfer-Encoding: chunked\nConnection: close\nStatus: 404\nTE: x\n",
            &[],
            None,
            &[],
        );
        check("Keep-Alive: 5\nUpgrade: h2c\nTrailer: x\nProxy-Connection: x\n", &[], None, &[]);
        check(
            "Bad Name: 1\n: 2\nnothing\nOk: 3\n",
            &[("ok", "3")],
            None,
            &["Bad Name", "", "nothing"],
        );
        check("X: a\x01b\nY: a\0b\n", &[], None, &["X", "Y"]);
        check("Location: /\u{e4}\n", &[("location", "?")], None, &[]);
    }
}
