//! A private MariaDB, with its own files and a unix socket.

use crate::process::{Process, is_root};
use crate::wait::eventually;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const HINT: &str = "hint: `make setup-test` installs it";

/// A running server; killed when dropped. Files in its own folder are then removed.
#[derive(Debug)]
pub struct MariaDb {
    server: Process,
    socket: PathBuf,
    data: PathBuf,
    arguments: &'static [&'static str],
    folder: TempDir,
}

impl MariaDb {
    /// Starts a server without passwords: it checks no privileges, so the system tables are not
    /// needed.
    pub fn start() -> MariaDb {
        let folder = folder();
        let (data, socket) = (folder.path().join("data"), folder.path().join("sock"));
        std::fs::create_dir(&data).expect("our own folder");
        MariaDb::run(folder, &data, socket, &["--skip-grant-tables"])
    }

    /// Starts a server as Debian sets one up, in these places: privileges are checked, and root
    /// logs in through the socket.
    pub fn set_up(data: &Path, socket: PathBuf) -> MariaDb {
        std::fs::create_dir_all(data).expect("our own folder");
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(["--innodb-log-file-size=8M", "--innodb-use-native-aio=0"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", data.display()))
            .args(is_root().then_some("--user=root"))
            .output()
            .unwrap_or_else(|e| panic!("mariadb-install-db: {e}\n{HINT}"));
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stdout));
        MariaDb::run(folder(), data, socket, &[])
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs a statement.
    pub fn query(&self, statement: &str) {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--execute", statement]);
        let output = command.arg(format!("--socket={}", self.socket.display())).output();
        let output = output.unwrap_or_else(|e| panic!("mariadb: {e}\n{HINT}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Stops it, with its clients' connections, and starts it again on the same files.
    pub fn restart(&mut self) {
        // An orderly stop: recent setup may not be on disk yet.
        self.server.signal(libc::SIGTERM);
        self.server.wait();
        self.server = serve(self.folder.path(), &self.data, &self.socket, self.arguments);
    }

    fn run(
        folder: TempDir,
        data: &Path,
        socket: PathBuf,
        arguments: &'static [&'static str],
    ) -> MariaDb {
        let server = serve(folder.path(), data, &socket, arguments);
        MariaDb { server, socket, data: data.to_owned(), arguments, folder }
    }
}

/// Starts the server. Returns when its socket exists.
fn serve(folder: &Path, data: &Path, socket: &Path, arguments: &[&str]) -> Process {
    // It dies with the test, no matter how the test ends.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "/usr/sbin/mariadbd", "--no-defaults"]);
    command.args(is_root().then_some("--user=root"));
    command.arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", socket.display()));
    command.arg(format!("--pid-file={}", folder.join("pid").display()));
    // At its start a server removes all temporary tables below its tmpdir, those of others as well.
    command.arg(format!("--tmpdir={}", folder.display()));
    command.args(["--skip-networking", "--skip-log-bin"]).args(arguments);
    // No data here must survive a power loss.
    command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]);
    command.args(["--innodb-log-file-size=8M", "--innodb-use-native-aio=0"]);
    let mut server = Process::start("mariadbd", command.stdout(Stdio::null()));
    eventually("the database's socket", || {
        if let Some(status) = server.ended() {
            panic!("mariadbd ended ({status}):\n{}\n{HINT}", server.log());
        }
        UnixStream::connect(socket).ok()
    });
    server
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // Further writes would not be read.
        self.server.signal(libc::SIGKILL);
    }
}

fn folder() -> TempDir {
    TempDir::with_prefix("samovar-mariadb-").expect("a temporary folder")
}
