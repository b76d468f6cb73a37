//! `samovar upgrade` and SIGRTMIN in the running server: starts a new server, hands over the
//! listeners, waits for its boot, and lets it take over.
//!
//! Nothing changes in this server until the new one has reported that it is ready, and then that it
//! serves. An earlier failure only costs a process. After the order to take over, the claim decides
//! which of the two serves.

use crate::companion;
use crate::control::server::UpgradeDone;
use crate::handover::claim::Claim;
use crate::handover::messages::{Reply, ServingEnd, Word};
use crate::handover::predecessor::Predecessor;
use crate::service::ServiceState;
use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Rlimit;
use samovar_channel::Heard;
use samovar_front::listeners::Handed;
use samovar_supervisor::secrets;
use samovar_supervisor::successor::{self, Successor, SuccessorCommand};
use samovar_wire::{UpgradeOptions, UpgradeResponse};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Additional time for the new server after `timeouts.boot`; at that limit the new server itself
/// reports that it is late.
const MARGIN: Duration = Duration::from_secs(5);
/// Timeout for the new server to begin after the order. After it, this server tries to take the
/// claim back.
const GO_LIMIT: Duration = Duration::from_secs(10);
/// Interval at which this server checks whether it must stop meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// Timeout for an abandoned new server to end.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// Maximum time that this server's end waits for that.
const END_LIMIT: Duration = Duration::from_secs(4);
/// Timeout for the exit status after the new server has ended.
const STATUS_LIMIT: Duration = Duration::from_secs(1);
/// Maximum bytes kept of the new server's last output.
const WORDS_BYTES_MAX: usize = 2_048;
/// Maximum number of remembered exits of children.
const ENDINGS_MAX: usize = 8;
/// Maximum number of lines of its last output that are shown.
const WORDS_LINES_MAX: usize = 4;
/// Capacity of the queue of upgrades. A further upgrade is rejected with an error.
const JOBS_MAX: usize = 1;
/// Timeout for the client to read the response before this server may end.
const TELL_LIMIT: Duration = Duration::from_secs(1);

/// Descriptors to hand over in addition to the front's listeners.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) admin: Vec<(String, OwnedFd)>,
    pub(crate) pinba: Vec<(String, OwnedFd)>,
    pub(crate) control: Option<(PathBuf, OwnedFd)>,
}

/// Interface to the other components of this server.
pub(crate) trait Serving: Send + Sync {
    /// Returns the front's listeners.
    fn listeners(&self) -> std::io::Result<Vec<Handed>>;
    /// Returns pools and the labels of their releases, of those that have one.
    fn releases(&self) -> Vec<(String, String)>;
    /// Returns whether the application has booted successfully.
    fn boots(&self) -> bool;
    /// Returns `timeouts.boot`.
    fn boot_limit(&self) -> Duration;
    /// Another server takes over. When the function returns, this server accepts no more input; it
    /// ends when it has finished its requests.
    fn leave(&self);
    /// Makes the supervisor take a turn.
    fn nudge(&self);
    /// Returns the console workers that still run; `None`: more may start.
    fn consoles(&self) -> Option<Vec<(String, usize)>>;
}

/// Exit statuses of children that no other component knows: the supervisor's thread reaps all
/// children.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endings(Arc<Mutex<VecDeque<(i32, i32)>>>);

impl Endings {
    pub(crate) fn put(&self, pid: i32, status: i32) {
        let mut endings = lock(&self.0);
        endings.truncate(ENDINGS_MAX - 1);
        endings.push_front((pid, status));
    }

    fn of(&self, pid: i32) -> Option<i32> {
        lock(&self.0).iter().find(|(its, _)| *its == pid).map(|(_, status)| *status)
    }
}

/// Components of an upgrade.
pub(crate) struct Parts {
    pub(crate) state: ServiceState,
    pub(crate) serving: Box<dyn Serving>,
    pub(crate) inventory: Inventory,
    /// Environment variables that differ for the new server.
    pub(crate) environment: Vec<(String, Option<String>)>,
    pub(crate) open_files: Rlimit,
    pub(crate) endings: Endings,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) wanted: Wanted,
    /// Whether an upgrade is running.
    pub(crate) is_busy: AtomicBool,
    /// Whether this server is ending.
    pub(crate) ends: AtomicBool,
}

type Started = std::io::Result<(Successor, OwnedFd)>;

/// A server to start, and the channel for the result.
pub(crate) type Wanted = Mutex<Option<(SuccessorCommand, Sender<Started>)>>;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values are valid even after a panic of a thread that held a lock.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins upgrades. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Upgrader {
    jobs: SyncSender<(UpgradeOptions, UpgradeDone)>,
    following: Arc<Mutex<Option<Following>>>,
    parts: Arc<Parts>,
}

/// The server that has taken over, while this one finishes its requests.
struct Following {
    channel: ServingEnd,
    told: Option<Word>,
}

impl Upgrader {
    /// Starts the upgrade thread. It must live on: the kernel kills a starting server when the
    /// thread that started it ends.
    pub(crate) fn start(parts: Parts) -> std::io::Result<Upgrader> {
        let (jobs, wanted) = sync_channel::<(UpgradeOptions, UpgradeDone)>(JOBS_MAX);
        let (parts, following) = (Arc::new(parts), Arc::<Mutex<Option<Following>>>::default());
        let upgrader =
            Upgrader { jobs, following: Arc::clone(&following), parts: Arc::clone(&parts) };
        let run = move || {
            for (options, done) in wanted {
                parts.is_busy.store(true, Ordering::Release);
                parts.upgrade(&options, done, &following);
                parts.is_busy.store(false, Ordering::Release);
            }
        };
        std::thread::Builder::new().name("upgrade".to_owned()).spawn(run)?;
        Ok(upgrader)
    }

    /// Begins an upgrade, or reports the reason why it cannot begin. `done` is called once, on any
    /// thread, and must not block.
    pub(crate) fn begin(&self, options: UpgradeOptions, done: UpgradeDone) {
        if let Err(why) = self.parts.begin() {
            return done(UpgradeResponse::refused(why), sync_channel(0).0);
        }
        // Upgrades run one at a time; their thread lives as long as this server.
        if let Err(TrySendError::Full((_, done)) | TrySendError::Disconnected((_, done))) =
            self.jobs.try_send((options, done))
        {
            self.parts.state.has_not_upgraded();
            done(
                UpgradeResponse::refused("another upgrade is in progress".to_owned()),
                sync_channel(0).0,
            );
        }
    }

    /// Abandons a starting server, even a stopped one, for this server's end.
    pub(crate) fn finish(&self) {
        self.parts.ends.store(true, Ordering::Release);
        let begun = Instant::now();
        while self.parts.is_busy.load(Ordering::Acquire) && begun.elapsed() < END_LIMIT {
            std::thread::sleep(LOOK);
        }
    }

    /// Called at each turn of the supervisor, on its thread. Starts a requested server, and reports
    /// the remaining console workers to the server that has taken over.
    pub(crate) fn turn(&self) {
        if let Some((command, tell)) = lock(&self.parts.wanted).take() {
            // The requesting thread is waiting.
            let _ = tell.send(Successor::start(&command));
        }
        let mut following = lock(&self.following);
        let Some(Following { channel, told }) = following.as_mut() else { return };
        let Some(word) = self.parts.serving.consoles().map(|left| Word::consoles(&left)) else {
            return;
        };
        // If the message cannot be sent, it is sent again at the next turn.
        if told.as_ref() != Some(&word) && channel.send_now(&word, None).is_ok() {
            *told = Some(word);
        }
    }
}

impl Parts {
    fn begin(&self) -> Result<(), String> {
        if std::process::id() == 1 {
            return Err("this server is process 1: its exit would end the container\nhint: start \
                        another container, or this one with `--init`"
                .to_owned());
        }
        if companion::is_one() {
            return Err("this server was started by another command, and exits with it".to_owned());
        }
        if let Some(pid) = self.predecessor.as_ref().and_then(Predecessor::pid) {
            return Err(format!(
                "the previous server (process {pid}) still finishes its requests\nhint: try again \
                 after its exit, at the latest after `timeouts.drain`"
            ));
        }
        self.state.begins_upgrade().map_err(str::to_owned)
    }

    fn upgrade(
        &self,
        options: &UpgradeOptions,
        done: UpgradeDone,
        following: &Mutex<Option<Following>>,
    ) {
        let since = Instant::now();
        match self.attempt(options) {
            Err(error) => {
                self.state.has_not_upgraded();
                let why = format!("{error:#}");
                tracing::warn!("upgrade failed, this server keeps serving: {why}");
                done(UpgradeResponse::refused(why), sync_channel(0).0);
            }
            Ok((channel, pid, version)) => {
                let milliseconds = since.elapsed().as_millis().try_into().unwrap_or(0);
                tracing::info!(pid, version, "another server has taken over");
                *lock(following) = Some(Following { channel, told: None });
                // Comes first: a client that learns of the new server must reach that one with its
                // next request.
                self.serving.leave();
                let (until, told) = sync_channel::<()>(0);
                done(UpgradeResponse { pid, version, milliseconds, error: None }, until);
                // This server may have no requests to finish, so its end waits until the client has
                // received the response.
                let _: Result<(), RecvTimeoutError> = told.recv_timeout(TELL_LIMIT);
            }
        }
    }

    /// Returns the channel to the new server, its process id and its version. After an error there
    /// is no new server.
    fn attempt(&self, options: &UpgradeOptions) -> Result<(ServingEnd, i32, String)> {
        let program = program(options.binary.as_deref())?;
        let command = SuccessorCommand {
            program: program.clone(),
            arguments: secrets::arguments(),
            environment: self.environment.clone(),
            open_files: self.open_files,
        };
        let (successor, channel) =
            self.start(command).with_context(|| format!("cannot start `{}`", program.display()))?;
        let mut attempt = Attempt {
            channel: ServingEnd::from(channel),
            successor,
            words: Vec::new(),
            version: String::new(),
            endings: &self.endings,
        };
        match self.carry_out(&mut attempt) {
            Ok(()) => Ok((attempt.channel, attempt.successor.pid, attempt.version)),
            Err(error) => {
                attempt.give_up();
                Err(error)
            }
        }
    }

    /// Starts the process on the supervisor's thread. That thread reaps all children, and a failed
    /// start must be reaped by the thread that tried it.
    fn start(&self, command: SuccessorCommand) -> Started {
        let (tell, told) = channel();
        *lock(&self.wanted) = Some((command, tell));
        self.serving.nudge();
        // Without a supervisor this server is ending.
        told.recv().unwrap_or_else(|_| Err(ErrorKind::BrokenPipe.into()))
    }

    fn carry_out(&self, attempt: &mut Attempt<'_>) -> Result<()> {
        let claim = Claim::new().context("cannot create a pipe")?;
        if let Err(error) = self.hand_over(&attempt.channel, &claim) {
            // The new process ended before it received them.
            return Err(match error.kind() {
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => attempt.ended(),
                _ => anyhow!("cannot hand over the listeners: {error}"),
            });
        }
        let deadline = Instant::now() + self.serving.boot_limit() + MARGIN;
        let is_over = || self.state.is_stopping() || self.ends.load(Ordering::Acquire);
        attempt.ready(deadline, &is_over)?;
        if !self.state.hands_over(attempt.successor.pid) {
            bail!("the server is stopping");
        }
        attempt.channel.send_now(&Word::Go, None).context("the new server does not respond")?;
        self.let_begin(attempt, &claim)
    }

    /// Waits for the new server to begin, after the order. After an error the new server does not
    /// serve, and never will.
    fn let_begin(&self, attempt: &mut Attempt<'_>, claim: &Claim) -> Result<()> {
        if let Some(result) = attempt.took(GO_LIMIT) {
            return result;
        }
        if claim.take() {
            bail!(
                "the new server did not start in time\nhint: check the free memory of the machine"
            );
        }
        let pid = attempt.successor.pid;
        tracing::warn!(pid, "the new server has started, but its confirmation is late");
        // Both servers serve meanwhile. This one may end, because the other one continues.
        while !self.ends.load(Ordering::Acquire) {
            if let Some(result) = attempt.took(LOOK) {
                return result;
            }
        }
        Ok(())
    }

    fn hand_over(&self, to: &ServingEnd, claim: &Claim) -> std::io::Result<()> {
        to.send_now(&Word::Stderr, Some(rustix::stdio::stderr()))?;
        for Handed { name, socket } in self.serving.listeners()? {
            to.send_now(&Word::Listener { name }, Some(socket.as_fd()))?;
        }
        let Inventory { admin, pinba, control } = &self.inventory;
        for (name, socket) in admin {
            to.send_now(&Word::Admin { name: name.clone() }, Some(socket.as_fd()))?;
        }
        for (name, socket) in pinba {
            to.send_now(&Word::Pinba { name: name.clone() }, Some(socket.as_fd()))?;
        }
        if let Some((path, socket)) = control {
            to.send_now(&Word::Control { path: path.clone() }, Some(socket.as_fd()))?;
        }
        for (pool, label) in self.serving.releases() {
            to.send_now(&Word::Release { pool, label }, None)?;
        }
        to.send_now(&Word::Claim, Some(claim.as_fd()))?;
        to.send_now(&Word::Complete { boots: self.serving.boots() }, None)
    }
}

/// A server that is being started.
struct Attempt<'a> {
    channel: ServingEnd,
    successor: Successor,
    /// Its last output before it had its log.
    words: Vec<u8>,
    version: String,
    endings: &'a Endings,
}

impl Attempt<'_> {
    /// Waits until it is ready.
    fn ready(&mut self, deadline: Instant, is_over: &dyn Fn() -> bool) -> Result<()> {
        loop {
            if is_over() {
                bail!("the server is stopping");
            }
            let Some(rest) = deadline.checked_duration_since(Instant::now()) else {
                return Err(self.late());
            };
            if self.has_said(&Reply::Ready, rest.min(LOOK))? {
                return Ok(());
            }
        }
    }

    /// Waits until it serves or has failed, for at most `limit`; `None`: neither happened.
    fn took(&mut self, limit: Duration) -> Option<Result<()>> {
        let deadline = Instant::now() + limit;
        while let Some(rest) = deadline.checked_duration_since(Instant::now()) {
            match self.has_said(&Reply::Took, rest.min(LOOK)) {
                Ok(false) => {}
                told => return Some(told.map(drop)),
            }
        }
        None
    }

    /// Returns whether it sends this message within the limit.
    fn has_said(&mut self, awaited: &Reply, limit: Duration) -> Result<bool> {
        match self.hear(limit)? {
            Some(Reply::Failed { why }) => bail!("the new server failed to start: {why}"),
            Some(Reply::Hello { version }) => self.version = version,
            Some(response) => return Ok(response == *awaited),
            None => {}
        }
        Ok(false)
    }

    fn hear(&mut self, limit: Duration) -> Result<Option<Reply>> {
        let limit = Timespec::try_from(limit).ok();
        // The result of `poll` is ignored: the output and the channel are read in any case.
        let _ = poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], limit.as_ref());
        self.successor.read_words(&mut self.words, WORDS_BYTES_MAX);
        match self.channel.hear_now()? {
            Some(Heard::Message(response, _)) => Ok(Some(response)),
            Some(Heard::End) => Err(self.ended()),
            Some(Heard::Garbled(_)) | None => Ok(None),
        }
    }

    fn late(&self) -> anyhow::Error {
        if self.version.is_empty() {
            return anyhow!(
                "the new binary did not identify itself as a server\nhint: use a samovar that \
                 supports `samovar upgrade`{}",
                self.last_words()
            );
        }
        anyhow!("the new server is not ready in time\nhint: raise `timeouts.boot`")
    }

    /// Returns the error for a closed channel.
    fn ended(&mut self) -> anyhow::Error {
        let has_ended = self.successor.wait(STATUS_LIMIT);
        self.successor.read_words(&mut self.words, WORDS_BYTES_MAX);
        let begun = Instant::now();
        let mut status = self.endings.of(self.successor.pid);
        while has_ended && status.is_none() && begun.elapsed() < STATUS_LIMIT {
            std::thread::sleep(LOOK);
            status = self.endings.of(self.successor.pid);
        }
        let how = status.map_or_else(|| "does not respond".to_owned(), successor::ending);
        anyhow!("the new server {how}{}", self.last_words())
    }

    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.words);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(WORDS_LINES_MAX)..] {
            [] => String::new(),
            last => format!("\nits last output: {}", last.join("\n")),
        }
    }

    /// Ends the process: it exits when the channel closes, or is killed.
    fn give_up(self) {
        let Attempt { channel, successor, .. } = self;
        drop(channel);
        if !successor.wait(LEAVE_LIMIT) {
            successor.kill();
        }
    }
}

/// Returns the binary to start.
fn program(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let name = std::env::args_os().next().map(PathBuf::from);
    let found = name
        .as_deref()
        .and_then(|name| successor::resolve(name, std::env::var_os("PATH").as_deref()));
    found.with_context(|| {
        let name = name.unwrap_or_default();
        format!(
            "cannot find `{}` any more\nhint: run `samovar upgrade --binary PATH`",
            name.display()
        )
    })
}
