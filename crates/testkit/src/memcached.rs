//! A private Memcached, on a unix socket.

use crate::process::{Process, is_root};
use crate::wait::eventually;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Memcached {
    _server: Process,
    folder: TempDir,
}

impl Memcached {
    /// Starts one, and waits until it responds.
    pub fn start() -> Memcached {
        let folder = TempDir::with_prefix("samovar-memcached-").expect("a temporary folder");
        let mut command = Command::new("memcached");
        command.arg("-s").arg(folder.path().join("socket")).current_dir(folder.path());
        if is_root() {
            command.args(["-u", "root"]);
        }
        let mut server = Process::start("memcached", command.stdout(Stdio::null()));
        eventually("Memcached's first answer", || {
            if let Some(status) = server.ended() {
                panic!("memcached ended ({status}):\n{}", server.log());
            }
            UnixStream::connect(folder.path().join("socket")).ok()
        });
        Memcached { _server: server, folder }
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}
