//! The thread that owns the engine: it receives pushes, results and commands, stores them in
//! groups, and starts batches.

use crate::backend::{Backend, Pending, Started, reply};
use crate::batch::RunError;
use crate::command::{Command, CommandResult};
use crate::engine::Engine;
use crate::job::QueueSettings;
use crate::minutes::Minutes;
use crate::shared::{SharedOptions, SharedQueues};
use crate::sqlite::SqliteStore;
use crate::store::StoreError;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use samovar_channel::{Push, PushReply, Received, TraceContext, receive};
use samovar_wire::{QueueMinute, QueueStatus};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Answer to a push that cannot be decoded; a too large one is not even received.
const INVALID: &str =
    "the push is larger than 64 MiB, or is not valid\nhint: push fewer or smaller jobs at once";
/// Maximum number of pushes of one socket in a group.
const GROUP_MAX: usize = 256;
/// Maximum sleep: a clock that was set is noticed within this time.
const SLEEP_MAX_MS: u64 = 1_000;
/// Interval at which the thread checks whether the previous server has ended.
const GATE_LOOK_MS: u64 = 20;
/// Pause after a socket has failed.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time that the server's stop waits for the last results.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
/// Maximum wait for the result of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(2);
/// Maximum wait for figures.
const FIGURES_LIMIT: Duration = Duration::from_millis(500);

/// Called once with the body of the response.
pub type Ran = Box<dyn FnOnce(Result<Vec<u8>, RunError>) + Send>;
/// Runs a batch. Does not wait. If the callback is dropped without a call, the batch has failed.
pub type RunBatch = Box<dyn Fn(BatchToRun, Ran) + Send>;

/// A batch to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchToRun {
    /// Index of its queue.
    pub queue: usize,
    /// The document for the handler.
    pub body: Vec<u8>,
    /// Traces of the pushes, one per job.
    pub traces: Vec<TraceContext>,
    /// Id of the first job.
    pub first: i64,
}

/// Where the jobs are.
pub enum StorePlace {
    /// In a file of this machine.
    File(PathBuf),
    /// In a Redis that several machines share.
    Shared(SharedOptions),
}

/// Needs of the thread.
pub struct JobsOptions {
    /// The store.
    pub place: StorePlace,
    /// Maximum bytes of all jobs in the store.
    pub bytes_max: u64,
    /// Settings of all queues.
    pub queues: Vec<QueueSettings>,
    /// The server's ends of the sockets for pushes, one per pool.
    pub sockets: Vec<OwnedFd>,
    /// Runs a batch.
    pub run: RunBatch,
    /// Returns whether the previous server, if there was one, has ended. Before, jobs are stored,
    /// but no batch is started.
    pub is_alone: Box<dyn Fn() -> bool + Send>,
    /// Returns for the index of a queue and the time, in Unix milliseconds, whether its jobs may
    /// not start now: the time at which to ask again.
    pub closed: Box<dyn Fn(usize, u64) -> Option<u64> + Send>,
}

/// Called with the result of a command.
type PushDone = Box<dyn FnOnce(PushReply) + Send>;
type CommandDone = Box<dyn FnOnce(CommandResult) + Send>;

enum Message {
    Ran(u64, Result<Vec<u8>, RunError>),
    Command(Command, CommandDone),
    Push(Push, PushDone),
}

struct Post {
    messages: Mutex<Vec<Message>>,
    wake: OwnedFd,
    /// Figures at the last query.
    figures: Mutex<Vec<QueueStatus>>,
    minutes: Mutex<Minutes>,
}

impl Post {
    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        // A list is valid even after a panic of the thread that held the lock.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: Message) {
        self.lock().push(message);
        self.wake();
    }

    fn wake(&self) {
        // Fails only if the counter is full; then the thread wakes anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// Handle to the thread. Cheap to clone.
#[derive(Clone)]
pub struct Jobs(Arc<Post>);

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

impl Jobs {
    /// Opens the store, and starts the thread, which runs until the process ends.
    pub fn start(options: JobsOptions) -> Result<Jobs, StartError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| StartError::Io(error.into()))?;
        let (figures, minutes) = Default::default();
        let post = Arc::new(Post { messages: Mutex::default(), wake, figures, minutes });
        let engine = open(&options, &post)?;
        let jobs = Jobs(Arc::clone(&post));
        let is_alone = (options.is_alone)();
        let thread = Thread { engine, options, post, is_alone, complained_ms: 0 };
        std::thread::Builder::new().name("jobs".into()).spawn(move || thread.run())?;
        Ok(jobs)
    }

    /// Waits until the results of all batches that have ended are stored, for at most
    /// `FINISH_LIMIT`. Otherwise their jobs would run again.
    pub fn finish(&self) {
        // After the limit, the jobs run again.
        let _ = self.ask_within(Command::Figures, FINISH_LIMIT);
    }

    /// Returns the figures of all queues: if the thread waits for the disk for longer than
    /// `FIGURES_LIMIT`, those of the last call.
    pub fn figures(&self) -> Vec<QueueStatus> {
        let asked = self.ask_within(Command::Figures, FIGURES_LIMIT);
        let mut last = self.0.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(CommandResult::Figures(all)) = asked {
            *last = all;
        }
        last.clone()
    }

    /// Returns the totals of all queues at the end of the last minutes, oldest first.
    pub fn minutes(&self) -> Vec<Arc<QueueMinute>> {
        self.0.minutes.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// Carries out a command, and waits for its result; `None`: there was none within
    /// `COMMAND_LIMIT`.
    pub fn ask(&self, command: Command) -> Option<CommandResult> {
        self.ask_within(command, COMMAND_LIMIT)
    }

    fn ask_within(&self, command: Command, limit: Duration) -> Option<CommandResult> {
        let (tell, told) = channel();
        self.command(command, move |result| {
            // The receiver may have stopped to wait.
            let _ = tell.send(result);
        });
        told.recv_timeout(limit).ok()
    }

    /// Carries out a command. `told` is called once, on the thread of the queues; it must not
    /// block.
    pub fn command(&self, command: Command, told: impl FnOnce(CommandResult) + Send + 'static) {
        self.0.send(Message::Command(command, Box::new(told)));
    }

    /// Pushes jobs of the server itself, with the pushes of workers in one commit. `told` is called
    /// once, on the thread of the queues, when the jobs are durable; it must not block. The caller
    /// bounds the pushes that wait.
    pub fn push(&self, push: Push, told: impl FnOnce(PushReply) + Send + 'static) {
        self.0.send(Message::Push(push, Box::new(told)));
    }
}

/// Why the thread did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A system call failed.
    #[error("cannot start the queues: {0}")]
    Io(#[from] std::io::Error),
    /// The file of the store cannot be created.
    #[error("cannot create the store of jobs `{path}`: {source}", path = path.display())]
    Create {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// Opens the store.
fn open(options: &JobsOptions, post: &Arc<Post>) -> Result<Box<dyn Backend>, StartError> {
    let (queues, bytes_max) = (options.queues.clone(), options.bytes_max);
    let path = match &options.place {
        StorePlace::File(path) => path,
        StorePlace::Shared(shared) => {
            let backend = SharedQueues::open(shared, queues, bytes_max)?;
            let (server, post) = (backend.server().to_owned(), Arc::clone(post));
            // Other servers have jobs for this one.
            let heard = move |sender: &[u8]| {
                if !sender.starts_with(server.as_bytes()) {
                    post.wake();
                }
            };
            samovar_redis::listen(shared.redis.clone(), shared.channel(), heard)?;
            return Ok(Box::new(backend));
        }
    };
    create(path)?;
    let (store, aside) = SqliteStore::open(path, now_ms())?;
    if let Some(aside) = aside {
        tracing::error!(
            path = %path.display(),
            aside = %aside.display(),
            "the store of jobs is damaged; it was renamed, and a new one was created\n\
             hint: `sqlite3 {} .recover` may restore its jobs",
            aside.display()
        );
    }
    Ok(Box::new(Engine::open(Box::new(store), queues, bytes_max, now_ms())?))
}

/// Creates the file of the store, if there is none, for this user only. `SQLite` gives its further
/// files the same mode.
fn create(path: &std::path::Path) -> Result<(), StartError> {
    let open = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    open.map(drop).map_err(|source| StartError::Create { path: path.to_owned(), source })
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reports a batch whose callback was dropped.
struct Callback(Option<(Arc<Post>, u64)>);

impl Callback {
    fn call(mut self, ran: Result<Vec<u8>, RunError>) {
        if let Some((post, lease)) = self.0.take() {
            post.send(Message::Ran(lease, ran));
        }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some((post, lease)) = self.0.take() {
            let why = "the server has lost the batch".to_owned();
            post.send(Message::Ran(lease, Err(RunError::Failed { class: "(lost)", why })));
        }
    }
}

struct Thread {
    engine: Box<dyn Backend>,
    options: JobsOptions,
    post: Arc<Post>,
    is_alone: bool,
    /// Time of the last log line about the store.
    complained_ms: u64,
}

impl Thread {
    fn run(mut self) {
        let mut look_ms = Some(0);
        loop {
            self.sleep(look_ms);
            look_ms = self.turn();
        }
    }

    /// Sleeps until there is something to do, at most until `look_ms`.
    fn sleep(&self, look_ms: Option<u64>) {
        let mut limit = look_ms.map_or(SLEEP_MAX_MS, |look| look.saturating_sub(now_ms()));
        limit = limit.min(if self.is_alone { SLEEP_MAX_MS } else { GATE_LOOK_MS });
        let limit = Timespec::try_from(Duration::from_millis(limit)).unwrap_or_default();
        let wake = PollFd::new(&self.post.wake, PollFlags::IN);
        let sockets = self.options.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN));
        let mut fds: Vec<_> = std::iter::once(wake).chain(sockets).collect();
        if poll(&mut fds, Some(&limit)).is_err() {
            return;
        }
        let mut count = [0; 8];
        // There is nothing to read if a push has ended the sleep.
        let _ = rustix::io::read(&self.post.wake, &mut count);
    }

    /// Does everything that waits. Returns the time at which to look again.
    fn turn(&mut self) -> Option<u64> {
        let now = now_ms();
        let mut pushes = Vec::new();
        let mut has_failed = false;
        for socket in &self.options.sockets {
            for _ in 0..GROUP_MAX {
                match receive(socket.as_fd()) {
                    Ok(Some(received)) => pushes.push(received),
                    Ok(None) => break,
                    // Most likely there are no free descriptors. The senders wait in the meantime.
                    Err(_) => {
                        has_failed = true;
                        break;
                    }
                }
            }
        }
        let messages = std::mem::take(&mut *self.post.lock());
        let (mut replies, mut own) = (Vec::new(), Vec::new());
        for message in messages {
            match message {
                Message::Ran(lease, ran) => self.engine.finish(lease, &ran, now),
                Message::Command(command, tell) => {
                    replies.push((self.engine.obey(&command, now), tell));
                }
                Message::Push(push, tell) => match self.engine.push(push, now) {
                    Ok(pending) => own.push((pending, tell)),
                    Err(refused) => tell(refused),
                },
            }
        }
        let pending = self.store(pushes, now);
        let stored = self.engine.commit(now);
        if let Err(error) = &stored {
            self.complain(error, now);
        }
        for (received, pending) in pending {
            received.reply(&reply(&pending, &stored));
        }
        for (pending, tell) in own {
            tell(reply(&pending, &stored));
        }
        for (result, tell) in replies {
            let result = match (&stored, result) {
                (Err(error), CommandResult::Changed(..)) => CommandResult::Failed(error.clone()),
                (_, result) => result,
            };
            tell(result);
        }
        if has_failed {
            std::thread::sleep(FAILURE_PAUSE);
        }
        self.note_minute(now);
        self.start(now)
    }

    /// Notes the totals of the queues once a minute.
    fn note_minute(&mut self, now: u64) {
        let minutes = || self.post.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        if !minutes().is_due(now / 1_000) {
            return;
        }
        // The lock is free while a shared store is asked.
        if let CommandResult::Figures(queues) = self.engine.obey(&Command::Figures, now) {
            minutes().add(now / 1_000, &queues);
        }
    }

    /// Logs a failure of the store, at most once per second.
    fn complain(&mut self, error: &str, now: u64) {
        if now.abs_diff(self.complained_ms) >= SLEEP_MAX_MS {
            self.complained_ms = now;
            match self.options.place {
                StorePlace::File(_) => {
                    tracing::error!("{error}\nhint: check the disk, and the owner of the file");
                }
                // The backend logs its errors.
                StorePlace::Shared(_) => {}
            }
        }
    }

    fn store(&mut self, pushes: Vec<Received>, now: u64) -> Vec<(Received, Pending)> {
        let mut pending = Vec::with_capacity(pushes.len());
        for mut received in pushes {
            let checked = received.push.take().map(|push| match push.jobs[..] {
                [] => Err(self.engine.depth(&push.queue, now)),
                _ => self.engine.push(push, now),
            });
            match checked {
                Some(Ok(jobs)) => pending.push((received, jobs)),
                Some(Err(refused)) => received.reply(&refused),
                None => received.reply(&PushReply::Wrong(INVALID.to_owned())),
            }
        }
        pending
    }

    fn start(&mut self, now: u64) -> Option<u64> {
        if !self.is_alone {
            if !(self.options.is_alone)() {
                return None;
            }
            self.is_alone = true;
            if let Err(error) = self.engine.reload(now) {
                self.complain(&error.to_string(), now);
                self.is_alone = false;
                return None;
            }
        }
        let (started, look_ms) = self.engine.start(now, &|queue| (self.options.closed)(queue, now));
        for Started { queue, lease, body, traces, first } in started {
            let callback = Callback(Some((Arc::clone(&self.post), lease)));
            let batch = BatchToRun { queue, body, traces, first };
            (self.options.run)(batch, Box::new(move |ran| callback.call(ran)));
        }
        look_ms
    }
}
