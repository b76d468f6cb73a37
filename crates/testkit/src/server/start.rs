//! Start of a server, and its options.

use super::defaults::{front_threads, ini};
use super::heir::Heir;
use super::running::{Server, logged};
use super::status::ask_status;
use crate::binary;
use crate::confine::{Cgroup, Confinement, Disk};
use crate::process::{Process, is_root};
use crate::wait::eventually;
use crate::workspace;
use crate::{family, kernel};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Options for the start of a server.
#[derive(Debug)]
pub struct Start {
    command: &'static str,
    target: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    config: String,
    inside: Option<PathBuf>,
    shared_ini: bool,
    relink: Relink,
    old_kernel: bool,
    user: Option<u32>,
    confinement: Confinement,
    log: Option<Logged>,
    open_files: Option<(u64, u64)>,
    shell: Option<String>,
    stdout: Option<Stdio>,
    drops_root: bool,
    inherited: Option<TcpListener>,
    folder: TempDir,
}

/// Destination of standard error instead of a pipe: a file on one of the server's disks, or any
/// path.
#[derive(Clone, Debug)]
struct Logged {
    disk: PathBuf,
    name: String,
}

/// Whether PHP is relinked at the server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relink {
    Yes,
    No,
}

impl Relink {
    /// Default for servers without this option. `RELINK=all`, which `make nightly` sets, makes all
    /// of them relink PHP, as for users. Otherwise only servers do whose pages are compared with
    /// php-fpm's.
    fn unless_asked() -> Relink {
        let is_for_all = std::env::var("RELINK").is_ok_and(|which| which == "all");
        if is_for_all { Relink::Yes } else { Relink::No }
    }
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
            command: "serve",
            target: target.into(),
            args: Vec::new(),
            env: Vec::new(),
            config: String::new(),
            inside: None,
            shared_ini: true,
            // A server that first reads all of libphp needs twice the CPU time to start.
            relink: Relink::unless_asked(),
            old_kernel: false,
            user: None,
            confinement: Confinement::default(),
            log: None,
            open_files: None,
            shell: None,
            stdout: None,
            drops_root: false,
            inherited: None,
            folder,
        }
    }

    /// Serves one PHP script, given as text, as the front controller.
    pub fn script(php: &str) -> Start {
        let start = Server::at("");
        let root = start.folder.path().join("root");
        std::fs::create_dir(&root).expect("an empty folder");
        std::fs::write(root.join("index.php"), php).expect("a script");
        Start { target: root, ..start }
    }
}

impl Start {
    /// Adds any arguments of `samovar serve`.
    #[must_use]
    pub fn args<const N: usize>(mut self, args: [&str; N]) -> Start {
        self.args.extend(args.map(str::to_owned));
        self
    }

    /// Runs `samovar dev` instead of `samovar serve`.
    #[must_use]
    pub fn dev(mut self) -> Start {
        self.command = "dev";
        self
    }

    /// Sets the number of worker processes.
    #[must_use]
    pub fn workers(self, count: usize) -> Start {
        self.args(["--workers", &count.to_string()])
    }

    /// Sets one PHP setting.
    #[must_use]
    pub fn define(self, key: &str, value: &str) -> Start {
        self.args(["--php", &format!("{key}={value}")])
    }

    /// Enables extensions that Debian's packages, or `scripts/setup.sh`, leave disabled.
    #[must_use]
    pub fn extensions(self, names: &[&str]) -> Start {
        let folder = self.folder.path().join("conf.d");
        std::fs::create_dir(&folder).expect("an empty folder");
        for (i, name) in names.iter().enumerate() {
            // In this order, because some depend on another one.
            std::fs::write(
                folder.join(format!("{i:02}-{name}.ini")),
                format!("extension={name}\n"),
            )
            .expect("our own folder");
        }
        // In addition to the usual folders.
        self.env("PHP_INI_SCAN_DIR", &format!(":{}", folder.display()))
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Start {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds text to the configuration file.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Start {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    /// Relinks PHP, as for users.
    #[must_use]
    pub fn relinked(mut self) -> Start {
        self.relink = Relink::Yes;
        self
    }

    /// Without the settings of [`ini`]: PHP as the distribution configures it.
    #[must_use]
    pub fn plain_ini(mut self) -> Start {
        self.shared_ini = false;
        self
    }

    /// Starts it in this folder, as a shell in that folder would.
    #[must_use]
    pub fn inside(mut self, folder: &Path) -> Start {
        self.inside = Some(folder.to_owned());
        self
    }

    /// Starts it as the user (and group) with that number, which gets the server's folder. Works
    /// only for root.
    #[must_use]
    pub fn as_user(mut self, user: u32) -> Start {
        self.user = Some(user);
        self
    }

    /// Simulates a kernel older than Linux 6.7: `PAGEMAP_SCAN` is an unknown request.
    #[must_use]
    pub fn without_pagemap_scan(mut self) -> Start {
        self.old_kernel = true;
        self
    }

    /// Mounts a file system of `bytes` at [`Self::folder`]`/NAME`. Check [`crate::may_mount`]
    /// first.
    #[must_use]
    pub fn disk(mut self, name: &str, bytes: u64) -> Start {
        self.confinement.disk(&self.folder.path().join(name), bytes);
        self
    }

    /// Same as [`Self::disk`], at any path.
    #[must_use]
    pub fn disk_at(mut self, path: &Path, bytes: u64) -> Start {
        self.confinement.disk(path, bytes);
        self
    }

    /// Writes standard error to a file on one of its disks.
    #[must_use]
    pub fn log_on(mut self, disk: &str, name: &str) -> Start {
        let disk = self.folder.path().join(disk);
        self.confinement.stderr(&disk.join(name));
        self.log = Some(Logged { disk, name: name.to_owned() });
        self
    }

    /// Makes standard output a pipe whose reader the test controls.
    #[must_use]
    pub fn piped_stdout(mut self) -> Start {
        self.stdout = Some(Stdio::piped());
        self
    }

    /// Starts it in that control group.
    #[must_use]
    pub fn group(mut self, group: &Cgroup) -> Start {
        self.confinement.group(group);
        self
    }

    /// Sets its soft and its hard limit of open files.
    #[must_use]
    pub fn open_files(mut self, soft: u64, hard: u64) -> Start {
        self.open_files = Some((soft, hard));
        self
    }

    /// Starts it through a shell that runs this text, which must end with `exec "$@"` and its
    /// redirections.
    #[must_use]
    pub fn through(mut self, shell: &str) -> Start {
        self.shell = Some(shell.to_owned());
        self
    }

    /// Redirects standard output.
    #[must_use]
    pub fn stdout_to(mut self, stdout: impl Into<Stdio>) -> Start {
        self.stdout = Some(stdout.into());
        self
    }

    /// Starts it with that standard error, which the test kit does not read. Waits until its status
    /// reports that it is ready.
    pub fn start_unheard(self, stderr: impl Into<Stdio>) -> Server {
        let (mut process, folder) = self.spawn(stderr.into());
        let control = folder.path().join("control.sock");
        let address = eventually("a server that is ready", || {
            if let Some(status) = process.ended() {
                panic!("the server ended ({status})");
            }
            let status = ask_status(&control).ok()?;
            let workers = status["workers"].as_array()?;
            let is_ready = !workers.is_empty() && workers.iter().all(|w| w["state"] == "idle");
            is_ready.then(|| status["listen"][0].as_str()?.parse().ok())?
        });
        Server { process, heir: Heir::default(), stdout: None, log: None, address, folder }
    }

    /// Starts it as a service manager does that has opened this socket.
    #[must_use]
    pub fn inherit(mut self, listener: &TcpListener) -> Start {
        self.inherited = Some(listener.try_clone().expect("a descriptor"));
        self.through("LISTEN_PID=$$ exec \"$@\"")
    }

    /// Omits the flag that lets it run as root if the tests do.
    #[must_use]
    pub fn without_root(mut self) -> Start {
        self.drops_root = true;
        self
    }

    /// Starts it and waits until it is ready.
    pub fn start(self) -> Server {
        let logs = self.log.clone();
        let (mut process, folder) = self.spawn(Stdio::piped());
        let log_file = logs.map(|logs| (Disk::of(process.pid(), &logs.disk), logs.name));
        let address = eventually("the server's first answer", || {
            let log = logged(&process, log_file.as_ref());
            if let Some(status) = process.ended() {
                panic!("the server ended ({status}); its log:\n{log}");
            }
            let (_, rest) = log.split_once("listening on http://")?;
            rest.split_whitespace().next()?.parse().ok()
        });
        let stdout = process.take_stdout();
        Server { process, heir: Heir::default(), stdout, log: log_file, address, folder }
    }

    /// Its folder, as [`Server::folder`].
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it. Returns the exit code if it refuses to serve (else `None`), and its log so far.
    pub fn ended(self) -> (Option<i32>, String) {
        let (mut process, _folder) = self.spawn(Stdio::piped());
        let code = eventually("the server's end, or its first answer", || match process.ended() {
            // The log's reader may be late.
            Some(status) => (!process.log().is_empty()).then_some(status.code()),
            None => process.log().contains("listening on http://").then_some(None),
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        (code, process.log())
    }

    /// Starts it, expects it to refuse, and returns exit code and log.
    pub fn refuse(self) -> (Option<i32>, String) {
        let (mut process, _folder) = self.spawn(Stdio::piped());
        let code = process.wait().code();
        (code, process.whole_log())
    }

    /// Starts it and kills its main process after the time `after`, ready or not. Returns its
    /// folder, which is in the command lines of all its processes.
    pub fn perish(self, after: std::time::Duration) -> TempDir {
        let (mut process, folder) = self.spawn(Stdio::piped());
        std::thread::sleep(after);
        process.signal(libc::SIGKILL);
        process.wait();
        folder
    }

    fn spawn(self, stderr: Stdio) -> (Process, TempDir) {
        let config = self.folder.path().join("samovar.toml");
        std::fs::write(&config, &self.config).expect("a configuration");
        let stdout = std::fs::File::create(self.folder.path().join("stdout")).expect("a file");
        let stdout = self.stdout.unwrap_or_else(|| Stdio::from(stdout));
        let mut command = match &self.shell {
            None => Command::new(binary()),
            Some(text) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", text, "sh"]).arg(binary());
                shell
            }
        };
        command.arg(self.command).arg(&self.target).args(["--listen", "127.0.0.1:0"]);
        command.arg("--config").arg(&config);
        command.arg("--control").arg(self.folder.path().join("control.sock"));
        if self.shared_ini {
            for (key, value) in ini(self.folder.path()) {
                command.args(["--php", &format!("{key}={value}")]);
            }
        }
        if is_root() && !self.drops_root {
            // Tests in a container usually run as root.
            command.arg("--allow-root");
        }
        if self.relink == Relink::No && !self.args.iter().any(|arg| arg == "--relink") {
            command.args(["--relink", "false"]);
        }
        if front_threads() > 1 && !self.args.iter().any(|arg| arg == "--front-threads") {
            command.args(["--front-threads", &front_threads().to_string()]);
        }
        command.args(&self.args).stdout(stdout);
        // As php-fpm with clear_env: $_SERVER must not depend on the user who runs the tests.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env(family::RUN, family::run()).env(family::SERVER, self.folder.path());
        // Most tests of the admin listener read its pages as scrapers without a token.
        command.env("SAMOVAR_ADMIN_TOKEN", "none");
        command.envs(self.env);
        if let Some(listener) = self.inherited {
            command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "samovar.socket");
            kernel::hand_over(&mut command, listener);
        }
        if let Some(folder) = &self.inside {
            command.current_dir(folder).env("PWD", folder);
        }
        if let Some(user) = self.user {
            for below in ["", "sessions", "uploads", "samovar.toml", "stdout"] {
                let path = self.folder.path().join(below);
                std::os::unix::fs::chown(path, Some(user), Some(user)).expect("we are root");
            }
            command.uid(user).gid(user);
        }
        if let Some((soft, hard)) = self.open_files {
            kernel::limit_open_files(&mut command, soft, hard);
        }
        if self.old_kernel {
            kernel::forget_pagemap_scan(&mut command);
        }
        self.confinement.apply(&mut command);
        (Process::start_with_stderr("samovar", &mut command, stderr), self.folder)
    }
}
