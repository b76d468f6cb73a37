//! State of a request that its stages share.

use super::forwarded::Claims;
use crate::client::connection::ConnectionState;
use crate::client::fastcgi::fastcgi_params::FastcgiParams;
use crate::client::peer_info::Ends;
use crate::exchange::budget::{Charge, Charges};
use crate::log::trace::{OwnHeader, Trace};
use crate::response::error_page::Failure;
use crate::response::front_response::without_port;
use crate::route::site::{Routed, Script};
use crate::runtime::rejection::Rejection;
use crate::setup::Setup;
use crate::shared::Shared;
use crate::shared::canary::Canary;
use http::request::Parts;
use http::{HeaderValue, header};
use samovar_config::{Endpoint, Listener};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

/// Port of an `https://` URL without a port.
const HTTPS_PORT: u16 = 443;

/// A request's client, and the setup that serves it.
#[derive(Clone, Copy)]
pub(super) struct RequestContext<'a> {
    pub(super) connection: &'a Rc<ConnectionState>,
    /// State of the pool that serves the request.
    pub(super) shared: &'a Rc<Shared>,
    /// Both ends of the client's connection: to the front, or to the web server in front of it.
    pub(super) ends: &'a Ends,
    /// Parameters from a web server, received over FastCGI.
    pub(super) told: Option<&'a FastcgiParams>,
    pub(super) setup: &'a Rc<Setup>,
    pub(super) id: &'a HeaderValue,
    pub(super) claims: &'a Claims,
    /// The request's trace, as far as its headers are trusted.
    pub(super) trace: Option<&'a Trace>,
    /// The canary, if it serves the request.
    pub(super) canary: Option<&'a Rc<Canary>>,
    /// Trace header that PHP gets in place of the client's.
    pub(super) traceparent: Option<&'a OwnHeader>,
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

    /// Returns the route for `path`, which is as the client sent it.
    pub(super) async fn route(&self, parts: &'a Parts, path: &[u8]) -> Result<Rc<Routed>, Failure> {
        if let Some(told) = self.told {
            return self.route_told(told, parts).await.map_err(unasked);
        }
        let Shared { clock, disk, .. } = &**self.shared();
        let host = || self.host(parts).as_bytes();
        let routed = self.setup.routes.route(disk, host, path, clock.real_ms()).await;
        routed.map_err(unasked)
    }

    /// The client's address, from a trusted proxy if there is one. A client on a Unix socket has
    /// the unspecified address.
    pub(super) fn client(&self) -> IpAddr {
        client(self.claims, self.ends)
    }

    /// Part of the memory's budget for a response that a client of HTTP/2 may leave unread. A
    /// client of HTTP/1 has one response per connection, which hyper takes at once.
    pub(super) fn memory_charge(&self) -> Option<Charge> {
        let connection = self.connection;
        let memory = &connection.shared.budgets.memory;
        connection.has_streams().then(|| memory.charge(self.client(), &connection.cutter()))
    }

    /// Part of the budget of temporary files for the request's body.
    pub(super) fn spool_charge(&self) -> Charge {
        let connection = self.connection;
        connection.shared.budgets.spool.charge(self.client(), &connection.cutter())
    }

    /// Parts of all budgets for the request's response.
    pub(super) fn charges(&self) -> Charges {
        let connection = self.connection;
        connection.shared.budgets.charges(self.client(), &connection.cutter())
    }

    /// Host name that the client used, without port: from a trusted proxy, from the target, or from
    /// the `Host` header.
    pub(super) fn host(&self, parts: &'a Parts) -> &'a str {
        host(self.claims, parts)
    }

    /// Port of the same site over HTTPS, if the settings specify none.
    pub(super) fn https_port(&self) -> u16 {
        https_port(&self.setup.settings.listen)
    }
}

/// The client's address; see [`RequestContext::client`].
pub(super) fn client(claims: &Claims, ends: &Ends) -> IpAddr {
    let peer = ends.peer.map(|peer| peer.ip());
    claims.address.or(peer).unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}

/// Maps a failed disk lookup to a failure of the request.
fn unasked(kind: ErrorKind) -> Failure {
    match kind {
        ErrorKind::TimedOut => Failure::Busy(Rejection::Files, 1),
        _ => Failure::Internal,
    }
}

/// Returns the usual port if a listener has it, or if there is no listener with a port. Otherwise
/// returns the first port, because others may be for a proxy only.
fn https_port(listen: &[Listener]) -> u16 {
    let ports = || {
        let secure = listen.iter().filter(|listener| listener.is_tls());
        secure.filter_map(|listener| match &listener.place {
            Endpoint::Tcp(at) if at.port != 0 => Some(at.port),
            _ => None,
        })
    };
    ports().find(|port| *port == HTTPS_PORT).or_else(|| ports().next()).unwrap_or(HTTPS_PORT)
}

/// Host name that the client used, without port.
pub(super) fn host<'a>(claims: &'a Claims, parts: &'a Parts) -> &'a str {
    let header = || parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = claims.host.as_deref().or_else(|| parts.uri.host()).or_else(header);
    host.map(without_port).unwrap_or_default()
}

impl<'a> ScriptRequest<'a> {
    pub(super) fn shared(&self) -> &'a Rc<Shared> {
        self.context.shared()
    }

    pub(super) fn client(&self) -> IpAddr {
        self.context.client()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::Sources;
    use samovar_config::names::by_flag;

    #[test]
    fn https_redirect_prefers_the_usual_port() {
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
