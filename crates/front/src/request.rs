//! The story of one request: check, route, then a file or a worker, then deliver and record.

use crate::connection::ConnectionState;
use crate::deliver::{self, AnswerBody};
use crate::error_page::{self, Failure};
use crate::forwarded::{self, Claims};
use crate::head::Caller;
use crate::record::Passage;
use crate::route::{Route, Script};
use crate::shared::Setup;
use crate::static_files;
use crate::submit;
use crate::upload;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};
use std::rc::Rc;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ALLOWED: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Answers one request; never fails, because a failure is an answer too.
pub(crate) async fn serve(
    connection: Rc<ConnectionState>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    connection.begin_request();
    let (mut parts, body) = request.into_parts();
    let id = connection.shared.ids.of(parts.headers.get(X_REQUEST_ID));
    let setup = connection.shared.setup();
    let proxies = &setup.options.trusted_proxies;
    let trust = forwarded::claims(proxies, connection.peer.ip(), &parts.headers);
    let mut passage = Passage::begin(&connection, &parts, &id, trust.address);
    let asker = Asker { connection: &connection, setup: &setup, id: &id, trust: &trust };
    let mut response = match answer(&asker, &mut parts, body, &mut passage).await {
        Ok(response) => response,
        Err(failure) => {
            if failure.closes_connection() {
                connection.linger();
            }
            failure.count(&connection.shared.counters);
            error_page::response(&failure, &parts, &id)
        }
    };
    response.headers_mut().insert(X_REQUEST_ID, id);
    passage.answered(response.status());
    if parts.method == Method::HEAD {
        passage.complete();
    }
    response.map(|body| body.carry(passage))
}

/// Who asks, and the setup by which that is answered.
struct Asker<'a> {
    connection: &'a Rc<ConnectionState>,
    setup: &'a Setup,
    id: &'a HeaderValue,
    trust: &'a Claims,
}

async fn answer(
    asker: &Asker<'_>,
    parts: &mut Parts,
    body: Incoming,
    passage: &mut Passage,
) -> Result<Response<AnswerBody>, Failure> {
    check(parts)?;
    if parts.uri.path() == "*" {
        return about_server(&parts.method);
    }
    let Asker { connection, setup, .. } = *asker;
    let path = parts.uri.path().as_bytes();
    let route = setup.routes.route(&setup.site, path, connection.shared.now_ms.get());
    match &*route {
        Route::Script(script) => run(asker, parts, body, script, passage).await,
        Route::Static(file) => static_files::respond(file, parts),
        Route::Redirect(path) => redirect(path, parts.uri.query()),
        Route::Forbidden => Err(Failure::Forbidden),
        Route::NotFound => Err(Failure::NotFound),
        Route::BadRequest(reason) => Err(Failure::BadRequest(reason)),
    }
}

async fn run(
    asker: &Asker<'_>,
    parts: &mut Parts,
    body: Incoming,
    script: &Script,
    passage: &mut Passage,
) -> Result<Response<AnswerBody>, Failure> {
    let Asker { connection, setup, id, trust } = *asker;
    let upload = if body.is_end_stream() {
        upload::Upload::None
    } else {
        Box::pin(upload::receive(&connection.shared, &setup.options, body)).await?
    };
    if matches!(upload, upload::Upload::Live(..)) {
        // The answer may be there before the client has sent everything.
        connection.linger();
    }
    let caller = Caller { connection, setup, parts, script, id, trust };
    let (answer, exchange) = submit::submit(&caller, upload, passage).await?;
    let is_head = parts.method == Method::HEAD;
    let recycled = std::mem::take(&mut parts.headers);
    deliver::respond(&connection.shared, recycled, answer, exchange, is_head, passage)
}

/// What HTTP demands of a request and hyper does not check.
fn check(parts: &Parts) -> Result<(), Failure> {
    if parts.method == Method::TRACE || parts.method == Method::CONNECT {
        return Err(Failure::MethodNotAllowed(ALLOWED));
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if parts.version >= Version::HTTP_11 => {
            return Err(Failure::BadRequest("no Host header"));
        }
        (Some(_), Some(_)) => return Err(Failure::BadRequest("more than one Host header")),
        (Some(host), None) if !is_host(host.as_bytes()) => {
            return Err(Failure::BadRequest("an invalid Host header"));
        }
        _ => {}
    }
    let mut codings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => {}
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {}
        // hyper decodes once whatever ends with `chunked`: where the body ends would be anybody's guess.
        _ => return Err(Failure::BadRequest("a transfer coding other than one `chunked`")),
    }
    match parts.uri.scheme_str() {
        None | Some("http" | "https") => Ok(()),
        Some(_) => Err(Failure::BadRequest("a target of another scheme")),
    }
}

/// The characters of RFC 3986's `host [":" port]`.
fn is_host(host: &[u8]) -> bool {
    host.iter().all(|b| b.is_ascii_alphanumeric() || b".-_~:[]%!$&'()*+,;=".contains(b))
}

/// `OPTIONS *` asks about the server, not about a resource.
fn about_server(method: &Method) -> Result<Response<AnswerBody>, Failure> {
    if method != Method::OPTIONS {
        return Err(Failure::BadRequest("the target `*` is for OPTIONS"));
    }
    let mut response = Response::new(AnswerBody::empty());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
    Ok(response)
}

/// Relative, because only the client knows under which scheme and name it reached us.
fn redirect(path: &str, query: Option<&str>) -> Result<Response<AnswerBody>, Failure> {
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let target = HeaderValue::from_str(&target)
        .map_err(|_| Failure::BadRequest("a query that fits no header"))?;
    let mut response = Response::new(AnswerBody::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(header::LOCATION, target);
    Ok(response)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn hosts() {
        for (host, is_valid) in [
            ("example.com", true),
            ("example.com:8080", true),
            ("[::1]:80", true),
            ("a_b", true),
            ("", true),
            ("a b", false),
            ("a/b", false),
            ("a\"b", false),
            ("user@host", false),
        ] {
            assert_eq!(is_host(host.as_bytes()), is_valid, "{host:?}");
        }
    }
}
