//! A private PostgreSQL, with its own files and a unix socket, without passwords.

use crate::certificate::Certificate;
use crate::process::{Process, is_root};
use crate::wait::eventually;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const USER: &str = "postgres";
const INSTALLED: &str = "/usr/lib/postgresql";
/// The port in the name of its socket.
const DEFAULT_PORT: u16 = 5432;
/// Tests send a hundred queries at once.
const CONNECTIONS_MAX: &str = "max_connections=240";

/// A running cluster; stopped and removed when dropped.
#[derive(Debug)]
pub struct Postgres {
    server: Process,
    folder: TempDir,
}

impl Postgres {
    /// Starts a cluster with these databases, and waits until it responds.
    pub fn with(databases: &[&str]) -> Postgres {
        let folder = TempDir::with_prefix("samovar-pg-").expect("a temporary folder");
        let path = folder.path();
        if is_root() {
            run(Command::new("chown").arg(format!("{USER}:")).arg(path));
        }
        run(Command::new("cp").arg("-a").arg(initialized()).arg(path.join("data")));
        let server = serve(path);
        let socket = path.join(format!(".s.PGSQL.{DEFAULT_PORT}"));
        eventually("PostgreSQL's socket", || UnixStream::connect(&socket).ok());
        let mut cluster = Postgres { server, folder };
        for database in databases {
            eventually("PostgreSQL's first answer", || cluster.create(database).then_some(()));
        }
        cluster
    }

    /// Starts a cluster with that database, which also uses TLS at its own address. Its data are
    /// not durable: it is never restarted.
    pub fn encrypted(database: &str) -> (Postgres, SocketAddr) {
        let mut cluster = Postgres::with(&[database]);
        cluster.server.signal(libc::SIGINT);
        cluster.server.wait();
        let path = cluster.folder.path().to_owned();
        Certificate::own(&path, "postgres", "DNS:localhost,IP:127.0.0.1");
        if is_root() {
            run(Command::new("chown").arg(format!("{USER}:")).arg(path.join("postgres.key")));
        }
        let address = crate::port();
        cluster.server = serve_at(&path, address);
        eventually("PostgreSQL's first answer by TCP", || {
            if let Some(status) = cluster.server.ended() {
                panic!("postgres ended ({status}):\n{}", cluster.server.log());
            }
            is_ready("127.0.0.1", address.port()).then_some(())
        });
        (cluster, address)
    }

    /// Its URL in Doctrine's format.
    pub fn url(&self, database: &str) -> String {
        let socket = self.folder.path().display();
        format!("pgsql://{USER}@localhost/{database}?host={socket}&serverVersion=15&charset=utf8")
    }

    /// Folder of its socket.
    pub fn folder(&self) -> &str {
        self.folder.path().to_str().expect("we have named it")
    }

    /// Stops it at once, with its clients' connections, and starts it again on the same files.
    pub fn restart(&mut self) {
        self.server.signal(libc::SIGINT);
        self.server.wait();
        self.server = serve(self.folder.path());
        eventually("PostgreSQL's first answer after a restart", || {
            is_ready(self.folder(), DEFAULT_PORT).then_some(())
        });
    }

    fn create(&mut self, database: &str) -> bool {
        if let Some(status) = self.server.ended() {
            panic!("postgres ended ({status}):\n{}", self.server.log());
        }
        let mut create = Command::new(program("createdb"));
        create.args(["-U", USER, "-h"]).arg(self.folder.path()).arg(database);
        create.output().expect("createdb runs").status.success()
    }
}

/// A cluster created by `initdb`, once in this workspace. That takes a second of CPU time, a copy a
/// tenth.
fn initialized() -> PathBuf {
    let program = program("initdb");
    // Another version has another format.
    let version = program.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
    let fixtures = crate::workspace().join("target/tests/fixtures");
    std::fs::create_dir_all(&fixtures).expect("our own folder");
    let data = fixtures.join(format!("postgres-{}", version.to_string_lossy()));
    let lock = File::create(fixtures.join("postgres.lock")).expect("a lock");
    lock.lock().expect("the lock of the first cluster");
    if !data.is_dir() {
        let made = TempDir::with_prefix("samovar-pg-").expect("a temporary folder");
        if is_root() {
            run(Command::new("chown").arg(format!("{USER}:")).arg(made.path()));
        }
        let folder = made.path().join("data");
        run(as_user(made.path(), "initdb")
            .args(["-U", USER, "-A", "trust", "--no-sync", "--locale=C", "--encoding=UTF8", "-D"])
            .arg(&folder));
        // In two steps: an interrupted copy must not be mistaken for a cluster.
        let partial = fixtures.join("postgres.partial");
        let _ = std::fs::remove_dir_all(&partial);
        run(Command::new("cp").arg("-a").arg(folder).arg(&partial));
        std::fs::rename(partial, &data).expect("the same file system");
    }
    data
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A fast shutdown removes its shared memory; SIGKILL would not.
        if self.server.ended().is_none() {
            self.server.signal(libc::SIGINT);
            self.server.wait();
        }
    }
}

fn is_ready(host: &str, port: u16) -> bool {
    let mut ready = Command::new(program("pg_isready"));
    ready.args(["-q", "-U", USER, "-h", host, "-p", &port.to_string()]);
    ready.status().is_ok_and(|status| status.success())
}

fn serve(folder: &Path) -> Process {
    start(folder, &["-c", "listen_addresses="])
}

fn serve_at(folder: &Path, address: SocketAddr) -> Process {
    let (chain, key) = (folder.join("postgres.pem"), folder.join("postgres.key"));
    let files = [("ssl_cert_file", chain), ("ssl_key_file", key)];
    let files = files.map(|(name, path)| format!("{name}={}", path.display()));
    let listen = format!("listen_addresses={}", address.ip());
    let port = address.port().to_string();
    let arguments = ["-c", &listen, "-p", &port, "-c", "ssl=on", "-c", &files[0], "-c", &files[1]];
    start(folder, &arguments)
}

fn start(folder: &Path, arguments: &[&str]) -> Process {
    let mut postgres = as_user(folder, "postgres");
    postgres.arg("-D").arg(folder.join("data"));
    postgres.arg("-k").arg(folder).args(["-c", "fsync=off", "-c", CONNECTIONS_MAX]).args(arguments);
    Process::start("postgres", postgres.stdout(Stdio::null()))
}

/// A PostgreSQL program that dies with the test, run as a user that it accepts.
fn as_user(folder: &Path, name: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]).current_dir(folder);
    if is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.arg(program(name));
    command
}

/// Debian keeps these programs outside of PATH, in a folder per version.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|v| v.path().join("bin").join(name)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    found.pop().unwrap_or_else(|| panic!("no `{name}` below {INSTALLED}\nhint: `make setup-test`"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
