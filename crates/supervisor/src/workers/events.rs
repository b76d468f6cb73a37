//! Events and actions of the state machine of a generation's workers.

use samovar_channel::Role;
use samovar_ring::{Death, Incarnation};

/// An event of a generation's processes, or a request to the generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The template has started PHP. `resident`: its front controller calls `Samovar\serve`.
    TemplateReady {
        /// Boot the application in each worker before its first request.
        resident: bool,
    },
    /// The template process has ended.
    TemplateDied,
    /// A fork succeeded.
    Forked {
        /// Cell in the ring.
        index: usize,
        /// Incarnation of the worker.
        incarnation: Incarnation,
        /// Process id of the worker.
        pid: i32,
    },
    /// A fork failed (the system has too many processes or too little memory).
    ForkFailed {
        /// Cell in the ring.
        index: usize,
        /// Incarnation that was ordered.
        incarnation: Incarnation,
    },
    /// A worker process has ended.
    WorkerDied {
        /// Process id of the worker.
        pid: i32,
        /// How the worker ended.
        death: Death,
        /// The worker had taken a request. Its start did not fail, and other requests wait for its
        /// successor.
        served: bool,
    },
    /// A worker process has exited, and needs a successor immediately.
    WorkerLeft {
        /// Process id of the worker.
        pid: i32,
        /// The worker had responded to a request. If not, its successor waits as after a death.
        served: bool,
    },
    /// A worker reports that the application is resident.
    Resident,
    /// Requests wait for scripts other than a resident front controller, and no worker can run
    /// them.
    ScriptsWait,
    /// These cells of the ring are free for those that [`Workers::lacks`] counts.
    Room {
        /// Numbers of the cells.
        cells: Vec<usize>,
    },
    /// The worker in this cell has reached a recycling limit: start a successor, then retire it.
    Recycle {
        /// Cell in the ring.
        cell: usize,
    },
    /// That successor takes requests.
    SuccessorUp,
    /// A worker must be killed: it hangs, or it wrote invalid data.
    Kill {
        /// Incarnation, as in the ring's slot.
        incarnation: u32,
    },
    /// More workers are needed.
    Grow {
        /// They are for scripts other than a resident front controller.
        script: bool,
        /// Number of additional workers.
        count: usize,
    },
    /// The workers in these cells are no longer needed: they exit when they have no request.
    Shrink {
        /// Numbers of the cells.
        cells: Vec<usize>,
    },
    /// A replay needs a worker that is held back from all other requests.
    Spare {
        /// It is for scripts other than a resident front controller.
        script: bool,
    },
    /// The replay has ended: its worker exits.
    EndSpare,
    /// Some time has passed.
    Tick,
    /// No more requests will come: the workers exit.
    Stop,
    /// The workers' time to exit is over.
    StopNow,
}

/// An action that the state machine decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a template process.
    StartTemplate,
    /// Order a worker from the template.
    Fork {
        /// Cell in the ring.
        index: usize,
        /// Incarnation of the worker.
        incarnation: Incarnation,
        /// Role of the worker.
        role: Role,
    },
    /// Repair the ring after a worker's death.
    Repair {
        /// Cell in the ring.
        index: usize,
        /// Incarnation that has ended.
        incarnation: Incarnation,
        /// How the worker ended.
        death: Death,
    },
    /// Kill a worker (SIGKILL).
    Kill {
        /// Process id of the worker.
        pid: i32,
    },
    /// Signal one worker through the ring to exit when idle.
    Retire {
        /// Cell in the ring.
        index: usize,
    },
    /// Signal all workers through the ring to exit when idle.
    StopWorkers,
    /// Close the template's channel, so that it exits.
    CloseTemplate,
    /// All processes have ended.
    Exit,
}
