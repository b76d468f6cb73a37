//! Hints while the server has not served anything yet: in the log, and on error pages for local
//! users.
//!
//! Other clients get only the status. A proxy on this machine also connects from a local address,
//! on behalf of remote clients. So a request is not treated as local if it has a proxy's headers,
//! uses a version before HTTP/1.1, or names a host other than the local one.

use super::context::RequestContext;
use super::interim::PROXY_HEADERS;
use crate::response::error_page::Failure;
use crate::response::front_response::without_port;
use http::request::Parts;
use http::{Version, header};
use std::net::Ipv4Addr;

/// Returns a hint for an error page.
pub(super) fn advice(
    context: &RequestContext<'_>,
    parts: &Parts,
    failure: Failure,
) -> Option<&'static str> {
    let advice = match failure {
        Failure::NoPage if context.shared().setup().site.is_explicit => return None,
        Failure::NoIndex | Failure::NoPage => {
            "There is no index.php here. Put one into the served folder, or start the server with \
             the folder that has it: samovar serve FOLDER. The log shows the folder that is \
             served now."
        }
        Failure::Outside => {
            "A symbolic link leads out of the served folder. To allow this, name its target \
             folder: --link-targets FOLDER. The log shows the target."
        }
        _ => return None,
    };
    let is_new = !context.shared().common.has_served();
    (is_new && is_at_the_machine(context, parts)).then_some(advice)
}

/// Whether the request comes from this machine, for a name of this machine.
pub(super) fn is_at_the_machine(context: &RequestContext<'_>, parts: &Parts) -> bool {
    let is_proxied =
        context.claims.is_trusted || PROXY_HEADERS.iter().any(|n| parts.headers.contains_key(*n));
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_local = host.map(without_port).is_some_and(|name| {
        matches!(name, "localhost" | "[::1]")
            || name.ends_with(".localhost")
            || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    });
    context.ends.peer.is_some_and(|peer| peer.ip().is_loopback())
        && context.told.is_none()
        && !is_proxied
        && is_local
        && parts.version >= Version::HTTP_11
}

/// Logs that the start page is missing: the server is not configured correctly, or the page was
/// removed.
pub(super) fn report(context: &RequestContext<'_>, path: &[u8], failure: Failure) {
    let (shared, setup) = (context.shared(), context.setup);
    let root = setup.site.root.display();
    match failure {
        Failure::NoIndex if path == b"/" => {
            if let Some(suppressed) = shared.common.warnings.no_index.pass() {
                tracing::warn!(
                    %root,
                    suppressed,
                    "no response for `/`: the document root has neither index.php nor index.html \
                     (hint: serve the folder that has one)"
                );
            }
        }
        Failure::NoPage if setup.site.is_explicit => {
            if let Some(suppressed) = shared.common.warnings.no_index.pass() {
                tracing::warn!(
                    %root,
                    controller = %setup.site.controller.escape_ascii(),
                    suppressed,
                    "front controller not found: 404 (hint: restore it, or configure another one)"
                );
            }
        }
        _ => {}
    }
}
