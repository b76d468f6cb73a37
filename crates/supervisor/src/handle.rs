//! The supervisor's interface for other threads: commands go in, a report comes out.
//!
//! Only the supervisor writes the snapshot. The workers' own reports are read from the ring.

use crate::consoles::{ConsoleLine, ConsoleSnapshot, Elsewhere};
use crate::one_shots::{OneShot, StopReason};
use crate::os;
use crate::scale::ScaleLine;
use crate::settings::{OwnTemplate, Settings};
use samovar_channel::{Engine, Finding, Image, Linking, Opcache, PhpSetup};
use samovar_ring::{
    DesiredState, Incarnation, Model, Overrun, Ring, RollbackReport, Run, Supervision, WorkerState,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A command from another thread to the supervisor.
#[derive(Debug)]
pub enum Command {
    /// Kill the worker with this incarnation.
    Kill {
        /// The worker's incarnation, as in the ring's slot.
        incarnation: u32,
        /// Reason for the log.
        reason: &'static str,
        /// If set, the worker is killed only while it executes this run.
        run: Option<Run>,
    },
    /// The deadline of this request has passed: signal its worker to check its slot.
    Overrun {
        /// The run and its worker.
        run: Run,
        /// The timeout that expired.
        overrun: Overrun,
        /// Method and target.
        request: String,
        /// The request's id.
        id: String,
        /// Time since a worker took the request.
        ran: Duration,
        /// Time that the script has to end before its worker is killed.
        grace: Duration,
    },
    /// Requests for scripts other than the front controller are queued.
    ScriptsWait,
    /// Boot the application again, and let the new generation take over.
    Reload(Reload),
    /// Result of [`Reload::probe`] for the workers of the new generation.
    Probed {
        /// Number of the reload attempt.
        attempt: u64,
        /// The argument of [`ProbeDone`].
        result: Result<bool, String>,
    },
    /// Result of [`Reload::gate`]: whether the new generation may take over.
    Admitted {
        /// Number of the reload attempt.
        attempt: u64,
        /// Reason for a refusal.
        result: Result<(), String>,
    },
    /// Another server runs these console workers: their successors wait.
    Consoles(Elsewhere),
    /// Run a command once.
    RunOnce(Box<OneShot>),
    /// Stop the run with this id.
    StopRun(u64, StopReason),
    /// Fork a worker for a replay.
    Spare(SpareOrder),
    /// The replay with this id has ended, or is not wanted any more: its worker exits.
    EndSpare(u64),
    /// The client of the replay with this id has left: its worker is killed.
    KillSpare(u64),
    /// Publish the state after all events that are pending now, then call this.
    Publish(Published),
    /// The front is draining: console workers may exit meanwhile, and nothing new is started.
    Draining,
    /// The front is drained: end the workers, the template and [`run()`](crate::run()).
    Stop,
    /// The front has ended unexpectedly: end everything immediately.
    StopNow,
}

/// An order for a worker that is held back from all requests but a replay. It is forked like the
/// workers of the serving generation, from the same image.
pub struct SpareOrder {
    /// Unique in the server.
    pub id: u64,
    /// It is for scripts other than a resident front controller.
    pub script: bool,
    /// The worker needs a template and an image of its own, which are booted for it.
    pub own: Option<OwnTemplate>,
    /// Receives the worker's process id when it waits for a request, or the reason for a failure.
    pub ready: SpareReady,
}

/// Called once, on the supervisor's thread; must not block.
pub type SpareReady = Box<dyn FnOnce(Result<i32, String>) + Send>;

impl std::fmt::Debug for SpareOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpareOrder").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Called once, on the supervisor's thread, after the state has been published; must not block.
/// Dropped without a call if the supervisor ends before that.
pub struct Published(Box<dyn FnOnce() + Send>);

impl Published {
    /// Wraps the callback.
    pub fn new(call: impl FnOnce() + Send + 'static) -> Published {
        Published(Box::new(call))
    }

    pub(crate) fn tell(self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Published").finish_non_exhaustive()
    }
}

/// A reload command.
pub struct Reload {
    /// Settings of the new generation.
    pub settings: Box<Settings>,
    /// Check of the new generation's workers before they take over; `None`: no check.
    pub probe: Option<Probe>,
    /// Decides when the new generation, which is up and has passed the probe, may take over;
    /// `None`: immediately.
    pub gate: Option<Gate>,
    /// The generation is a canary: while it waits at the gate, its workers serve requests of
    /// clients in the lanes of held workers. If the gate refuses it, they finish their requests.
    pub is_canary: bool,
    /// Whether the application's model may change, including from or to one that is not booted in
    /// advance.
    pub may_change_model: bool,
    /// Called once, on the supervisor's thread; must not block. The argument is the new
    /// generation's number after its workers have taken over, or the reason for a failure.
    pub done: ReloadDone,
}

/// Sends requests to held workers, without waiting. The result is passed to the callback.
pub type Probe = Box<dyn FnOnce(ProbeDone) + Send>;

/// Callback of a [`Probe`]: whether the front controller has responded, or the reason why the new
/// generation must not take over.
pub type ProbeDone = Box<dyn FnOnce(Result<bool, String>) + Send>;

/// Called when a new generation is ready to take over, with its number. It calls its second
/// argument later, on any thread, with permission or the reason for a refusal. Called on the
/// supervisor's thread; must not block.
pub type Gate = Box<dyn FnOnce(u64, GateDone) + Send>;

/// Callback of a [`Gate`].
pub type GateDone = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Callback for the end of a reload: [`Reload::done`].
pub type ReloadDone = Box<dyn FnOnce(Result<u64, String>) + Send>;

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// One worker, for `samovar status`.
#[derive(Clone, Debug)]
pub struct WorkerLine {
    /// Process id of the worker.
    pub pid: i32,
    /// Cell in the ring.
    pub cell: usize,
    /// State of the worker.
    pub state: WorkerState,
    /// Model that its application chose.
    pub model: Model,
    /// Number of requests finished by this process.
    pub requests: u64,
    /// Number of pages that a rollback copies.
    pub hot_pages: u32,
    /// Number of returns to the image.
    pub rollbacks: u64,
    /// Time since the fork.
    pub age: Duration,
    /// Generation that forked it; counted like [`Report::generation`].
    pub generation: u64,
    /// Desired state of the worker.
    pub desired: DesiredState,
    /// Whether it runs only requests whose call graph is recorded.
    pub is_tracer: bool,
}

/// The supervisor's part of `samovar status`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Worker processes of all generations.
    pub workers: Vec<WorkerLine>,
    /// Number of workers that died and were replaced.
    pub restarts: u64,
    /// Number of templates that have served; 0 before the first is ready.
    pub generation: u64,
    /// A reload is in progress. A canary that serves requests is none.
    pub is_reloading: bool,
    /// Number of the canary generation that serves requests; 0: there is none.
    pub canary: u64,
    /// The server is ending: nothing new is started.
    pub is_ending: bool,
    /// The application could not be booted in advance.
    pub boot_failed: bool,
    /// Console workers that have a process, by name and number.
    pub living_consoles: Vec<(String, usize)>,
    /// Result of the boot; `None` before the first one has ended.
    pub image: Option<Image>,
    /// Linking of PHP's code; `None` before PHP has started.
    pub linking: Option<Linking>,
    /// Figures of opcache; `None` if it is off, and until the template has reported them.
    pub opcache: Option<Opcache>,
    /// Directives and extensions of PHP; `None` before PHP has started. The process that sends them
    /// has run PHP: they may be garbage.
    pub setup: Option<Arc<PhpSetup>>,
    /// Number of PHP's messages, in the order of [`MessageLevel::ALL`]. Workers write these
    /// numbers: they may be garbage.
    ///
    /// [`MessageLevel::ALL`]: samovar_ring::MessageLevel::ALL
    pub messages: [u64; 4],
    /// PHP's version; empty before PHP has started.
    pub php: String,
    /// The libphp that the settings name, after PHP has started with it.
    pub engine: Option<Engine>,
    /// Findings that prevent sharing the image or rolling back.
    pub findings: Vec<Finding>,
    /// Durations of the returns to the image.
    pub rollbacks: RollbackReport,
    /// Number of workers that were replaced by a fresh fork at their own request.
    pub reforks: u64,
    /// Number of workers that were replaced because of a limit of requests, age or memory.
    pub recycled: u64,
    /// Number of reforks by reason.
    pub refork_reasons: BTreeMap<&'static str, u64>,
    /// Number of processes that the server killed, by reason.
    pub kills: BTreeMap<&'static str, u64>,
    /// Console workers of all generations.
    pub consoles: Vec<ConsoleLine>,
    /// Number of workers and its reason, if the number follows the load.
    pub scale: Vec<ScaleLine>,
    /// Number of workers that were added because requests waited.
    pub grown: u64,
    /// Number of workers that were removed because they were idle.
    pub shrunk: u64,
    /// Number of running workers, if that is limited.
    pub running: u64,
}

/// State that the supervisor publishes in each loop iteration.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) scale: Vec<ScaleLine>,
    pub(crate) grown: u64,
    pub(crate) shrunk: u64,
    pub(crate) consoles: Vec<ConsoleSnapshot>,
    pub(crate) image: Option<Image>,
    pub(crate) linking: Option<Linking>,
    pub(crate) opcache: Option<Opcache>,
    pub(crate) setup: Option<Arc<PhpSetup>>,
    pub(crate) php: String,
    pub(crate) engine: Option<Engine>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) reforks: u64,
    pub(crate) recycled: u64,
    pub(crate) refork_reasons: BTreeMap<&'static str, u64>,
    pub(crate) kills: BTreeMap<&'static str, u64>,
    pub(crate) processes: Vec<Process>,
    /// Processes in which an application is booting, with their generation.
    pub(crate) booting: Vec<(i32, u64)>,
    pub(crate) is_reloading: bool,
    pub(crate) canary: u64,
    pub(crate) is_ending: bool,
    pub(crate) boot_failed: bool,
    pub(crate) living_consoles: Vec<(String, usize)>,
    pub(crate) restarts: u64,
    pub(crate) generation: u64,
}

/// The process of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) cell: usize,
    pub(crate) pid: i32,
    pub(crate) life: Incarnation,
    pub(crate) since: Instant,
    pub(crate) generation: u64,
    pub(crate) desired: DesiredState,
    pub(crate) is_tracer: bool,
}

/// Gives other threads access to the supervisor.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
    pub(crate) wake: Arc<OwnedFd>,
    snapshot: Arc<Mutex<Snapshot>>,
    supervision: Supervision,
}

impl Handle {
    /// Creates a handle for a ring, and the receiver of its commands.
    pub(crate) fn new(ring: &Ring) -> io::Result<(Handle, Receiver<Command>)> {
        let (sender, commands) = channel();
        let handle = Handle {
            commands: sender,
            wake: Arc::new(os::wake_fd()?),
            snapshot: Arc::default(),
            supervision: Supervision::new(ring.clone()),
        };
        Ok((handle, commands))
    }

    /// Queues a command and wakes the supervisor. Commands to a supervisor that has ended are
    /// ignored.
    pub fn send(&self, command: Command) {
        let _ = self.commands.send(command);
        os::wake(&self.wake);
    }

    /// Wakes the supervisor, which does its due work and then calls the owner's hook.
    pub fn nudge(&self) {
        os::wake(&self.wake);
    }

    /// Returns the current state.
    pub fn report(&self) -> Report {
        let snapshot = self.snapshot();
        let now = Instant::now();
        let line = |process: &Process| {
            let report = self.supervision.report(process.cell)?;
            Some(WorkerLine {
                pid: process.pid,
                cell: process.cell,
                state: report.state,
                model: report.model,
                requests: report.requests,
                hot_pages: report.hot_pages,
                rollbacks: report.rollbacks,
                age: now - process.since,
                generation: process.generation,
                desired: process.desired,
                is_tracer: process.is_tracer,
            })
        };
        Report {
            workers: snapshot.processes.iter().filter_map(line).collect(),
            restarts: snapshot.restarts,
            generation: snapshot.generation,
            is_reloading: snapshot.is_reloading,
            canary: snapshot.canary,
            is_ending: snapshot.is_ending,
            boot_failed: snapshot.boot_failed,
            living_consoles: snapshot.living_consoles.clone(),
            image: snapshot.image,
            linking: snapshot.linking.clone(),
            opcache: snapshot.opcache,
            setup: snapshot.setup.clone(),
            messages: self.supervision.messages(),
            php: snapshot.php.clone(),
            engine: snapshot.engine.clone(),
            findings: snapshot.findings.clone(),
            rollbacks: self.supervision.rollbacks(),
            reforks: snapshot.reforks,
            recycled: snapshot.recycled,
            refork_reasons: snapshot.refork_reasons.clone(),
            kills: snapshot.kills.clone(),
            consoles: snapshot.consoles.iter().map(ConsoleSnapshot::line).collect(),
            scale: snapshot.scale.clone(),
            grown: snapshot.grown,
            shrunk: snapshot.shrunk,
            running: self.supervision.running() as u64,
        }
    }

    /// Access to the workers' reports in the ring.
    pub(crate) fn supervision(&self) -> &Supervision {
        &self.supervision
    }

    /// Locks the snapshot. The lock is held only while the snapshot is written or read.
    pub(crate) fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
