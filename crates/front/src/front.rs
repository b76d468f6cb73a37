//! The front as a whole: one thread, its runtime, its listeners, from the start to the end.
//!
//! `handle` is what other threads hold of it, `sweep` what runs beside all requests, `drain` its end. Imports everything
//! below it.

mod drain;
pub(crate) mod handle;
pub(crate) mod sweep;

use crate::client::accept::{self, Terms};
use crate::client::listeners::{Bound, BoundSocket};
use crate::client::registry::Connections;
use crate::exchange::{Exchanges, SharedExchanges};
use crate::log::{AccessLog, Recorder};
use crate::request;
use crate::runtime::disk::DiskThreads;
use crate::runtime::link::SupervisorLink;
use crate::runtime::mishap::Essentials;
use crate::runtime::packing::Packing;
use crate::runtime::threads::Threads;
use crate::runtime::{bell, scheduling};
use crate::setup::{StartError, ValidSettings};
use crate::shared::Shared;
use crate::tls::Tls;
use crate::upstream::Names;
use handle::{Control, FrontHandle};
use samovar_config::{DEFAULT_POOL, Protocol, Settings};
use samovar_insight::Intake;
use samovar_ring::Ring;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::JoinHandle;

/// A front that is ready to run.
pub struct Front {
    listeners: Vec<Bound>,
    tls: Option<Arc<Tls>>,
    ring: Ring,
    setup: ValidSettings,
    link: SupervisorLink,
    intake: Option<Intake>,
    threads: (DiskThreads, Packing, Threads),
    control: Arc<Control>,
    /// Beside the default one.
    pools: Vec<PoolEnd>,
}

/// Another pool, before the front runs.
struct PoolEnd {
    name: String,
    ring: Ring,
    setup: ValidSettings,
    link: SupervisorLink,
    control: Arc<Control>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").field("settings", &self.setup.settings).finish_non_exhaustive()
    }
}

impl Front {
    /// A front that serves `settings.root` on `listeners` by the workers of `ring`, and tells `intake` of each request. It runs when
    /// [`Self::run`] is called, on the thread that calls it. Listeners that speak TLS do so by `tls`.
    pub fn new(
        listeners: Vec<Bound>,
        tls: Option<Arc<Tls>>,
        ring: Ring,
        settings: Settings,
        link: SupervisorLink,
        intake: Option<Intake>,
    ) -> Result<(Front, FrontHandle), StartError> {
        let setup = ValidSettings::new(settings)?;
        let log = open_log(&setup.settings)?;
        let kept = listeners.iter().map(Bound::keep).collect::<io::Result<Vec<_>>>()?;
        let control = Arc::new(Control::new(log, kept));
        let handle = FrontHandle(Arc::clone(&control));
        let threads = (DiskThreads::start()?, Packing::start()?, Names::start()?);
        let pools = Vec::new();
        Ok((Front { listeners, tls, ring, setup, link, intake, threads, control, pools }, handle))
    }

    /// Adds a pool for the requests that `settings.pools` of the default one say, in their order: it is answered by `settings`
    /// and by the workers of `ring`. What the handle switches, probes and counts is this pool's.
    pub fn add_pool(
        &mut self,
        name: &str,
        ring: Ring,
        settings: Settings,
        link: SupervisorLink,
    ) -> Result<FrontHandle, StartError> {
        let setup = ValidSettings::new(settings)?;
        let control = Arc::new(self.control.of_pool());
        let handle = FrontHandle(Arc::clone(&control));
        self.pools.push(PoolEnd { name: name.to_owned(), ring, setup, link, control });
        Ok(handle)
    }

    /// Serves until the handle drains it; then returns.
    pub fn run(self) -> io::Result<()> {
        let Front { listeners, tls, ring, setup, link, intake, threads, control, pools } = self;
        let runtime = runtime()?;
        let exchanges = Rc::new(RefCell::new(Exchanges::new(ring.clone(), link)));
        let (disk, packing, names) = threads;
        let threads = (Rc::new(disk), Rc::new(packing), Rc::new(Names::new(names)));
        let format = setup.settings.access_log_format;
        let counters = Arc::clone(&control.counters);
        let recorder = Recorder::new(control.log.clone(), format, Arc::clone(&counters), intake);
        let shared = Rc::new(Shared::new(
            (setup.into_setup(), tls.clone()),
            Rc::clone(&exchanges),
            recorder,
            threads,
            counters,
        ));
        let mut rings = vec![ring];
        let mut controls = vec![Arc::clone(&control)];
        let mut parked = vec![exchanges];
        let mut others = Vec::new();
        for PoolEnd { name, ring, setup, link, control } in pools {
            let pool = Rc::new(beside(&shared, &ring, setup, link, &control));
            pool.call(&name);
            parked.push(Rc::clone(&pool.exchanges));
            others.push(pool);
            rings.push(ring);
            controls.push(control);
        }
        if !others.is_empty() {
            shared.call(DEFAULT_POOL);
            shared.lead(others);
        }
        PARKED.set(parked);
        if let Err(error) = scheduling::give_way_to_workers() {
            tracing::warn!(%error, "the front takes processors from busy workers");
        }
        let result = runtime.block_on(serve(shared, &rings, (listeners, tls), &controls));
        control.is_ready.store(false, Ordering::Release);
        PARKED.take();
        // Ends all tasks that are left; they unregister from what they share, which they hold themselves.
        runtime.shutdown_timeout(Duration::ZERO);
        control.log.finish();
        result
    }
}

fn open_log(settings: &Settings) -> Result<AccessLog, StartError> {
    let to = &settings.access_log;
    AccessLog::start(to).map_err(|source| match to.file().or(to.socket()) {
        Some(path) => StartError::Log { path: path.to_owned(), source },
        None => StartError::Io(source),
    })
}

thread_local! {
    /// For the runtime's park hook, which can hold nothing that belongs to a thread.
    static PARKED: RefCell<Vec<SharedExchanges>> = const { RefCell::new(Vec::new()) };
}

/// Another pool's part, beside that of the default one.
fn beside(
    shared: &Shared,
    ring: &Ring,
    setup: ValidSettings,
    link: SupervisorLink,
    control: &Control,
) -> Shared {
    let exchanges = Exchanges::by(&shared.clock, ring.clone(), link);
    let counters = Arc::clone(&control.counters);
    let recorder = shared.recorder.beside(Arc::clone(&counters));
    let names = shared.upstreams.names();
    let threads = (Rc::clone(&shared.disk), Rc::clone(&shared.packing), names);
    let exchanges = Rc::new(RefCell::new(exchanges));
    let setup = (setup.into_setup(), shared.tls.clone());
    Shared::new(setup, exchanges, recorder, threads, counters).swept_with(shared)
}

fn before_park() {
    PARKED.with_borrow(|all| all.iter().for_each(|one| one.borrow_mut().before_park()));
}

/// One look at the clock is enough.
fn after_unpark() {
    PARKED.with_borrow(|all| {
        if let Some((first, others)) = all.split_first() {
            first.borrow_mut().after_unpark();
            for one in others {
                one.borrow_mut().stay_awake();
            }
        }
    });
}

/// Local tasks on one thread. What a park hook wakes runs before the runtime sleeps, without a system call.
fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(before_park)
        .on_thread_unpark(after_unpark)
        .build_local(LocalOptions::default())
}

async fn serve(
    shared: Rc<Shared>,
    rings: &[Ring],
    (listeners, tls): (Vec<Bound>, Option<Arc<Tls>>),
    controls: &[Arc<Control>],
) -> io::Result<()> {
    let [control, ..] = controls else { return Ok(()) };
    let connections = Rc::new(Connections::default());
    let essentials = Rc::new(Essentials::default());
    let pools: Vec<_> = std::iter::once(&shared).chain(shared.others()).cloned().collect();
    for (pool, ring) in pools.into_iter().zip(rings) {
        let bell = bell::register(ring)?;
        essentials.spawn(sweep::answer_bell(Rc::clone(&pool), bell));
        essentials.spawn(sweep::guard_withheld(pool));
    }
    essentials.spawn(sweep::sweep(Rc::clone(&shared), Rc::clone(&connections)));
    let mut accepting = Vec::new();
    while control.is_held() && !control.drains.load(Ordering::Acquire) {
        obey(&shared, controls);
        control.called.notified().await;
    }
    for Bound { socket, protocol, role, has_proxy_header, .. } in listeners {
        let (shared, connections) = (Rc::clone(&shared), Rc::clone(&connections));
        let tls = match protocol {
            Protocol::Http | Protocol::FastCgi => None,
            Protocol::Https => Some(tls.clone().ok_or_else(no_certificate)?),
        };
        let terms =
            Terms { role, has_proxy_header, tls, is_fastcgi: protocol == Protocol::FastCgi };
        let task = match socket {
            BoundSocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let accept = accept::accept(shared, connections, listener, terms, request::serve);
                essentials.spawn(accept)
            }
            BoundSocket::Unix(listener, file) => {
                listener.set_nonblocking(true)?;
                let listener = (tokio::net::UnixListener::from_std(listener)?, file);
                let accept = accept::accept(shared, connections, listener, terms, request::serve);
                essentials.spawn(accept)
            }
        };
        accepting.push(task);
    }
    if let Some(tls) = tls {
        essentials.spawn(sweep::renew(Rc::clone(&shared), tls));
    }
    control.is_ready.store(true, Ordering::Release);
    tokio::select! {
        () = live(&shared, &connections, controls, accepting) => Ok(()),
        () = essentials.broken() => Err(io::Error::other(
            "a part of the front that all requests need has panicked: its message is in the log",
        )),
    }
}

/// Does what was asked for of any pool. What is to change in several of them changes in all, or in none yet.
fn obey(shared: &Rc<Shared>, controls: &[Arc<Control>]) {
    let _whole = controls.first().map(|control| control.together());
    let pools = std::iter::once(shared).chain(shared.others());
    pools.zip(controls).for_each(|(pool, control)| control.obey(pool));
}

fn no_certificate() -> io::Error {
    io::Error::other("a listener is to speak TLS, and there is no certificate")
}

/// From the first request to the last.
async fn live(
    shared: &Rc<Shared>,
    connections: &Connections,
    controls: &[Arc<Control>],
    accepting: Vec<JoinHandle<()>>,
) {
    let [control, ..] = controls else { return };
    while !control.drains.load(Ordering::Acquire) {
        obey(shared, controls);
        control.called.notified().await;
    }
    control.is_ready.store(false, Ordering::Release);
    control.forget_listeners();
    for task in &accepting {
        task.abort();
    }
    for task in accepting {
        // Waits until the listener is closed; "aborted" is what it says.
        let _ = task.await;
    }
    let is_succeeded = control.is_succeeded.load(Ordering::Acquire);
    drain::finish(shared, connections, is_succeeded).await;
}
