//! A private Redis on a unix socket.

use crate::process::Process;
use crate::wait::eventually;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A server; stopped when dropped.
#[derive(Debug)]
pub struct Redis {
    server: Option<Process>,
    settings: Vec<String>,
    folder: TempDir,
}

impl Redis {
    /// Starts one without persistence, and waits until it responds.
    pub fn start() -> Redis {
        Redis::with(&["--appendonly", "no"])
    }

    /// Starts one that writes each change to the disk before its response.
    pub fn durable() -> Redis {
        Redis::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Starts one with these settings.
    pub fn with(settings: &[&str]) -> Redis {
        let folder = TempDir::with_prefix("samovar-redis-").expect("a temporary folder");
        let settings = settings.iter().map(|&word| word.to_owned()).collect();
        let mut redis = Redis { server: None, settings, folder };
        redis.start_again();
        redis
    }

    /// Starts it again with its files, and waits until it responds.
    pub fn start_again(&mut self) {
        self.server = None;
        let socket = self.socket();
        // It is left by a killed server.
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
        command.args(&self.settings).current_dir(self.folder.path());
        let mut server = Process::start("redis", command.stdout(Stdio::null()));
        eventually("Redis's first answer", || {
            if let Some(status) = server.ended() {
                panic!("redis-server ended ({status}):\n{}", server.log());
            }
            UnixStream::connect(&socket).ok()
        });
        eventually("Redis has loaded its files", || {
            let answer = self.ask(&["ping"]);
            (answer.contains("PONG") || answer.contains("NOAUTH")).then_some(())
        });
        self.server = Some(server);
    }

    /// Kills it.
    pub fn crash(&mut self) {
        self.server = None;
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.server.as_ref().expect("it runs").pid()
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
