//! Private servers with and without the preload file: PHP's messages, memory, and CPU time per
//! request in interleaved rounds.

use super::faults::{Faults, faults};
use super::gain::{Gain, Round};
use super::measured::{Measured, Memory};
use super::plan::Plan;
use super::script;
use crate::trial::cost;
use crate::trial::progress::Progress;
use crate::trial::server::{self, Server};
use crate::trial::targets::Target;
use crate::trial::visitor::Visitor;
use crate::trial::{memory, model};
use anyhow::{Context, Result, anyhow, bail};
use samovar_config::Settings;
use samovar_server::companion;
use samovar_supervisor::identity::effective_uid;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Requests per server and round, at least.
const REQUESTS_MIN: usize = 40;
/// Requests to each server before the first round: they fill the caches.
const WARM_UP: usize = 20;
/// Timeout for the first figures about opcache.
const FIGURES_LIMIT: Duration = Duration::from_secs(10);
/// Smallest status of a failure.
const STATUS_FAILED: u16 = 500;
const LOOK_EVERY: Duration = Duration::from_millis(50);
const PRELOAD: &str = "opcache.preload";
const PRELOAD_USER: &str = "opcache.preload_user";

/// Settings that all servers of one run have in common.
pub(super) struct Trial<'a> {
    flags: &'a [OsString],
    output: &'a Path,
    /// Folder of the output.
    pub(super) folder: PathBuf,
    /// The plan's text during the trials, in the same folder, because paths are relative to it.
    draft: PathBuf,
    /// Whether PHP needs `opcache.preload_user`.
    pub(super) needs_user: bool,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        // It does not exist if it became the output.
        let _ = std::fs::remove_file(&self.draft);
    }
}

/// Result of one trial.
pub(super) enum Outcome {
    /// No message; the server runs.
    Clean(Server),
    /// Messages about files.
    Faults(Faults),
}

impl<'a> Trial<'a> {
    pub(super) fn new(flags: &'a [OsString], settings: &Settings, output: &'a Path) -> Self {
        // PHP's `__DIR__` and the names of included files have no links in them.
        let folder = output.parent().unwrap_or(Path::new("/"));
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let draft = folder.join(format!(".samovar-preload-{}.php", std::process::id()));
        let needs_user = effective_uid() == 0
            && settings.user.is_none()
            && !settings.php.contains_key(PRELOAD_USER);
        Trial { flags, output, folder, draft, needs_user }
    }

    /// Starts the server that records the files of all requests.
    pub(super) fn collector(&self) -> Result<Server> {
        let every = format!("--{}=1", companion::LOADS_EVERY_FLAG).into();
        self.scripts(&[every])
    }

    /// Starts a server that records nothing.
    pub(super) fn warmer(&self) -> Result<Server> {
        self.scripts(&[])
    }

    /// Starts a server that runs whole scripts.
    fn scripts(&self, more: &[OsString]) -> Result<Server> {
        let scripts = ["--disable-checkpoint=true".into(), php(PRELOAD, "")];
        Server::start("preload-collect", self.flags, 1, &[&scripts[..], more].concat())
    }

    /// Starts a server with the plan's preload file.
    pub(super) fn run(&self, plan: &Plan) -> Result<Outcome> {
        let text = script::text(plan, &self.folder, &[]);
        self.write_draft(&text)
            .with_context(|| format!("cannot write `{}`", self.draft.display()))?;
        let mut more = vec![php(PRELOAD, &self.draft.to_string_lossy())];
        if self.needs_user {
            more.push(php(PRELOAD_USER, "root"));
        }
        let started = Server::start("preload-after", self.flags, 1, &more);
        let files: HashSet<&str> = plan.files.iter().map(|chosen| &*chosen.file).collect();
        let log = match &started {
            Ok(server) => server.log(),
            Err(error) => format!("{error:#}").lines().map(str::to_owned).collect(),
        };
        let found = faults(log.iter().map(String::as_str), &files);
        match started {
            _ if !found.files.is_empty() => Ok(Outcome::Faults(found)),
            Err(error) => Err(error.context("the server does not start with the preload file")),
            Ok(_) if !found.others.is_empty() => {
                bail!("PHP warns at the start: {}", found.others.join("; "))
            }
            Ok(server) => Ok(Outcome::Clean(server)),
        }
    }

    /// Starts a server with these settings.
    pub(super) fn with(&self, more: &[OsString]) -> Result<Server> {
        Server::start("preload-after", self.flags, 1, more)
    }

    /// Compares the server with one without its changes.
    pub(super) fn measure(
        &self,
        after: &Server,
        (targets, rounds_max): (&[Target], u32),
        progress: &mut Progress,
    ) -> Result<Measured> {
        let before = Server::start("preload-before", self.flags, 1, &[php(PRELOAD, "")])?;
        for server in [&before, after] {
            requests(server, targets, WARM_UP)?;
            model::settle(server)?;
            requests(server, targets, WARM_UP)?;
        }
        same_statuses(&before, after, targets)?;
        let mut rounds = Vec::new();
        for round in 0..rounds_max {
            let (done, of) = (u64::from(round), u64::from(rounds_max));
            progress.say_with_rest(done, of, || format!("round {} of {of}", round + 1));
            // The order changes, so that a drift of the machine's speed affects both alike.
            let (before_us, after_us) = if round % 2 == 0 {
                let before_us = cpu_us(&before, targets)?;
                (before_us, cpu_us(after, targets)?)
            } else {
                let after_us = cpu_us(after, targets)?;
                (cpu_us(&before, targets)?, after_us)
            };
            rounds.push(Round { before_us, after_us });
        }
        Ok(Measured {
            gain: Gain::of(&rounds),
            rounds: rounds_max,
            before: memory(&before)?,
            after: memory(after)?,
        })
    }

    /// Replaces the draft by a new file, so that no link of another user is followed.
    fn write_draft(&self, text: &str) -> std::io::Result<()> {
        match std::fs::remove_file(&self.draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&self.draft)?;
        // The server may read it as another user, and it contains only paths.
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())
    }

    /// Replaces the output.
    pub(super) fn write(&self, text: &str) -> Result<()> {
        let write = || {
            self.write_draft(text)?;
            std::fs::rename(&self.draft, self.output)
        };
        write().with_context(|| format!("cannot write `{}`", self.output.display()))
    }
}

/// Fails if a URL has a server error only with the changes.
fn same_statuses(before: &Server, after: &Server, targets: &[Target]) -> Result<()> {
    for target in targets {
        let status = |server: &Server| {
            let response = Visitor::default().get(server.address(), target);
            response.map_or(0, |response| response.status)
        };
        let (old, new) = (status(before), status(after));
        let is_failure = |status| status == 0 || status >= STATUS_FAILED;
        if is_failure(new) && !is_failure(old) {
            let log = after.log();
            let message = log.iter().rev().find(|line| line.contains("PHP Fatal error:"));
            bail!(
                "{target} fails with the changes: status {new} instead of {old}{}\n\
                 hint: pass a larger --share, or more URLs",
                message.map_or_else(String::new, |line| format!("; {line}"))
            );
        }
    }
    Ok(())
}

fn php(key: &str, value: &str) -> OsString {
    format!("--php={key}={value}").into()
}

/// Sends requests for all URLs in turn, at least `count`.
fn requests(server: &Server, targets: &[Target], count: usize) -> Result<usize> {
    let rounds = count.div_ceil(targets.len());
    for _ in 0..rounds {
        let mut visitor = Visitor::default();
        for target in targets {
            // A failing URL was reported when the files were collected.
            let _ = visitor.get(server.address(), target);
            server.must_live()?;
        }
    }
    Ok(rounds * targets.len())
}

fn cpu_us(server: &Server, targets: &[Target]) -> Result<f64> {
    let begun = cost::at_rest_ns(server.pid());
    let count = requests(server, targets, REQUESTS_MIN)?;
    let used = cost::at_rest_ns(server.pid()).saturating_sub(begun);
    #[allow(clippy::cast_precision_loss)] // A duration.
    Ok(used as f64 / 1e3 / count as f64)
}

fn memory(server: &Server) -> Result<Memory> {
    let begun = Instant::now();
    let status = loop {
        let status = server.status()?;
        if status.opcache.is_some() || begun.elapsed() > FIGURES_LIMIT {
            break status;
        }
        sleep(LOOK_EVERY);
    };
    let worker = *server::workers(server)?.first().ok_or_else(|| anyhow!("no worker runs"))?;
    Ok(Memory {
        opcache_bytes: status.opcache.map_or(0, |opcache| opcache.used_bytes),
        worker_bytes: memory::private_bytes(worker),
    })
}
