//! The story of one request: check, route, then a file or a worker, then deliver and record.
//!
//! `context` is what its stages know of it. `check`, `host` and `forwarded` say what is believed of the head, `upload`
//! receives the body, `head` says what PHP is told, `submit` runs it, `interim` passes on what comes ahead of the answer.
//! `welcome` helps while nothing was ever served; `probe` is a request of the server's own. Imports all but `front`.

mod check;
mod context;
mod forwarded;
mod head;
mod host;
mod interim;
mod pass;
mod pool;
pub(crate) mod probe;
mod sampled;
mod submit;
mod told;
pub(crate) mod traced;
mod upload;
mod welcome;

use crate::answer::body::AnswerBody;
use crate::answer::error_page::{self, Failure};
use crate::answer::files::sendfile;
use crate::answer::{compress, files, own, worker};
use crate::client::connection::ConnectionState;
use crate::client::fastcgi::Complaint;
use crate::client::request_body::RequestBody;
use crate::client::screen::Note;
use crate::log::trace::{Policy, Trace};
use crate::log::{Client, RequestLogEntry};
use crate::route::site::{Route, Routed, Script, Why};
use crate::route::target::{AsItCame, Target};
use crate::runtime::mishap;
use crate::runtime::shed::Shed;
use crate::setup::Setup;
use context::{RequestContext, ScriptRequest};
use forwarded::Claims;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Body;
use samovar_config::{Role, TraceFrom};
use std::rc::Rc;
use upload::{Source, Upload};

/// Served where everything else is sent to HTTPS: whoever asks may be about to give us a certificate.
const ACME_FOLDER: &[u8] = b"/.well-known/acme-challenge/";
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers one request; never fails, because a failure is an answer too, and so is what a panic leaves.
pub(crate) fn serve(
    connection: Rc<ConnectionState>,
    request: Request<RequestBody>,
    note: Note,
) -> impl Future<Output = Response<AnswerBody>> {
    let is_head = request.method() == Method::HEAD;
    let serving = tell(Rc::clone(&connection), request.into_parts(), note);
    mishap::guard(serving, move |answered| {
        let shared = &connection.shared;
        let mut response = answered.unwrap_or_else(|| {
            shared.counters.panics.add(1);
            shared.counters.responses_5xx.add(1);
            let page = error_page::sorry();
            if is_head { own::head_of(page) } else { page }
        });
        if shared.draining.get() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    })
}

/// From the head to the answer's.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn holds the request twice: as what it was given, and taken apart"
)]
fn tell(
    connection: Rc<ConnectionState>,
    (mut parts, body): (Parts, RequestBody),
    note: Note,
) -> impl Future<Output = Response<AnswerBody>> {
    async move {
        let connection = &connection;
        let busy = connection.begin_request();
        #[cfg(test)]
        match parts.uri.path() {
            "/panic" => panic!("as a test wants it"),
            "/break" => mishap::BREAKS.set(true),
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
        // What a web server tells is meant as it is: php-fpm looks behind nobody either.
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
        let client = Client {
            peer: &ends.peer_text,
            claimed: claims.address,
            body_bytes: body.size_hint().exact().unwrap_or(0),
            trace: trace(connection, &setup, claims.is_trusted, &mut parts.headers),
            is_https: claims.is_https.unwrap_or(ends.is_tls),
        };
        let mut entry = RequestLogEntry::begin(&shared.recorder, &parts, &id, client);
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
            traceparent: traceparent.as_ref(),
        };
        let mut routed = None;
        let answered = match note.doubt {
            Some(doubt) => Err(Failure::BadRequest(doubt)),
            None => answer(&context, &mut parts, body, &mut entry, &mut routed).await,
        };
        let mut response = match answered {
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
        if ends.is_tls
            && told.is_none()
            && let Some(hsts) = setup.settings.tls.hsts.as_deref()
            && let Ok(value) = HeaderValue::from_str(hsts)
        {
            let headers = response.headers_mut();
            headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert(value);
        }
        // An application's own id is the one that its clients know; ours stays in the log.
        response.headers_mut().entry(X_REQUEST_ID).or_insert(id);
        entry.answered(response.status());
        if parts.method == Method::HEAD {
            response = own::head_of(response);
            entry.complete();
        }
        response.map(|body| body.carry(busy, entry))
    }
}

/// The trace that it belongs to; PHP is handed the headers that say so.
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

async fn answer(
    context: &RequestContext<'_>,
    parts: &mut Parts,
    body: RequestBody,
    entry: &mut RequestLogEntry,
    found: &mut Option<Rc<Routed>>,
) -> Result<Response<AnswerBody>, Failure> {
    match context.told {
        None => check::check(parts, &context.setup.settings.limits)?,
        Some(told) if told.is_too_large => return Err(Failure::HeadTooLarge),
        Some(told) if told.is_unfound => return Err(Failure::Busy(Shed::Files, 1)),
        Some(told) => {
            if let Some(page) = pool::page(context, told) {
                return page;
            }
        }
    }
    if parts.uri.path() == "*" && context.told.is_none() {
        return own::about_server(&parts.method);
    }
    let shared = context.shared();
    let Target { path, query, whole } = Target::of(parts);
    if let Some(tls) = &shared.tls
        && let Some(token) = path.strip_prefix(ACME_FOLDER)
        && let Some(answer) = std::str::from_utf8(token).ok().and_then(|token| tls.token(token))
    {
        return Ok(own::text(answer));
    }
    if let Role::Redirect(port) = context.connection.role
        && !is_challenge(path)
    {
        return own::to_https(port.unwrap_or_else(|| context.https_port()), parts, whole);
    }
    let RequestContext { setup, .. } = *context;
    // What stands in front of us by FastCGI packs by itself.
    let is_direct = context.told.is_none();
    let wish = compress::Wish::of(&setup.settings.compression, parts).filter(|_| is_direct);
    let routed = context.route(parts, path).await?;
    let routed = found.insert(routed);
    if routed.effects.as_ref().is_some_and(|effects| !effects.is_logged()) {
        entry.keep_out_of_log();
    }
    let may_compress = routed.effects.as_ref().is_none_or(|effects| effects.may_compress());
    let answered = match &routed.route {
        Route::Script(script) => run(context, parts, body, script, entry).await,
        Route::Static(file) => {
            let asked = files::Asked { method: &parts.method, headers: &parts.headers };
            let compression = Some(&setup.settings.compression).filter(|_| may_compress);
            let kind = routed.effects.as_ref().and_then(|effects| effects.content_type());
            let far = Some(&shared.disk).filter(|_| routed.is_far);
            files::respond((&shared.disk, far), file, kind, asked, compression).await
        }
        Route::Redirect(path) => own::redirect(path, query, StatusCode::MOVED_PERMANENTLY),
        Route::Moved(to, status) => moved(to, query, *status),
        Route::Status(status, _) => Err(said(*status)),
        Route::Forbidden(Why::Outside) => Err(Failure::Outside),
        Route::Forbidden(Why::NoIndex) => Err(missing(context, path, Failure::NoIndex)),
        Route::Forbidden(Why::Denied(_) | Why::NoScripts(_)) => Err(Failure::Forbidden),
        Route::NotFound => Err(missing(context, path, Failure::NoPage)),
        Route::Absent => Err(Failure::NotFound),
        Route::BadRequest(reason) => Err(Failure::BadRequest(reason)),
    };
    let mut response = answered?;
    if let Some(effects) = &routed.effects {
        if let Some(page) = effects.page_instead(response.status()) {
            response = own::with_page(response, page.bytes.clone(), page.kind.clone());
        }
        // What a file depends on no location can know better: caches would give packed bytes to everybody.
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

/// Whether an authority may be the one who asks: a token is a name of letters (RFC 8555, section 8.1), so nothing that a path is made plain
/// of leads elsewhere.
fn is_challenge(path: &[u8]) -> bool {
    let of_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    path.strip_prefix(ACME_FOLDER).is_some_and(|token| token.iter().all(of_token))
}

/// As a location wants it.
fn moved(to: &str, query: Option<&[u8]>, status: u16) -> Result<Response<AnswerBody>, Failure> {
    let status = StatusCode::from_u16(status).map_err(|_| Failure::Internal)?;
    own::redirect(to, query, status)
}

fn said(status: u16) -> Failure {
    StatusCode::from_u16(status).map_or(Failure::Internal, Failure::Said)
}

fn missing(context: &RequestContext<'_>, path: &[u8], failure: Failure) -> Failure {
    welcome::report(context, path, failure);
    failure
}

/// `routed`: what was found to answer it, if it came so far.
async fn refuse(
    context: &RequestContext<'_>,
    parts: &Parts,
    failure: Failure,
    routed: Option<Rc<Routed>>,
) -> Response<AnswerBody> {
    if failure.closes_connection() {
        context.connection.linger();
    }
    failure.count(&context.shared().counters);
    let advice = welcome::advice(context, parts, failure);
    let mut response = error_page::response(&failure, parts, context.id, advice);
    let routed = match routed {
        None if failure == Failure::Busy(Shed::Files, 1) => None,
        None => Box::pin(context.route(parts, Target::of(parts).path)).await.ok(),
        routed => routed,
    };
    if let Some(effects) = routed.as_ref().and_then(|routed| routed.effects.as_ref()) {
        let status = response.status();
        if let Some(page) = effects.page(status) {
            response = own::with_page(response, page.bytes.clone(), page.kind.clone());
        }
        effects.apply(status, response.headers_mut());
    }
    if let Some(complaint) = told::complaint(context, failure) {
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
) -> Result<Response<AnswerBody>, Failure> {
    let RequestContext { connection, setup, .. } = *context;
    let upload = if body.is_end_stream() {
        Upload::None
    } else {
        let bytes_max = script.body_bytes_max;
        let source = Source::new(connection, &setup.settings, bytes_max, body);
        // php-fpm wants to know how long a body is.
        let is_known = script.pass.is_none() || source.declared().is_some();
        let is_live = !setup.settings.request_buffering && is_known;
        Box::pin(upload::receive(context.shared(), &setup.settings, source, is_live)).await?
    };
    if matches!(upload, Upload::Live(..)) {
        // The answer may be there before the client has sent everything.
        connection.linger();
    }
    entry.runs(&script.name);
    let is_told = context.told.is_some();
    if let Some(pass) = &script.pass {
        let response = Box::pin(pass::run(context, parts, script, pass, upload, entry)).await?;
        let folders = &setup.settings.sendfile;
        return if folders.is_empty() {
            Ok(response)
        } else {
            Box::pin(sendfile::instead(context.shared(), folders, parts, is_told, response)).await
        };
    }
    let request = ScriptRequest { context: *context, parts, script };
    let (answer, exchange) = submit::submit(&request, upload, entry).await?;
    let is_head = parts.method == Method::HEAD;
    let folders = &setup.settings.sendfile;
    if folders.is_empty() {
        let recycled = std::mem::take(&mut parts.headers);
        let response =
            worker::respond(connection, setup, recycled, answer, exchange, is_head, entry);
        return response.map(|response| promised(context, response));
    }
    // A file that is sent in the answer's place is asked for by the request's headers.
    let headers = HeaderMap::new();
    let response = worker::respond(connection, setup, headers, answer, exchange, is_head, entry)?;
    let response = promised(context, response);
    Box::pin(sendfile::instead(context.shared(), folders, parts, is_told, response)).await
}

/// With the cookie of whoever's next request is to be traced.
fn promised(
    context: &RequestContext<'_>,
    mut response: Response<AnswerBody>,
) -> Response<AnswerBody> {
    let profile = &context.setup.settings.profile;
    traced::promise(context.shared(), profile, response.headers_mut());
    response
}
