//! A running server: requests, signals, status, end.

use super::heir::Heir;
use super::status::{Held, ask_status};
use crate::confine::Disk;
use crate::http::{Client, Response};
use crate::process::{Process, kill};
use crate::tap::Tap;
use crate::wait::eventually;
use crate::{binary, family};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tempfile::TempDir;

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Server {
    pub(super) process: Process,
    /// The server that has taken over from it.
    pub(super) heir: Heir,
    pub(super) stdout: Option<Tap>,
    pub(super) log: Option<(Disk, String)>,
    pub(super) address: SocketAddr,
    pub(super) folder: TempDir,
}

impl Server {
    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The addresses with this prefix, such as `https://`, in the order of its settings.
    pub fn addresses(&self, scheme: &str) -> Vec<SocketAddr> {
        let log = self.log();
        let line = log.lines().find_map(|line| Some(line.split_once("listening on ")?.1));
        let words = line.unwrap_or_default().split_whitespace();
        words.filter_map(|word| word.strip_prefix(scheme)?.parse().ok()).collect()
    }

    /// This server's own folder, with `sessions/`, `uploads/`, and for [`Self::script`] `root/`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// GET on a new connection.
    pub fn get(&self, target: &str) -> Response {
        self.client().get(target)
    }

    /// All of its standard error so far.
    pub fn log(&self) -> String {
        logged(&self.process, self.log.as_ref())
    }

    /// The reader of its standard error.
    pub fn stderr_reader(&self) -> &Tap {
        self.process.stderr()
    }

    /// The reader of its standard output, after
    /// [`Start::piped_stdout`](crate::Start::piped_stdout).
    pub fn stdout_reader(&self) -> Option<&Tap> {
        self.stdout.as_ref()
    }

    /// One of its disks, after [`Start::disk`](crate::Start::disk).
    pub fn disk(&self, name: &str) -> Disk {
        self.disk_at(&self.folder.path().join(name))
    }

    /// One of its disks, after [`Start::disk_at`](crate::Start::disk_at).
    pub fn disk_at(&self, path: &Path) -> Disk {
        Disk::of(self.pid(), path)
    }

    /// Marker in the environment of its processes: name and value.
    pub fn marker(&self) -> (&'static str, String) {
        (family::SERVER, self.folder.path().display().to_string())
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended()
    }

    /// Its standard output so far (the access log with `--access-log -`).
    pub fn stdout(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stdout")).unwrap_or_default()
    }

    /// Waits until its log contains `text`.
    pub fn wait_for_log(&self, text: &str) {
        eventually(&format!("`{text}` in the log"), || self.log().contains(text).then_some(()));
    }

    /// The supervisor's process id; after [`Self::upgrade`], that of the last server that has taken
    /// over.
    pub fn pid(&self) -> i32 {
        self.heir.pid().unwrap_or_else(|| self.process.pid())
    }

    /// The control socket.
    pub fn control(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// Its status, as `samovar status --json` prints it.
    pub fn status(&self) -> serde_json::Value {
        ask_status(&self.control()).unwrap_or_else(|error| panic!("in status: {error}"))
    }

    /// Resources that the server reports to hold: all kinds of descriptors, except those for
    /// looking at other processes, which come and go with each look.
    pub fn held(&self) -> Held {
        Held::of(&self.status())
    }

    /// Runs `samovar reload`. Returns its output, from the stream that matches its exit code.
    pub fn reload(&self) -> Result<String, String> {
        self.run_reload(&[])
    }

    fn run_reload(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(binary())
            .args(["reload", "--control"])
            .arg(self.control())
            .args(args)
            .output()
            .expect("the binary runs");
        let [said, wrong] =
            [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
        match output.status.code() {
            Some(0) => {
                assert_eq!(wrong, "", "nothing on standard error");
                Ok(said)
            }
            code => {
                assert_eq!((code, said.as_str()), (Some(1), ""), "{wrong}");
                Err(wrong)
            }
        }
    }

    /// As [`Self::reload`], with any arguments of `samovar reload`.
    pub fn reload_with<const N: usize>(&self, args: [&str; N]) -> Result<String, String> {
        self.run_reload(&args)
    }

    /// Sends SIGSTOP: the server exists but does nothing until [`Self::resume`].
    pub fn pause(&self) {
        self.process.signal(libc::SIGSTOP);
    }

    /// Sends SIGCONT.
    pub fn resume(&self) {
        self.process.signal(libc::SIGCONT);
    }

    /// Sends SIGUSR1, without waiting.
    pub fn ask_to_reopen(&self) {
        kill(self.pid(), libc::SIGUSR1);
    }

    /// Sends SIGUSR2, without waiting.
    pub fn ask_to_reload(&self) {
        kill(self.pid(), libc::SIGUSR2);
    }

    /// Sends SIGRTMIN, without waiting.
    pub fn ask_to_upgrade(&self) {
        kill(self.pid(), libc::SIGRTMIN());
    }

    /// Process ids of the workers.
    pub fn worker_pids(&self) -> Vec<i32> {
        let status = self.status();
        let workers = status["workers"].as_array().expect("a list of workers");
        workers.iter().filter_map(|w| i32::try_from(w["pid"].as_i64()?).ok()).collect()
    }

    /// Process id of its first worker. Waits for one: a worker may have served a request before the
    /// supervisor is notified of its fork.
    pub fn worker_pid(&self) -> i32 {
        eventually("a worker", || self.worker_pids().first().copied())
    }

    /// Sends SIGKILL to one of its workers.
    pub fn kill_worker(&self, pid: i32) {
        kill(pid, libc::SIGKILL);
    }

    /// Sends SIGSTOP to one of its processes: then only a SIGKILL ends it.
    pub fn stop_process(&self, pid: i32) {
        kill(pid, libc::SIGSTOP);
    }

    /// Sends SIGKILL to its main process and waits for its end. Returns its folder, as
    /// [`Start::perish`](crate::Start::perish).
    pub fn perish(self) -> TempDir {
        let Server { mut process, folder, heir, .. } = self;
        drop(heir);
        process.signal(libc::SIGKILL);
        process.wait();
        folder
    }

    /// Sends SIGTERM, without waiting.
    pub fn terminate(&self) {
        self.process.signal(libc::SIGTERM);
    }

    /// Waits for its end and returns the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.process.wait().code()
    }

    /// Sends SIGTERM. The server must drain and exit with 0. Returns its log.
    pub fn stop(mut self) -> String {
        self.heir.stop();
        if self.ended().is_none() {
            self.terminate();
        }
        let code = self.wait();
        assert_eq!(code, Some(0), "exit status; log:\n{}", self.log());
        self.process.whole_log()
    }
}

/// Standard error, from wherever it was written to.
pub(super) fn logged(process: &Process, file: Option<&(Disk, String)>) -> String {
    let Some((disk, name)) = file else { return process.log() };
    let text = std::fs::read(disk.path(name)).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}
