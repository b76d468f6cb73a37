//! What the state machine of a generation's workers is told, and what it asks for.

use samovar_channel::Role;
use samovar_ring::{Death, Incarnation};

/// What has happened to a generation's processes, or is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The template has started PHP; `resident`: its front controller calls `Samovar\serve`.
    TemplateReady {
        /// Boot the application in each worker before its first request.
        resident: bool,
    },
    /// The template process is gone.
    TemplateDied,
    /// A fork succeeded.
    Forked {
        /// The worker's cell of the ring.
        index: usize,
        /// The worker's life.
        incarnation: Incarnation,
        /// The worker's process.
        pid: i32,
    },
    /// A fork failed (processes or memory ran out).
    ForkFailed {
        /// The worker's cell of the ring.
        index: usize,
        /// The life that was asked for.
        incarnation: Incarnation,
    },
    /// A worker process is gone.
    WorkerDied {
        /// The worker's process.
        pid: i32,
        /// How the worker ended.
        death: Death,
        /// It had taken a request: not its start has failed, and others wait for its successor.
        served: bool,
    },
    /// A worker process has left, and wants a successor at once.
    WorkerLeft {
        /// The worker's process.
        pid: i32,
        /// It had answered a request before: whoever leaves without having done any work waits like one that died.
        served: bool,
    },
    /// A worker reports that the application is resident.
    Resident,
    /// Requests for scripts beside a resident front controller have nobody to run them.
    ScriptsWait,
    /// These cells of the ring are free for what [`Workers::lacks`].
    Room {
        /// The cells' numbers.
        cells: Vec<usize>,
    },
    /// The worker in this cell has done enough: a successor is to come, and then it is to go.
    Recycle {
        /// The worker's cell of the ring.
        cell: usize,
    },
    /// That successor takes requests.
    SuccessorUp,
    /// A worker must be killed: hung, or it wrote garbage.
    Kill {
        /// Its life, as the ring's slot names it.
        incarnation: u32,
    },
    /// So many more workers are to be there.
    Grow {
        /// Those for scripts beside a resident front controller.
        script: bool,
        /// How many.
        count: usize,
    },
    /// The workers in these cells are no longer needed: they are to leave when they have no request.
    Shrink {
        /// The cells' numbers.
        cells: Vec<usize>,
    },
    /// Some time has passed.
    Tick,
    /// No more requests come: let the workers leave.
    Stop,
    /// The workers had long enough.
    StopNow,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a template process.
    StartTemplate,
    /// Ask the template for a worker.
    Fork {
        /// The worker's cell of the ring.
        index: usize,
        /// The worker's life.
        incarnation: Incarnation,
        /// What it is for.
        role: Role,
    },
    /// Clean the ring up after a dead worker.
    Repair {
        /// The worker's cell of the ring.
        index: usize,
        /// The life that has ended.
        incarnation: Incarnation,
        /// How the worker ended.
        death: Death,
    },
    /// Kill a worker (SIGKILL).
    Kill {
        /// The worker's process.
        pid: i32,
    },
    /// Tell one worker through the ring to leave when idle.
    Retire {
        /// The worker's cell of the ring.
        index: usize,
    },
    /// Tell the workers through the ring to leave when idle.
    StopWorkers,
    /// Close the template's channel: it leaves.
    CloseTemplate,
    /// All processes are gone.
    Exit,
}
