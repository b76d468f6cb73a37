//! How the good clients reach the server: directly, or through a proxy that speaks FastCGI, or HTTP/2 over TLS, to it.
//!
//! The clients stay as they are, and so does what they may expect: a proxy that makes an error of a request that a worker
//! could have answered is a failure like any other.

use samovar_testkit::{Certificate, Nginx, Server, Start, end, eventually};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

pub(crate) struct Haproxy {
    child: Child,
    address: SocketAddr,
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        end(&mut self.child);
    }
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
            Transport::Secure => Between::Haproxy(haproxy(server)),
        }
    }
}

impl Between {
    /// Where the good clients ask.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Between::Nobody(address) => *address,
            Between::Nginx(nginx) => nginx.address(),
            Between::Haproxy(haproxy) => haproxy.address,
        }
    }
}

fn socket(folder: &Path) -> String {
    format!("fcgi-unix:{}/fcgi.sock", folder.display())
}

fn haproxy(server: &Server) -> Haproxy {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let secure = server.addresses("https://");
    let secure = secure.first().expect("it listens");
    let text = format!(
        "defaults\n mode http\n timeout connect 20s\n timeout client 60s\n timeout server 60s\n\
         frontend f\n bind {address}\n default_backend b\n\
         backend b\n http-reuse always\n server s {secure} ssl verify none alpn h2\n"
    );
    let config = server.folder().join("haproxy.cfg");
    std::fs::write(&config, text).expect("our own folder");
    let mut command = Command::new("/usr/sbin/haproxy");
    command.args(["-db", "-f"]).arg(config).stdout(Stdio::null()).stderr(Stdio::null());
    let mut proxy = Haproxy { child: command.spawn().expect("haproxy is installed"), address };
    eventually("HAProxy's port", || {
        assert!(proxy.child.try_wait().expect("our child").is_none(), "haproxy has ended");
        TcpStream::connect(address).ok()
    });
    proxy
}
