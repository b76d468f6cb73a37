//! The servers that tasks ask, and the one that runs them.

use samovar_testkit::{Certificate, Ldap, MariaDb, Memcached, Postgres, Redis, Server, Start};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

pub(crate) const MODELS: [&str; 3] = ["script", "resident", "checkpoint"];

/// How late an answer is: as slow databases are.
const LATE: Duration = Duration::from_millis(50);
/// How late a page is.
const PAGE_LATE: Duration = Duration::from_millis(100);

/// All that tasks wait for; what is asked of it takes about a tenth of a second.
pub(crate) struct Peers {
    pub(crate) postgres: Postgres,
    mariadb: MariaDb,
    redis: Redis,
    _memcached: Memcached,
    late_memcached: SocketAddr,
    /// Answers each page a tenth of a second later, by HTTP and TLS.
    web: Server,
    deaf: SocketAddr,
    _folder: tempfile::TempDir,
}

/// More of them, and as many as one asks for at once.
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

    /// In the place of those that take only some at once.
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

    /// A server of `tests/apps/parallel` in that model, which knows where they are.
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
        if model == "script" { start.args(["--whole-scripts"]) } else { start }
    }
}

pub(crate) fn ask(server: &Server, path: &str) -> Value {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}\n{}", answer.text(), server.log());
    serde_json::from_slice(&answer.body)
        .unwrap_or_else(|e| panic!("{path}: {e}: {}", answer.text()))
}

/// Takes connections, and never answers.
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

/// In front of a server that answers at once: what clients say comes [`LATE`].
fn relay(to: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&to).expect("the server runs");
            let (back, answers) = (client.try_clone(), server.try_clone());
            std::thread::spawn(move || pass_late(client, server));
            std::thread::spawn(move || answer(answers.expect("a socket"), back.expect("a socket")));
        }
    });
    address
}

/// Answers each page with its target, late, however many are asked for.
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

fn answer(mut from: UnixStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}
