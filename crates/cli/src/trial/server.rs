//! A server that a command starts for itself, with the application's settings; it is queried and
//! stopped by the command.

use crate::control_client;
use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use rustix::process::{Pid, Signal, kill_process};
use samovar_config::table::SETTINGS;
use samovar_server::SERVICE_VARIABLES;
use samovar_server::companion;
use samovar_supervisor::secrets;
use samovar_wire::{Request, Status};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Settings that each of these servers has its own values of.
const OWN_FLAGS: [&str; 6] =
    ["listen", "control", "workers", "access-log", "access-log-format", "disable-checkpoint"];
/// Timeout for the start: applications with cold caches are slow.
const START_LIMIT: Duration = Duration::from_mins(5);
const STOP_LIMIT: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Number of log lines that are kept.
const LOG_LINES_MAX: usize = 2_000;
/// Number of log lines in an error.
const LOG_LINES_SHOWN: usize = 30;
const LOG_LINE_BYTES_MAX: usize = 2000;
/// Maximum number of unread addresses; the ready message contains one.
const NEWS_MAX: usize = 16;

/// One server, a child process of this one.
pub(crate) struct Server {
    child: RefCell<Child>,
    pid: u32,
    address: SocketAddr,
    control: PathBuf,
    log: Log,
}

/// Returns the settings' flags as typed, without those that each server has its own values of.
pub(crate) fn flags(matches: &ArgMatches) -> Vec<OsString> {
    let mut flags: Vec<OsString> = Vec::new();
    if let Some(files) = matches.get_many::<PathBuf>("config") {
        flags.extend(files.flat_map(|file| ["--config".into(), file.clone().into()]));
    }
    for setting in SETTINGS.iter().filter(|s| !OWN_FLAGS.contains(&s.flag)) {
        for value in matches.get_many::<String>(setting.flag).into_iter().flatten() {
            let flag = format!("--{}={value}", setting.flag);
            flags.push(if setting.positional { value.into() } else { flag.into() });
        }
    }
    flags
}

/// Last lines of a server's log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<VecDeque<String>>>);

/// Returns the ids of the worker processes.
pub(crate) fn workers(server: &Server) -> Result<Vec<i32>> {
    Ok(server.status()?.workers.iter().map(|worker| worker.pid).collect())
}

impl Server {
    /// Starts a server. `name` distinguishes the servers of one command; `more` are flags to
    /// append.
    pub(crate) fn start(
        name: &str,
        flags: &[OsString],
        workers: usize,
        more: &[OsString],
    ) -> Result<Server> {
        Server::start_with(name, flags, workers, more, Stdio::null()).map(|(server, _)| server)
    }

    /// Starts a server that writes a line of JSON for each request to the returned pipe.
    pub(crate) fn start_measured(
        name: &str,
        flags: &[OsString],
        workers: usize,
        more: &[OsString],
    ) -> Result<(Server, ChildStdout)> {
        let flag = format!("--{}", companion::REQUESTS_FLAG).into();
        let more = [more, &[flag]].concat();
        let (server, output) = Server::start_with(name, flags, workers, &more, Stdio::piped())?;
        Ok((server, output.context("a pipe was requested")?))
    }

    fn start_with(
        name: &str,
        flags: &[OsString],
        workers: usize,
        more: &[OsString],
        output: Stdio,
    ) -> Result<(Server, Option<ChildStdout>)> {
        let own = std::env::current_exe().context("cannot find the path of this program")?;
        let parent = std::process::id();
        let control = std::env::temp_dir().join(format!("samovar-{parent}-{name}.sock"));
        let mut command = Command::new(own);
        command.envs(secrets::variables().iter().map(|(name, value)| (name, value)));
        command.arg("serve").args(flags);
        command.args(["--listen", "127.0.0.1:0", "--access-log", "off"]);
        command.arg("--workers").arg(workers.to_string());
        command.arg("--control").arg(&control).args(more);
        command.arg(format!("--{}", companion::FLAG)).arg(parent.to_string());
        for name in SERVICE_VARIABLES {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start a server")?;
        let (log, requests) = (Log::default(), child.stdout.take());
        let said = child.stderr.take().map(|stderr| log.follow(stderr));
        let pid = child.id();
        let mut server = Server {
            child: RefCell::new(child),
            pid,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            control,
            log,
        };
        let said = said.context("a pipe was asked for")??;
        server.address = server.ready(&said)?;
        Ok((server, requests))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the path of the control socket.
    pub(crate) fn control(&self) -> &Path {
        &self.control
    }

    /// Returns the latest lines of the log.
    pub(crate) fn log(&self) -> Vec<String> {
        let lines = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns an error with the last log lines if the server has ended.
    pub(crate) fn must_live(&self) -> Result<()> {
        match self.child.borrow_mut().try_wait() {
            Ok(None) => Ok(()),
            _ => Err(lost("a server started by this command has exited", &self.log.text())),
        }
    }

    /// Queries the server's status.
    pub(crate) fn status(&self) -> Result<Status> {
        let line =
            control_client::ask(&self.control, &Request::Status, control_client::RESPONSE_LIMIT)?;
        serde_json::from_str(&line).context("cannot parse the server's response")
    }

    /// Returns the address from the ready message.
    fn ready(&self, said: &Receiver<SocketAddr>) -> Result<SocketAddr> {
        match said.recv_timeout(START_LIMIT) {
            Ok(address) => Ok(address),
            Err(RecvTimeoutError::Timeout) => bail!(lost(
                &format!("the application did not boot within {} s", START_LIMIT.as_secs()),
                &self.log.text()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                bail!(lost("the server failed to start", &self.log.text()))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let asked =
            Pid::from_raw(self.pid.cast_signed()).map(|pid| kill_process(pid, Signal::TERM));
        let begun = Instant::now();
        while asked.is_some() && begun.elapsed() < STOP_LIMIT {
            match child.try_wait() {
                Ok(None) => sleep(LOOK_EVERY),
                _ => break,
            }
        }
        // An ended server is not killed again; its own processes end with it.
        let _ = child.kill();
        let _ = child.wait();
        remove_socket(&self.control);
    }
}

/// Returns an error for a server that has ended, with its last log lines.
fn lost(problem: &str, log: &str) -> anyhow::Error {
    match log.trim() {
        "" => anyhow!("{problem}"),
        log => anyhow!("{problem}; its log:\n{log}"),
    }
}

/// Removes the socket's file, which a killed server leaves.
fn remove_socket(path: &Path) {
    let _ = std::fs::remove_file(path);
}

impl Log {
    /// Reads the log to its end on a separate thread, so that the server never blocks on it.
    fn follow(&self, stderr: ChildStderr) -> Result<Receiver<SocketAddr>> {
        let (tell, told) = sync_channel(NEWS_MAX);
        let log = self.clone();
        let read = move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line[..line.len().min(LOG_LINE_BYTES_MAX)]);
                if let Some(address) = address_in(&line) {
                    // Only the first address is used.
                    let _ = tell.try_send(address);
                }
                log.add(control_client::printable(&line));
            }
        };
        std::thread::Builder::new().name("log".into()).spawn(read)?;
        Ok(told)
    }

    fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LOG_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = lines.len().saturating_sub(LOG_LINES_SHOWN);
        lines.iter().skip(skipped).map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on http://")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_parsed_from_ready_message() {
        let line = "samovar: listening on http://127.0.0.1:4242 (control /tmp/a.sock)";
        assert_eq!(address_in(line), Some(SocketAddr::from(([127, 0, 0, 1], 4242))));
        assert_eq!(address_in("accepting connections"), None);
        assert_eq!(address_in("listening on http://somewhere"), None);
    }
}
