//! A Samovar under test.

use crate::http::{Client, Response};
use crate::kernel;
use crate::process::{Process, kill};
use crate::wait::eventually;
use crate::workspace;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The PHP settings that Samovar and the oracle share, so that their answers can be equal.
pub fn ini(folder: &Path) -> Vec<(String, String)> {
    let folder = folder.display();
    [
        ("display_errors", "1".into()),
        ("html_errors", "1".into()),
        ("error_reporting", "E_ALL".into()),
        ("log_errors", "1".into()),
        ("output_buffering", "4096".into()),
        ("implicit_flush", "0".into()),
        ("expose_php", "0".into()),
        ("variables_order", "GPCS".into()),
        ("request_order", "GP".into()),
        ("register_argc_argv", "0".into()),
        ("session.save_path", format!("{folder}/sessions")),
        ("upload_tmp_dir", format!("{folder}/uploads")),
        ("post_max_size", "256K".into()),
        ("upload_max_filesize", "128K".into()),
        ("max_file_uploads", "5".into()),
        ("max_input_vars", "200".into()),
        ("memory_limit", "64M".into()),
        ("max_execution_time", "30".into()),
        ("date.timezone", "UTC".into()),
    ]
    .map(|(key, value): (&str, String)| (key.to_owned(), value))
    .to_vec()
}

/// How a server is to be started.
#[derive(Debug)]
pub struct Start {
    target: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    config: String,
    inside: Option<PathBuf>,
    shared_ini: bool,
    old_kernel: bool,
    folder: TempDir,
}

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
    address: SocketAddr,
    folder: TempDir,
}

/// The binary under test: `SAMOVAR_BIN`, or the workspace's release build.
fn binary() -> PathBuf {
    std::env::var_os("SAMOVAR_BIN")
        .map_or_else(|| workspace().join("target/release/samovar"), PathBuf::from)
}

impl Server {
    /// Serves `tests/apps/NAME` (its `public/` if it has one).
    pub fn app(name: &str) -> Start {
        let app = workspace().join("tests/apps").join(name);
        let public = app.join("public");
        Server::at(if public.is_dir() { public } else { app })
    }

    /// Serves a document root or a front controller.
    pub fn at(target: impl Into<PathBuf>) -> Start {
        let folder = TempDir::with_prefix("samovar-test-").expect("a temporary folder");
        for below in ["sessions", "uploads"] {
            std::fs::create_dir(folder.path().join(below)).expect("an empty folder");
        }
        Start {
            target: target.into(),
            args: Vec::new(),
            env: Vec::new(),
            config: String::new(),
            inside: None,
            shared_ini: true,
            old_kernel: false,
            folder,
        }
    }

    /// Serves one PHP script, given as text, as front controller.
    pub fn script(php: &str) -> Start {
        let start = Server::at("");
        let root = start.folder.path().join("root");
        std::fs::create_dir(&root).expect("an empty folder");
        std::fs::write(root.join("index.php"), php).expect("a script");
        Start { target: root, ..start }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A folder of this server's own: `sessions/`, `uploads/`, and for [`Self::script`] `root/`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// GET on a connection of its own.
    pub fn get(&self, target: &str) -> Response {
        self.client().get(target)
    }

    /// All of its standard error so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Its standard output so far (the access log with `--access-log -`).
    pub fn stdout(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stdout")).unwrap_or_default()
    }

    /// Waits until its log holds `text`.
    pub fn wait_for_log(&self, text: &str) {
        eventually(&format!("`{text}` in the log"), || self.log().contains(text).then_some(()));
    }

    /// The supervisor's process id.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// The control socket.
    pub fn control(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// `samovar status --json`.
    pub fn status(&self) -> serde_json::Value {
        let output = Command::new(binary())
            .args(["status", "--json", "--control"])
            .arg(self.control())
            .output()
            .expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e} in status: {output:?}"))
    }

    /// `samovar reload`: what it says, on the stream that its exit code calls for.
    pub fn reload(&self) -> Result<String, String> {
        let output = Command::new(binary())
            .args(["reload", "--control"])
            .arg(self.control())
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

    /// SIGUSR2, without waiting.
    pub fn ask_to_reload(&self) {
        self.process.signal(libc::SIGUSR2);
    }

    /// Process ids of the workers.
    pub fn worker_pids(&self) -> Vec<i32> {
        let status = self.status();
        let workers = status["workers"].as_array().expect("a list of workers");
        workers.iter().filter_map(|w| i32::try_from(w["pid"].as_i64()?).ok()).collect()
    }

    /// SIGKILL to one of its workers.
    pub fn kill_worker(&self, pid: i32) {
        kill(pid, libc::SIGKILL);
    }

    /// SIGTERM, without waiting.
    pub fn terminate(&self) {
        self.process.signal(libc::SIGTERM);
    }

    /// Waits for its end and returns the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.process.wait().code()
    }

    /// SIGTERM; it must drain and exit with 0. Returns its log.
    pub fn stop(mut self) -> String {
        self.terminate();
        let code = self.wait();
        assert_eq!(code, Some(0), "exit status; log:\n{}", self.log());
        self.log()
    }
}

impl Start {
    /// Any arguments of `samovar serve`.
    #[must_use]
    pub fn args<const N: usize>(mut self, args: [&str; N]) -> Start {
        self.args.extend(args.map(str::to_owned));
        self
    }

    /// Worker processes.
    #[must_use]
    pub fn workers(self, count: usize) -> Start {
        self.args(["--workers", &count.to_string()])
    }

    /// One PHP setting.
    #[must_use]
    pub fn define(self, key: &str, value: &str) -> Start {
        self.args(["--define", &format!("{key}={value}")])
    }

    /// An environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Start {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Text of the configuration file.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Start {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    /// Without the settings of [`ini`]: PHP as the distribution configures it.
    #[must_use]
    pub fn plain_ini(mut self) -> Start {
        self.shared_ini = false;
        self
    }

    /// Started in this folder, as by a shell that has gone there.
    #[must_use]
    pub fn inside(mut self, folder: &Path) -> Start {
        self.inside = Some(folder.to_owned());
        self
    }

    /// On a kernel older than Linux 6.7: `PAGEMAP_SCAN` is an unknown request.
    #[must_use]
    pub fn without_pagemap_scan(mut self) -> Start {
        self.old_kernel = true;
        self
    }

    /// Starts it and waits until it is ready.
    pub fn start(self) -> Server {
        let (mut process, folder) = self.spawn();
        let address = eventually("the server's first answer", || {
            let log = process.log();
            if let Some(status) = process.ended() {
                panic!("the server ended ({status}); its log:\n{log}");
            }
            let (_, rest) = log.split_once("listening on http://")?;
            rest.split_whitespace().next()?.parse().ok()
        });
        Server { process, address, folder }
    }

    /// Its folder, as [`Server::folder`].
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it: exit code if it refuses to serve (else `None`), and its log so far.
    pub fn ended(self) -> (Option<i32>, String) {
        let (mut process, _folder) = self.spawn();
        let code = eventually("the server's end, or its first answer", || match process.ended() {
            // The log's reader may be behind.
            Some(status) => (!process.log().is_empty()).then_some(status.code()),
            None => process.log().contains("listening on http://").then_some(None),
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        (code, process.log())
    }

    /// Starts it, expects it to refuse, and returns exit code and log.
    pub fn refuse(self) -> (Option<i32>, String) {
        let (mut process, _folder) = self.spawn();
        let code = process.wait().code();
        // The reader may be a moment behind the end.
        std::thread::sleep(std::time::Duration::from_millis(20));
        (code, process.log())
    }

    fn spawn(self) -> (Process, TempDir) {
        let config = self.folder.path().join("samovar.toml");
        std::fs::write(&config, &self.config).expect("a configuration");
        let stdout = std::fs::File::create(self.folder.path().join("stdout")).expect("a file");
        let mut command = Command::new(binary());
        command.arg("serve").arg(&self.target).args(["--listen", "127.0.0.1:0"]);
        command.arg("--config").arg(&config);
        command.arg("--control").arg(self.folder.path().join("control.sock"));
        if self.shared_ini {
            for (key, value) in ini(self.folder.path()) {
                command.args(["--define", &format!("{key}={value}")]);
            }
        }
        command.args(&self.args).stdout(Stdio::from(stdout));
        // As php-fpm with clear_env: $_SERVER must not depend on who runs the tests.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env);
        if let Some(folder) = &self.inside {
            command.current_dir(folder).env("PWD", folder);
        }
        if self.old_kernel {
            kernel::forget_pagemap_scan(&mut command);
        }
        (Process::start("samovar", &mut command), self.folder)
    }
}
