//! The front as a whole: one thread, its runtime, its listeners, its sweep, its end.

use crate::accept;
use crate::bell;
use crate::connection::ConnectionState;
use crate::counters::{Counters, CountersSnapshot};
use crate::exchange::Exchanges;
use crate::link::{FrontEvent, SupervisorLink};
use crate::options::FrontOptions;
use crate::record::Recorder;
use crate::route::Site;
use crate::scheduling;
use crate::shared::{Setup, Shared};
use samovar_ring::{Lane, Ring};
use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Notify;

/// How often deadlines are checked while there is anything to check.
pub const SWEEP: Duration = Duration::from_millis(100);
/// Sweeps between two ticks of the ring.
const SWEEPS_PER_TICK: u32 = 10;
/// How long a request may wait for a worker that is awake before another one is woken.
const WITHHELD: Duration = Duration::from_millis(1);
/// Threads for files that are read piece by piece and bodies that are spooled.
const FILE_THREADS_MAX: usize = 8;
/// A client that has asked this recently may be sending its next request: it has this long for it, and the answer says
/// that it is the last.
const LAST_CALL: Duration = Duration::from_millis(100);
/// How often somebody who waits for other options looks whether they hold.
const SWITCH_LOOK: Duration = Duration::from_millis(1);
/// How often a draining front looks whether it is done.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// Why a front cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The document root is none.
    #[error("cannot use `{path}` as document root: {source}\nhint: give an existing directory")]
    Root {
        /// What was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The front controller does not lie below the root.
    #[error("the front controller `{0}` is not below the document root")]
    Controller(PathBuf),
    /// The access log cannot be opened.
    #[error(
        "cannot open the access log `{path}`: {source}\nhint: its directory must exist and be writable"
    )]
    Log {
        /// What was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A thread, descriptor or the like could not be had.
    #[error("cannot start the front: {0}")]
    Io(#[from] io::Error),
}

/// A front that is ready to run.
pub struct Front {
    listeners: Vec<TcpListener>,
    ring: Ring,
    setup: ValidOptions,
    link: SupervisorLink,
    recorder: Recorder,
    control: Arc<Control>,
}

/// What other threads hold of a front. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FrontHandle(Arc<Control>);

#[derive(Debug, Default)]
struct Control {
    counters: Arc<Counters>,
    is_ready: AtomicBool,
    drains: AtomicBool,
    reopens: Arc<AtomicBool>,
    /// What a reload has put in the place of the setup.
    next: Mutex<Option<ValidOptions>>,
    called: Notify,
}

/// Options that were found usable, with the site they name.
#[derive(Debug)]
pub struct ValidOptions {
    options: FrontOptions,
    site: Site,
}

impl ValidOptions {
    /// Looks whether a front could serve by these options.
    pub fn new(options: FrontOptions) -> Result<ValidOptions, StartError> {
        let site = site_of(&options)?;
        Ok(ValidOptions { options, site })
    }
}

impl FrontHandle {
    /// Requests from now on are answered by other options. The access log and the ring stay what they are. Returns at once.
    pub fn switch(&self, next: ValidOptions) {
        *self.0.next() = Some(next);
        self.0.called.notify_one();
    }

    /// Waits until what [`Self::switch`] was given holds, for at most `limit`; false: it does not yet.
    pub fn wait_for_switch(&self, limit: Duration) -> bool {
        let since = Instant::now();
        while self.0.next().is_some() {
            if since.elapsed() > limit {
                return false;
            }
            std::thread::sleep(SWITCH_LOOK);
        }
        true
    }

    /// Ends the front: no new connections, idle ones are closed, what is in flight is finished within
    /// `timeouts.drain`; then [`Front::run`] returns. Returns at once.
    pub fn drain(&self) {
        self.0.drains.store(true, Ordering::Release);
        self.0.called.notify_one();
    }

    /// Whether connections are accepted.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Acquire)
    }

    /// Opens the access log's file again, after it was moved away. Happens with its next line.
    pub fn reopen_logs(&self) {
        self.0.reopens.store(true, Ordering::Release);
    }

    /// The front's numbers now.
    pub fn counters(&self) -> CountersSnapshot {
        self.0.counters.snapshot()
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").field("options", &self.setup.options).finish_non_exhaustive()
    }
}

impl Control {
    /// Whoever waits for it waits for the lock.
    fn switch(&self, shared: &Shared) {
        let mut next = self.next();
        if let Some(ValidOptions { options, site }) = next.take() {
            shared.switch(Setup::new(options, site));
        }
    }

    fn next(&self) -> MutexGuard<'_, Option<ValidOptions>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Front {
    /// A front that serves `options.root` on `listeners` by the workers of `ring`. It runs when
    /// [`Self::run`] is called, on the thread that calls it.
    pub fn new(
        listeners: Vec<TcpListener>,
        ring: Ring,
        options: FrontOptions,
        link: SupervisorLink,
    ) -> Result<(Front, FrontHandle), StartError> {
        let setup = ValidOptions::new(options)?;
        let control = Arc::new(Control::default());
        let recorder = Recorder::start(
            &setup.options.access_log,
            setup.options.access_log_format,
            Arc::clone(&control.reopens),
        )?;
        let handle = FrontHandle(Arc::clone(&control));
        Ok((Front { listeners, ring, setup, link, recorder, control }, handle))
    }

    /// Serves until drained.
    pub fn run(self) -> io::Result<()> {
        let runtime = runtime()?;
        let exchanges = Exchanges::new(self.ring.clone());
        let shared = Rc::new(Shared::new(
            Setup::new(self.setup.options, self.setup.site),
            exchanges,
            self.recorder,
            Arc::clone(&self.control.counters),
            self.link,
        ));
        PARKED.set(Some(Rc::clone(&shared)));
        if let Err(error) = scheduling::give_way_to_workers() {
            tracing::warn!(%error, "the front takes processors from busy workers");
        }
        let result = runtime.block_on(serve(&shared, &self.ring, self.listeners, &self.control));
        self.control.is_ready.store(false, Ordering::Release);
        PARKED.set(None);
        // Ends all tasks that are left; they unregister from `shared`, which is still there.
        runtime.shutdown_timeout(Duration::ZERO);
        result
    }
}

fn site_of(options: &FrontOptions) -> Result<Site, StartError> {
    let root = |source| StartError::Root { path: options.root.clone(), source };
    if !options.root.metadata().map_err(root)?.is_dir() {
        return Err(root(io::ErrorKind::NotADirectory.into()));
    }
    let controller = match &options.front_controller {
        None => b"/index.php".to_vec(),
        Some(file) => {
            let below = file.strip_prefix(&options.root);
            let below = below.map_err(|_| StartError::Controller(file.clone()))?;
            [b"/", below.as_os_str().as_bytes()].concat()
        }
    };
    Ok(Site {
        root: options.root.clone(),
        controller,
        is_explicit: options.front_controller.is_some(),
        static_files: options.static_files,
    })
}

thread_local! {
    /// For the runtime's park hook, which can hold nothing that belongs to a thread.
    static PARKED: RefCell<Option<Rc<Shared>>> = const { RefCell::new(None) };
}

fn with_exchanges(act: impl FnOnce(&mut Exchanges)) {
    PARKED.with_borrow(|shared| {
        if let Some(shared) = shared {
            act(&mut shared.exchanges.borrow_mut());
        }
    });
}

/// Local tasks on one thread. What a park hook wakes runs before the runtime sleeps, without a system call.
fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(FILE_THREADS_MAX)
        .on_thread_park(|| with_exchanges(Exchanges::before_park))
        .on_thread_unpark(|| with_exchanges(Exchanges::after_unpark))
        .build_local(LocalOptions::default())
}

async fn serve(
    shared: &Rc<Shared>,
    ring: &Ring,
    listeners: Vec<TcpListener>,
    control: &Control,
) -> io::Result<()> {
    let bell = bell::register(ring)?;
    tokio::task::spawn_local(answer_bell(Rc::clone(shared), bell));
    tokio::task::spawn_local(sweep(Rc::clone(shared)));
    tokio::task::spawn_local(guard_withheld(Rc::clone(shared)));
    let mut accepting = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        accepting.push(tokio::task::spawn_local(accept::accept(Rc::clone(shared), listener)));
    }
    control.is_ready.store(true, Ordering::Release);
    while !control.drains.load(Ordering::Acquire) {
        control.switch(shared);
        control.called.notified().await;
    }
    control.is_ready.store(false, Ordering::Release);
    for task in &accepting {
        task.abort();
    }
    for task in accepting {
        // Waits until the listener is closed; "aborted" is what it says.
        let _ = task.await;
    }
    finish(shared).await;
    Ok(())
}

/// Lets connections end, for at most `timeouts.drain` (zero: as long as they need).
async fn finish(shared: &Shared) {
    let drain = shared.setup().options.timeouts.drain;
    shared.draining.set(true);
    let now_ms = shared.now_ms.get();
    // The clock of the phases goes on with the sweeps.
    let recent_ms = (SWEEP + LAST_CALL).as_millis() as u64;
    let is_quick = |c: &Rc<ConnectionState>| c.is_between_requests(recent_ms, now_ms);
    let are_quick = {
        let connections = shared.connections.borrow();
        connections.iter().filter(|c| !is_quick(c)).for_each(|c| c.finish());
        connections.iter().any(is_quick)
    };
    if are_quick {
        tokio::time::sleep(LAST_CALL).await;
        shared.connections.borrow().iter().for_each(|c| c.finish());
    }
    let done = async {
        while !shared.connections.borrow().is_empty() {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    if drain.is_zero() {
        done.await;
    } else if tokio::time::timeout(drain, done).await.is_err() {
        tracing::warn!(
            connections = shared.connections.borrow().len(),
            seconds = drain.as_secs(),
            "requests were still in flight when the drain time-out ended; their connections are cut"
        );
    }
}

/// The eventfd is edge-triggered and never read: each write wakes the runtime once.
async fn answer_bell(shared: Rc<Shared>, bell: AsyncFd<std::os::fd::OwnedFd>) {
    while let Ok(mut guard) = bell.readable().await {
        guard.clear_ready();
        shared.exchanges.borrow_mut().turn();
    }
}

/// While requests are short, a sleeping worker is not woken when another is awake. Should that one be held up, the
/// sleeper is woken [`WITHHELD`] later.
async fn guard_withheld(shared: Rc<Shared>) {
    loop {
        let mut is_first = true;
        std::future::poll_fn(|cx| {
            let first = std::mem::take(&mut is_first);
            shared.exchanges.borrow_mut().poll_withheld(cx, first)
        })
        .await;
        tokio::time::sleep(WITHHELD).await;
        shared.exchanges.borrow().ring_withheld();
    }
}

/// Checks all deadlines, every [`SWEEP`] while there is a connection or a slot in use.
async fn sweep(shared: Rc<Shared>) {
    let mut interval = tokio::time::interval(SWEEP);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut sweeps = 0u32;
    loop {
        interval.tick().await;
        sweep_once(&shared);
        sweeps = sweeps.wrapping_add(1);
        if sweeps.is_multiple_of(SWEEPS_PER_TICK) {
            shared.exchanges.borrow_mut().tick();
        }
        let is_quiet =
            shared.connections.borrow().is_empty() && shared.exchanges.borrow().in_use() == 0;
        if is_quiet {
            shared.sweeper.notified().await;
        }
    }
}

fn sweep_once(shared: &Shared) {
    let now_ms = samovar_ring::monotonic_ns() / 1_000_000;
    shared.now_ms.set(now_ms);
    let setup = shared.setup();
    let timeouts = &setup.options.timeouts;
    let mut events: Vec<FrontEvent> = Vec::new();
    let mut exchanges = shared.exchanges.borrow_mut();
    exchanges.sweep(timeouts, &mut events);
    shared.counters.queue_depth.set(exchanges.queue_depth() as u64);
    shared.counters.slots_in_use.set(exchanges.in_use() as u64);
    if exchanges.scripts_wait() {
        events.push(FrontEvent::LaneNeeded(Lane::Script));
    }
    drop(exchanges);
    shared.send(events);
    for connection in shared.connections.borrow().iter() {
        connection.sweep(timeouts, now_ms);
    }
}
