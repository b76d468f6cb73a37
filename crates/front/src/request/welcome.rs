//! What is said while nothing was ever served: to the log, and to whoever sits at the machine.
//!
//! A stranger gets the bare status. A proxy on this machine connects from it too, for strangers: whoever comes by one
//! that says so, or by an old protocol, or asks for another name than the machine's own, is one.

use super::context::RequestContext;
use super::interim::PROXY_HEADERS;
use crate::answer::error_page::Failure;
use crate::answer::own::without_port;
use http::request::Parts;
use http::{Version, header};
use std::net::Ipv4Addr;

/// What to do next, for an error page.
pub(super) fn advice(
    context: &RequestContext<'_>,
    parts: &Parts,
    failure: Failure,
) -> Option<&'static str> {
    let advice = match failure {
        Failure::NoPage if context.shared().setup().site.is_explicit => return None,
        Failure::NoIndex | Failure::NoPage => {
            "There is no index.php here. Put one into the folder that is served, or start the server with the folder \
             that has it: samovar serve FOLDER. The log names the folder that it serves now."
        }
        Failure::Outside => {
            "A symbolic link leads out of the folder that is served. If it is meant to, name the folder that it leads \
             to: --link-targets FOLDER. The log names it."
        }
        _ => return None,
    };
    let is_new = !context.shared().common.has_served();
    (is_new && is_at_the_machine(context, parts)).then_some(advice)
}

fn is_at_the_machine(context: &RequestContext<'_>, parts: &Parts) -> bool {
    let is_proxied =
        context.claims.is_trusted || PROXY_HEADERS.iter().any(|n| parts.headers.contains_key(*n));
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_local = host.map(without_port).is_some_and(|name| {
        matches!(name, "localhost" | "[::1]")
            || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    });
    context.ends.peer.is_some_and(|peer| peer.ip().is_loopback())
        && context.told.is_none()
        && !is_proxied
        && is_local
        && parts.version >= Version::HTTP_11
}

/// A server without its first page is set up wrongly, or has lost it.
pub(super) fn report(context: &RequestContext<'_>, path: &[u8], failure: Failure) {
    let (shared, setup) = (context.shared(), context.setup);
    let root = setup.site.root.display();
    match failure {
        Failure::NoIndex if path == b"/" => {
            if let Some(suppressed) = shared.common.warnings.no_index.pass() {
                tracing::warn!(
                    %root,
                    suppressed,
                    "nothing answers `/`: the document root has neither index.php nor index.html (hint: serve the \
                     folder that has one)"
                );
            }
        }
        Failure::NoPage if setup.site.is_explicit => {
            if let Some(suppressed) = shared.common.warnings.no_index.pass() {
                tracing::warn!(
                    %root,
                    controller = %setup.site.controller.escape_ascii(),
                    suppressed,
                    "the front controller is not there: 404 (hint: put it back, or name another one)"
                );
            }
        }
        _ => {}
    }
}
