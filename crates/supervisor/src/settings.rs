//! What the supervisor is told by its owner, for each generation anew.

use crate::limits::ProcessLimits;
use crate::recycle::RecycleLimits;
use crate::sandbox::Sandbox;
use samovar_channel::{GraphEnd, LoadsEnd, WorkerOptions};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the supervisor needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the template is started.
    pub command: TemplateCommand,
    /// How many worker processes there are.
    pub workers: WorkerCount,
    /// How long the first boot may take before the server is called ready without it, and how long a reload's may.
    pub boot_limit: Duration,
    /// How long the requests of a generation that was replaced may take.
    pub drain_limit: Duration,
    /// How long a worker may go on after a request before it takes the next; zero: for ever.
    pub after_limit: Duration,
    /// How long a process that has nothing to do may give no sign of life; zero: for ever.
    pub watchdog_limit: Duration,
    /// After what a worker is replaced.
    pub recycle: RecycleLimits,
    /// Kinds of findings that end the server instead of a fall-back; `all` for each.
    pub image_errors: Vec<String>,
    /// Console commands beside HTTP.
    pub consoles: Vec<ConsoleSettings>,
    /// A template beside this one, whose workers take down call graphs; `None`: there is none.
    pub tracer: Option<Tracer>,
}

/// How call graphs are taken down.
#[derive(Clone, Debug)]
pub struct Tracer {
    /// How many workers do so.
    pub workers: usize,
    /// Where the graphs go.
    pub graphs: Arc<GraphEnd>,
}

impl Settings {
    /// Those of a pool that is called so in logs.
    #[must_use]
    pub fn of_pool(mut self, name: &str) -> Settings {
        name.clone_into(&mut self.command.options.pool);
        self
    }

    /// Those of the template that takes down call graphs beside this one.
    pub(crate) fn of_tracer(&self) -> Option<Settings> {
        let Tracer { workers, graphs } = self.tracer.clone()?;
        let mut settings = Settings { tracer: None, consoles: Vec::new(), ..self.clone() };
        settings.command.options.traces = true;
        settings.command.graphs = Some(graphs);
        // Its boot takes longer than those that serve do.
        settings.command.loads = None;
        settings.workers =
            WorkerCount { running_max: self.workers.running_max, ..WorkerCount::fixed(workers) };
        Some(settings)
    }
}

/// How many workers, and how many of them run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerCount {
    /// The least: so many there are always.
    pub min: usize,
    /// The most; the same: their number is fixed.
    pub max: usize,
    /// Bytes of their own that all may have before no more are added; 0: as the machine has.
    pub memory_max: u64,
    /// After how long without a request one above the least goes.
    pub idle: Duration,
    /// How many may run a request at once, those that wait for something else not counted.
    pub running_max: usize,
}

impl WorkerCount {
    /// A fixed number of them, all of which may run.
    #[must_use]
    pub fn fixed(count: usize) -> WorkerCount {
        let idle = Duration::from_secs(10);
        WorkerCount { min: count, max: count, memory_max: 0, idle, running_max: count }
    }

    /// Whether their number follows the load.
    #[must_use]
    pub fn is_elastic(&self) -> bool {
        self.min < self.max
    }
}

/// How `samovar-php` is started.
#[derive(Clone, Debug)]
pub struct TemplateCommand {
    /// The binary's path.
    pub program: PathBuf,
    /// What PHP's processes are told.
    pub options: WorkerOptions,
    /// Where call graphs go, if they are taken down.
    pub graphs: Option<Arc<GraphEnd>>,
    /// Where is told what boots and requests load, if somebody listens.
    pub loads: Option<Arc<LoadsEnd>>,
    /// What the kernel holds each of PHP's processes to.
    pub limits: ProcessLimits,
    /// No program that they start gets other rights than they have.
    pub no_new_privileges: bool,
    /// What of the file system they may touch.
    pub sandbox: Sandbox,
    /// Variables that it has beside, or (`None`) instead of, ours.
    pub environment: Vec<(String, Option<String>)>,
}

/// One command, run by `count` processes.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// The command's name in logs and status.
    pub name: String,
    /// The PHP file that is run.
    pub script: PathBuf,
    /// What it is given.
    pub arguments: Vec<OsString>,
    /// The processes' working directory.
    pub folder: PathBuf,
    /// How many processes run it.
    pub count: usize,
    /// Resident memory after which a process is asked to leave, bytes.
    pub memory_max: u64,
    /// Age after which it is asked to leave; zero: never.
    pub time_max: Duration,
    /// From SIGTERM to SIGKILL.
    pub stop_timeout: Duration,
}
