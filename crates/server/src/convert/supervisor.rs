//! Settings → options of the supervisor and of PHP's processes.

use crate::companion;
use crate::engine;
use crate::rights;
use crate::service::VARIABLES;
use anyhow::{Result, bail};
use rustix::process::Rlimit;
use samovar_channel::{Boots, LoadsEnd, WorkerOptions};
use samovar_config::{Compat, ConsoleCommand, LogFormat, LogLevel, Scheduling, Settings, Workers};
use samovar_supervisor::identity::Identity;
use samovar_supervisor::{
    ProcessLimits, Program, RecycleLimits, Sandbox, TemplateCommand, Tracer, WorkerCount,
};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns environment variables that differ for PHP's processes.
pub(crate) fn environment(identity: Option<&Identity>) -> Vec<(String, Option<String>)> {
    let hidden = VARIABLES.map(|name| (name.to_owned(), None));
    hidden.into_iter().chain(rights::environment(identity)).collect()
}

/// Receivers of reports from PHP's processes, in addition to the supervisor.
#[derive(Clone)]
pub(crate) struct Ears {
    /// Receives call graphs of traced requests, if requests are traced.
    pub(crate) tracer: Option<Tracer>,
    /// Receives loads of boots and requests.
    pub(crate) loads: Arc<LoadsEnd>,
    /// Receives pushed jobs, if there are queues.
    pub(crate) jobs: Option<Arc<OwnedFd>>,
}

/// Returns the sandbox of PHP's processes. `program` is their executable.
pub(crate) fn sandbox(settings: &Settings, program: &Path) -> Sandbox {
    let beside = |path: &Path| path.parent().map(Path::to_owned);
    let own_read = [
        Some(program),
        Some(&settings.root),
        settings.php_ini.as_deref(),
        settings.php_engine.as_deref(),
    ];
    Sandbox {
        write: settings.sandbox.write.clone(),
        read: settings.sandbox.read.clone(),
        isolate_processes: settings.sandbox.isolate_processes,
        own: vec![settings.temp_dir.clone()],
        own_read: own_read
            .into_iter()
            .flatten()
            .map(Path::to_owned)
            .chain(beside(program))
            .collect(),
    }
}

pub(crate) fn supervisor_settings(
    settings: &Settings,
    program: PathBuf,
    open_files: Rlimit,
    mut environment: Vec<(String, Option<String>)>,
    ears: Ears,
) -> samovar_supervisor::Settings {
    environment.extend(engine::environment(settings.php_engine.as_deref()));
    samovar_supervisor::Settings {
        command: TemplateCommand {
            sandbox: sandbox(settings, &program),
            program: Program::open(program),
            options: worker_options(settings),
            graphs: None,
            loads: Some(ears.loads),
            jobs: ears.jobs,
            limits: limits(settings, open_files),
            no_new_privileges: settings.no_new_privileges,
            environment,
        },
        workers: worker_count(&settings.workers),
        recycle: RecycleLimits {
            requests_max: settings.limits.requests_max as u64,
            age_max: settings.limits.age_max,
            memory_max: settings.limits.memory_max,
        },
        image_errors: settings.image_errors.clone(),
        consoles: settings.consoles.iter().map(console_command).collect(),
        tracer: ears.tracer,
        boot_limit: settings.timeouts.boot,
        drain_limit: settings.timeouts.drain,
        after_limit: settings.timeouts.post_response,
        watchdog_limit: settings.timeouts.watchdog,
    }
}

/// Returns the kernel limits for PHP's processes. `open_files` is the limit that the server was
/// started with.
pub(crate) fn limits(settings: &Settings, open_files: Rlimit) -> ProcessLimits {
    let of = &settings.limits;
    let own = Some(of.open_files as u64).filter(|own| *own > 0);
    ProcessLimits {
        open_files: own.map_or(open_files, |_| Rlimit { current: own, maximum: own }),
        memory_ceiling: of.memory_ceiling,
        processes: of.processes as u64,
        file_bytes: of.file_bytes,
        core_bytes: of.core_bytes(),
        nice: u8::try_from(of.nice).unwrap_or(u8::MAX),
        is_idle: of.scheduling == Scheduling::Idle,
    }
}

/// Checks whether the kernel allows this process to set these limits. Root could still change the
/// other limits later; this server does not.
pub(crate) fn check_limits(settings: &Settings, open_files: Rlimit) -> Result<()> {
    let beyond = limits(settings, open_files).beyond(open_files.maximum);
    let Some((name, most, hard)) = beyond else { return Ok(()) };
    bail!(
        "`limits.{name}` = {most} exceeds the server's own hard limit, {hard}\nhint: raise the \
         hard limit (`ulimit -H`, Limit…= in the unit), or lower the setting"
    );
}

fn worker_count(from: &Workers) -> WorkerCount {
    let Workers { min, max, memory_max, idle_max: idle, running_max, is_idle: _ } = *from;
    WorkerCount { min, max, memory_max, idle, running_max }
}

/// Returns the options of PHP's workers.
fn worker_options(settings: &Settings) -> WorkerOptions {
    WorkerOptions {
        root: settings.root.clone(),
        app: settings.front_controller.clone(),
        checkpoint_after: settings.checkpoint_after.clone(),
        checkpoint_resume: settings.checkpoint_resume.clone(),
        boot_reads: settings.boot_reads.clone(),
        warmup: settings.warmup.clone(),
        boots: match (settings.disable_checkpoint, settings.prewarm_boot) {
            (true, _) => Boots::Never,
            (false, true) => Boots::Rehearsed,
            (false, false) => Boots::Once,
        },
        engine: settings.php_engine.clone(),
        relink: settings.relink,
        growth_bytes_max: settings.limits.growth_bytes_max,
        tasks_max: settings.limits.tasks_max,
        task_stack_bytes: settings.limits.task_stack_bytes,
        rollback_every: settings.rollback_every,
        checkpoint_connections: settings.checkpoint_connections.word().to_owned(),
        heap_walk: companion::heap_walk(),
        loads_every: companion::loads_every(),
        traces: false,
        frankenphp: settings.compat.contains(&Compat::FrankenPhp),
        mocks: None,
        apcu_bytes: if settings.compat.contains(&Compat::Apcu) {
            settings.shared.apcu_bytes
        } else {
            0
        },
        may_trace: settings.profile.traces(),
        php_ini: settings.php_ini.clone(),
        define: directives(settings),
        sapi_name: settings.sapi_name.clone(),
        server_software: settings.server_software.clone(),
        pool: String::new(),
        json_log: settings.log_format == LogFormat::Json,
        is_idle: settings.workers.is_idle,
        debug_log: matches!(settings.log_level, LogLevel::Debug | LogLevel::Trace),
    }
}

/// Returns PHP directives. In a sandbox, PHP's temporary files and opcache's lock are moved to a
/// folder where it may write.
fn directives(settings: &Settings) -> BTreeMap<String, String> {
    let mut define = settings.php.clone();
    if !settings.sandbox.write.is_empty() || !settings.sandbox.read.is_empty() {
        let folder = settings.temp_dir.to_string_lossy();
        for key in ["sys_temp_dir", "opcache.lockfile_path"] {
            define.entry(key.to_owned()).or_insert_with(|| folder.clone().into_owned());
        }
    }
    define
}

pub(crate) fn console_command(from: &ConsoleCommand) -> samovar_supervisor::ConsoleSettings {
    samovar_supervisor::ConsoleSettings {
        name: from.name.clone(),
        script: from.script.clone(),
        arguments: from.arguments.iter().map(Into::into).collect(),
        folder: from.folder.clone(),
        count: from.count,
        memory_max: from.memory_max,
        time_max: from.time_max,
        stop_timeout: from.stop_timeout,
    }
}
