//! submit … deliver: a script that the php-fpm of a location runs, with the same parameters as from
//! nginx.
//!
//! The parameters are those that a worker would get: the head encoded for a worker is decoded
//! again. Responses are interpreted as in nginx: `Status` is the status, `Location` without it
//! means 302, and a body ends at its declared length.

use super::context::{RequestContext, ScriptRequest};
use super::upload::{Pieces, Upload};
use crate::exchange::BodyFailure;
use crate::log::{RequestLogEntry, basic_user};
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::response::worker_response::{Declared, read_lines, set_reason};
use crate::route::locations::Pass;
use crate::route::site::Script;
use crate::route::target::Target;
use crate::runtime::upstream_failure::UpstreamFailure;
use crate::upstream::{self, Broken, Head, Link, News, NoLink, PendingResponse, Terms};
use bytes::BytesMut;
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, header};
use samovar_config::Upstream;
use samovar_ring::request::{FLAG_FASTCGI, FLAG_HTTPS, RequestHead, decode, decode_variables};
use std::borrow::Cow;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Maximum number of attempts per request. The second one is for a kept connection that php-fpm had
/// already closed.
const ATTEMPTS_MAX: u32 = 2;
/// Parameters by which a web server can set any PHP setting, for example `auto_prepend_file`.
const STEERING: [&[u8]; 2] = [b"PHP_VALUE", b"PHP_ADMIN_VALUE"];

/// Name and value of a FastCGI parameter.
type Param<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Runs the script on php-fpm.
pub(super) async fn run(
    context: &RequestContext<'_>,
    parts: &Parts,
    script: &Script,
    pass: &Pass,
    upload: Upload,
    entry: &mut RequestLogEntry,
) -> Result<Response<ResponseBody>, Failure> {
    let shared = context.shared();
    let request = ScriptRequest { context: *context, parts, script };
    let mut encoded = Vec::new();
    request.encode(upload.bytes(), false, &mut encoded).map_err(|_| Failure::HeadTooLarge)?;
    shared.counters.pool.upstream_requests_total.add(1);
    let may_run_twice = is_safe(&parts.method) && matches!(upload, Upload::None);
    let mut upload = Some(upload);
    for attempt in 1..=ATTEMPTS_MAX {
        let may_be_kept = may_run_twice && attempt == 1;
        let link = connect(&request, pass, may_be_kept).await?;
        let upstream = &pass.upstreams[link.at];
        entry.passes(upstream);
        let begun = params(&request, pass, &encoded, link.keeps()).ok_or(Failure::HeadTooLarge)?;
        let pieces = Pieces::new(shared, upload.take().unwrap_or(Upload::None));
        let (asked, news) = (Instant::now(), link.news());
        news.sent(asked);
        let pending = upstream::talk(link, begun, pieces, terms(&request, upstream));
        match poll_fn(|cx| pending.poll_head(cx)).await {
            Ok(Head(lines)) => {
                news.responded(asked.elapsed());
                let is_head = parts.method == Method::HEAD;
                let response = respond(&request, pending, &lines, is_head);
                return response
                    .ok_or_else(|| failed(&request, upstream, &news, UpstreamFailure::Garbage));
            }
            Err(Broken::Stale) if attempt < ATTEMPTS_MAX => {}
            Err(Broken::Stale) => {
                return Err(failed(&request, upstream, &news, UpstreamFailure::Closed));
            }
            Err(Broken::UpstreamFailure(trouble)) => {
                return Err(failed(&request, upstream, &news, trouble));
            }
            Err(Broken::Body(BodyFailure::TooLarge)) => return Err(Failure::BodyTooLarge),
            Err(Broken::Body(BodyFailure::Timeout)) => return Err(Failure::BodyTimeout),
            Err(Broken::Body(BodyFailure::Incomplete)) => return Err(Failure::BadBody),
            Err(Broken::Disk) => return Err(Failure::Internal),
        }
    }
    Err(Failure::Internal)
}

/// Connects to one of the upstreams of the location. An upstream that cannot be reached has
/// received nothing of the request, so the next one is tried.
async fn connect(
    request: &ScriptRequest<'_>,
    pass: &Pass,
    may_be_kept: bool,
) -> Result<Link, Failure> {
    let settings = &request.context.setup.settings.fastcgi;
    let upstreams = &request.shared().upstreams;
    let mut tried: Vec<usize> = Vec::new();
    loop {
        let found = upstreams.connect(&pass.upstreams, &tried, settings, may_be_kept).await;
        let NoLink { trouble, at, error } = match found {
            Ok(link) => return Ok(link),
            Err(none) => none,
        };
        let error = error.map(|error| error.to_string());
        let Some(at) = at else {
            let all = (&*pass.addresses(), None);
            return Err(report(request, all, trouble, error.as_deref()));
        };
        let who = pass.upstreams[at].to_string();
        let failure = report(request, (&who, None), trouble, error.as_deref());
        tried.push(at);
        if tried.len() >= pass.upstreams.len() {
            return Err(failure);
        }
    }
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn terms(request: &ScriptRequest<'_>, upstream: &Upstream) -> Terms {
    let settings = &request.context.setup.settings;
    let (timeouts, path) = (&settings.timeouts, request.script.terms.time);
    Terms {
        response: path.map_or(timeouts.response, |_| Duration::ZERO),
        whole: path.unwrap_or(timeouts.request),
        after: timeouts.post_response,
        disk: Rc::clone(&request.shared().disk),
        setup: Rc::clone(request.context.setup),
        charges: Some(request.context.charges()),
        upstream: upstream.clone(),
        request_id: request.context.id.to_str().unwrap_or_default().to_owned(),
    }
}

fn failed(
    request: &ScriptRequest<'_>,
    upstream: &Upstream,
    news: &News,
    trouble: UpstreamFailure,
) -> Failure {
    news.failed(trouble);
    let who = (&*upstream.to_string(), news.address());
    report(request, who, trouble, None)
}

/// Counts and logs a failure. `upstream`: the php-fpm that failed, with the address that was used
/// if it is configured by name.
fn report(
    request: &ScriptRequest<'_>,
    (upstream, address): (&str, Option<SocketAddr>),
    trouble: UpstreamFailure,
    error: Option<&str>,
) -> Failure {
    let shared = request.shared();
    shared.counters.upstream_errors[trouble as usize].add(1);
    if let Some(suppressed) = shared.common.warnings.pass[trouble as usize].pass() {
        let (reason, hint) = trouble.words();
        tracing::warn!(
            %upstream,
            address = address.map(tracing::field::display),
            uri = %Target::of(request.parts).whole.escape_ascii(),
            request_id = request.context.id.to_str().unwrap_or_default(),
            error,
            suppressed,
            "upstream request failed: {reason}\nhint: {hint}"
        );
    }
    Failure::Passed(trouble)
}

/// Builds the response. `None`: the head is invalid.
fn respond(
    request: &ScriptRequest<'_>,
    pending: PendingResponse,
    lines: &bytes::Bytes,
    is_head: bool,
) -> Option<Response<ResponseBody>> {
    let mut headers = HeaderMap::new();
    let shared = request.shared();
    let id = request.context.id;
    let Declared { length, reason } =
        read_lines(lines, lines.len(), &mut headers, |name| shared.report_dropped(name, id));
    let status = status(lines, &headers)?;
    let is_bodiless = is_head || matches!(status.as_u16(), 204 | 304);
    if let Some(length) = length.filter(|_| is_head || !is_bodiless) {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let connection = request.context.connection;
    let body = match length {
        // nginx closes its connection to php-fpm here, too.
        _ if is_bodiless => ResponseBody::empty(),
        Some(0) => {
            pending.let_go(connection.presence());
            ResponseBody::empty()
        }
        _ => ResponseBody::passed(connection, pending, length),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    set_reason(&mut response, reason);
    Some(response)
}

/// Determines the status as nginx does: the first `Status`, else 302 if there is a `Location`, else
/// 200.
fn status(lines: &[u8], headers: &HeaderMap) -> Option<StatusCode> {
    let told = lines.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(b"status:".len())?;
        name.eq_ignore_ascii_case(b"status:").then(|| value.trim_ascii())
    });
    let Some(told) = told else {
        let is_elsewhere = headers.contains_key(header::LOCATION);
        return Some(if is_elsewhere { StatusCode::FOUND } else { StatusCode::OK });
    };
    let (code, rest) = told.split_at_checked(3)?;
    let is_whole = rest.first().is_none_or(|byte| *byte == b' ');
    let status = StatusCode::from_bytes(code).ok().filter(|_| is_whole)?;
    (!status.is_informational()).then_some(status)
}

/// Encodes BEGIN and the parameters. `None`: one of them is too long.
fn params(
    request: &ScriptRequest<'_>,
    pass: &Pass,
    encoded: &[u8],
    keeps: bool,
) -> Option<BytesMut> {
    let (head, headers) = decode(encoded)?;
    let variables = decode_variables(encoded)?;
    let mut params: Vec<Param<'_>> = Vec::with_capacity(headers.len() + variables.len() + 24);
    if head.flags & FLAG_FASTCGI == 0 {
        let software = &request.context.setup.settings.server_software;
        own(&head, software.as_bytes(), &mut params);
    }
    for (name, value) in variables {
        if !STEERING.contains(&name) {
            put(&mut params, name, value);
        }
    }
    // Values from a web server describe the request as it knew it. They are replaced by our own.
    let length = head.content_length.map_or_else(String::new, |length| length.to_string());
    put(&mut params, b"CONTENT_LENGTH", length.into_bytes());
    put(&mut params, b"SCRIPT_NAME", head.script_name);
    put(&mut params, b"PATH_INFO", head.path_info);
    put(&mut params, b"SCRIPT_FILENAME", head.script_filename);
    if let Some(root) = &pass.root {
        let root = root.as_os_str().as_bytes();
        let below = below(request, head.script_filename);
        put(&mut params, b"SCRIPT_FILENAME", [root, below].concat());
        put(&mut params, b"DOCUMENT_ROOT", root);
    }
    for (name, value) in headers {
        let upper = |b: &u8| if *b == b'-' { b'_' } else { b.to_ascii_uppercase() };
        let name: Vec<u8> = b"HTTP_".iter().copied().chain(name.iter().map(upper)).collect();
        params.push((name.into(), value.into()));
    }
    upstream::begin(keeps, params.iter().map(|(name, value)| (&name[..], &value[..])))
}

/// The parameters of nginx's `fastcgi_params`, and the request ID.
fn own<'a>(head: &RequestHead<'a>, software: &'a [u8], params: &mut Vec<Param<'a>>) {
    let is_https = head.flags & FLAG_HTTPS != 0;
    let scheme: &[u8] = if is_https { b"https" } else { b"http" };
    for (name, value) in [
        (&b"QUERY_STRING"[..], head.query),
        (b"REQUEST_METHOD", head.method),
        (b"CONTENT_TYPE", head.content_type.unwrap_or_default()),
        (b"REQUEST_URI", head.target),
        (b"DOCUMENT_URI", head.document_uri),
        (b"DOCUMENT_ROOT", head.document_root),
        (b"SERVER_PROTOCOL", head.protocol),
        (b"REQUEST_SCHEME", scheme),
        (b"GATEWAY_INTERFACE", b"CGI/1.1"),
        (b"SERVER_SOFTWARE", software),
        (b"REMOTE_ADDR", head.remote_addr),
        (b"SERVER_ADDR", head.server_addr),
        (b"SERVER_NAME", head.server_name),
        (b"REDIRECT_STATUS", b"200"),
        (b"REQUEST_ID", head.request_id),
    ] {
        put(params, name, value);
    }
    put(params, b"REMOTE_USER", head.authorization.and_then(basic_user).unwrap_or_default());
    put(params, b"REMOTE_PORT", head.remote_port.to_string().into_bytes());
    put(params, b"SERVER_PORT", head.server_port.to_string().into_bytes());
    if is_https {
        put(params, b"HTTPS", &b"on"[..]);
    }
}

/// Adds or replaces a parameter.
fn put<'a>(params: &mut Vec<Param<'a>>, name: &'a [u8], value: impl Into<Cow<'a, [u8]>>) {
    let value = value.into();
    match params.iter_mut().find(|(known, _)| known[..] == *name) {
        Some((_, old)) => *old = value,
        None => params.push((name.into(), value)),
    }
}

/// Returns the part of a script's file name after its folder, which is that of an alias or the
/// document root.
fn below<'a>(request: &ScriptRequest<'_>, filename: &'a [u8]) -> &'a [u8] {
    let site = &request.context.setup.site;
    let folders = site.folders.iter().map(|folder| &*folder.path).chain([&*site.root]);
    let of = |folder: &Path| {
        let folder = folder.as_os_str().as_bytes();
        let rest = filename.strip_prefix(folder.strip_suffix(b"/").unwrap_or(folder))?;
        rest.starts_with(b"/").then_some(rest)
    };
    // The deepest of nested folders.
    folders.filter_map(of).min_by_key(|rest| rest.len()).unwrap_or(filename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_follows_the_rules_of_nginx() {
        let mut elsewhere = HeaderMap::new();
        elsewhere.insert(header::LOCATION, http::HeaderValue::from_static("/a"));
        for (lines, is_elsewhere, expected) in [
            ("A: b\r\n", false, Some(200)),
            ("A: b\r\n", true, Some(302)),
            ("Status: 404 Not Found\r\n", false, Some(404)),
            ("status:404\n", true, Some(404)),
            ("X-Status: 404\nStatus: 201 Created\n", false, Some(201)),
            ("Status: 599 Odd\n", false, Some(599)),
            ("Status: \n", false, None),
            ("Status: 4040\n", false, None),
            ("Status: OK\n", false, None),
            ("Status: 100 Continue\n", false, None),
            ("Status: 099\n", false, None),
        ] {
            let headers = if is_elsewhere { elsewhere.clone() } else { HeaderMap::new() };
            let found = status(lines.as_bytes(), &headers).map(|status| status.as_u16());
            assert_eq!(found, expected, "{lines:?}");
        }
    }
}
