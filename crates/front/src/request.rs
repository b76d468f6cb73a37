//! The stages of one request: check, route, then a file or a worker, then deliver and record.
//!
//! - `context` is the state that the stages share.
//! - `http_rules`, `host` and `forwarded` decide which parts of the head are trusted.
//! - `upload` receives the body, `head` encodes the head for PHP, `submit` runs the request, and
//!   `interim` forwards interim responses.
//! - `first_request_hints` gives hints until the first page is served.
//! - `probe`, `job_batch` and `replay` are requests of the server itself, which `internal` runs.
//! - `recording` holds the input of requests that are recorded.
//! - `intake` stores requests as jobs without PHP.
//! - `canary` assigns requests to a canary generation.
//! - `development` changes pages in development mode.
//!
//! Imports all folders except `front`.

pub(crate) mod canary;
mod context;
mod development;
mod fastcgi_head;
mod first_request_hints;
mod forwarded;
mod head;
mod host;
mod http_rules;
mod intake;
mod interim;
mod internal;
pub(crate) mod job_batch;
pub(crate) mod probe;
mod recording;
pub(crate) mod replay;
mod script_sampling;
mod status_page;
mod submit;
pub(crate) mod trace_selection;
mod upload;
mod upstream_request;

use crate::client::connection::ConnectionState;
use crate::client::fastcgi::Complaint;
use crate::client::head_filter::Note;
use crate::client::request_body::RequestBody;
use crate::log::trace::{Policy, Trace};
use crate::log::{Client, RequestLogEntry};
use crate::response::body::ResponseBody;
use crate::response::error_page::{self, Failure};
use crate::response::files::sendfile;
use crate::response::{compress, files, front_response, worker_response};
use crate::route::site::{Route, Routed, Script, Why};
use crate::route::target::{AsItCame, Target};
use crate::runtime::panic_guard;
use crate::runtime::rejection::Rejection;
use crate::setup::Setup;
use canary::Assignment;
use context::{RequestContext, ScriptRequest};
use development::Developed;
use forwarded::Claims;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Body;
pub use internal::TraceHeaders;
use samovar_config::{Role, TraceFrom};
use std::rc::Rc;
use upload::{Source, Upload};

/// Folder whose files are sent even by listeners that redirect to HTTPS, because a certificate
/// authority may use them to validate the domain. Requests without a file are redirected, which
/// authorities follow.
const ACME_FOLDER: &[u8] = b"/.well-known/acme-challenge/";
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Serves one request. Never fails: failures and panics also produce a response.
pub(crate) fn serve(
    connection: Rc<ConnectionState>,
    request: Request<RequestBody>,
    note: Note,
) -> impl Future<Output = Response<ResponseBody>> {
    let is_head = request.method() == Method::HEAD;
    let serving = tell(Rc::clone(&connection), request.into_parts(), note);
    panic_guard::guard(serving, move |responded| {
        let shared = &connection.shared;
        let mut response = responded.unwrap_or_else(|| {
            shared.counters.server.panics_total.add(1);
            shared.counters.pool.responses_5xx_total.add(1);
            let page = error_page::sorry();
            if is_head { front_response::head_of(page) } else { page }
        });
        if shared.draining.get() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    })
}

/// Processes a request from its head to the head of its response.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn would hold the request twice: as a parameter, and in parts"
)]
fn tell(
    connection: Rc<ConnectionState>,
    (mut parts, body): (Parts, RequestBody),
    note: Note,
) -> impl Future<Output = Response<ResponseBody>> {
    async move {
        let connection = &connection;
        let busy = connection.begin_request();
        #[cfg(test)]
        match parts.uri.path() {
            "/panic" => panic!("panic requested by a test"),
            "/break" => panic_guard::BREAKS.set(true),
            _ => {}
        }
        let shared = &connection.shared;
        if let Some(target) = note.target {
            parts.extensions.insert(AsItCame(target));
        }
        let id = shared.ids.of(parts.headers.get(X_REQUEST_ID));
        let setup = shared.setup();
        let told = note.told.as_deref();
        let ends = told.map_or_else(|| connection.ends(), |told| &told.ends);
        // Parameters from a web server are used as they are; php-fpm does not apply forwarding
        // headers either.
        let claims = match told {
            Some(_) => Claims::default(),
            None => forwarded::claims(&setup.settings, ends.peer, &parts.headers),
        };
        let (shared, setup) = if setup.pools.is_empty() {
            (shared, setup)
        } else {
            let path = Target::of(&parts).path;
            let script = told.map(|told| &told.script.name[..]);
            let host = context::host(&claims, &parts).as_bytes();
            let pool = shared.pool_of(&setup, host, (path, script));
            (pool, pool.setup())
        };
        let address = || context::client(&claims, ends);
        let assignment = Assignment::of(shared, &parts.headers, address, told.is_some());
        let canary = assignment.canary.as_ref();
        let setup = assignment.setup(setup);
        let client = Client {
            peer: &ends.peer_text,
            claimed: claims.address,
            body_bytes: body.size_hint().exact().unwrap_or(0),
            trace: trace(connection, &setup, claims.is_trusted, &mut parts.headers),
            is_https: claims.is_https.unwrap_or(ends.is_tls),
        };
        let mut entry = RequestLogEntry::begin(&shared.recorder, &parts, &id, client);
        entry.belongs_to(canary.map_or(0, |canary| canary.generation));
        let traceparent = client.trace.as_ref().and_then(Trace::traceparent);
        let context = RequestContext {
            connection,
            shared,
            ends,
            told,
            setup: &setup,
            id: &id,
            claims: &claims,
            trace: client.trace.as_ref(),
            canary,
            traceparent: traceparent.as_ref(),
        };
        let mut routed = None;
        let responded = match note.doubt {
            Some(doubt) => Err(Failure::BadRequest(doubt)),
            None => respond(&context, &mut parts, body, &mut entry, &mut routed).await,
        };
        let page = if assignment.is_new() { routed.clone() } else { None };
        let mut response = match responded {
            Ok(response) => {
                if response.status().is_success() {
                    shared.has_served();
                }
                response
            }
            Err(failure) => {
                entry.failed(failure.end());
                refuse(&context, &parts, failure, routed).await
            }
        };
        response = response.map(|body| body.counted(|| context.memory_charge()));
        if ends.is_tls
            && told.is_none()
            && let Some(hsts) = setup.settings.tls.hsts.as_deref()
            && let Ok(value) = HeaderValue::from_str(hsts)
        {
            let headers = response.headers_mut();
            headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert(value);
        }
        assignment.mark(client.is_https, page.as_deref(), response.headers_mut());
        // Clients know an application's own ID, so it is kept. The front's ID is in the log.
        response.headers_mut().entry(X_REQUEST_ID).or_insert(id);
        entry.responded(response.status());
        if parts.method == Method::HEAD {
            response = front_response::head_of(response);
            entry.complete();
        }
        response.map(|body| body.carry(busy, entry))
    }
}

/// Returns the request's trace. Changes the trace headers to those that PHP gets.
fn trace(
    connection: &ConnectionState,
    setup: &Setup,
    is_trusted: bool,
    headers: &mut HeaderMap,
) -> Option<Trace> {
    let of = &setup.settings.insight;
    let is_believed = match of.trace_from {
        TraceFrom::Nobody => false,
        TraceFrom::Proxies => is_trusted,
        TraceFrom::All => true,
    };
    let is_collected = of.otlp.endpoint.is_some();
    if !is_believed && !is_collected {
        return None;
    }
    let policy = Policy { is_believed, is_collected, share_ppm: of.trace_share_ppm };
    connection.shared.traces.of(policy, headers)
}

async fn respond(
    context: &RequestContext<'_>,
    parts: &mut Parts,
    body: RequestBody,
    entry: &mut RequestLogEntry,
    found: &mut Option<Rc<Routed>>,
) -> Result<Response<ResponseBody>, Failure> {
    match context.told {
        None => http_rules::check(parts, &context.setup.settings.limits)?,
        Some(told) if told.is_too_large => return Err(Failure::HeadTooLarge),
        Some(told) if told.is_unfound => return Err(Failure::Busy(Rejection::Files, 1)),
        Some(told) => {
            if let Some(page) = status_page::page(context, told) {
                return page;
            }
        }
    }
    if parts.uri.path() == "*" && context.told.is_none() {
        return front_response::about_server(&parts.method);
    }
    let shared = context.shared();
    let Target { path, query, whole } = Target::of(parts);
    if let Some(development) = shared.common.development.as_ref().filter(|_| context.told.is_none())
        && let Some(response) = development::own(context, development, parts, path)
    {
        entry.keep_out_of_log();
        return response;
    }
    if let Some(tls) = &shared.tls
        && let Some(token) = path.strip_prefix(ACME_FOLDER)
        && let Some(response) = std::str::from_utf8(token).ok().and_then(|token| tls.token(token))
    {
        return Ok(front_response::text(response));
    }
    let https_port = match context.connection.role {
        Role::Redirect(port) => Some(port.unwrap_or_else(|| context.https_port())),
        Role::Site => None,
    };
    if let Some(port) = https_port.filter(|_| !is_challenge(path)) {
        return front_response::to_https(port, parts, whole);
    }
    let RequestContext { setup, .. } = *context;
    if let Some((found, path)) = setup.intakes.find(parts.method.as_str(), path) {
        if let Some(port) = https_port {
            return front_response::to_https(port, parts, whole);
        }
        return intake::take(context, parts, body, (found, path, query)).await;
    }
    // A web server in front, connected by FastCGI, compresses responses itself.
    let is_direct = context.told.is_none();
    let wish = compress::Wish::of(&setup.settings.compression, parts).filter(|_| is_direct);
    let routed = context.route(parts, path).await?;
    if let Some(port) = https_port.filter(|_| !matches!(routed.route, Route::Static(_))) {
        return front_response::to_https(port, parts, whole);
    }
    let routed = found.insert(routed);
    if routed.effects.as_ref().is_some_and(|effects| !effects.is_logged()) {
        entry.keep_out_of_log();
    }
    let may_compress = routed.effects.as_ref().is_none_or(|effects| effects.may_compress());
    let responded = match &routed.route {
        Route::Script(script) => {
            let responded = run(context, parts, body, script, entry).await;
            if responded.as_ref().is_ok_and(|response| response.body().may_break_off()) {
                entry.names(parts, context.id);
            }
            responded
        }
        Route::Static(file) => {
            let asked = files::Asked { method: &parts.method, headers: &parts.headers };
            let compression = Some(&setup.settings.compression).filter(|_| may_compress);
            let kind = routed.effects.as_ref().and_then(|effects| effects.content_type());
            let far = Some(&shared.disk).filter(|_| routed.is_far);
            files::respond((&shared.disk, far), file, kind, asked, compression).await
        }
        Route::Redirect(path) => {
            front_response::redirect(path, query, StatusCode::MOVED_PERMANENTLY)
        }
        Route::Moved(to, status) => moved(to, query, *status),
        Route::Status(status, _) => Err(said(*status)),
        Route::Forbidden(Why::Outside) => Err(Failure::Outside),
        Route::Forbidden(Why::NoIndex) => Err(missing(context, path, Failure::NoIndex)),
        Route::Forbidden(Why::Denied(_) | Why::NoScripts(_)) => Err(Failure::Forbidden),
        Route::NotFound => Err(missing(context, path, Failure::NoPage)),
        Route::Absent => Err(Failure::NotFound),
        Route::BadRequest(reason) => Err(Failure::BadRequest(reason)),
    };
    let mut response = responded?;
    if let Some(effects) = &routed.effects {
        if let Some(page) = effects.page_instead(response.status()) {
            response = front_response::with_page(response, page.bytes.clone(), page.kind.clone());
        }
        // A location must not remove a file's `Vary`. Caches would send compressed bytes to all
        // clients.
        let depends = matches!(routed.route, Route::Static(_))
            && response.headers().contains_key(header::VARY);
        effects.apply(response.status(), response.headers_mut());
        if depends {
            compress::vary(response.headers_mut());
        }
    }
    Ok(match wish.filter(|_| may_compress) {
        Some(wish) => compress::pack(shared, &setup.settings.compression, &wish, response),
        None => response,
    })
}

/// Whether this may be a request of a certificate authority. A token consists of letters, digits,
/// `-` and `_` (RFC 8555, section 8.1), so normalizing the path cannot change it.
fn is_challenge(path: &[u8]) -> bool {
    let of_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    path.strip_prefix(ACME_FOLDER).is_some_and(|token| token.iter().all(of_token))
}

/// Redirects as a location specifies.
fn moved(to: &str, query: Option<&[u8]>, status: u16) -> Result<Response<ResponseBody>, Failure> {
    let status = StatusCode::from_u16(status).map_err(|_| Failure::Internal)?;
    front_response::redirect(to, query, status)
}

fn said(status: u16) -> Failure {
    StatusCode::from_u16(status).map_or(Failure::Internal, Failure::Said)
}

fn missing(context: &RequestContext<'_>, path: &[u8], failure: Failure) -> Failure {
    first_request_hints::report(context, path, failure);
    failure
}

/// Builds the response to a request that failed. `routed`: its route, if it was computed already.
async fn refuse(
    context: &RequestContext<'_>,
    parts: &Parts,
    failure: Failure,
    routed: Option<Rc<Routed>>,
) -> Response<ResponseBody> {
    if failure.closes_connection() {
        context.connection.linger();
    }
    failure.count(&context.shared().counters);
    let advice = first_request_hints::advice(context, parts, failure);
    let mut response = error_page::response(&failure, parts, context.id, advice);
    worker_response::set_reason(&mut response, None);
    let routed = match routed {
        None if failure == Failure::Busy(Rejection::Files, 1) => None,
        None => Box::pin(context.route(parts, Target::of(parts).path)).await.ok(),
        routed => routed,
    };
    if let Some(effects) = routed.as_ref().and_then(|routed| routed.effects.as_ref()) {
        let status = response.status();
        if let Some(page) = effects.page(status) {
            response = front_response::with_page(response, page.bytes.clone(), page.kind.clone());
        }
        effects.apply(status, response.headers_mut());
    }
    let development = context.shared().common.development.as_ref();
    if let Some(development) = development.filter(|_| development::is_document(parts)) {
        response = development::with_script(development, response);
    }
    if let Some(complaint) = fastcgi_head::complaint(context, failure) {
        response.extensions_mut().insert(Complaint(complaint));
    }
    response
}

async fn run(
    context: &RequestContext<'_>,
    parts: &mut Parts,
    body: RequestBody,
    script: &Script,
    entry: &mut RequestLogEntry,
) -> Result<Response<ResponseBody>, Failure> {
    let RequestContext { connection, setup, .. } = *context;
    let upload = if body.is_end_stream() {
        Upload::None
    } else {
        let bytes_max = script.body_bytes_max;
        let source = Source::new(connection, &setup.settings, bytes_max, body);
        // php-fpm must know the length of a body.
        let is_known = script.pass.is_none() || source.declared().is_some();
        let is_live = !setup.settings.request_buffering && is_known;
        Box::pin(upload::receive(context, source, is_live)).await?
    };
    if matches!(upload, Upload::Live(..)) {
        // The response may be ready before the client has sent the whole body.
        connection.linger();
    }
    entry.runs(&script.name);
    let is_told = context.told.is_some();
    if let Some(pass) = &script.pass {
        let response =
            Box::pin(upstream_request::run(context, parts, script, pass, upload, entry)).await?;
        let folders = &setup.settings.sendfile;
        return if folders.is_empty() {
            Ok(response)
        } else {
            Box::pin(sendfile::instead(context.shared(), folders, parts, is_told, response)).await
        };
    }
    let is_head = parts.method == Method::HEAD;
    let development = context.shared().common.development.as_ref();
    let development = development.filter(|_| !is_told && !is_head);
    let development = development.filter(|_| development::is_document(parts));
    // Read before the request: its page may be of an older version than the one that serves then.
    let development = development.map(|development| (development, development.version()));
    if development.is_some() {
        // The script cannot be added to a compressed page. The front compresses it afterwards.
        parts.headers.remove(header::ACCEPT_ENCODING);
    }
    let request = ScriptRequest { context: *context, parts, script };
    let (mut response, mut exchange) = submit::submit(&request, upload, entry).await?;
    if let Some(development) = development {
        let both = (response, exchange);
        match Box::pin(development::develop(&request, development, both, entry)).await? {
            Developed::Page(page) => return Ok(page),
            Developed::Worker(developed, rest) => (response, exchange) = (developed, rest),
        }
    }
    let folders = &setup.settings.sendfile;
    if folders.is_empty() {
        let recycled = std::mem::take(&mut parts.headers);
        let response = worker_response::respond(
            (connection, context.client()),
            setup,
            recycled,
            response,
            exchange,
            is_head,
            (context.id, entry),
        );
        return response.map(|response| promised(context, response));
    }
    // A file sent in place of the body depends on the request's headers, so their map is not reused
    // here.
    let headers = HeaderMap::new();
    let response = worker_response::respond(
        (connection, context.client()),
        setup,
        headers,
        response,
        exchange,
        is_head,
        (context.id, entry),
    )?;
    let response = promised(context, response);
    Box::pin(sendfile::instead(context.shared(), folders, parts, is_told, response)).await
}

/// Adds the cookie that enables a trace of the visitor's next request, if the response requests it.
fn promised(
    context: &RequestContext<'_>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let profile = &context.setup.settings.profile;
    trace_selection::promise(context.shared(), profile, response.headers_mut());
    response
}
