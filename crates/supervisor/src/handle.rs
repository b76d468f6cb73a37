//! The supervisor as other threads see it: commands go in, a report comes out.
//!
//! The supervisor alone writes the snapshot; what the workers say of themselves is read from the ring.

use crate::consoles::{ConsoleLine, ConsoleSnapshot, Elsewhere};
use crate::os;
use crate::scale::ScaleLine;
use crate::settings::Settings;
use samovar_channel::{Engine, Finding, Image, Linking};
use samovar_ring::{
    DesiredState, Incarnation, Model, Overrun, Ring, RollbackReport, Run, Supervision, WorkerState,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What other threads tell the supervisor.
#[derive(Debug)]
pub enum Command {
    /// Kill the worker in this life, and say why.
    Kill {
        /// The worker's life, as the ring's slot names it.
        incarnation: u32,
        /// Why, for the log.
        reason: &'static str,
        /// Only while this is what it runs.
        run: Option<Run>,
    },
    /// The time of this request is over: its worker is to look into its slot.
    Overrun {
        /// Which run of which worker.
        run: Run,
        /// Which time.
        overrun: Overrun,
        /// Method and target.
        request: String,
        /// The request's id.
        id: String,
        /// For how long a worker had it.
        ran: Duration,
    },
    /// Requests for scripts beside the front controller are queued.
    ScriptsWait,
    /// Boot the application anew, and let that take over.
    Reload(Reload),
    /// What the workers of the generation that is to come have answered to [`Reload::probe`].
    Probed {
        /// Which attempt to reload.
        attempt: u64,
        /// As [`ProbeDone`] is told.
        result: Result<bool, String>,
    },
    /// Whether the generation that is to come may take over, as [`Reload::gate`] says.
    Admitted {
        /// Which attempt to reload.
        attempt: u64,
        /// Why not.
        result: Result<(), String>,
    },
    /// Another server has these console workers: their successors wait.
    Consoles(Elsewhere),
    /// The front drains: console workers may leave meanwhile, and nothing new is begun.
    Draining,
    /// The front is drained: end the workers, the template and [`run()`](crate::run()).
    Stop,
    /// The front has ended before its time: end all that at once.
    StopNow,
}

/// An order to reload.
pub struct Reload {
    /// Of the new generation.
    pub settings: Box<Settings>,
    /// What is to be seen of the new generation's workers before they take over; `None`: nothing.
    pub probe: Option<Probe>,
    /// Who says when the new generation, which is up and good, may take over; `None`: at once.
    pub gate: Option<Gate>,
    /// Whether an application that is booted ahead, and how, may be one of another model afterwards.
    pub may_change_model: bool,
    /// Called once, on the supervisor's thread, and must not block: with the new generation's number when its workers have
    /// taken over, or with why there is none.
    pub done: ReloadDone,
}

/// Asks workers that are held back for something, without waiting; what comes of it is to be told.
pub type Probe = Box<dyn FnOnce(ProbeDone) + Send>;

/// Whether the front controller has answered, or why the new generation must not take over.
pub type ProbeDone = Box<dyn FnOnce(Result<bool, String>) + Send>;

/// Is told that a new generation could take over; what it calls then, on any thread, says that it may, or why it must not. Called on the
/// supervisor's thread, and must not block.
pub type Gate = Box<dyn FnOnce(GateDone) + Send>;

/// What a [`Gate`] calls.
pub type GateDone = Box<dyn FnOnce(Result<(), String>) + Send>;

/// What is called when a reload has ended: [`Reload::done`].
pub type ReloadDone = Box<dyn FnOnce(Result<u64, String>) + Send>;

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// One worker, for `samovar status`.
#[derive(Clone, Debug)]
pub struct WorkerLine {
    /// The worker's process number.
    pub pid: i32,
    /// Its cell in the ring.
    pub cell: usize,
    /// What the worker does.
    pub state: WorkerState,
    /// The model that its application chose.
    pub model: Model,
    /// Requests finished in this life.
    pub requests: u64,
    /// Pages that a rollback of it copies.
    pub hot_pages: u32,
    /// Its returns to the image.
    pub rollbacks: u64,
    /// Time since the fork.
    pub age: Duration,
    /// Whose fork it is: counts as [`Report::generation`].
    pub generation: u64,
    /// What is wanted of it.
    pub desired: DesiredState,
}

/// The supervisor's part of `samovar status`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The worker processes of all generations.
    pub workers: Vec<WorkerLine>,
    /// Workers that died and were replaced.
    pub restarts: u64,
    /// Templates that have served; 0 before the first is ready.
    pub generation: u64,
    /// A reload is under way.
    pub is_reloading: bool,
    /// It ends: nothing new begins.
    pub is_ending: bool,
    /// The application could not be booted ahead.
    pub boot_failed: bool,
    /// Console workers that have a process, by name and number.
    pub living_consoles: Vec<(String, usize)>,
    /// What the boot came to; `None` before one has ended.
    pub image: Option<Image>,
    /// How PHP's code is linked; `None` before it has started.
    pub linking: Option<Linking>,
    /// PHP's version; empty before it has started.
    pub php: String,
    /// The libphp that the settings name, once PHP has started with it.
    pub engine: Option<Engine>,
    /// What stands against sharing or rolling it back.
    pub findings: Vec<Finding>,
    /// What the returns to the image took.
    pub rollbacks: RollbackReport,
    /// Workers that left for a fresh fork.
    pub reforks: u64,
    /// Workers that had done enough (limits of requests, age, memory), and were replaced.
    pub recycled: u64,
    /// Of the reforks, how many for which reason.
    pub refork_reasons: BTreeMap<&'static str, u64>,
    /// Processes that the server has killed, by reason.
    pub kills: BTreeMap<&'static str, u64>,
    /// The console workers of all generations.
    pub consoles: Vec<ConsoleLine>,
    /// How many workers there are, and why, where their number follows the load.
    pub scale: Vec<ScaleLine>,
    /// Workers that were added because requests waited.
    pub grown: u64,
    /// Workers that were taken away because they had nothing to do.
    pub shrunk: u64,
    /// Workers that run, where that is limited.
    pub running: u64,
}

/// What the supervisor publishes at each turn.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) scale: Vec<ScaleLine>,
    pub(crate) grown: u64,
    pub(crate) shrunk: u64,
    pub(crate) consoles: Vec<ConsoleSnapshot>,
    pub(crate) image: Option<Image>,
    pub(crate) linking: Option<Linking>,
    pub(crate) php: String,
    pub(crate) engine: Option<Engine>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) reforks: u64,
    pub(crate) recycled: u64,
    pub(crate) refork_reasons: BTreeMap<&'static str, u64>,
    pub(crate) kills: BTreeMap<&'static str, u64>,
    pub(crate) processes: Vec<Process>,
    /// Processes in which an application boots, and of which generation it is.
    pub(crate) booting: Vec<(i32, u64)>,
    pub(crate) is_reloading: bool,
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
}

/// How other threads reach the supervisor.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
    pub(crate) wake: Arc<OwnedFd>,
    snapshot: Arc<Mutex<Snapshot>>,
    supervision: Supervision,
}

impl Handle {
    /// One for a ring, and where its commands arrive.
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

    /// Queues a command and wakes the supervisor. One that has ended needs no commands.
    pub fn send(&self, command: Command) {
        let _ = self.commands.send(command);
        os::wake(&self.wake);
    }

    /// Has the supervisor look at what is due, and tell its owner that it has.
    pub fn nudge(&self) {
        os::wake(&self.wake);
    }

    /// The workers as they are now.
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
            })
        };
        Report {
            workers: snapshot.processes.iter().filter_map(line).collect(),
            restarts: snapshot.restarts,
            generation: snapshot.generation,
            is_reloading: snapshot.is_reloading,
            is_ending: snapshot.is_ending,
            boot_failed: snapshot.boot_failed,
            living_consoles: snapshot.living_consoles.clone(),
            image: snapshot.image,
            linking: snapshot.linking.clone(),
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

    /// What the ring says of workers.
    pub(crate) fn supervision(&self) -> &Supervision {
        &self.supervision
    }

    /// To be filled, or read; held for no longer than that.
    pub(crate) fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
