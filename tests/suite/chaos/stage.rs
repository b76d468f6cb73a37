//! A server of tests/apps/chaos with its environment, the good load, and the final checks.

use crate::chaos::load::{LARGE_BYTES, Load, PATIENCE, begin, noise, why};
use crate::chaos::transport::{Between, Transport};
use samovar_testkit::copy::copy_tree;
use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Cgroup, Held, Server, binary, family, kill, workspace};
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const WORKERS: usize = 4;

/// Maximum growth of the front's memory and descriptors between the start and the final check.
const GROWTH_KB_MAX: u64 = 32 * 1024;
const DESCRIPTORS_MORE_MAX: u64 = 16;

/// Small enough to be filled quickly. `temp/` holds the unread data of a dozen slow readers.
const LOG_BYTES: u64 = 4 << 20;
const TEMP_BYTES: u64 = 400 << 20;

/// Lines of the server's log included in a failure report.
const LOG_LINES: usize = 12;

/// Good responses before the first disturbance: caches are warm and memory use has settled.
const WARM: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    Script,
    Resident,
    Checkpoint,
}

impl Model {
    pub(crate) const ALL: [Model; 3] = [Model::Script, Model::Resident, Model::Checkpoint];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Model::Script => "script",
            Model::Resident => "resident",
            Model::Checkpoint => "checkpoint",
        }
    }
}

/// Destination of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sink {
    #[default]
    Pipe,
    /// A file on `logs/`.
    Disk,
}

/// Environment of a server. Kinds request the parts that they need.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// `logs/`, `temp/` and the root's `dated/` are separate file systems.
    pub(crate) disks: bool,
    /// Destination of standard error.
    pub(crate) log: Sink,
    /// Destination of the access log; standard output if it is a pipe.
    pub(crate) access: Sink,
    pub(crate) pids: Option<Cgroup>,
    pub(crate) memory: Option<Cgroup>,
    pub(crate) descriptors_max: Option<u64>,
    /// The library that changes the reported time.
    pub(crate) clock: Option<PathBuf>,
    pub(crate) args: Vec<String>,
    /// Transport between the good clients and the server.
    pub(crate) transport: Transport,
    /// No file is requested or uploaded until a kind permits it. Until then the server has created
    /// no thread for files.
    pub(crate) files_later: bool,
}

impl Surroundings {
    pub(crate) fn arg(&mut self, name: &str, value: &str) {
        if !self.args.iter().any(|arg| arg == name) {
            self.args.extend([name.to_owned(), value.to_owned()]);
        }
    }
}

pub(crate) struct Stage {
    pub(crate) model: Model,
    pub(crate) server: Server,
    pub(crate) around: Surroundings,
    /// Other kinds of disturbances run at the same time.
    pub(crate) mixed: bool,
    pub(crate) load: Load,
    pub(crate) app: TempDir,
    /// Proxy between the good clients and the server. Ended before the final check.
    between: Option<Between>,
    began: Instant,
    memory_kb: u64,
    descriptors: u64,
    findings: Mutex<Vec<String>>,
    /// Processes stopped by a running disturbance; other disturbances must not continue them.
    stopped: Mutex<Vec<i32>>,
}

/// A stopped process. No other disturbance stops or continues it until this value is dropped.
pub(crate) struct Halt<'a> {
    stage: &'a Stage,
    pid: i32,
}

impl Halt<'_> {
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }
}

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        self.stage.stopped_now().retain(|pid| *pid != self.pid);
    }
}

impl Stage {
    pub(crate) fn set(model: Model, around: Surroundings, mixed: bool) -> Stage {
        let (app, large) = application(model);
        let mut start = Server::at(app.path().join("public"))
            .relinked()
            .workers(WORKERS)
            // Detects a template that is stopped before it has started PHP.
            .args(["--boot-timeout", "10s"])
            // Detects a worker that is stopped in the middle of a request, within the load's read
            // timeout.
            .args(["--response-timeout", "12s"])
            // Detects a worker that continues after its response.
            .args(["--post-response-timeout", "12s"])
            .define("error_log", "")
            .define("post_max_size", "8M")
            .define("upload_max_filesize", "8M");
        if around.disks {
            start = start.disk("logs", LOG_BYTES).disk("temp", TEMP_BYTES);
            let temp = start.folder().join("temp").display().to_string();
            start = start.args(["--temp-dir", &temp]);
            start = start.disk_at(&app.path().join("public/dated"), 1 << 20);
        }
        let access = start.folder().join("logs/access").display().to_string();
        start =
            start.args(["--access-log", if around.access == Sink::Disk { &access } else { "-" }]);
        if around.access == Sink::Pipe {
            start = start.piped_stdout();
        }
        if around.log == Sink::Disk {
            start = start.log_on("logs", "server");
        }
        for group in around.pids.iter().chain(&around.memory) {
            start = start.group(group);
        }
        if let Some(most) = around.descriptors_max {
            start = start.open_files(most, most);
        }
        if let Some(library) = &around.clock {
            let file = app.path().join("clock").display().to_string();
            std::fs::write(&file, [0; 16]).expect("our own folder");
            start = start.env("LD_PRELOAD", &library.display().to_string());
            start = start.env("CHAOS_CLOCK", &file);
        }
        for pair in around.args.chunks(2) {
            start = start.args([pair[0].as_str(), pair[1].as_str()]);
        }
        let transport = around.transport;
        let server = transport.prepare(start).start();
        let between = transport.open(&server, &app.path().join("public"));
        let load = Load::start(between.address(), large, !around.files_later);
        let mut stage = Stage {
            model,
            server,
            around,
            mixed,
            load,
            app,
            between: Some(between),
            began: Instant::now(),
            memory_kb: 0,
            descriptors: 0,
            findings: Mutex::default(),
            stopped: Mutex::default(),
        };
        stage.progress(WARM, "before anything was disturbed");
        stage.memory_kb = family::memory_kb(stage.server.pid()).unwrap_or(0);
        stage.descriptors = stage.server.held().descriptors;
        stage
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Prints an action on the server; shown when the test fails.
    pub(crate) fn did(&self, what: &str) {
        println!("{:7.3} {what}", self.began.elapsed().as_secs_f64());
    }

    pub(crate) fn find(&self, what: String) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        self.did(&format!("FOUND: {what}"));
        // A repeated finding adds nothing.
        if !findings.contains(&what) {
            findings.push(what);
        }
    }

    pub(crate) fn has_found(&self) -> bool {
        !self.findings.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn stopped_now(&self) -> MutexGuard<'_, Vec<i32>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a process before it is stopped. Returns `None` if another disturbance has stopped
    /// it.
    pub(crate) fn stops(&self, pid: i32) -> Option<Halt<'_>> {
        let mut stopped = self.stopped_now();
        if stopped.contains(&pid) {
            return None;
        }
        stopped.push(pid);
        Some(Halt { stage: self, pid })
    }

    /// Short after the first finding: a broken server is not waited for repeatedly.
    fn patience(&self) -> Duration {
        if self.has_found() { PATIENCE / 8 } else { PATIENCE }
    }

    pub(crate) fn is_alive(&self) -> bool {
        family::is_alive(self.server.pid())
    }

    /// Checks that the good clients make progress: waits for `responses` more responses of scripts.
    pub(crate) fn progress(&self, responses: u64, during: &str) {
        let served = || self.load.shared.served.load(std::sync::atomic::Ordering::SeqCst);
        let (before, start, patience) = (served(), Instant::now(), self.patience());
        while served() < before + responses {
            if !self.is_alive() {
                return;
            }
            if start.elapsed() > patience {
                let got = served() - before;
                self.find(format!(
                    "starved: {got} of {responses} answers in {patience:?} {during}"
                ));
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until `condition` holds; a timeout is a finding.
    pub(crate) fn wait_for(&self, what: &str, condition: impl FnMut() -> bool) -> bool {
        self.wait_within(self.patience(), what, condition)
    }

    pub(crate) fn wait_within(
        &self,
        patience: Duration,
        what: &str,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        let start = Instant::now();
        while !condition() {
            if !self.is_alive() {
                return false;
            }
            if start.elapsed() > patience {
                self.find(format!("did not happen in {patience:?}: {what}"));
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Sends a request on a separate connection.
    pub(crate) fn poke(&self, request: &Request) -> io::Result<Response> {
        Client::try_connect(self.address(), self.patience())?.try_request(request)
    }

    /// Sends a request that fails; a response must arrive all the same.
    pub(crate) fn provoke(&self, request: &Request) {
        if let Err(error) = self.poke(request)
            && self.is_alive()
        {
            let text = String::from_utf8_lossy(&request.bytes()).into_owned();
            let line = text.lines().next().unwrap_or_default();
            self.find(format!("no answer to `{line}`: {}", why(&error)));
        }
    }

    /// Sends bytes to the control socket and returns the response line.
    pub(crate) fn control(&self, words: &[u8], patience: Duration) -> io::Result<String> {
        let mut stream = UnixStream::connect(self.server.control())?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(words)?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line)
    }

    pub(crate) fn status(&self) -> Option<serde_json::Value> {
        let line = self.control(b"status\n", Duration::from_secs(2)).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Runs `samovar reload`. If it fails, returns its standard error.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let mut command = Command::new(binary());
        command.args(["reload", "--control"]).arg(self.server.control());
        let output = command.output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    }

    /// Processes of the templates; two during a reload.
    pub(crate) fn templates(&self) -> Vec<i32> {
        family::children_of(self.server.pid())
    }

    pub(crate) fn images(&self) -> Vec<i32> {
        if self.model == Model::Script {
            return Vec::new();
        }
        self.templates().into_iter().flat_map(family::children_of).collect()
    }

    pub(crate) fn workers(&self) -> Vec<i32> {
        let parents = if self.model == Model::Script { self.templates() } else { self.images() };
        parents.into_iter().flat_map(family::children_of).collect()
    }

    /// Checks the log for panics; also called before the log is truncated.
    pub(crate) fn look_at_log(&self) {
        if let Some(bug) = bug_in(&self.server.log()) {
            self.find(bug);
        }
    }

    /// Waits until all workers are ready again.
    pub(crate) fn settled(&self) -> bool {
        self.wait_for("all workers are ready", || {
            self.status().is_some_and(|status| {
                let workers = status["workers"].as_array().map_or(0, Vec::len);
                workers == WORKERS && status["reloading"] == false
            })
        })
    }

    /// Ends server and load. Returns a summary of the responses, and the findings.
    pub(crate) fn end(mut self) -> (String, Vec<String>) {
        self.did("the end");
        let lived = self.is_alive();
        let (summary, mut found) = {
            let Stage { load, .. } = &mut self;
            let address = load.shared.clone();
            let load = std::mem::replace(load, Load::none(address));
            load.stop()
        };
        // The proxy's connections must not count as open connections of clients.
        self.between = None;
        if lived {
            self.look_for_calm();
        }
        found.extend(self.farewell());
        let findings = std::mem::take(&mut self.findings).into_inner();
        let mut all = findings.unwrap_or_else(PoisonError::into_inner);
        all.extend(found);
        let log = self.server.log();
        all.extend(bug_in(&log));
        if !all.is_empty() {
            let lines: Vec<_> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n    ");
            all.push(format!("(the log's end)\n    {tail}"));
        }
        (summary, all)
    }

    /// Waits until the server has recovered: all workers idle, no slot in use, no connection open,
    /// memory and descriptors as at the start.
    fn look_for_calm(&self) {
        let mut last = String::new();
        let is_calm = |status: &serde_json::Value| {
            let workers = status["workers"].as_array().map_or(&[][..], Vec::as_slice);
            let idle = workers.iter().filter(|worker| worker["state"] == "idle").count();
            idle == WORKERS
                && workers.len() == WORKERS
                && ["in_flight", "queue_depth", "connections"].iter().all(|key| status[key] == 0)
                && status["draining"] == false
                && status["reloading"] == false
        };
        let calm =
            self.wait_for("calm: all workers idle, no slot and no connection in use", || {
                let status = self.status();
                last = format!("{status:?}");
                status.as_ref().is_some_and(is_calm)
            });
        if !calm {
            self.did(&format!("the last status: {last}"));
        }
        for _ in 0..2 * WORKERS {
            self.provoke(&Request::get("/hello?nonce=calm"));
        }
        let pid = self.server.pid();
        let (memory, descriptors) = (self.memory_kb, self.descriptors);
        let is_near = self.wait_for(&format!("memory near the {memory} KB of the start"), || {
            family::memory_kb(pid).is_none_or(|now| now <= memory + GROWTH_KB_MAX)
        });
        if !is_near {
            self.did(&format!("the memory now: {}", family::memory_told(pid)));
        }
        self.wait_for(&format!("descriptors near the {descriptors} of the start"), || {
            let now = self.status().map(|status| Held::of(&status).descriptors);
            now.is_some_and(|now| now <= descriptors + DESCRIPTORS_MORE_MAX)
        });
    }

    /// Sends SIGTERM. The server must exit with 0, and no process of it may be left.
    fn farewell(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let had_ended = self.server.ended();
        self.server.terminate();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.server.ended() {
                break Some(status);
            }
            if start.elapsed() > PATIENCE {
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        match (had_ended, status) {
            (Some(status), _) => found.push(format!("the server had ended: {status}")),
            (None, Some(status)) if !status.success() => {
                found.push(format!("the server ended with {status} after SIGTERM"));
            }
            (None, None) => {
                found.push(format!("the server did not end in {PATIENCE:?} after SIGTERM"));
                kill(self.server.pid(), 9);
            }
            _ => {}
        }
        let (name, value) = self.server.marker();
        if let Err(left) = family::gone(name, &value) {
            for one in left {
                found.push(format!("left: {one}"));
                kill(one.pid, 9);
            }
        }
        found
    }
}

/// Finds a panic in the log: it costs one request, and is a bug all the same. Lines of PHP have a
/// mark and are skipped.
fn bug_in(log: &str) -> Option<String> {
    let of_server = |line: &&str| !line.contains(" php pid=");
    let is_panic = |line: &&str| line.contains("bug in samovar") || line.contains("panicked at");
    let line = log.lines().filter(of_server).find(is_panic)?;
    Some(format!("a panic: {}", &line[..line.len().min(300)]))
}

/// Short description of a response or an error.
pub(crate) fn told(response: &io::Result<Response>) -> String {
    match response {
        Ok(response) => {
            let whole = if response.complete { "" } else { ", cut" };
            format!("{}{whole} {:?}", response.status, begin(&response.body))
        }
        Err(error) => why(error),
    }
}

/// A copy of the application with the model's front controller, and its large file.
fn application(model: Model) -> (TempDir, Arc<Vec<u8>>) {
    let app = TempDir::with_prefix("samovar-chaos-").expect("a temporary folder");
    let from = workspace().join("tests/apps/chaos");
    copy_tree(&from.join("app"), app.path());
    let public = app.path().join("public");
    let controller = from.join(format!("{}.php", model.name()));
    std::fs::copy(controller, public.join("index.php")).expect("our own folder");
    let large = noise(LARGE_BYTES, 7);
    std::fs::write(public.join("large.bin"), &large).expect("our own folder");
    (app, Arc::new(large))
}
