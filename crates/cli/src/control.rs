//! The control socket: `samovar status`, `samovar reload` and `samovar stop` ask here.
//!
//! One request is one line (`status`, `reload` or `stop`), the answer is one line of JSON; `reload`'s comes when it has
//! ended. The socket's file has mode 0600: who may write to it may stop the server.

use crate::reload::Reloader;
use anyhow::{Context, Result, bail};
use samovar_front::FrontHandle;
use samovar_ring::{Standing, WorkerState};
use samovar_supervisor::{Command, ConsoleLine, Handle, Report};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest request line.
const LINE_BYTES_MAX: u64 = 64;
/// A client that says nothing for this long is let go: the socket serves one at a time.
const CLIENT_LIMIT: Duration = Duration::from_secs(2);
/// How long `status` and `stop` wait for an answer.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The JSON of `samovar status`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) uptime_seconds: f64,
    pub(crate) listen: Vec<String>,
    pub(crate) draining: bool,
    pub(crate) generation: u64,
    /// Another generation boots beside the one that serves.
    #[serde(default)]
    pub(crate) reloading: bool,
    pub(crate) queue_depth: u64,
    pub(crate) in_flight: u64,
    pub(crate) connections: u64,
    pub(crate) requests_total: u64,
    pub(crate) responses_5xx_total: u64,
    pub(crate) rejected_total: u64,
    pub(crate) timeouts_total: u64,
    pub(crate) retries_total: u64,
    pub(crate) worker_restarts_total: u64,
    /// `null` while no application has been booted ahead.
    pub(crate) image: Option<Image>,
    pub(crate) workers: Vec<Worker>,
    /// Console workers (`[[worker]]`).
    #[serde(default)]
    pub(crate) consoles: Vec<Console>,
}

/// What the application's boot came to, and what returning to it costs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Image {
    pub(crate) mode: String,
    pub(crate) bytes: u64,
    pub(crate) regions: u64,
    pub(crate) shared: bool,
    pub(crate) boot_ms: f64,
    /// Of the worker with most.
    pub(crate) hot_pages: u32,
    pub(crate) rollbacks_total: u64,
    pub(crate) rollback_us_p50: f64,
    pub(crate) rollback_us_p99: f64,
    pub(crate) refork_total: u64,
    pub(crate) refork_reasons: BTreeMap<String, u64>,
    pub(crate) findings: Vec<Finding>,
}

/// What stands against sharing the booted application or rolling it back.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) kind: String,
    pub(crate) action: String,
    pub(crate) what: String,
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub(crate) advice: String,
}

/// One worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Worker {
    pub(crate) pid: i32,
    pub(crate) state: String,
    pub(crate) model: String,
    pub(crate) requests: u64,
    pub(crate) rollbacks: u64,
    pub(crate) hot_pages: u32,
    pub(crate) rss_bytes: u64,
    pub(crate) age_seconds: f64,
    #[serde(default)]
    pub(crate) generation: u64,
}

/// The JSON of `samovar reload`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReloadAnswer {
    /// The one that serves now; 0: there is no new one.
    pub(crate) generation: u64,
    pub(crate) milliseconds: u64,
    /// Keys of settings that have changed and only a restart can change.
    pub(crate) needs_restart: Vec<String>,
    /// Why there is no new generation.
    pub(crate) error: Option<String>,
}

impl ReloadAnswer {
    pub(crate) fn refused(why: String) -> ReloadAnswer {
        ReloadAnswer { error: Some(why), ..ReloadAnswer::default() }
    }
}

/// One console worker's place.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Console {
    pub(crate) name: String,
    /// 0: there is no process.
    pub(crate) pid: i32,
    pub(crate) state: String,
    pub(crate) restarts: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) age_seconds: f64,
}

/// What the server's side needs to answer.
pub(crate) struct Server {
    pub(crate) started: std::time::Instant,
    pub(crate) listen: Vec<String>,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
    pub(crate) reloader: Reloader,
}

/// A bound socket, whose file is removed in the end.
pub(crate) struct Socket {
    listener: UnixListener,
    pub(crate) path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Socket {
    /// Binds `path`; a socket that a dead server left there is replaced, a living server's is not.
    pub(crate) fn bind(path: &Path) -> Result<Socket> {
        let what = || format!("cannot open the control socket `{}`", path.display());
        if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                bail!(
                    "{}: another server answers there\nhint: `samovar stop --control {}`, or choose another --control",
                    what(),
                    path.display()
                );
            }
            std::fs::remove_file(path).with_context(what)?;
        }
        let hint = "hint: --control SOCKET must name a file in a folder that exists and is yours";
        let listener =
            UnixListener::bind(path).map_err(|e| anyhow::anyhow!("{}: {e}\n{hint}", what()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .with_context(what)?;
        Ok(Socket { listener, path: path.to_owned() })
    }

    /// Answers clients one after another, on a thread of its own, for the rest of the process's life.
    pub(crate) fn serve(&self, server: Server) -> Result<()> {
        let listener = self.listener.try_clone()?;
        let answer = move || {
            for client in listener.incoming().flatten() {
                if let Err(error) = server.answer(client) {
                    tracing::debug!(%error, "a client of the control socket left early");
                }
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(answer)?;
        Ok(())
    }
}

impl Server {
    fn answer(&self, client: UnixStream) -> Result<()> {
        client.set_read_timeout(Some(CLIENT_LIMIT))?;
        client.set_write_timeout(Some(CLIENT_LIMIT))?;
        let mut line = String::new();
        BufReader::new(&client).take(LINE_BYTES_MAX).read_line(&mut line)?;
        let answer = match line.trim() {
            "status" => serde_json::to_string(&self.status())?,
            "stop" => {
                self.supervisor.send(Command::Draining);
                self.front.drain();
                "{\"stopping\":true}".to_owned()
            }
            "reload" => return self.reload(client),
            _ => "{\"error\":\"unknown command; known are status, reload and stop\"}".to_owned(),
        };
        writeln!(&client, "{answer}")?;
        Ok(())
    }

    /// The answer comes when the reload has ended, from a thread of its own; meanwhile others may ask.
    fn reload(&self, client: UnixStream) -> Result<()> {
        let (tell, told) = std::sync::mpsc::channel();
        self.reloader.begin(move |answer| drop(tell.send(answer)));
        let front = self.front.clone();
        let answer = move || {
            let ended = || ReloadAnswer::refused("the server has ended".to_owned());
            let answer = told.recv().unwrap_or_else(|_| ended());
            front.wait_for_switch(CLIENT_LIMIT);
            let line = serde_json::to_string(&answer).unwrap_or_default();
            if let Err(error) = writeln!(&client, "{line}") {
                tracing::debug!(%error, "a client of the control socket left early");
            }
        };
        std::thread::Builder::new().name("reload".into()).spawn(answer)?;
        Ok(())
    }

    fn status(&self) -> Status {
        let front = self.front.counters();
        let report = self.supervisor.report();
        let worker = |w: &samovar_supervisor::WorkerLine| Worker {
            pid: w.pid,
            state: worker_state(w).to_owned(),
            model: w.model.name().to_owned(),
            requests: w.requests,
            rollbacks: w.rollbacks,
            hot_pages: w.hot_pages,
            rss_bytes: rss_bytes(w.pid),
            age_seconds: seconds(w.age),
            generation: w.generation,
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: seconds(self.started.elapsed()),
            listen: self.listen.clone(),
            draining: !self.front.is_ready(),
            generation: report.generation,
            reloading: report.is_reloading,
            queue_depth: front.queue_depth,
            in_flight: front.in_flight,
            connections: front.connections,
            requests_total: front.requests_total,
            responses_5xx_total: front.responses_5xx_total,
            rejected_total: front.rejected_total,
            timeouts_total: front.timeouts_total,
            retries_total: front.retries_total,
            worker_restarts_total: report.restarts,
            image: image(&report),
            workers: report.workers.iter().map(worker).collect(),
            consoles: report.consoles.iter().map(console).collect(),
        }
    }
}

/// `held`: ready, while another generation serves; `leaving`: it runs its last request.
fn worker_state(worker: &samovar_supervisor::WorkerLine) -> &'static str {
    match (worker.standing, worker.state) {
        (Standing::Hold, WorkerState::Idle) => "held",
        (Standing::Retire, _) => "leaving",
        (_, state) => state.name(),
    }
}

fn console(line: &ConsoleLine) -> Console {
    Console {
        name: line.name.clone(),
        pid: line.pid,
        state: line.state.name().to_owned(),
        restarts: line.restarts,
        rss_bytes: line.rss_bytes,
        age_seconds: seconds(line.age),
    }
}

fn image(report: &Report) -> Option<Image> {
    let finding = |f: &samovar_supervisor::Finding| Finding {
        kind: f.kind.clone(),
        action: f.action.clone(),
        what: f.what.clone(),
        place: f.place.clone(),
        advice: f.advice.clone(),
    };
    let reasons = report.refork_reasons.iter().map(|(reason, n)| ((*reason).to_owned(), *n));
    let us = |ns: u64| (Duration::from_nanos(ns).as_secs_f64() * 1e7).round() / 10.0;
    report.image.as_ref().map(|image| Image {
        mode: image.mode.clone(),
        bytes: image.bytes,
        regions: image.regions,
        shared: image.mode == "shared" || image.mode == "resident",
        boot_ms: (image.boot.as_secs_f64() * 10_000.0).round() / 10.0,
        hot_pages: report.workers.iter().map(|w| w.hot_pages).max().unwrap_or(0),
        rollbacks_total: report.rollbacks.count,
        rollback_us_p50: us(report.rollbacks.p50_ns),
        rollback_us_p99: us(report.rollbacks.p99_ns),
        refork_total: report.reforks,
        refork_reasons: reasons.collect(),
        findings: report.findings.iter().map(finding).collect(),
    })
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Resident memory of a process, shared pages included; 0 when it has just gone.
fn rss_bytes(pid: i32) -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}

/// Asks the server at `path`; returns its line, which comes within `limit`.
pub(crate) fn ask(path: &Path, command: &str, limit: Duration) -> Result<String> {
    let unreachable = |error: std::io::Error| {
        anyhow::anyhow!(
            "cannot reach the server at `{}`: {error}\n\
             hint: is it running? `--control SOCKET` names another",
            path.display()
        )
    };
    let mut server = UnixStream::connect(path).map_err(unreachable)?;
    server.set_read_timeout(Some(limit))?;
    writeln!(server, "{command}").map_err(unreachable)?;
    let mut line = String::new();
    BufReader::new(server).read_line(&mut line).context("the server did not answer in time")?;
    Ok(line)
}
