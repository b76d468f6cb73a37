//! How the good clients reach the server: directly, or through a proxy that speaks FastCGI, or HTTP/2 over TLS, to it.
//!
//! The clients stay as they are, and so does what they may expect: a proxy that makes an error of a request that a worker
//! could have answered is a failure like any other.

use samovar_testkit::{Certificate, Haproxy, Nginx, Server, Start};
use std::net::SocketAddr;
use std::path::Path;

/// What is spoken to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Transport {
    #[default]
    Http,
    /// nginx in front, over connections that are kept.
    FastCgi,
    /// HAProxy in front.
    Secure,
}

/// What stands between, ended with this.
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

    /// That of `CHAOS_TRANSPORT`.
    pub(crate) fn wanted() -> Transport {
        let name = std::env::var("CHAOS_TRANSPORT").unwrap_or_default();
        let found = Transport::ALL.into_iter().find(|transport| transport.name() == name);
        match found {
            Some(transport) => transport,
            None if name.is_empty() => Transport::default(),
            None => panic!("CHAOS_TRANSPORT is http, fastcgi or h2: {name}"),
        }
    }

    /// The server listens for it, too.
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

    /// Starts what stands between.
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
    /// Where the good clients ask.
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
