//! `samovar upgrade` and SIGRTMIN in the server that serves: another one is started, gets the listeners, boots, and takes over.
//!
//! Until it has said that it is ready, and then that it has begun, nothing changes here: what goes wrong before costs a process. Once it
//! has been told to begin, the claim says which of the two goes on.

use crate::companion;
use crate::control::server::UpgradeDone;
use crate::handover::claim::Claim;
use crate::handover::predecessor::Predecessor;
use crate::handover::words::{Answer, ServingEnd, Word};
use crate::service::ServiceState;
use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Rlimit;
use samovar_channel::Heard;
use samovar_front::listeners::Handed;
use samovar_supervisor::successor::{self, Successor, SuccessorCommand};
use samovar_wire::{UpgradeAnswer, UpgradeOptions};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the new server may take beside `timeouts.boot`, by which it says itself that it is late.
const MARGIN: Duration = Duration::from_secs(5);
/// How long it may take to begin, once it is ready and told to. Then it is told no more.
const GO_LIMIT: Duration = Duration::from_secs(10);
/// How often it is looked whether this server is to stop meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// How long a server that is given up may take to leave.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// How long the end of this server waits until that is done.
const END_LIMIT: Duration = Duration::from_secs(4);
/// How long its status is waited for, after its end was seen.
const STATUS_LIMIT: Duration = Duration::from_secs(1);
/// What is kept of its last words.
const WORDS_BYTES_MAX: usize = 2_048;
/// Ends of children that are remembered.
const ENDINGS_MAX: usize = 8;
/// Lines of its last words that are repeated.
const WORDS_LINES_MAX: usize = 4;
/// Upgrades that wait for the one before: none, which is said.
const JOBS_MAX: usize = 1;
/// How long whoever has asked may take to read the answer before this server may end.
const TELL_LIMIT: Duration = Duration::from_secs(1);

/// What there is to hand over, beside the front's listeners.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) admin: Vec<(String, OwnedFd)>,
    pub(crate) pinba: Vec<(String, OwnedFd)>,
    pub(crate) control: Option<(PathBuf, OwnedFd)>,
}

/// What the rest of this server has to do with it.
pub(crate) trait Serving: Send + Sync {
    /// The front's listeners.
    fn listeners(&self) -> std::io::Result<Vec<Handed>>;
    /// Whether the application has booted as it should.
    fn boots(&self) -> bool;
    /// `timeouts.boot`.
    fn boot_limit(&self) -> Duration;
    /// Another server goes on: from its return this one takes in nothing any more, and ends when it has finished.
    fn leave(&self);
    /// Has the supervisor take a turn.
    fn nudge(&self);
    /// Console workers that are left; `None`: more may begin.
    fn consoles(&self) -> Option<Vec<(String, usize)>>;
}

/// How children have ended that nobody else knows: the supervisor's thread reaps them all.
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

/// What an upgrade is made of.
pub(crate) struct Parts {
    pub(crate) state: ServiceState,
    pub(crate) serving: Box<dyn Serving>,
    pub(crate) inventory: Inventory,
    /// Variables that the new server has otherwise than this one.
    pub(crate) environment: Vec<(String, Option<String>)>,
    pub(crate) open_files: Rlimit,
    pub(crate) endings: Endings,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) wanted: Wanted,
    /// An upgrade is under way.
    pub(crate) is_busy: AtomicBool,
    /// This server ends.
    pub(crate) ends: AtomicBool,
}

type Started = std::io::Result<(Successor, OwnedFd)>;

/// A server that is to be started, and who is told.
pub(crate) type Wanted = Mutex<Option<(SuccessorCommand, Sender<Started>)>>;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each is whole whoever has panicked.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins upgrades. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Upgrader {
    jobs: SyncSender<(UpgradeOptions, UpgradeDone)>,
    following: Arc<Mutex<Option<Following>>>,
    parts: Arc<Parts>,
}

/// The server that goes on, while this one finishes.
struct Following {
    channel: ServingEnd,
    told: Option<Word>,
}

impl Upgrader {
    /// Starts the thread that does it: a server on its way dies with the thread that has started it.
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

    /// Begins one, or says why not. `done` is called once, on some thread, and must not block.
    pub(crate) fn begin(&self, options: UpgradeOptions, done: UpgradeDone) {
        if let Err(why) = self.parts.begin() {
            return done(UpgradeAnswer::refused(why), sync_channel(0).0);
        }
        // There is one at a time, and its thread lives as long as this server.
        if let Err(TrySendError::Full((_, done)) | TrySendError::Disconnected((_, done))) =
            self.jobs.try_send((options, done))
        {
            self.parts.state.has_not_upgraded();
            done(
                UpgradeAnswer::refused("another upgrade has not ended yet".to_owned()),
                sync_channel(0).0,
            );
        }
    }

    /// The end of this server: a server on its way goes, too, even one that is stopped.
    pub(crate) fn finish(&self) {
        self.parts.ends.store(true, Ordering::Release);
        let begun = Instant::now();
        while self.parts.is_busy.load(Ordering::Acquire) && begun.elapsed() < END_LIMIT {
            std::thread::sleep(LOOK);
        }
    }

    /// Called at each turn of the supervisor, on its thread: a server is started that is wanted, and whoever goes on is told
    /// which console workers are left.
    pub(crate) fn turn(&self) {
        if let Some((command, tell)) = lock(&self.parts.wanted).take() {
            // Whoever wanted it waits.
            let _ = tell.send(Successor::start(&command));
        }
        let mut following = lock(&self.following);
        let Some(Following { channel, told }) = following.as_mut() else { return };
        let Some(word) = self.parts.serving.consoles().map(|left| Word::consoles(&left)) else {
            return;
        };
        // Not taken: it is said again at the next turn.
        if told.as_ref() != Some(&word) && channel.send_now(&word, None).is_ok() {
            *told = Some(word);
        }
    }
}

impl Parts {
    fn begin(&self) -> Result<(), String> {
        if std::process::id() == 1 {
            return Err("this server is process 1: its end is the end of its container\n\
                 hint: start another container, or this one with `--init`"
                .to_owned());
        }
        if companion::is_one() {
            return Err(
                "this server has been started by another command, and ends with it".to_owned()
            );
        }
        if let Some(pid) = self.predecessor.as_ref().and_then(Predecessor::pid) {
            return Err(format!(
                "the server before this one (process {pid}) still finishes its requests\n\
                 hint: try again when it has ended; `timeouts.drain` says how long that may take"
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
                tracing::warn!("no upgrade, this server goes on: {why}");
                done(UpgradeAnswer::refused(why), sync_channel(0).0);
            }
            Ok((channel, pid, version)) => {
                let milliseconds = since.elapsed().as_millis().try_into().unwrap_or(0);
                tracing::info!(pid, version, "another server has taken over");
                *lock(following) = Some(Following { channel, told: None });
                // First: whoever has heard that another one serves is to meet that one, whatever is asked next.
                self.serving.leave();
                let (until, told) = sync_channel::<()>(0);
                done(UpgradeAnswer { pid, version, milliseconds, error: None }, until);
                // This server may have nothing to finish: its end waits until whoever has asked is told.
                let _: Result<(), RecvTimeoutError> = told.recv_timeout(TELL_LIMIT);
            }
        }
    }

    /// Whoever goes on, its process and its version. After an error there is nobody.
    fn attempt(&self, options: &UpgradeOptions) -> Result<(ServingEnd, i32, String)> {
        let program = program(options.binary.as_deref())?;
        let command = SuccessorCommand {
            program: program.clone(),
            arguments: std::env::args_os().collect(),
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

    /// On the supervisor's thread, which reaps all children: a start that fails must be reaped by whoever has tried it.
    fn start(&self, command: SuccessorCommand) -> Started {
        let (tell, told) = channel();
        *lock(&self.wanted) = Some((command, tell));
        self.serving.nudge();
        // Without the supervisor this server ends.
        told.recv().unwrap_or_else(|_| Err(ErrorKind::BrokenPipe.into()))
    }

    fn carry_out(&self, attempt: &mut Attempt<'_>) -> Result<()> {
        let claim = Claim::new().context("cannot make a pipe")?;
        if let Err(error) = self.hand_over(&attempt.channel, &claim) {
            // It has not even waited for them.
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
        attempt.channel.send_now(&Word::Go, None).context("the new server does not listen")?;
        self.let_begin(attempt, &claim)
    }

    /// The new server has been told to begin. After an error it does not serve, and never will.
    fn let_begin(&self, attempt: &mut Attempt<'_>, claim: &Claim) -> Result<()> {
        if let Some(result) = attempt.took(GO_LIMIT) {
            return result;
        }
        if claim.take() {
            bail!("the new server has not begun in time\nhint: is the machine out of memory?");
        }
        let pid = attempt.successor.pid;
        tracing::warn!(pid, "another server has begun, and is slow to say so");
        // Both serve meanwhile. This one may end: that one goes on.
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
        to.send_now(&Word::Claim, Some(claim.as_fd()))?;
        to.send_now(&Word::Complete { boots: self.serving.boots() }, None)
    }
}

/// A server that is being started.
struct Attempt<'a> {
    channel: ServingEnd,
    successor: Successor,
    /// The last that it has printed, before it knew where to.
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
            if self.has_said(&Answer::Ready, rest.min(LOOK))? {
                return Ok(());
            }
        }
    }

    /// Waits for as long, or until it serves, or has failed to; `None`: it has said neither.
    fn took(&mut self, limit: Duration) -> Option<Result<()>> {
        let deadline = Instant::now() + limit;
        while let Some(rest) = deadline.checked_duration_since(Instant::now()) {
            match self.has_said(&Answer::Took, rest.min(LOOK)) {
                Ok(false) => {}
                told => return Some(told.map(drop)),
            }
        }
        None
    }

    /// Whether it says this within the limit.
    fn has_said(&mut self, awaited: &Answer, limit: Duration) -> Result<bool> {
        match self.hear(limit)? {
            Some(Answer::Failed { why }) => bail!("the new server does not start: {why}"),
            Some(Answer::Hello { version }) => self.version = version,
            Some(answer) => return Ok(answer == *awaited),
            None => {}
        }
        Ok(false)
    }

    fn hear(&mut self, limit: Duration) -> Result<Option<Answer>> {
        let limit = Timespec::try_from(limit).ok();
        // Whatever it was, both are looked at.
        let _ = poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], limit.as_ref());
        self.successor.read_words(&mut self.words, WORDS_BYTES_MAX);
        match self.channel.hear_now()? {
            Some(Heard::Message(answer, _)) => Ok(Some(answer)),
            Some(Heard::End) => Err(self.ended()),
            Some(Heard::Garbled(_)) | None => Ok(None),
        }
    }

    fn late(&self) -> anyhow::Error {
        if self.version.is_empty() {
            return anyhow!(
                "the new binary has not said that it is a server\n\
                 hint: is it samovar, of a version that knows `samovar upgrade`?{}",
                self.last_words()
            );
        }
        anyhow!("the new server is not ready in time\nhint: a longer `timeouts.boot` may help")
    }

    /// It has closed the channel.
    fn ended(&mut self) -> anyhow::Error {
        let has_ended = self.successor.wait(STATUS_LIMIT);
        self.successor.read_words(&mut self.words, WORDS_BYTES_MAX);
        let begun = Instant::now();
        let mut status = self.endings.of(self.successor.pid);
        while has_ended && status.is_none() && begun.elapsed() < STATUS_LIMIT {
            std::thread::sleep(LOOK);
            status = self.endings.of(self.successor.pid);
        }
        let how = status.map_or_else(|| "does not listen".to_owned(), successor::ending);
        anyhow!("the new server {how}{}", self.last_words())
    }

    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.words);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(WORDS_LINES_MAX)..] {
            [] => String::new(),
            last => format!("\nits last words: {}", last.join("\n")),
        }
    }

    /// It leaves when the channel ends, or is killed.
    fn give_up(self) {
        let Attempt { channel, successor, .. } = self;
        drop(channel);
        if !successor.wait(LEAVE_LIMIT) {
            successor.kill();
        }
    }
}

/// The binary to start.
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
        format!("cannot find `{}` any more\nhint: `samovar upgrade --binary PATH`", name.display())
    })
}
