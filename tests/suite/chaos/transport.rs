//! Transport between the good clients and the server: direct, or through a proxy that speaks
//! FastCGI or HTTP/2 over TLS to the server.
//!
//! The clients and their expectations do not change. If a proxy turns a request that a worker could
//! have served into an error, that is a failure like any other.

use samovar_testkit::{Certificate, Haproxy, Nginx, Server, Start};
use std::net::SocketAddr;
use std::path::Path;

/// Protocol spoken to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transport {
    #[default]
    Http,
    /// nginx in front, over kept connections.
    FastCgi,
    /// HAProxy in front.
    Secure,
}

/// Proxy in front of the server, ended when dropped.
pub(crate) enum Between {
    Nobody(SocketAddr),
    Nginx(Nginx),
    Haproxy(Haproxy),
}

impl Transport {
    const ALL: [Transport; 3] = [Transport::Http, Transport::FastCgi, Transport::Secure];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Http => "http",
            Transport::FastCgi => "fastcgi",
            Transport::Secure => "h2",
        }
    }

    /// Transport named by `CHAOS_TRANSPORT`.
    pub(crate) fn wanted() -> Transport {
        let name = std::env::var("CHAOS_TRANSPORT").unwrap_or_default();
        let found = Transport::ALL.into_iter().find(|transport| transport.name() == name);
        match found {
            Some(transport) => transport,
            None if name.is_empty() => Transport::default(),
            None => panic!("CHAOS_TRANSPORT is http, fastcgi or h2: {name}"),
        }
    }

    /// Adds the listener that the transport needs.
    pub(crate) fn prepare(self, start: Start) -> Start {
        let folder = start.folder().to_owned();
        match self {
            Transport::Http => start,
            Transport::FastCgi => start.args(["--listen", &socket(&folder)]),
            Transport::Secure => {
                let certificate = Certificate::own(&folder, "own", "DNS:localhost,IP:127.0.0.1");
                let chain = certificate.chain.display().to_string();
                start.args(["--listen", "https://127.0.0.1:0", "--tls-certificates", &chain])
            }
        }
    }

    /// Starts the proxy.
    pub(crate) fn open(self, server: &Server, root: &Path) -> Between {
        match self {
            Transport::Http => Between::Nobody(server.address()),
            Transport::FastCgi => {
                let place = socket(server.folder()).replacen("fcgi-unix:", "unix:", 1);
                Between::Nginx(Nginx::before(root, &place))
            }
            Transport::Secure => {
                let secure = server.addresses("https://");
                Between::Haproxy(Haproxy::before(*secure.first().expect("it listens")))
            }
        }
    }
}

impl Between {
    /// Address to which the good clients send requests.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Between::Nobody(address) => *address,
            Between::Nginx(nginx) => nginx.address(),
            Between::Haproxy(haproxy) => haproxy.address(),
        }
    }
}

fn socket(folder: &Path) -> String {
    format!("fcgi-unix:{}/fcgi.sock", folder.display())
}
