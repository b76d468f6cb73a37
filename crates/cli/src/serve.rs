//! `samovar serve`: bind, start PHP, serve, drain, leave.

use crate::control::ReloadAnswer;
use crate::control::{Server, Socket};
use crate::logging;
use crate::reload::Reloader;
use anyhow::{Context, Result, anyhow};
use samovar_config::{Listen, LogFormat, LogLevel, Settings, Sources};
use samovar_front::{
    AccessLog, AccessLogFormat, EarlyHints, Front, FrontEvent, FrontHandle, FrontOptions,
    KillReason, SupervisorLink,
};
use samovar_ring::{Lane, Ring};
use samovar_supervisor::{Command, Ended, Handle, Hooks, Running, TemplateCommand};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Instant;

/// Serves until SIGTERM, SIGINT or `samovar stop`.
pub(crate) fn run(settings: Settings, sources: Sources) -> Result<()> {
    logging::start(&settings);
    let started = Instant::now();
    let php = samovar_config::locate_php(&settings)?;
    let listeners = bind_all(&settings.listen)?;
    let addresses = addresses(&listeners)?;
    let socket = Socket::bind(&control_path(&settings, &listeners)?)?;

    let ring = Ring::create(settings.limits.queue_max).context("cannot create the ring")?;
    // Signals are blocked here, before any other thread exists: threads inherit the mask.
    let supervisor = Running::prepare(ring.clone()).context("cannot start the supervisor")?;
    let handle = supervisor.handle();
    let link = link_to(handle.clone());
    let (front, front_handle) = Front::new(listeners, ring, front_options(&settings), link)?;
    let of_supervisor = supervisor_settings(&settings, php);
    let reloader = Reloader::new(sources, settings, front_handle.clone(), handle.clone());
    socket.serve(Server {
        started,
        listen: addresses.clone(),
        front: front_handle.clone(),
        supervisor: handle.clone(),
        reloader: reloader.clone(),
    })?;
    let front_thread = std::thread::Builder::new().name("front".into()).spawn(move || {
        let result = front.run();
        // Drained: nothing is in flight, the workers may leave.
        handle.send(Command::Stop);
        result
    })?;

    let control = socket.path.clone();
    let mut hooks = Announce { addresses, control, front: front_handle, reloader };
    let ended = samovar_supervisor::run(supervisor, of_supervisor, &mut hooks)?;
    // After a second signal nobody is left to answer what the front still waits for.
    if ended == Ended::Drained {
        front_thread.join().map_err(|_| anyhow!("the front panicked"))??;
    }
    Ok(())
}

struct Announce {
    addresses: Vec<String>,
    control: PathBuf,
    front: FrontHandle,
    reloader: Reloader,
}

impl Hooks for Announce {
    fn ready(&mut self) {
        // The line that people, scripts and tests wait for; not a log line, so no log level hides it.
        let addresses: Vec<_> = self.addresses.iter().map(|a| format!("http://{a}")).collect();
        eprintln!(
            "samovar: listening on {} (control {})",
            addresses.join(" "),
            self.control.display()
        );
    }

    fn stop_requested(&mut self) {
        self.front.drain();
    }

    fn reopen_logs(&mut self) {
        self.front.reopen_logs();
    }

    fn reload_requested(&mut self) {
        // Whoever sends a signal reads the log: both ends are told there, whatever its level is.
        self.reloader.begin(|answer| match answer {
            ReloadAnswer { error: Some(why), .. } => {
                eprintln!("samovar: no reload, the old generation goes on: {why}");
            }
            ReloadAnswer { generation, .. } => eprintln!("samovar: generation {generation} serves"),
        });
    }
}

fn bind_all(listen: &[Listen]) -> Result<Vec<TcpListener>> {
    listen.iter().map(bind).collect()
}

fn bind(at: &Listen) -> Result<TcpListener> {
    TcpListener::bind((at.host.as_str(), at.port)).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "hint: ports below 1024 need CAP_NET_BIND_SERVICE; listen on 8080, or grant it"
            }
            std::io::ErrorKind::AddrInUse => {
                "hint: another process listens there; stop it, or choose another --listen"
            }
            _ => "hint: --listen HOST:PORT must be an address of this machine",
        };
        anyhow!("cannot bind `{at}`: {error}\n{hint}")
    })
}

fn addresses(listeners: &[TcpListener]) -> Result<Vec<String>> {
    listeners.iter().map(|l| Ok(l.local_addr()?.to_string())).collect()
}

fn control_path(settings: &Settings, listeners: &[TcpListener]) -> Result<PathBuf> {
    if let Some(path) = &settings.control {
        return Ok(path.clone());
    }
    let port = listeners.first().context("no address to listen on")?.local_addr()?.port();
    samovar_config::make_control_dir()?;
    Ok(samovar_config::default_control_path(port))
}

fn link_to(supervisor: Handle) -> SupervisorLink {
    Box::new(move |event| match event {
        FrontEvent::KillWorker { incarnation, reason } => supervisor.send(Command::Kill {
            incarnation: incarnation.get(),
            reason: match reason {
                KillReason::AnswerTimeout => "it gave no answer within timeouts.answer",
                KillReason::BrokenRing => "it wrote garbage into the shared memory",
            },
        }),
        FrontEvent::LaneNeeded(Lane::Script) => supervisor.send(Command::ScriptsWait),
        FrontEvent::LaneNeeded(Lane::App) => {}
    })
}

pub(crate) fn supervisor_settings(
    settings: &Settings,
    program: PathBuf,
) -> samovar_supervisor::Settings {
    let mut arguments = Vec::new();
    if let Some(app) = &settings.front_controller {
        arguments.extend(["--app".to_owned(), app.to_string_lossy().into_owned()]);
    }
    arguments.extend(["--root".to_owned(), settings.root.to_string_lossy().into_owned()]);
    if let Some(file) = &settings.checkpoint_after {
        arguments.extend(["--checkpoint-after".to_owned(), file.to_string_lossy().into_owned()]);
    }
    for target in &settings.warmup {
        arguments.extend(["--warmup".to_owned(), target.clone()]);
    }
    if !settings.rehearse {
        arguments.push("--no-rehearsal".to_owned());
    }
    let growth = settings.limits.growth_bytes_max.to_string();
    arguments.extend(["--growth-bytes-max".to_owned(), growth]);
    arguments.extend(["--compat".to_owned(), settings.compat.word().to_owned()]);
    arguments.extend(["--rollback-every".to_owned(), settings.rollback_every.to_string()]);
    if let Some(file) = &settings.php_ini {
        arguments.extend(["--php-ini".to_owned(), file.to_string_lossy().into_owned()]);
    }
    for (key, value) in &settings.define {
        arguments.extend(["--define".to_owned(), format!("{key}={value}")]);
    }
    if settings.log_format == LogFormat::Json {
        arguments.push("--json-log".to_owned());
    }
    if matches!(settings.log_level, LogLevel::Debug | LogLevel::Trace) {
        arguments.push("--debug-log".to_owned());
    }
    samovar_supervisor::Settings {
        command: TemplateCommand { program, arguments },
        workers: settings.workers,
        image_errors: settings.image_errors.clone(),
        consoles: settings.consoles.iter().map(console).collect(),
        boot_limit: settings.timeouts.boot,
        drain_limit: settings.timeouts.drain,
    }
}

fn console(from: &samovar_config::Console) -> samovar_supervisor::Console {
    let script = from.script.to_string_lossy().into_owned();
    samovar_supervisor::Console {
        name: from.name.clone(),
        command: std::iter::once(script).chain(from.arguments.iter().cloned()).collect(),
        folder: from.folder.clone(),
        count: from.count,
        memory_max: from.memory_max,
        time_max: from.time_max,
        stop_timeout: from.stop_timeout,
    }
}

/// A front controller that is not the folder's index answers for folders too; for one that is, nginx's
/// `try_files $uri $uri/ /index.php` says all.
fn named_controller(settings: &Settings) -> Option<PathBuf> {
    let controller = settings.front_controller.as_ref()?;
    (*controller != settings.root.join("index.php")).then(|| controller.clone())
}

pub(crate) fn front_options(settings: &Settings) -> FrontOptions {
    let (limits, timeouts) = (&settings.limits, &settings.timeouts);
    FrontOptions {
        root: settings.root.clone(),
        front_controller: named_controller(settings),
        link_targets: settings.link_targets.clone(),
        static_files: settings.static_files,
        request_buffering: settings.request_buffering,
        trusted_proxies: settings.trusted_proxies.clone(),
        early_hints: match settings.early_hints {
            samovar_config::EarlyHints::Auto => EarlyHints::Auto,
            samovar_config::EarlyHints::On => EarlyHints::On,
            samovar_config::EarlyHints::Off => EarlyHints::Off,
        },
        temp_dir: settings.temp_dir.clone(),
        server_name: settings.server_name.clone(),
        limits: samovar_front::Limits {
            head_bytes_max: limits.head_bytes_max as usize,
            headers_max: limits.headers_max,
            body_bytes_max: limits.body_bytes_max,
            connections_max: limits.connections_max,
            queue_max: limits.queue_max,
            retries_max: limits.retries_max as u32,
        },
        timeouts: samovar_front::Timeouts {
            header: timeouts.header,
            idle: timeouts.idle,
            body: timeouts.body,
            write: timeouts.write,
            queue: timeouts.queue,
            answer: timeouts.answer,
            drain: timeouts.drain,
        },
        access_log: match &settings.access_log {
            samovar_config::AccessLog::Off => AccessLog::Off,
            samovar_config::AccessLog::Stdout => AccessLog::Stdout,
            samovar_config::AccessLog::File(path) => AccessLog::File(path.clone()),
        },
        access_log_format: match settings.access_log_format {
            samovar_config::AccessLogFormat::Combined => AccessLogFormat::Combined,
            samovar_config::AccessLogFormat::Json => AccessLogFormat::Json,
        },
    }
}
