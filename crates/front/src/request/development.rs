//! Development mode: pages for people get the refresh script, and a page about the error if their
//! script failed. Other responses are not changed.

use super::context::{RequestContext, ScriptRequest};
use super::{first_request_hints, submit};
use crate::exchange::{Cost, Exchange, Piece, ResponseReader};
use crate::log::RequestLogEntry;
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::response::worker_response::read_lines;
use crate::response::{front_response, refresh_script};
use crate::runtime::development::{Development, FailedRequest};
use crate::runtime::rejection::Rejection;
use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use memchr::memmem;
use samovar_insight::{ErrorKind, RecordedError, Report};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

/// Folder of the server's own responses.
const FOLDER: &[u8] = b"/_samovar/";
/// Maximum size of a page that is held until it is complete.
const HELD_BYTES_MAX: usize = 2 << 20;
/// Maximum time for which a page is held. A page that is still being written then is streamed.
const HOLD_LIMIT: Duration = Duration::from_millis(250);
/// Maximum wait for the report about a failed request.
const REPORT_LIMIT: Duration = Duration::from_secs(1);
/// Length of the end of a page in which PHP's message about a fatal error is searched.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Response to a request whose worker has responded.
pub(super) enum Developed {
    /// A page about the error.
    Page(Response<ResponseBody>),
    /// The worker's response, maybe with the script.
    Worker(ResponseReader, Option<Exchange>),
}

/// Whether a browser loads the response as a page. Requests of scripts and of frames are not.
pub(super) fn is_document(parts: &Parts) -> bool {
    let has = |name, part: &[u8]| {
        let value = parts.headers.get(name).map(HeaderValue::as_bytes);
        value.is_some_and(|value| memmem::find(value, part).is_some())
    };
    let purpose = parts.headers.get("sec-fetch-dest");
    has(header::ACCEPT, b"text/html") && purpose.is_none_or(|purpose| purpose == "document")
}

/// Returns the response to a request for the server's own folder.
pub(super) fn own(
    context: &RequestContext<'_>,
    development: &Arc<Development>,
    parts: &Parts,
    path: &[u8],
) -> Option<Result<Response<ResponseBody>, Failure>> {
    let name = path.strip_prefix(FOLDER)?;
    if !first_request_hints::is_at_the_machine(context, parts) {
        return None;
    }
    let page = |kind: &'static str, body: ResponseBody| {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        response
    };
    let whole = |text: &str| ResponseBody::whole(Bytes::copy_from_slice(text.as_bytes()));
    Some(match name {
        b"dev.js" => Ok(page("text/javascript; charset=utf-8", whole(refresh_script::SCRIPT))),
        b"events" => match development.listen() {
            Some(listener) => Ok(page("text/event-stream", ResponseBody::events(listener))),
            None => Err(Failure::Busy(Rejection::Files, 1)),
        },
        b"failure" => {
            let text = development.failure_page();
            let text = text.as_deref().unwrap_or("<!doctype html><p>The application boots.");
            Ok(page("text/html; charset=utf-8", whole(text)))
        }
        _ => Err(Failure::NotFound),
    })
}

/// Changes the response to a request for a page.
pub(super) async fn develop(
    request: &ScriptRequest<'_>,
    (development, version): (&Arc<Development>, u64),
    (mut reader, mut exchange): (ResponseReader, Option<Exchange>),
    entry: &mut RequestLogEntry,
) -> Result<Developed, Failure> {
    let (context, parts) = (&request.context, request.parts);
    let mut headers = HeaderMap::new();
    let declared = read_lines(&reader.bytes, reader.head_bytes, &mut headers, |_| {}).length;
    if !refresh_script::is_page(&headers) {
        return Ok(Developed::Worker(reader, exchange));
    }
    let head = reader.bytes.slice(..reader.head_bytes);
    let mut page = reader.bytes[reader.head_bytes..].to_vec();
    hold(request, &mut reader, &mut exchange, &mut page).await?;
    if exchange.is_none() && may_have_failed(reader.status, &page) {
        let errors = errors(&mut reader).await;
        if !errors.is_empty() && first_request_hints::is_at_the_machine(context, parts) {
            entry.costs(reader.cost);
            let text = development.error_page(&failed(context, parts), &errors);
            return Ok(Developed::Page(error_page(version, text)));
        }
    }
    let tag = refresh_script::tag(version, &headers);
    let at = refresh_script::position(&page);
    let is_whole = exchange.is_none();
    let is_short = is_whole && declared.is_some_and(|length| length != page.len() as u64);
    let mut lines = head.to_vec();
    if let (Some(at), Some(tag), false) = (at, tag, is_short) {
        page.splice(at..at, tag.bytes());
        lines = changed_head(&head, declared.map(|length| length + tag.len() as u64));
    }
    reader.head_bytes = lines.len();
    lines.extend(page);
    reader.bytes = lines.into();
    reader.is_open = exchange.is_some();
    Ok(Developed::Worker(reader, exchange))
}

/// Adds the script to a page of the front itself.
pub(super) fn with_script(
    development: &Development,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    if !refresh_script::is_page(response.headers()) {
        return response;
    }
    let Some(bytes) = response.body_mut().take_whole() else { return response };
    let page = with_tag(development.version(), bytes);
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response.map(|_| ResponseBody::whole(page))
}

fn with_tag(version: u64, page: Bytes) -> Bytes {
    let tag = refresh_script::tag(version, &HeaderMap::new());
    match (refresh_script::position(&page), tag) {
        (Some(at), Some(tag)) => [&page[..at], tag.as_bytes(), &page[at..]].concat().into(),
        _ => page,
    }
}

/// Receives the rest of the page, within limits.
async fn hold(
    request: &ScriptRequest<'_>,
    reader: &mut ResponseReader,
    exchange: &mut Option<Exchange>,
    page: &mut Vec<u8>,
) -> Result<(), Failure> {
    let deadline = Instant::now() + HOLD_LIMIT;
    while let Some(open) = exchange.as_mut().filter(|_| page.len() < HELD_BYTES_MAX) {
        match timeout_at(deadline, poll_fn(|cx| open.poll_piece(cx))).await {
            Err(_) => break,
            Ok(Ok(Piece::Bytes(bytes))) => page.extend_from_slice(&bytes),
            Ok(Ok(Piece::End(cost))) => {
                reader.cost = cost;
                *exchange = None;
            }
            Ok(Err(lost)) => return Err(submit::failure(request, lost)),
        }
    }
    Ok(())
}

/// Whether a complete response may be that of a failed script. PHP responds with 500, or with its
/// message at the end of the page if it displays errors.
fn may_have_failed(status: u16, page: &[u8]) -> bool {
    let end = &page[page.len().saturating_sub(MESSAGE_BYTES_MAX)..];
    let says = |part: &str| memmem::find(end, part.as_bytes()).is_some();
    status >= 500 || page.is_empty() || says("Fatal error") || says("Parse error")
}

/// Waits for the worker's report and returns the errors that ended the request.
async fn errors(reader: &mut ResponseReader) -> Vec<RecordedError> {
    reader.cost = match std::mem::replace(&mut reader.cost, Cost::Unknown) {
        Cost::Later(later) => {
            let (report, reported) = oneshot::channel();
            later.ask(move |account| {
                // The receiver may have stopped waiting.
                let _ = report.send(account);
            });
            let reported = timeout(REPORT_LIMIT, reported).await;
            reported.ok().and_then(Result::ok).map_or(Cost::Unknown, Cost::Known)
        }
        cost => cost,
    };
    let Cost::Known(account) = &reader.cost else { return Vec::new() };
    let entries: Vec<_> = Report::new(&account.report).filter_map(Result::ok).collect();
    let mut errors = RecordedError::of_entries(&entries);
    errors.retain(|error| matches!(error.kind, ErrorKind::Fatal | ErrorKind::Uncaught));
    errors
}

fn failed(context: &RequestContext<'_>, parts: &Parts) -> FailedRequest {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    FailedRequest {
        method: parts.method.to_string(),
        target: parts.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned(),
        id: text(context.id),
        headers: headers.collect(),
    }
}

fn error_page(version: u64, text: String) -> Response<ResponseBody> {
    let page = with_tag(version, text.into());
    let mut response = front_response::with_page(Response::new(ResponseBody::empty()), page, HTML);
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// Returns the head of a page with the script: with its new length, and without the headers that
/// would let a browser keep the page.
fn changed_head(head: &[u8], length: Option<u64>) -> Vec<u8> {
    const DROPPED: [&[u8]; 4] = [b"content-length", b"etag", b"last-modified", b"cache-control"];
    let mut lines = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !DROPPED.iter().any(|dropped| name.trim_ascii().eq_ignore_ascii_case(dropped)) {
            lines.extend_from_slice(line);
        }
    }
    if !lines.is_empty() && !lines.ends_with(b"\n") {
        lines.push(b'\n');
    }
    lines.extend_from_slice(b"Cache-Control: no-store\n");
    if let Some(length) = length {
        lines.extend_from_slice(format!("Content-Length: {length}\n").as_bytes());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_of_changed_page_has_its_length_and_is_not_stored() {
        for (head, length, expected) in [
            ("A: 1\n", None, "A: 1\nCache-Control: no-store\n"),
            (
                "Content-length: 9\nETag: \"x\"\ncache-control: public\nX: y",
                Some(12),
                "X: y\nCache-Control: no-store\nContent-Length: 12\n",
            ),
            ("", None, "Cache-Control: no-store\n"),
        ] {
            let changed = changed_head(head.as_bytes(), length);
            assert_eq!(String::from_utf8_lossy(&changed), expected, "{head:?}");
        }
    }

    #[test]
    fn failed_scripts_are_recognized_by_status_or_message() {
        for (status, page, expected) in [
            (200, "<html>fine</html>", false),
            (500, "<html>sorry</html>", true),
            (200, "", true),
            (200, "<br />\n<b>Fatal error</b>:  Uncaught", true),
            (200, "<b>Parse error</b>:  syntax", true),
        ] {
            assert_eq!(may_have_failed(status, page.as_bytes()), expected, "{status} {page}");
        }
    }
}
