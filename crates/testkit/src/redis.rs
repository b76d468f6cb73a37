//! A private Redis on a unix socket, without persistence.

use crate::process::Process;
use crate::wait::eventually;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Redis {
    _server: Process,
    folder: TempDir,
}

impl Redis {
    /// Starts one, and waits until it responds.
    pub fn start() -> Redis {
        let folder = TempDir::with_prefix("samovar-redis-").expect("a temporary folder");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(folder.path().join("socket")).current_dir(folder.path());
        let mut server = Process::start("redis", command.stdout(Stdio::null()));
        eventually("Redis's first answer", || {
            if let Some(status) = server.ended() {
                panic!("redis-server ended ({status}):\n{}", server.log());
            }
            UnixStream::connect(folder.path().join("socket")).ok()
        });
        Redis { _server: server, folder }
    }

    /// Output of `redis-cli`.
    pub fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        let output = command.arg("-s").arg(self.socket()).args(words).output();
        let output = output.expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}
