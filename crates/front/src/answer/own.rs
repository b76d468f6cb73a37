//! What the front answers by itself: methods, and where to find something.

use crate::answer::body::AnswerBody;
use crate::answer::error_page::Failure;
use bytes::Bytes;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;

/// Methods that scripts are given.
pub(crate) const ALLOWED: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Headers that are of the content, and of no other in its place.
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

/// `OPTIONS *` asks about the server, not about a resource.
pub(crate) fn about_server(method: &Method) -> Result<Response<AnswerBody>, Failure> {
    if method != Method::OPTIONS {
        return Err(Failure::BadRequest("the target `*` is for OPTIONS"));
    }
    let mut response = Response::new(AnswerBody::empty());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
    Ok(response)
}

/// What a HEAD is answered with: the length of what a GET would bring, and nothing of it. Of HTTP/1 hyper sees to that
/// by itself, of HTTP/2 it does not, and clients take a body there for a broken connection.
pub(crate) fn head_of(response: Response<AnswerBody>) -> Response<AnswerBody> {
    let bytes = response.body().size_hint().exact().unwrap_or_default();
    let (mut head, _) = response.into_parts();
    if bytes > 0 {
        head.headers.entry(header::CONTENT_LENGTH).or_insert(bytes.into());
    }
    Response::from_parts(head, AnswerBody::empty())
}

/// What an authority has asked for.
pub(crate) fn text(text: String) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::whole(text.into()));
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The same page by HTTPS. What is no GET keeps its method.
pub(crate) fn to_https(
    port: u16,
    parts: &Parts,
    target: &[u8],
) -> Result<Response<AnswerBody>, Failure> {
    let header = || parts.headers.get(header::HOST)?.to_str().ok();
    let authority = parts.uri.authority().map(Authority::as_str).or_else(header);
    let host = authority.map(without_port).filter(|host| !host.is_empty());
    let host = host.ok_or(Failure::BadRequest("no host to come by HTTPS to"))?;
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let location = [b"https://", host.as_bytes(), port.as_bytes(), target].concat();
    let location = HeaderValue::from_bytes(&location)
        .map_err(|_| Failure::BadRequest("a target that fits no header"))?;
    let is_get = matches!(parts.method, Method::GET | Method::HEAD);
    let mut response = Response::new(AnswerBody::empty());
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

/// The same answer with a page as its content. A script that writes the one before may run on.
pub(crate) fn with_page(
    response: Response<AnswerBody>,
    page: Bytes,
    kind: HeaderValue,
) -> Response<AnswerBody> {
    let (mut head, before) = response.into_parts();
    for name in OF_CONTENT {
        head.headers.remove(name);
    }
    head.headers.insert(header::CONTENT_TYPE, kind);
    let mut body = AnswerBody::whole(page);
    body.replace(&before);
    Response::from_parts(head, body)
}

/// To another path, or a URL: with the query, unless it has one itself. A path is relative, because only the client knows under
/// which scheme and name it reached us.
pub(crate) fn redirect(
    path: &str,
    query: Option<&[u8]>,
    status: StatusCode,
) -> Result<Response<AnswerBody>, Failure> {
    let fragment = path.find('#').unwrap_or(path.len());
    let (path, fragment) = path.split_at(fragment);
    let target = match query.filter(|_| !path.contains('?')) {
        Some(query) => [path.as_bytes(), b"?", query, fragment.as_bytes()].concat(),
        None => [path, fragment].concat().into_bytes(),
    };
    let target = HeaderValue::from_bytes(&target)
        .map_err(|_| Failure::BadRequest("a query that fits no header"))?;
    let mut response = Response::new(AnswerBody::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::LOCATION, target);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_stands_before_the_fragment() {
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
