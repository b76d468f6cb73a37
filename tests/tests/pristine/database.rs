//! A private MariaDB: files of its own, a unix socket, nobody to be asked for a password.

use samovar_testkit::eventually;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running server; killed, with all it knows, when dropped.
pub(crate) struct Database {
    server: Child,
    folder: TempDir,
}

impl Database {
    /// Starts with an empty folder: without privileges to check, the system tables are not missed.
    pub(crate) fn start() -> Database {
        let folder = TempDir::with_prefix("samovar-database-").expect("a temporary folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(path("data")).expect("our own folder");
        let log = std::fs::File::create(path("log")).expect("our own file");
        let is_root = folder.path().metadata().is_ok_and(|m| m.uid() == 0);
        // It dies with the test, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "/usr/sbin/mariadbd", "--no-defaults"]);
        command.args(is_root.then_some("--user=root"));
        command.arg(format!("--datadir={}", path("data")));
        command.arg(format!("--socket={}", path("sock")));
        command.arg(format!("--pid-file={}", path("pid")));
        command.args(["--skip-networking", "--skip-grant-tables", "--skip-log-bin"]);
        // Nothing here need outlive a loss of power.
        command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]);
        command.args(["--innodb-log-file-size=8M", "--innodb-use-native-aio=0"]);
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let mut server = server.expect("setpriv runs");
        eventually("the database's socket", || {
            if let Some(status) = server.try_wait().expect("our own child") {
                let log = std::fs::read_to_string(path("log")).unwrap_or_default();
                panic!("mariadbd ended ({status}):\n{log}\nhint: `make setup-test` installs it");
            }
            UnixStream::connect(path("sock")).ok()
        });
        Database { server, folder }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
