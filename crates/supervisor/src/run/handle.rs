//! The supervisor as other threads see it: commands go in, a report comes out.
//!
//! The supervisor alone writes the snapshot; what the workers say of themselves is read from the ring.

use super::{Finding, Image, Reload};
use crate::consoles::{ConsoleLine, Entry};
use crate::os;
use samovar_ring::{Model, Ring, RollbackReport, Standing, Supervision, WorkerState};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What other threads tell the supervisor.
#[derive(Debug)]
pub enum Command {
    /// Kill the worker in this life, and say why.
    Kill {
        /// From the ring's slot.
        incarnation: u32,
        /// For the log.
        reason: &'static str,
    },
    /// Requests for scripts beside the front controller are queued.
    ScriptsWait,
    /// Boot the application anew, and let that take over.
    Reload(Reload),
    /// The front drains: console workers may leave meanwhile, and nothing new is begun.
    Draining,
    /// The front is drained: end the workers, the template and [`run`](super::run).
    Stop,
}

/// One worker, for `samovar status`.
#[derive(Clone, Debug)]
pub struct WorkerLine {
    /// Process id.
    pub pid: i32,
    /// What it does.
    pub state: WorkerState,
    /// Its application's model.
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
    pub standing: Standing,
}

/// The supervisor's part of `samovar status`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// All worker processes.
    pub workers: Vec<WorkerLine>,
    /// Workers that died and were replaced.
    pub restarts: u64,
    /// Templates that have served; 0 before the first is ready.
    pub generation: u64,
    /// A reload is under way.
    pub is_reloading: bool,
    /// What the boot came to; `None` before one has ended.
    pub image: Option<Image>,
    /// What stands against sharing or rolling it back.
    pub findings: Vec<Finding>,
    /// What the returns to the image took.
    pub rollbacks: RollbackReport,
    /// Workers that left for a fresh fork.
    pub reforks: u64,
    /// Of these, how many for which reason.
    pub refork_reasons: BTreeMap<&'static str, u64>,
    /// All console workers.
    pub consoles: Vec<ConsoleLine>,
}

/// What the supervisor publishes at each turn.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) consoles: Vec<Entry>,
    pub(super) image: Option<Image>,
    pub(super) findings: Vec<Finding>,
    pub(super) reforks: u64,
    pub(super) refork_reasons: BTreeMap<&'static str, u64>,
    pub(super) processes: Vec<Process>,
    pub(super) is_reloading: bool,
    pub(super) restarts: u64,
    pub(super) generation: u64,
}

/// A worker's process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) cell: usize,
    pub(super) pid: i32,
    pub(super) since: Instant,
    pub(super) generation: u64,
    pub(super) standing: Standing,
}

/// How other threads reach the supervisor.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
    pub(super) wake: Arc<OwnedFd>,
    snapshot: Arc<Mutex<Snapshot>>,
    supervision: Supervision,
}

impl Handle {
    /// One for a ring, and where its commands arrive.
    pub(super) fn new(ring: &Ring) -> io::Result<(Handle, Receiver<Command>)> {
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
        os::wake(self.wake.as_raw_fd());
    }

    /// The workers as they are now.
    pub fn report(&self) -> Report {
        let snapshot = self.snapshot();
        let now = Instant::now();
        let line = |process: &Process| {
            let report = self.supervision.report(process.cell)?;
            Some(WorkerLine {
                pid: process.pid,
                state: report.state,
                model: report.model,
                requests: report.requests,
                hot_pages: report.hot_pages,
                rollbacks: report.rollbacks,
                age: now - process.since,
                generation: process.generation,
                standing: process.standing,
            })
        };
        Report {
            workers: snapshot.processes.iter().filter_map(line).collect(),
            restarts: snapshot.restarts,
            generation: snapshot.generation,
            is_reloading: snapshot.is_reloading,
            image: snapshot.image.clone(),
            findings: snapshot.findings.clone(),
            rollbacks: self.supervision.rollbacks(),
            reforks: snapshot.reforks,
            refork_reasons: snapshot.refork_reasons.clone(),
            consoles: snapshot.consoles.iter().map(Entry::line).collect(),
        }
    }

    /// To be filled, or read; held for no longer than that.
    pub(super) fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
