//! Responses, and the headers that all of them have.

use crate::live::Live;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{Either, Full};

pub(crate) type AdminResponse = Response<Either<Full<Bytes>, Live>>;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
pub(crate) const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
pub(crate) const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
pub(crate) const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Returns a response of any type. Its headers forbid caching, framing and guessing of another
/// type.
pub(crate) fn of_type(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> AdminResponse {
    of_body(status, content_type, Either::Left(Full::new(body.into())))
}

/// Returns a response with a stream of page updates.
pub(crate) fn live(live: Live) -> AdminResponse {
    of_body(StatusCode::OK, EVENTS, Either::Right(live))
}

fn of_body(
    status: StatusCode,
    content_type: HeaderValue,
    body: Either<Full<Bytes>, Live>,
) -> AdminResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        ),
    );
    response
}

pub(crate) fn html(status: StatusCode, page: String) -> AdminResponse {
    of_type(status, HTML, page)
}

pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> AdminResponse {
    of_type(status, TEXT, body)
}

pub(crate) fn json(value: &impl serde::Serialize) -> AdminResponse {
    json_with(StatusCode::OK, value)
}

/// Like [`json`], with this status.
pub(crate) fn json_with(status: StatusCode, value: &impl serde::Serialize) -> AdminResponse {
    match serde_json::to_vec(value) {
        Ok(body) => of_type(status, JSON, body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

pub(crate) fn not_found() -> AdminResponse {
    text(StatusCode::NOT_FOUND, "page not found\n")
}
