//! What the stages of a request know of it.

use super::forwarded::Claims;
use crate::answer::error_page::Failure;
use crate::answer::own::without_port;
use crate::client::connection::ConnectionState;
use crate::client::ends::Ends;
use crate::client::fastcgi::told::Told;
use crate::log::trace::{Trace, Traceparent};
use crate::route::site::{Routed, Script};
use crate::runtime::shed::Shed;
use crate::setup::Setup;
use crate::shared::Shared;
use http::request::Parts;
use http::{HeaderValue, header};
use samovar_config::{Listener, Place};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

/// That of `https://` without a port.
const HTTPS_PORT: u16 = 443;

/// Who asks, and the setup by which that is answered.
#[derive(Clone, Copy)]
pub(super) struct RequestContext<'a> {
    pub(super) connection: &'a Rc<ConnectionState>,
    /// Of the pool that answers.
    pub(super) shared: &'a Rc<Shared>,
    /// Who is at both ends: of the connection, or of that to the web server in front.
    pub(super) ends: &'a Ends,
    /// What a web server has told of it, by FastCGI.
    pub(super) told: Option<&'a Told>,
    pub(super) setup: &'a Rc<Setup>,
    pub(super) id: &'a HeaderValue,
    pub(super) claims: &'a Claims,
    /// The trace that it belongs to, as far as its headers are believed.
    pub(super) trace: Option<&'a Trace>,
    /// What PHP is told of it in place of its header.
    pub(super) traceparent: Option<&'a Traceparent>,
}

/// A request on its way to PHP.
#[derive(Clone, Copy)]
pub(super) struct ScriptRequest<'a> {
    pub(super) context: RequestContext<'a>,
    pub(super) parts: &'a Parts,
    pub(super) script: &'a Script,
}

impl<'a> RequestContext<'a> {
    pub(super) fn shared(&self) -> &'a Rc<Shared> {
        self.shared
    }

    /// What answers `path`, as it came.
    pub(super) async fn route(&self, parts: &'a Parts, path: &[u8]) -> Result<Rc<Routed>, Failure> {
        if let Some(told) = self.told {
            return self.route_told(told, parts).await.map_err(unasked);
        }
        let Shared { clock, disk, .. } = &**self.shared();
        let host = || self.host(parts).as_bytes();
        let routed = self.setup.routes.route(disk, host, path, clock.real_ms()).await;
        routed.map_err(unasked)
    }

    /// The name that the client used, without port: a trusted proxy's word, the target's host, or the `Host` header's.
    pub(super) fn host(&self, parts: &'a Parts) -> &'a str {
        host(self.claims, parts)
    }

    /// Where the same pages are by HTTPS, if nothing else is said.
    pub(super) fn https_port(&self) -> u16 {
        https_port(&self.setup.settings.listen)
    }
}

/// The disk did not say what is there.
fn unasked(kind: ErrorKind) -> Failure {
    match kind {
        ErrorKind::TimedOut => Failure::Busy(Shed::Files, 1),
        _ => Failure::Internal,
    }
}

/// The usual port, where one of them has it or none has any; else the first: others may be for a proxy alone.
fn https_port(listen: &[Listener]) -> u16 {
    let ports = || {
        let secure = listen.iter().filter(|listener| listener.is_tls());
        secure.filter_map(|listener| match &listener.place {
            Place::Tcp(at) if at.port != 0 => Some(at.port),
            _ => None,
        })
    };
    ports().find(|port| *port == HTTPS_PORT).or_else(|| ports().next()).unwrap_or(HTTPS_PORT)
}

/// The name that the client used, without port.
pub(super) fn host<'a>(claims: &'a Claims, parts: &'a Parts) -> &'a str {
    let header = || parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = claims.host.as_deref().or_else(|| parts.uri.host()).or_else(header);
    host.map(without_port).unwrap_or_default()
}

impl<'a> ScriptRequest<'a> {
    pub(super) fn shared(&self) -> &'a Rc<Shared> {
        self.context.shared()
    }

    /// The client's address, by the word of a trusted proxy; whoever comes through the file system has the unspecified one.
    pub(super) fn client(&self) -> IpAddr {
        let peer = self.context.ends.peer.map(|peer| peer.ip());
        self.context.claims.address.or(peer).unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::Sources;
    use samovar_config::names::by_flag;

    #[test]
    fn the_usual_port_is_where_people_are_sent() {
        for (listen, expected) in [
            (":80?redirect,https://:443", 443),
            (":80?redirect,https://:8443", 8443),
            (":80?redirect,https://127.0.0.1:8443?proxy,https://:443", 443),
            (":80?redirect,https://:8443,https://:9443", 8443),
            (":80?redirect,https+unix:/run/s.sock", 443),
            (":80?redirect,https://:0", 443),
        ] {
            let sources = Sources::new(env!("CARGO_MANIFEST_DIR"))
                .flag(by_flag("listen"), listen)
                .flag(by_flag("domain"), "a.example");
            let settings = sources.resolve().expect("settings");
            assert_eq!(https_port(&settings.listen), expected, "{listen}");
        }
    }
}
