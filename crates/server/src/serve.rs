//! `samovar serve`: settle, bind, start, run, drain.

pub(crate) mod advice;
pub(crate) mod exporters;
mod hooks;
mod limits;
mod link;
pub(crate) mod listen;
pub(crate) mod operators;
mod pools;
mod succession;

use crate::admin_token::AdminAccess;
use crate::control::report::{Samplers, StatusSources};
use crate::control::socket::Socket;
use crate::convert::{Ears, check_limits, environment, front_settings, front_threads, sandbox};
use crate::development::Developer;
use crate::graphs::Graphs;
use crate::handover::predecessor::Predecessor;
use crate::logging::{self, LastWords, Logs};
use crate::pools::Pools;
use crate::publish;
use crate::reload::{Parts, Reloader};
use crate::sampling::Sampling;
use crate::schedules::Scheduling;
use crate::service::{Service, ServiceState, Watchdog};
use crate::upgrade::Upgrader;
use crate::{
    binary, certificates, companion, descriptors, engine, intake, jobs, loads, panics, rights,
};
use anyhow::{Context, Error, Result, anyhow};
use exporters::SlowLogFile;
use hooks::Hooks;
use limits::Limits;
use operators::Measured;
use rustix::process::Rlimit;
use samovar_config::{Settings, Sources, release_of};
use samovar_front::{Bound, Front, FrontHandle, SupervisorLink, Tls};
use samovar_insight::export::otlp::JobSpans;
use samovar_insight::pinba::listener::PinbaIn;
use samovar_insight::{HandoverGate, Insight, Intake, Release, Releases};
use samovar_jobs::Jobs;
use samovar_profile::loads::Loads;
use samovar_published::Publishing;
use samovar_ring::Ring;
use samovar_shared::Shared;
use samovar_supervisor::identity::Identity;
use samovar_supervisor::{Command, Ended, Handle, Running};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use succession::{Beginning, Entrances, Stage, Succession};

/// Serves until SIGTERM, SIGINT or `samovar stop`.
pub fn run(
    settings: Settings,
    sources: Sources,
    predecessor: Option<&Predecessor>,
) -> Result<ExitCode> {
    // Must run before the process has any secret in its memory.
    rights::conceal_memory()?;
    // Must run before this process opens any descriptor. A new descriptor could get the number of
    // an inherited socket that is missing.
    let inherited = listen::inherit(predecessor);
    let logs = logging::start(&settings)?;
    panics::report_to_log();
    let _last_words = LastWords(&logs);
    let before = predecessor.cloned();
    let result = inherited.and_then(|sockets| serve(settings, sources, (sockets, before), &logs));
    if let (Some(predecessor), Err(error)) = (predecessor, &result) {
        predecessor.failed(&crate::terminal::words(error));
    }
    logs.finish(result.as_ref().err().map(crate::terminal::words));
    Ok(if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(
    settings: Settings,
    sources: Sources,
    (inherited, predecessor): (Option<Vec<Bound>>, Option<Predecessor>),
    logs: &Logs,
) -> Result<()> {
    let settled = settle(settings, sources, predecessor)?;
    let opened = bind(&settled, inherited, logs)?;
    let started = start(settled, opened, logs)?;
    run_until_drained(started)
}

/// Values that are determined before anything is opened.
struct Settled {
    since: Instant,
    settings: Settings,
    sources: Sources,
    /// Limit of open files for PHP.
    open_files: Rlimit,
    service: Service,
    /// User to switch to once all addresses are bound.
    identity: Option<Identity>,
    /// Worker binary, found but not checked yet.
    php: PathBuf,
    /// Worker binaries of the other pools.
    php_of_pools: Vec<PathBuf>,
    /// Labels of the pools' releases, the default pool first.
    labels: Vec<String>,
    /// Server that this one replaces.
    predecessor: Option<Predecessor>,
}

/// Returns the limit of open files for PHP, after all limits of the settings were checked.
pub(crate) fn open_files(settings: &Settings) -> Result<Rlimit> {
    let open_files = descriptors::raise(settings)?;
    check_limits(settings, open_files)?;
    pools::check_limits(settings, open_files)?;
    Ok(open_files)
}

fn settle(
    settings: Settings,
    sources: Sources,
    predecessor: Option<Predecessor>,
) -> Result<Settled> {
    let since = Instant::now();
    let open_files = open_files(&settings)?;
    let service = Service::of_environment();
    let identity = rights::identity(&settings)?;
    let php = samovar_config::locate_php(&settings)?;
    let php_of_pools = pools::locate(&settings)?;
    // An upgrade changes the server, not the release: a label of a deploy stays.
    let handed = |pool: &str| predecessor.as_ref().map(|before| before.release(pool));
    let labels = crate::pools::settings(&settings).map(|(pool, own)| {
        let label = release_of(own, None);
        label.map(|label| if label.is_empty() { handed(pool).unwrap_or_default() } else { label })
    });
    let labels = labels.collect::<Result<_, _>>()?;
    advice::advise(&settings);
    settings.pools.iter().for_each(|pool| advice::advise(&pool.settings));
    Ok(Settled {
        since,
        settings,
        sources,
        open_files,
        service,
        identity,
        php,
        php_of_pools,
        labels,
        predecessor,
    })
}

/// Opened endpoints for HTTP clients and commands.
struct Opened {
    listeners: Vec<Bound>,
    /// TLS keys; only root may be able to read their files.
    tls: Option<Arc<Tls>>,
    admin: Vec<TcpListener>,
    token: AdminAccess,
    pinba: Option<PinbaIn>,
    /// Bound addresses, with the real port if `listen` has port 0: `http://127.0.0.1:8080`,
    /// `unix:/run/samovar.sock`.
    addresses: Vec<String>,
    control: Socket,
}

/// Binds all addresses, and gives up root.
fn bind(settled: &Settled, inherited: Option<Vec<Bound>>, logs: &Logs) -> Result<Opened> {
    let Settled { settings, identity, php, php_of_pools, predecessor, .. } = settled;
    let before = predecessor.as_ref();
    let tls = Tls::load(settings)?;
    let listeners = listen::listen(settings, inherited, identity.as_ref(), before)?;
    let admin = operators::bind(settings, before)?;
    // Root can store the token where PHP cannot read it.
    let token = AdminAccess::settle(settings)?;
    let pinba = exporters::bind(settings, before)?;
    certificates::prepare(settings, identity.as_ref());
    // Must run before any child process exists. glibc changes the user of all threads.
    if let Some(identity) = identity {
        rights::assume(identity, settings, php)?;
        companion::end_with_parent();
    }
    logs.settle(settings)?;
    binary::recognise(settings, php)?;
    engine::recognise(settings, php)?;
    sandbox(settings, php).check().map_err(Error::msg)?;
    pools::examine(settings, php_of_pools, identity.is_some())?;
    let addresses = listeners.iter().map(ToString::to_string).collect();
    let control = match before.and_then(|before| before.control(settings.control.as_ref())) {
        Some(handed) => Socket::take(handed),
        None => Socket::bind(&listen::control_path(settings, &listeners)?)?,
    };
    Ok(Opened { listeners, tls, admin, token, pinba, addresses, control })
}

/// Components that run next to the main thread, and data for the main thread.
struct Started {
    supervisor: Running,
    /// Settings of each pool, the default pool first.
    of_supervisor: Vec<samovar_supervisor::Settings>,
    hooks: Hooks,
    front: JoinHandle<Result<()>>,
    insight: Option<Arc<Insight>>,
    slow_log: SlowLogFile,
    sampling: Option<Arc<Sampling>>,
    graphs: Option<Graphs>,
    jobs: Option<Jobs>,
    schedules: Scheduling,
    /// Closes the entrances at the end, even if clones of them exist.
    _entrances: Closing,
}

/// Closes the entrances when dropped.
struct Closing(Entrances, Upgrader);

impl Drop for Closing {
    fn drop(&mut self) {
        self.1.finish();
        self.0.close();
    }
}

#[expect(clippy::too_many_lines, reason = "one line per part of the server, in order of start")]
fn start(settled: Settled, opened: Opened, logs: &Logs) -> Result<Started> {
    let Settled { since, settings, sources, open_files, service, identity, php, .. } = settled;
    let (labels, releases) = (settled.labels, Releases::default());
    let (php, predecessor) = ((php, settled.php_of_pools), settled.predecessor);
    // The turn comes when the previous server's files are free.
    let handover_gate = predecessor.as_ref().map(Predecessor::gone).unwrap_or_default();
    let follows = predecessor.is_some();
    let Opened { listeners, tls, admin, token, pinba, addresses, control } = opened;
    let Prepared { ring, shared, published, supervisor, of_pools, developer } =
        prepare(&settings, logs, follows)?;
    let (handle, link) = (supervisor.handle(), link::link_to(supervisor.handle()));
    let pinba_copy = pinba.as_ref().map(PinbaIn::copy).transpose()?;
    let Measured { intake, insight, slow_log, sampling, job_spans, canaries } =
        operators::measure(&settings, pinba, &handover_gate, developer.as_deref(), &releases)?;
    let of_front = (listeners, tls.clone(), ring, link, intake);
    let (front, front_handle, pools) =
        open_front(&settings, of_front, of_pools, follows, developer.as_deref())?;
    let keeper = tls.as_ref().map(|tls| certificates::keeper(&settings, tls, logs));
    let connections_max = front_settings(&settings).limits.connections_max;
    let (environment, of_successor) = environments(identity.as_ref(), &token, &sources);
    let Receivers { graphs, loads, jobs, ears } =
        receivers(&settings, handover_gate, (&front_handle, &pools), job_spans)?;
    intake::connect(&front.job_intake(), jobs.as_ref());
    let of_supervisor = pools::told(&settings, php, open_files, &environment, &ears);
    let of_schedules = (&front_handle, &handle, &pools);
    let schedules = Scheduling::start(&settings, of_schedules, jobs.clone())?;
    let samplers = Samplers::start(&settings, &front_handle, &handle, &pools, insight.as_ref())?;
    let status = StatusSources {
        started: since,
        samplers,
        listen: addresses.iter().map(|at| at.replacen("http://", "", 1)).collect(),
        admin: listen::addresses(&admin)?,
        front: front_handle.clone(),
        supervisor: handle.clone(),
        shared,
        published: published.clone(),
        logs: logs.clone(),
        slow_log: slow_log.0.clone(),
        insight: insight.clone(),
        canaries: canaries.clone(),
        releases: releases.clone(),
        sampling: sampling.clone(),
        graphs: graphs.clone(),
        loads,
        jobs: jobs.clone(),
        schedules: schedules.clone(),
        predecessor: predecessor.clone(),
        pools: pools.clone(),
        keeper: keeper.clone(),
        tls: tls.clone(),
        settings: Arc::new(advice::facts(&settings)),
    };
    let inventory = succession::inventory(&settings, &admin, pinba_copy, &control)?;
    let admin = operators::start(admin, (token, logs), &settings, status.clone(), insight.clone())?;
    let own = first_releases(&settings, &labels);
    let state = ServiceState::new(service.clone(), addresses.clone(), follows);
    let parts = Parts {
        sources,
        first: settings,
        environment: environment.clone(),
        open_files,
        front: front_handle.clone(),
        supervisor: handle.clone(),
        state: state.clone(),
        tls,
        keeper,
        insight: insight.clone(),
        canaries,
        releases: releases.clone(),
        ears,
        published,
        schedules: schedules.clone(),
        pools: pools.clone(),
    };
    let reloader = Reloader::new(parts, labels);
    let (path, logs) = (control.path.clone(), logs.clone());
    let (releases, of_log) = ((releases, own), logs.clone());
    let beginning =
        Beginning::new(addresses, path, of_log, state.clone(), insight.clone(), releases);
    let Succession { entrances, upgrader, endings } = succession::set(Stage {
        status,
        reloader: reloader.clone(),
        control,
        admin,
        inventory,
        environment: of_successor,
        open_files,
        beginning: beginning.clone(),
        predecessor: predecessor.clone(),
    })?;
    begin_watching(sampling.as_deref(), developer.as_ref(), &pools, (&handle, &reloader))?;
    let front = start_front(front, handle, pools.clone())?;
    let hooks = Hooks {
        beginning,
        predecessor,
        upgrader: upgrader.clone(),
        endings,
        front: front_handle,
        reloader,
        is_reading: Arc::default(),
        logs,
        state,
        insight: insight.clone(),
        slow_log: slow_log.clone(),
        developer,
        pools,
        limits: Limits::new(connections_max),
        watchdog: Watchdog::of_environment(service),
    };
    Ok(Started {
        supervisor,
        of_supervisor,
        hooks,
        front,
        insight,
        slow_log,
        sampling,
        graphs,
        jobs,
        schedules,
        _entrances: Closing(entrances, upgrader),
    })
}

/// Returns the first generation of each pool with its label.
fn first_releases(settings: &Settings, labels: &[String]) -> Vec<Release> {
    let is_one = settings.pools.is_empty();
    let first = |((name, _), label): ((&str, _), &String)| Release {
        pool: if is_one { String::new() } else { name.to_owned() },
        generation: 1,
        label: label.as_str().into(),
        ..Release::default()
    };
    crate::pools::settings(settings).zip(labels).map(first).collect()
}

/// Starts the threads that watch the workers, and the project in development mode.
fn begin_watching(
    sampling: Option<&Sampling>,
    developer: Option<&Arc<Developer>>,
    pools: &Pools,
    (handle, reloader): (&Handle, &Reloader),
) -> Result<()> {
    if let Some(sampling) = sampling {
        sampling.begin(pools.with_default(handle))?;
    }
    if let Some(developer) = developer {
        Arc::clone(developer).start(reloader.clone(), handle.clone())?;
    }
    Ok(())
}

/// Environment variables to set or to remove.
type Variables = Vec<(String, Option<String>)>;

/// Returns the variables that differ for PHP's processes, and those that differ for a successor.
fn environments(
    identity: Option<&Identity>,
    token: &AdminAccess,
    sources: &Sources,
) -> (Variables, Variables) {
    let of_php = environment(identity);
    let of_successor = succession::environment(&of_php, token, sources);
    (of_php, of_successor)
}

/// Creates the front of all pools. If it follows another server, it waits for its turn.
fn open_front(
    settings: &Settings,
    (listeners, tls, ring, link, intake): (
        Vec<Bound>,
        Option<Arc<Tls>>,
        Ring,
        SupervisorLink,
        Option<Intake>,
    ),
    of_pools: Vec<pools::Prepared>,
    follows: bool,
    developer: Option<&Developer>,
) -> Result<(Front, FrontHandle, Pools)> {
    let (mut front, handle) =
        Front::new(listeners, tls, ring, front_settings(settings), link, intake)?;
    if let Some(developer) = developer {
        front.develop(Arc::clone(&developer.front));
    }
    let pools = pools::add(settings, of_pools, &mut front)?;
    if follows {
        handle.hold();
    }
    Ok((front, handle, pools))
}

/// Receivers of messages from PHP's processes, and the ends of their senders.
struct Receivers {
    graphs: Option<Graphs>,
    loads: Loads,
    jobs: Option<Jobs>,
    /// One per pool.
    ears: Vec<Ears>,
}

/// Creates the receivers of load reports, call graphs and jobs of each pool.
fn receivers(
    settings: &Settings,
    handover_gate: HandoverGate,
    fronts: (&FrontHandle, &Pools),
    job_spans: Option<JobSpans>,
) -> Result<Receivers> {
    let graphs = Graphs::open(settings, handover_gate.clone())?;
    let (loads, telling) = loads::open(crate::pools::settings(settings).map(|(name, _)| name))?;
    let (pushed, of_workers) = jobs::sockets(settings)?;
    let jobs = jobs::start(settings, pushed, fronts, (handover_gate, job_spans))?;
    let tracer = |at: usize| graphs.as_ref().and_then(|graphs| graphs.tracers[at].clone());
    let of = |(at, loads)| Ears { tracer: tracer(at), loads, jobs: of_workers.get(at).cloned() };
    let ears = telling.into_iter().enumerate().map(of).collect();
    Ok(Receivers { graphs, loads, jobs, ears })
}

/// Memory shared with the workers, and the supervisor.
struct Prepared {
    ring: Ring,
    shared: Shared,
    published: Publishing,
    supervisor: Running,
    of_pools: Vec<pools::Prepared>,
    /// Present in development mode only.
    developer: Option<Arc<Developer>>,
}

fn prepare(settings: &Settings, logs: &Logs, follows: bool) -> Result<Prepared> {
    let fronts = front_threads(settings);
    let ring =
        Ring::shared_by(fronts, settings.limits.queue_max).context("cannot create the ring")?;
    // Signals are blocked here, because threads inherit the mask. Only the log's threads exist
    // already; they block signals on their own.
    let shared = Shared::create(settings.shared.bytes_max)
        .context("cannot create the shared memory of the workers")?;
    let files = publish::read(settings)?;
    let published = Publishing::new(shared.clone(), publish::limits(settings))
        .context("cannot create the memory of published values")?;
    let memory = (shared.clone(), published.clone());
    let mut supervisor = Running::prepare(ring.clone(), memory, logs.intake.clone())
        .context("cannot start the supervisor")?;
    publish::publish(published.publisher(), &files).context("cannot publish a file")?;
    published.start().context("cannot start the publishing thread")?;
    let of_pools = pools::prepare(settings, fronts, &mut supervisor)?;
    if follows {
        supervisor.hold_consoles();
    }
    let developer = Developer::open(&logs.intake)?;
    Ok(Prepared { ring, shared, published, supervisor, of_pools, developer })
}

fn start_front(front: Front, supervisor: Handle, pools: Pools) -> Result<JoinHandle<Result<()>>> {
    let run = move || {
        let result = run_front(front);
        // After a drain nothing is in flight, and the workers may leave. After a failure of the
        // front, they need not finish anything.
        let end = || if result.is_ok() { Command::Stop } else { Command::StopNow };
        supervisor.send(end());
        pools.tell(end);
        result
    };
    Ok(std::thread::Builder::new().name("front".into()).spawn(run)?)
}

/// Runs the front. A panic that is not caught at a lower level ends the front, and with it the
/// server; the service manager restarts it.
fn run_front(front: Front) -> Result<()> {
    let run = std::panic::AssertUnwindSafe(|| front.run());
    let ended = std::panic::catch_unwind(run);
    ended.map_err(|_| anyhow!("the front panicked: see the log"))?.context("the front failed")
}

/// Runs the supervisor on the main thread. Returns when the front has drained and the workers have
/// left.
fn run_until_drained(mut started: Started) -> Result<()> {
    let Started {
        supervisor,
        of_supervisor,
        front,
        insight,
        slow_log,
        sampling,
        graphs,
        jobs,
        schedules,
        ..
    } = started;
    let ended = samovar_supervisor::run(supervisor, of_supervisor, &mut started.hooks)?;
    // After a second signal no worker is left to answer the front's pending requests.
    match ended {
        Ended::StoppedNow => Ok(()),
        Ended::Drained | Ended::Broken => {
            let ended = front.join().map_err(|_| anyhow!("the front's thread panicked"))?;
            // All runs have ended.
            schedules.finish();
            // The last batches have ended.
            if let Some(jobs) = jobs {
                jobs.finish();
            }
            // The front has reported its last request.
            if let Some(insight) = insight {
                insight.finish();
            }
            // The routes of all samples are known now.
            if let Some(sampling) = sampling {
                sampling.finish();
            }
            if let Some(graphs) = graphs {
                graphs.calls.finish();
            }
            slow_log.finish();
            ended
        }
    }
}
