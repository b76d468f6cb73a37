//! Servers that tasks query, and the server that runs the tasks.

use samovar_testkit::{Certificate, Ldap, MariaDb, Memcached, Postgres, Redis, Server, Start};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

pub(crate) const MODELS: [&str; 3] = ["script", "resident", "checkpoint"];

/// Delay of a response, similar to a slow database.
const LATE: Duration = Duration::from_millis(50);
/// Delay of a page.
const PAGE_LATE: Duration = Duration::from_millis(100);

/// Servers that tasks wait for. Each query takes about a tenth of a second.
pub(crate) struct Peers {
    pub(crate) postgres: Postgres,
    mariadb: MariaDb,
    redis: Redis,
    _memcached: Memcached,
    late_memcached: SocketAddr,
    /// Responds to each page after a tenth of a second, over HTTP and TLS.
    web: Server,
    deaf: SocketAddr,
    _folder: tempfile::TempDir,
}

/// Additional servers without a limit on concurrent queries.
pub(crate) struct Crowd {
    _encrypted: Postgres,
    encrypted: SocketAddr,
    _ldap: Ldap,
    late_ldap: SocketAddr,
    late_web: SocketAddr,
}

impl Crowd {
    pub(crate) fn start() -> Crowd {
        let ldap = Ldap::with(&["cup"]);
        let (postgres, encrypted) = Postgres::encrypted("tasks");
        Crowd {
            _encrypted: postgres,
            encrypted,
            late_ldap: relay(ldap.socket()),
            _ldap: ldap,
            late_web: late_pages(),
        }
    }

    /// Replaces the addresses of servers that handle only a few queries at once.
    pub(crate) fn asked_by(&self, start: Start) -> Start {
        start
            .env("ENCRYPTED", &self.encrypted.to_string())
            .env("LDAP", &self.late_ldap.to_string())
            .env("HTTP", &self.late_web.to_string())
    }
}

impl Peers {
    pub(crate) fn start() -> Peers {
        let folder = tempfile::TempDir::with_prefix("samovar-tasks-").expect("a temporary folder");
        let own = Certificate::own(folder.path(), "late", "DNS:localhost,IP:127.0.0.1");
        let web = Server::script("<?php usleep(100000); echo $_SERVER['REQUEST_URI'];")
            .workers(8)
            .args(["--listen", "https://127.0.0.1:0", "--tls-hsts", "off", "--tls-certificates"])
            .args([own.chain.to_str().expect("our own name")])
            .start();
        let memcached = Memcached::start();
        Peers {
            postgres: Postgres::with(&["tasks"]),
            mariadb: MariaDb::start(),
            redis: Redis::start(),
            late_memcached: relay(memcached.socket()),
            _memcached: memcached,
            web,
            deaf: deaf(),
            _folder: folder,
        }
    }

    /// A server of `tests/apps/parallel` in this model, with the addresses of the peers.
    pub(crate) fn asked_by(&self, model: &str) -> Start {
        let web = |scheme| self.web.addresses(&format!("{scheme}://"))[0].to_string();
        let start = Server::app("parallel")
            .workers(1)
            .extensions(&["msgpack", "memcached", "ldap"])
            .env("MODEL", model)
            .env("PGSQL", self.postgres.folder())
            .env("MYSQL", &self.mariadb.socket().display().to_string())
            .env("REDIS", &self.redis.socket().display().to_string())
            .env("MEMCACHED", &self.late_memcached.to_string())
            .env("HTTP", &web("http"))
            .env("TLS", &web("https"))
            .env("DEAF", &self.deaf.to_string());
        if model == "script" { start.args(["--disable-checkpoint"]) } else { start }
    }
}

pub(crate) fn ask(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}\n{}", response.text(), server.log());
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{path}: {e}: {}", response.text()))
}

/// Accepts connections, and never responds.
fn deaf() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || client.read_to_end(&mut Vec::new()));
        }
    });
    address
}

/// A relay in front of a fast server: data of clients is delayed by [`LATE`].
fn relay(to: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&to).expect("the server runs");
            let (back, responses) = (client.try_clone(), server.try_clone());
            std::thread::spawn(move || pass_late(client, server));
            std::thread::spawn(move || {
                respond(responses.expect("a socket"), back.expect("a socket"));
            });
        }
    });
    address
}

/// Responds to each page with its target, after a delay, for any number of concurrent requests.
fn late_pages() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || late_page(client));
        }
    });
    address
}

fn late_page(mut client: TcpStream) {
    let (_never, nothing) = channel::<()>();
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut buffer) {
            Ok(n @ 1..) => head.extend(&buffer[..n]),
            _ => return,
        }
    }
    let _ = nothing.recv_timeout(PAGE_LATE);
    let head = String::from_utf8_lossy(&head);
    let target = head.split(' ').nth(1).unwrap_or_default();
    let length = target.len();
    let page =
        format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{target}");
    let _ = client.write_all(page.as_bytes());
}

fn pass_late(mut from: TcpStream, mut to: UnixStream) {
    let (_never, nothing) = channel::<()>();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let _ = nothing.recv_timeout(LATE);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn respond(mut from: UnixStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}
