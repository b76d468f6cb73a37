//! deliver: compression of responses for clients that accept it.
//!
//! `negotiate` selects the content coding. This file selects the responses to compress, and changes
//! their heads. `packed` is a body that is being compressed. Short bodies are compressed in one
//! step and sent with their length. Longer bodies are compressed piece by piece on dedicated
//! threads, so that other requests do not wait.

pub(crate) mod negotiate;

use crate::response::body::ResponseBody;
use crate::response::compressed_body::{Coder, INLINE_BYTES_MAX, Packed};
use crate::shared::Shared;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use samovar_config::{Coding, Compression};

/// Maximum number of responses being compressed at a time. Further responses are sent uncompressed.
/// Each has a window and tables of up to 2 MiB.
const PACKED_MAX: usize = 256;

/// Media types that are compressed if the settings list none. Formats that are already compressed
/// are not included.
const TYPES: &[&str] = &[
    "text/*",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/problem+json",
    "application/xml",
    "application/atom+xml",
    "application/rss+xml",
    "application/xhtml+xml",
    "application/wasm",
    "application/vnd.ms-fontobject",
    "font/otf",
    "font/ttf",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
];

/// Never compressed: each event must be sent immediately, and proxies and browsers may wait for the
/// end of a compressed body.
const NEVER: &str = "text/event-stream";

/// Digest headers, which cover the bytes as sent.
const DIGESTS: [HeaderName; 3] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
];

/// The parts of a request that decide about compression, saved before its head is consumed.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    coding: Option<Coding>,
    is_head: bool,
    /// `If-None-Match`: the versions the client already has.
    held: Vec<HeaderValue>,
}

impl Wish {
    /// `None`: compression is off, or does not apply to this request.
    pub(crate) fn of(settings: &Compression, parts: &http::request::Parts) -> Option<Wish> {
        // An HTTP/1.0 client could not detect the end of a compressed response.
        if settings.codings.is_empty() || parts.version < http::Version::HTTP_11 {
            return None;
        }
        let accepted = negotiate::Accepted::of(&parts.headers);
        let coding = accepted.best(&settings.codings);
        let held = parts.headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect();
        Some(Wish { coding, is_head: parts.method == Method::HEAD, held })
    }
}

/// Compresses a response if this is allowed and useful, and sets the headers that caches need.
pub(crate) fn pack(
    shared: &Shared,
    settings: &Compression,
    wish: &Wish,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    if response.status() == StatusCode::NOT_MODIFIED {
        name_as_held(response.headers_mut(), &wish.held);
        return response;
    }
    if response.status() == StatusCode::PARTIAL_CONTENT && is_part_of_packable(settings, &response)
    {
        vary(response.headers_mut());
        return response;
    }
    if !is_packable(settings, &response, wish.is_head) {
        return response;
    }
    vary(response.headers_mut());
    let Some(coding) = wish.coding else { return response };
    let is_known = size(&response, wish.is_head).is_some();
    let (mut head, mut body) = response.into_parts();
    if wish.is_head {
        // The body of a GET may be too short for compression. If its size is unknown, the head
        // names no coding.
        if is_known {
            describe(&mut head.headers, coding);
            return Response::from_parts(head, ResponseBody::empty());
        }
        return Response::from_parts(head, body);
    }
    let body = match body.take_whole() {
        Some(bytes) if bytes.len() <= INLINE_BYTES_MAX => {
            let packed = whole(coding, &bytes);
            if packed.is_some() {
                shared.counters.pool.responses_compressed_total.add(1);
                describe(&mut head.headers, coding);
            }
            return Response::from_parts(head, ResponseBody::whole(packed.unwrap_or(bytes)));
        }
        Some(bytes) => ResponseBody::whole(bytes),
        None => body,
    };
    let packing = &shared.packing;
    if packing.in_flight() >= PACKED_MAX {
        shared.counters.pool.compressions_skipped_total.add(1);
        return Response::from_parts(head, body);
    }
    let Ok(coder) = Coder::new(coding) else { return Response::from_parts(head, body) };
    shared.counters.pool.responses_compressed_total.add(1);
    describe(&mut head.headers, coding);
    let packed = Packed::new(packing, coder, body);
    Response::from_parts(head, ResponseBody::packed(packed))
}

/// A client with a compressed copy knows it by the weak entity tag it was sent with, and so do
/// caches on the way. A 304 with the strong tag would refer to another response (RFC 9111, 4.3.4).
fn name_as_held(headers: &mut HeaderMap, held: &[HeaderValue]) {
    let Some(tag) = headers.get(header::ETAG).and_then(weak) else { return };
    let mut tags = held.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    if tags.any(|held| held.trim_ascii() == tag.as_bytes()) {
        headers.insert(header::ETAG, tag);
        vary(headers);
    }
}

/// Returns the weak form of a strong entity tag.
fn weak(tag: &HeaderValue) -> Option<HeaderValue> {
    let is_strong = tag.as_bytes().first() == Some(&b'"');
    HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok().filter(|_| is_strong)
}

/// Compresses a whole body. `None`: the result would not be smaller.
fn whole(coding: Coding, bytes: &Bytes) -> Option<Bytes> {
    let mut coder = Coder::new(coding).ok()?;
    coder.write(bytes).ok()?;
    let packed = coder.finish().ok()?;
    (packed.len() < bytes.len()).then(|| packed.into())
}

fn is_packable(settings: &Compression, response: &Response<ResponseBody>, is_head: bool) -> bool {
    use StatusCode as S;
    let (status, headers) = (response.status(), response.headers());
    let has_part =
        matches!(status, S::NO_CONTENT | S::RESET_CONTENT | S::PARTIAL_CONTENT | S::NOT_MODIFIED);
    let has = |name: &HeaderName| headers.contains_key(name);
    if has_part || has(&header::CONTENT_ENCODING) || has(&header::CONTENT_RANGE) {
        return false;
    }
    if size(response, is_head).is_some_and(|size| size < settings.bytes_min) {
        return false;
    }
    let is_listed = headers.get(header::CONTENT_TYPE).is_some_and(|kind| is_listed(settings, kind));
    is_listed && !forbids(headers) && !DIGESTS.iter().any(has)
}

/// Whether a script's response with the whole content would be compressed. Both depend on the same
/// headers of the request (RFC 9110, 15.3.7).
fn is_part_of_packable(settings: &Compression, response: &Response<ResponseBody>) -> bool {
    let headers = response.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let whole =
        text(header::CONTENT_RANGE).and_then(|range| range.rsplit_once('/')?.1.parse().ok());
    let is_listed = headers.get(header::CONTENT_TYPE).is_some_and(|kind| is_listed(settings, kind));
    is_listed
        && whole.is_none_or(|bytes: u64| bytes >= settings.bytes_min)
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !forbids(headers)
}

/// Length of the body, or, for a HEAD, of the body a GET would return. `None` if unknown.
fn size(response: &Response<ResponseBody>, is_head: bool) -> Option<u64> {
    let declared = response.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|v| v.to_str().ok()?.parse().ok());
    // A script's response to HEAD has no body; a file's has.
    response.body().size_hint().exact().filter(|size| !is_head || *size > 0).or(declared)
}

/// Whether a file of this size and media type is compressed for clients that accept it.
pub(super) fn may_pack(settings: &Compression, kind: &HeaderValue, bytes: u64) -> bool {
    !settings.codings.is_empty() && bytes >= settings.bytes_min && is_listed(settings, kind)
}

/// Whether bodies of this media type are worth compressing.
fn is_listed(settings: &Compression, kind: &HeaderValue) -> bool {
    let Ok(kind) = kind.to_str() else { return false };
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    let fits = |listed: &str| match listed.strip_suffix('*') {
        Some(family) => {
            kind.get(..family.len()).is_some_and(|start| start.eq_ignore_ascii_case(family))
        }
        None => kind.eq_ignore_ascii_case(listed),
    };
    let is_listed = if settings.types.is_empty() {
        TYPES.iter().copied().any(fits)
    } else {
        settings.types.iter().map(String::as_str).any(fits)
    };
    is_listed && !kind.eq_ignore_ascii_case(NEVER)
}

/// `no-transform` in `Cache-Control` (RFC 9111, 5.2.2.6).
fn forbids(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|v| v.to_str().ok());
    let mut words = values.flat_map(|value| value.split(',')).map(str::trim);
    words.any(|word| word.eq_ignore_ascii_case("no-transform"))
}

/// Marks the response as depending on the client's `Accept-Encoding`.
pub(crate) fn vary(headers: &mut HeaderMap) {
    let mut names = headers.get_all(header::VARY).iter().filter_map(|v| v.to_str().ok());
    let is_said = names.any(|value| {
        let mut names = value.split(',').map(str::trim);
        names.any(|name| name == "*" || name.eq_ignore_ascii_case("accept-encoding"))
    });
    if !is_said {
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
}

/// Adapts the head to a compressed body. The entity tag, the length and ranges described the
/// uncompressed bytes.
fn describe(headers: &mut HeaderMap, coding: Coding) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::ACCEPT_RANGES);
    if let Some(tag) = headers.get(header::ETAG).and_then(weak) {
        headers.insert(header::ETAG, tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Compression {
        let folder = tempfile::tempdir().expect("a folder");
        samovar_config::Settings::defaults(folder.path()).expect("defaults").compression
    }

    fn response(status: u16, headers: &[(&str, &str)], bytes: usize) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::whole(vec![b'x'; bytes].into()));
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a name");
            response.headers_mut().append(name, HeaderValue::from_str(value).expect("a value"));
        }
        response
    }

    #[test]
    fn compressible_responses_are_recognized() {
        let html = ("content-type", "text/html; charset=utf-8");
        for (status, headers, bytes, expected) in [
            (200, &[html][..], 2000, true),
            (404, &[html], 2000, true),
            (200, &[html], 1000, false),
            (206, &[html], 2000, false),
            (204, &[html], 2000, false),
            (200, &[html], 0, false),
            (304, &[html], 0, false),
            (200, &[("content-type", "TEXT/Html")], 2000, true),
            (200, &[("content-type", "image/png")], 2000, false),
            (200, &[("content-type", "text/event-stream")], 2000, false),
            (200, &[("content-type", "textual/html")], 2000, false),
            (200, &[], 2000, false),
            (200, &[html, ("content-encoding", "gzip")], 2000, false),
            (200, &[html, ("content-encoding", "identity")], 2000, false),
            (200, &[html, ("content-range", "bytes 0-1/2")], 2000, false),
            (200, &[html, ("cache-control", "public, No-Transform")], 2000, false),
            (
                200,
                &[html, ("cache-control", "public"), ("cache-control", "no-transform")],
                2000,
                false,
            ),
            (200, &[html, ("content-digest", "sha-256=:x:")], 2000, false),
        ] {
            let found = is_packable(&settings(), &response(status, headers, bytes), false);
            assert_eq!(found, expected, "{status} {headers:?} {bytes}");
        }
        let listed = Compression { types: vec!["image/png".into()], ..settings() };
        assert!(is_packable(
            &listed,
            &response(200, &[("content-type", "image/png")], 2000),
            false
        ));
        assert!(!is_packable(&listed, &response(200, &[html], 2000), false));
    }

    #[test]
    fn compressed_head_gets_vary_weak_tag_and_coding() {
        for (before, after) in [
            (&[][..], &["Accept-Encoding"][..]),
            (&["Cookie"], &["Cookie", "Accept-Encoding"]),
            (&["Cookie, accept-encoding"], &["Cookie, accept-encoding"]),
            (&["*"], &["*"]),
        ] {
            let mut headers = HeaderMap::new();
            for value in before {
                headers.append(header::VARY, HeaderValue::from_static(value));
            }
            vary(&mut headers);
            let found: Vec<_> = headers.get_all(header::VARY).iter().collect();
            assert_eq!(found, after);
        }
        for (tag, held, expected) in [
            ("\"a\"", "W/\"a\"", "W/\"a\""),
            ("\"a\"", "\"x\", W/\"a\" ", "W/\"a\""),
            ("\"a\"", "\"a\"", "\"a\""),
            ("\"a\"", "*", "\"a\""),
            ("W/\"a\"", "\"a\"", "W/\"a\""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ETAG, HeaderValue::from_static(tag));
            name_as_held(&mut headers, &[HeaderValue::from_static(held)]);
            assert_eq!(headers[header::ETAG], expected, "{held}");
            assert_eq!(headers.contains_key(header::VARY), tag != expected, "{held}");
        }
        for (tag, expected) in [("\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\"")] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ETAG, HeaderValue::from_static(tag));
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("9"));
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            describe(&mut headers, Coding::Zstd);
            assert_eq!(headers[header::ETAG], expected);
            assert_eq!(headers[header::CONTENT_ENCODING], "zstd");
            assert_eq!(headers.len(), 2);
        }
    }
}
