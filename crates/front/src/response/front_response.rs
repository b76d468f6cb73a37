//! Responses of the front itself: allowed methods, redirects, replacement pages.

use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use bytes::Bytes;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;

/// Methods that are passed to scripts.
pub(crate) const ALLOWED: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Headers that describe the content and must not be kept when it is replaced.
const OF_CONTENT: [HeaderName; 8] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::CONTENT_DISPOSITION,
    header::CONTENT_LANGUAGE,
    header::ACCEPT_RANGES,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// `OPTIONS *` is a question about the server, not about a resource.
pub(crate) fn about_server(method: &Method) -> Result<Response<ResponseBody>, Failure> {
    if method != Method::OPTIONS {
        return Err(Failure::BadRequest("the target `*` is valid only for OPTIONS"));
    }
    let mut response = Response::new(ResponseBody::empty());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
    Ok(response)
}

/// Converts a response to the one for HEAD: the length a GET would have, and no body. hyper does
/// this for HTTP/1, but not for HTTP/2, where clients treat a body as a broken connection.
pub(crate) fn head_of(response: Response<ResponseBody>) -> Response<ResponseBody> {
    let bytes = response.body().size_hint().exact().unwrap_or_default();
    let (mut head, _) = response.into_parts();
    if bytes > 0 {
        head.headers.entry(header::CONTENT_LENGTH).or_insert(bytes.into());
    }
    Response::from_parts(head, ResponseBody::empty())
}

/// Response to a validation request of a certificate authority.
pub(crate) fn text(text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text.into()));
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Redirects to the same page over HTTPS. Methods other than GET and HEAD are preserved.
pub(crate) fn to_https(
    port: u16,
    parts: &Parts,
    target: &[u8],
) -> Result<Response<ResponseBody>, Failure> {
    let header = || parts.headers.get(header::HOST)?.to_str().ok();
    let authority = parts.uri.authority().map(Authority::as_str).or_else(header);
    let host = authority.map(without_port).filter(|host| !host.is_empty());
    let host = host.ok_or(Failure::BadRequest("no host name for the redirect to HTTPS"))?;
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let location = [b"https://", host.as_bytes(), port.as_bytes(), target].concat();
    let location = HeaderValue::from_bytes(&location)
        .map_err(|_| Failure::BadRequest("request target not valid in a header"))?;
    let is_get = matches!(parts.method, Method::GET | Method::HEAD);
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() =
        if is_get { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// `example.com:80` → `example.com`, `[::1]:80` → `[::1]`.
pub(crate) fn without_port(host: &str) -> &str {
    match host.rfind([':', ']']) {
        Some(at) if host.as_bytes()[at] == b':' => &host[..at],
        _ => host,
    }
}

/// Replaces the content of a response by a page. A script that still writes the old content may
/// continue.
pub(crate) fn with_page(
    response: Response<ResponseBody>,
    page: Bytes,
    kind: HeaderValue,
) -> Response<ResponseBody> {
    let (mut head, before) = response.into_parts();
    for name in OF_CONTENT {
        head.headers.remove(name);
    }
    head.headers.insert(header::CONTENT_TYPE, kind);
    let mut body = ResponseBody::whole(page);
    body.replace(&before);
    Response::from_parts(head, body)
}

/// Redirects to a path or a URL. The query is kept, unless the target has one. A path is sent as
/// relative, because only the client knows the scheme and host name it used.
pub(crate) fn redirect(
    path: &str,
    query: Option<&[u8]>,
    status: StatusCode,
) -> Result<Response<ResponseBody>, Failure> {
    let fragment = path.find('#').unwrap_or(path.len());
    let (path, fragment) = path.split_at(fragment);
    let target = match query.filter(|_| !path.contains('?')) {
        Some(query) => [path.as_bytes(), b"?", query, fragment.as_bytes()].concat(),
        None => [path, fragment].concat().into_bytes(),
    };
    let target = HeaderValue::from_bytes(&target)
        .map_err(|_| Failure::BadRequest("query not valid in a header"))?;
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::LOCATION, target);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_puts_query_before_fragment() {
        for (to, query, expected) in [
            ("/new", Some("a=1"), "/new?a=1"),
            ("/new", None, "/new"),
            ("/new#part", Some("a=1"), "/new?a=1#part"),
            ("/new#part", None, "/new#part"),
            ("/new?b=2", Some("a=1"), "/new?b=2"),
            ("/new?b=2#part", Some("a=1"), "/new?b=2#part"),
            ("/new#part?", Some("a=1"), "/new?a=1#part?"),
        ] {
            let response =
                redirect(to, query.map(str::as_bytes), StatusCode::FOUND).expect("it fits");
            assert_eq!(response.headers()[header::LOCATION], expected, "{to} {query:?}");
        }
    }
}
