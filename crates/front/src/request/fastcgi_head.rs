//! The head of a request that came from a web server over FastCGI: PHP gets its parameters
//! unchanged, as in php-fpm.
//!
//! The script is checked nevertheless: it must be below the document root, and the site's rules
//! apply to it.

use super::context::{RequestContext, ScriptRequest};
use super::head::{flags, is_passed};
use crate::client::fastcgi::fastcgi_params::FastcgiParams;
use crate::log::trace::OwnHeader;
use crate::response::error_page::Failure;
use crate::route::site::{Route, Routed, Why};
use crate::route::target::Target;
use crate::shared::Shared;
use http::request::Parts;
use http::{HeaderValue, header};
use samovar_ring::request::{FLAG_FASTCGI, RequestHead, TooLarge, encode_with};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

impl<'a> RequestContext<'a> {
    /// Returns the route for the script's file name: that script, or a refusal.
    pub(super) async fn route_told(
        &self,
        told: &FastcgiParams,
        parts: &'a Parts,
    ) -> Result<Rc<Routed>, ErrorKind> {
        let (setup, filename) = (self.setup, &told.script.filename);
        let Shared { clock, disk, .. } = &**self.shared();
        let host = || self.host(parts).as_bytes();
        let absent = |effects| Rc::new(Routed::near(Route::Absent, effects));
        let found = setup.routes.route_script(disk, host, filename, clock.real_ms()).await?;
        let Some((routed, name)) = found else { return Ok(absent(None)) };
        Ok(match &routed.route {
            Route::Script(script) => {
                // The front controller is not used as a fallback, because the web server specifies
                // the script.
                let is_named = name.strip_prefix(&script.name[..]) == Some(&script.path_info[..]);
                // The same applies to a folder that a location maps to another path.
                let root = setup.site.root.as_os_str().as_bytes();
                let below = script.filename.strip_prefix(root.strip_suffix(b"/").unwrap_or(root));
                let is_it = is_named && below == Some(&script.name[..]);
                if is_it { routed } else { absent(routed.effects.clone()) }
            }
            // As php-fpm's `security.limit_extensions`: an image is not a script.
            Route::Static(_) => {
                let route = Route::Forbidden(Why::Outside);
                Rc::new(Routed::near(route, routed.effects.clone()))
            }
            Route::Forbidden(_) | Route::Moved(..) | Route::Status(..) => routed,
            _ => absent(routed.effects.clone()),
        })
    }
}

/// Returns a failure's message for the log of the web server. Also logs it here if the settings are
/// the likely cause.
pub(super) fn complaint(context: &RequestContext<'_>, failure: Failure) -> Option<String> {
    let told = context.told?;
    let id = context.id.to_str().unwrap_or_default();
    let filename = told.script.filename.escape_ascii();
    if matches!(failure, Failure::Forbidden | Failure::Outside) {
        return Some(format!("Access to the script is denied: {filename} (samovar: request {id})"));
    }
    if failure != Failure::NotFound {
        return Some(format!("samovar: request {id}: {failure:?}"));
    }
    let shared = context.shared();
    let site = &context.setup.site;
    let asked = told.get("ORIG_SCRIPT_FILENAME").unwrap_or(&told.script.filename);
    // Below the root this is not a configuration error: clients request all kinds of scripts.
    let is_below = Path::new(OsStr::from_bytes(asked)).starts_with(&site.root);
    if !is_below && let Some(suppressed) = shared.common.warnings.no_script.pass() {
        let root = site.root.display();
        tracing::warn!(
            script = %asked.escape_ascii(),
            %root,
            suppressed,
            "a web server requested a script outside the document root: 404\n\
             hint: make SCRIPT_FILENAME name the file as on this machine; check that both servers \
             use the same root"
        );
    }
    Some(format!("Primary script unknown: {filename} (samovar: request {id})"))
}

impl ScriptRequest<'_> {
    /// Encodes the web server's parameters into `out`. `further`: additional flags.
    pub(super) fn encode_told(
        &self,
        told: &FastcgiParams,
        body_bytes: Option<u64>,
        further: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        let ScriptRequest { context, parts, script } = *self;
        let text = |name| told.get(name).unwrap_or_default();
        let header = |name| parts.headers.get(name).map(HeaderValue::as_bytes);
        let content_type = told.get("CONTENT_TYPE").filter(|kind| !kind.is_empty());
        let wants_report = self.shared().recorder.wants_reports();
        let head = RequestHead {
            method: parts.method.as_str().as_bytes(),
            target: Target::of(parts).whole,
            query: text("QUERY_STRING"),
            protocol: text("SERVER_PROTOCOL"),
            script_filename: &script.filename,
            script_name: &told.script.name,
            document_uri: text("DOCUMENT_URI"),
            path_info: &told.script.path_info,
            document_root: text("DOCUMENT_ROOT"),
            server_name: text("SERVER_NAME"),
            server_addr: text("SERVER_ADDR"),
            remote_addr: text("REMOTE_ADDR"),
            request_id: context.id.as_bytes(),
            content_type,
            cookie: header(header::COOKIE).or_else(|| told.get("HTTP_COOKIE")),
            authorization: header(header::AUTHORIZATION),
            content_length: body_bytes.or_else(|| told.number("CONTENT_LENGTH")),
            server_port: told.number("SERVER_PORT").unwrap_or_default(),
            remote_port: told.number("REMOTE_PORT").unwrap_or_default(),
            flags: flags(script.lane, context.ends.is_tls, wants_report) | FLAG_FASTCGI | further,
        };
        let headers = parts.headers.iter().map(|(n, v)| (n.as_str().as_bytes(), v.as_bytes()));
        let odd: Vec<_> = told.odd_headers().collect();
        let headers = headers.chain(odd.iter().map(|(name, value)| (&name[..], *value)));
        let headers = headers.filter(|(name, _)| is_passed(name));
        let own = context.traceparent.map(OwnHeader::header);
        let headers = headers.chain(own);
        let has_id = told.get("REQUEST_ID").is_some();
        let id = (!has_id).then_some((&b"REQUEST_ID"[..], context.id.as_bytes()));
        let of_trace = self.trace_variables();
        let of_trace = of_trace.iter().flatten().map(|(name, value)| (*name, &value[..]));
        let of_place = script.variables();
        let told = told.variables.iter().map(|(name, value)| (&name[..], &value[..]));
        encode_with(&head, headers, told.chain(id).chain(of_trace).chain(of_place), out)
    }
}
