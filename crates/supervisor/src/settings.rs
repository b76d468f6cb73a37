//! Settings that the owner passes to the supervisor, separately for each generation.

use crate::limits::ProcessLimits;
use crate::program::Program;
use crate::recycle::RecycleLimits;
use crate::sandbox::Sandbox;
use samovar_channel::{GraphEnd, LoadsEnd, WorkerOptions};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a generation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Command that starts the template.
    pub command: TemplateCommand,
    /// Number of worker processes.
    pub workers: WorkerCount,
    /// Maximum duration of the first boot, after which the server is reported as ready without it,
    /// and of a reload's boot.
    pub boot_limit: Duration,
    /// Maximum time for the requests of a replaced generation.
    pub drain_limit: Duration,
    /// Maximum time for which a worker may continue to run after a request, before it takes the
    /// next one; zero: no limit.
    pub after_limit: Duration,
    /// Watchdog timeout for idle processes; zero: no watchdog.
    pub watchdog_limit: Duration,
    /// Limits after which a worker is replaced.
    pub recycle: RecycleLimits,
    /// Kinds of findings that end the server in place of a fallback; `all` for every kind.
    pub image_errors: Vec<String>,
    /// Console commands that run in addition to HTTP.
    pub consoles: Vec<ConsoleSettings>,
    /// Second template whose workers record call graphs; `None`: there is none.
    pub tracer: Option<Tracer>,
}

/// Settings for recording call graphs.
#[derive(Clone, Debug)]
pub struct Tracer {
    /// Number of workers that record them.
    pub workers: usize,
    /// Channel for the graphs.
    pub graphs: Arc<GraphEnd>,
}

/// Settings of a template that is started for one replay, in addition to those of the serving
/// generation.
#[derive(Clone, Debug, Default)]
pub struct OwnTemplate {
    /// Receives the call graphs of its requests.
    pub graphs: Option<Arc<GraphEnd>>,
    /// Directives of PHP.
    pub define: Vec<(String, String)>,
}

impl Settings {
    /// Returns these settings for a pool with that name in logs.
    #[must_use]
    pub fn of_pool(mut self, name: &str) -> Settings {
        name.clone_into(&mut self.command.options.pool);
        self
    }

    /// Returns the settings of the template that records call graphs.
    pub(crate) fn of_tracer(&self) -> Option<Settings> {
        let Tracer { workers, graphs } = self.tracer.clone()?;
        let mut settings = Settings { tracer: None, consoles: Vec::new(), ..self.clone() };
        settings.command.options.traces = true;
        settings.command.graphs = Some(graphs);
        // Its boot takes longer than that of the serving template, so it reports no loads.
        settings.command.loads = None;
        settings.workers =
            WorkerCount { running_max: self.workers.running_max, ..WorkerCount::fixed(workers) };
        Some(settings)
    }

    /// Returns the settings of a template for one replay. It has no other workers.
    pub(crate) fn of_replay(&self, own: OwnTemplate) -> Settings {
        let OwnTemplate { graphs, define } = own;
        let mut settings = Settings { tracer: None, consoles: Vec::new(), ..self.clone() };
        settings.command.options.traces = graphs.is_some();
        settings.command.options.define.extend(define);
        settings.command.graphs = graphs;
        settings.command.loads = None;
        settings.workers =
            WorkerCount { running_max: self.workers.running_max, ..WorkerCount::fixed(0) };
        settings
    }
}

/// Number of workers, and of those that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerCount {
    /// Minimum number of workers.
    pub min: usize,
    /// Maximum number of workers. If equal to the minimum, the number is fixed.
    pub max: usize,
    /// Total private memory of all workers, in bytes, above which no more are added; 0: limited by
    /// the machine's memory.
    pub memory_max: u64,
    /// Time without a request after which a worker above the minimum exits.
    pub idle: Duration,
    /// Maximum number of workers that run a request at the same time. Workers that wait for
    /// something else do not count.
    pub running_max: usize,
}

impl WorkerCount {
    /// Returns a fixed number of workers, all of which may run.
    #[must_use]
    pub fn fixed(count: usize) -> WorkerCount {
        let idle = Duration::from_secs(10);
        WorkerCount { min: count, max: count, memory_max: 0, idle, running_max: count }
    }

    /// Whether the number follows the load.
    #[must_use]
    pub fn is_elastic(&self) -> bool {
        self.min < self.max
    }
}

/// Command that starts `samovar-php`.
#[derive(Clone, Debug)]
pub struct TemplateCommand {
    /// The binary.
    pub program: Program,
    /// Options for PHP's processes.
    pub options: WorkerOptions,
    /// Channel for call graphs, if they are recorded.
    pub graphs: Option<Arc<GraphEnd>>,
    /// Channel for reports of the files that boots and requests load, if they are needed.
    pub loads: Option<Arc<LoadsEnd>>,
    /// Socket for pushes of jobs, if there are queues.
    pub jobs: Option<Arc<OwnedFd>>,
    /// Kernel limits of each PHP process.
    pub limits: ProcessLimits,
    /// Programs that they start get no additional privileges.
    pub no_new_privileges: bool,
    /// File system access.
    pub sandbox: Sandbox,
    /// Environment variables to set, or (`None`) to remove, relative to this process's environment.
    pub environment: Vec<(String, Option<String>)>,
}

/// One command, run by `count` processes.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// Name of the command in logs and status.
    pub name: String,
    /// PHP file to run.
    pub script: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Working directory of the processes.
    pub folder: PathBuf,
    /// Number of processes.
    pub count: usize,
    /// Resident memory, in bytes, above which a process gets SIGTERM.
    pub memory_max: u64,
    /// Age after which a process gets SIGTERM; zero: never.
    pub time_max: Duration,
    /// Time from SIGTERM to SIGKILL.
    pub stop_timeout: Duration,
}
