//! The interface of the front for other threads: settings changes, counters, shutdown.

use crate::client::listeners::{Handed, RetainedListener};
use crate::log::AccessLog;
use crate::request::TraceHeaders;
use crate::request::job_batch::{self, BatchDone, BatchOrder};
use crate::request::probe::{self, ProbeDone, ProbeOrder};
use crate::request::replay::{self, ReplayOrder};
use crate::runtime::counters::{Counters, CountersSnapshot};
use crate::runtime::recordings::Recordings;
use crate::setup::ValidSettings;
use crate::shared::Shared;
use crate::shared::canary::{Canary, CanaryRouting};
use crate::upstream::{AllPlaces, PassFigures};
use samovar_config::Pool;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Poll interval while waiting for new settings to take effect, or for the listeners to close.
const LOOK: Duration = Duration::from_millis(1);

/// A handle to a front for other threads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FrontHandle(pub(super) Arc<Control>);

/// Changes that a front thread has not applied yet.
#[derive(Debug, Default)]
struct Next {
    settings: Option<ValidSettings>,
    /// The new list of other pools, which determines the requests that are not this pool's. Set
    /// when their roots have changed.
    pools: Option<Vec<Pool>>,
    /// The new canary, or the end of one.
    canary: Option<CanaryChange>,
}

#[derive(Clone, Debug)]
enum CanaryChange {
    Set(Box<CanaryRouting>),
    End,
}

impl Next {
    fn is_none(&self) -> bool {
        self.settings.is_none() && self.pools.is_none() && self.canary.is_none()
    }
}

/// State shared by the front's own threads and the threads that hold a handle.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) counters: Arc<Counters>,
    pub(super) is_ready: AtomicBool,
    pub(super) drains: AtomicBool,
    /// No connections are accepted yet, because another server accepts them.
    held: AtomicBool,
    /// The front drains because another server has taken over.
    pub(super) is_succeeded: AtomicBool,
    /// The listeners are closed: no more connections are accepted.
    is_closed: AtomicBool,
    /// Listeners, kept for a handover.
    listeners: Mutex<Vec<RetainedListener>>,
    pub(super) log: AccessLog,
    /// Settings of a reload, not yet applied.
    next: Mutex<Next>,
    /// Held while several pools get changes that must take effect together. All pools share one
    /// lock.
    together: Arc<Mutex<()>>,
    /// Probe requests of the server itself that have not started yet.
    probes: Mutex<Vec<ProbeOrder>>,
    /// Batches of jobs that have not started yet.
    batches: Mutex<Vec<BatchOrder>>,
    /// Recorded requests to run again.
    replays: Mutex<Vec<ReplayOrder>>,
    /// Recorded requests of all pools and threads.
    pub(super) recordings: Arc<Recordings>,
    pub(super) called: Arc<Notify>,
    /// Upstreams of all threads.
    pub(super) upstreams: Arc<AllPlaces>,
    /// Controls of the front's other threads: each receives the same changes and has its own
    /// counters.
    beside: Vec<Arc<Control>>,
}

impl FrontHandle {
    /// Applies new settings to all requests from now on. The access log and the ring do not change.
    /// Returns immediately.
    pub fn switch(&self, next: &ValidSettings) {
        self.0.change(|to| to.settings = Some(next.clone()));
        self.0.wake();
    }

    /// Sends a share of the requests from now on to held workers, or changes that share; `None`: to
    /// the serving workers only, also the requests that still wait for the held ones. Returns
    /// immediately.
    pub fn set_canary(&self, routing: Option<&CanaryRouting>) {
        let change = || match routing {
            Some(routing) => CanaryChange::Set(Box::new(routing.clone())),
            None => CanaryChange::End,
        };
        self.0.change(|to| to.canary = Some(change()));
        self.0.wake();
    }

    /// As [`Self::switch`], for several pools: no request is served while only some of them have
    /// changed. Called on the default pool's handle. `pools` is the new list of other pools in its
    /// settings.
    pub fn switch_together(
        &self,
        all: impl IntoIterator<Item = (FrontHandle, ValidSettings)>,
        pools: &[Pool],
    ) {
        let whole = self.0.together();
        for (handle, next) in all {
            handle.0.change(|to| to.settings = Some(next.clone()));
        }
        self.0.change(|to| to.pools = Some(pools.to_vec()));
        drop(whole);
        self.0.wake();
    }

    /// Sends a probe request for `target` to workers that are held, routed by the settings in
    /// `next`. Calls `done` with the result: whether the held workers may take over. They may,
    /// unless they fail the probe and the serving workers do not. Returns immediately; without a
    /// response, `done` is not called.
    pub fn probe(&self, target: String, next: ValidSettings, done: ProbeDone) {
        self.0.probes().push(ProbeOrder { target, next, done });
        self.0.called.notify_one();
    }

    /// Runs a batch of jobs on this pool's workers. PHP gets the headers of `trace`. Calls `done`
    /// with the body of the response. Returns immediately. A front that ends may not call `done`.
    pub fn run_batch(&self, body: Vec<u8>, trace: TraceHeaders, done: BatchDone) {
        self.0.batches().push(BatchOrder { body, trace, done });
        self.0.called.notify_one();
    }

    /// Runs a recorded request again, on a held worker of this pool. Returns immediately.
    pub fn replay(&self, order: ReplayOrder) {
        self.0.replays().push(order);
        self.0.called.notify_one();
    }

    /// Returns the recorded requests of all pools.
    pub fn recordings(&self) -> &Arc<Recordings> {
        &self.0.recordings
    }

    /// Returns the number of this pool's requests in flight: queued, running or being sent.
    pub fn in_flight(&self) -> u64 {
        self.0.of_threads_ref().map(|control| control.counters.pool.in_flight.get()).sum()
    }

    /// Whether the front drains, or has drained.
    pub fn drains(&self) -> bool {
        self.0.drains.load(Ordering::Acquire)
    }

    /// Waits up to `limit` until the change made by [`Self::switch`] is in effect. Returns false if
    /// it is not in effect yet.
    pub fn wait_for_switch(&self, limit: Duration) -> bool {
        let since = Instant::now();
        while self.0.of_threads_ref().any(|control| !control.next().is_none()) {
            if since.elapsed() > limit {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Drains the front: it accepts no new connections, closes idle ones, and finishes requests in
    /// flight within `timeouts.drain`. Then [`Front::run`](crate::Front::run) returns. This call
    /// returns immediately.
    pub fn drain(&self) {
        self.0.drains.store(true, Ordering::Release);
        self.0.called.notify_one();
    }

    /// Prevents the front from accepting connections until [`Self::begin`]. Must be called before
    /// the front runs.
    pub fn hold(&self) {
        self.0.held.store(true, Ordering::Release);
    }

    /// Starts to accept connections, and takes ownership of the socket files.
    pub fn begin(&self) {
        self.0.listeners().iter().for_each(|kept| kept.own_file(true));
        self.0.held.store(false, Ordering::Release);
        self.0.called.notify_one();
    }

    /// Returns copies of the listeners for a server that takes over. The list is empty once the
    /// front drains.
    pub fn listeners(&self) -> io::Result<Vec<Handed>> {
        self.0.listeners().iter().map(RetainedListener::copy).collect()
    }

    /// As [`Self::drain`], while another server accepts connections: the socket files stay, and
    /// clients get more time to learn of the close.
    pub fn hand_over(&self) {
        self.0.listeners().iter().for_each(|kept| kept.own_file(false));
        self.0.is_succeeded.store(true, Ordering::Release);
        self.drain();
    }

    /// Waits up to `limit` until the front accepts no more connections, after [`Self::drain`] or
    /// [`Self::hand_over`]. Returns false if it may still accept connections.
    pub fn wait_until_closed(&self, limit: Duration) -> bool {
        let since = Instant::now();
        while !self.0.is_closed.load(Ordering::Acquire) {
            if since.elapsed() > limit {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Whether connections are accepted.
    pub fn is_ready(&self) -> bool {
        self.0.of_threads_ref().all(|control| control.is_ready.load(Ordering::Acquire))
    }

    /// Reopens the access log's file, for example after a rotation. Takes effect with the next
    /// line.
    pub fn reopen_logs(&self) {
        self.0.log.reopen();
    }

    /// Number of open connections of each thread.
    #[cfg(test)]
    pub(crate) fn connections_by_thread(&self) -> Vec<u64> {
        self.0.of_threads_ref().map(|control| control.counters.server.connections.get()).collect()
    }

    /// Figures of each php-fpm that `fastcgi_pass` names and that was used within the last hour.
    pub fn upstreams(&self) -> PassFigures {
        self.0.upstreams.figures()
    }

    /// Snapshot of the front's counters, added up over all its threads.
    pub fn counters(&self) -> CountersSnapshot {
        let first = self.0.counters.snapshot(self.0.log.lost());
        let others = self.0.beside.iter().map(|control| control.counters.snapshot(0));
        others.fold(first, |all, one| all.with_thread(&one))
    }
}

impl Control {
    /// Creates the control of the first of `threads` threads.
    pub(super) fn new(
        log: &AccessLog,
        listeners: Vec<RetainedListener>,
        threads: usize,
    ) -> Control {
        let (together, recordings) = (Arc::default(), Arc::default());
        let one = || Control {
            together: Arc::clone(&together),
            recordings: Arc::clone(&recordings),
            ..Control::of_thread(log.clone())
        };
        let beside = (1..threads).map(|_| Arc::new(one())).collect();
        Control { beside, listeners: Mutex::new(listeners), ..one() }
    }

    fn of_thread(log: AccessLog) -> Control {
        Control {
            counters: Arc::default(),
            is_ready: AtomicBool::new(false),
            drains: AtomicBool::new(false),
            held: AtomicBool::new(false),
            is_succeeded: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            listeners: Mutex::default(),
            log,
            next: Mutex::default(),
            together: Arc::default(),
            probes: Mutex::default(),
            batches: Mutex::default(),
            replays: Mutex::default(),
            recordings: Arc::default(),
            called: Arc::default(),
            upstreams: Arc::default(),
            beside: Vec::new(),
        }
    }

    /// Controls of all threads, this one's first.
    pub(super) fn of_threads(self: &Arc<Self>) -> impl Iterator<Item = Arc<Control>> {
        std::iter::once(Arc::clone(self)).chain(self.beside.iter().cloned())
    }

    fn of_threads_ref(&self) -> impl Iterator<Item = &Control> {
        std::iter::once(self).chain(self.beside.iter().map(|control| &**control))
    }

    /// Creates the control of another pool. Its changes wake the same threads.
    pub(super) fn of_pool(&self) -> Control {
        let beside = self.beside.iter().map(|control| Arc::new(control.of_pool())).collect();
        let (called, together) = (Arc::clone(&self.called), Arc::clone(&self.together));
        let recordings = Arc::clone(&self.recordings);
        Control { together, recordings, called, beside, ..Control::of_thread(self.log.clone()) }
    }

    /// Applies the changes requested by other threads. The lock is held meanwhile, so that a
    /// waiting thread does not see the change as done too early.
    pub(super) fn obey(&self, shared: &Rc<Shared>) {
        self.switch_settings(shared);
        for order in self.probes().drain(..) {
            tokio::task::spawn_local(probe::carry_out(Rc::clone(shared), order));
        }
        for order in self.batches().drain(..) {
            tokio::task::spawn_local(job_batch::carry_out(Rc::clone(shared), order));
        }
        for order in self.replays().drain(..) {
            tokio::task::spawn_local(replay::carry_out(Rc::clone(shared), order));
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// Drops the copies of the listeners. With them open, the kernel would queue connections that
    /// are never accepted.
    pub(super) fn forget_listeners(&self) {
        self.listeners().clear();
    }

    pub(super) fn has_closed(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<RetainedListener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a change for each thread.
    fn change(&self, say: impl Fn(&mut Next)) {
        self.of_threads_ref().for_each(|control| say(&mut control.next()));
    }

    fn wake(&self) {
        self.of_threads_ref().for_each(|control| control.called.notify_one());
    }

    fn switch_settings(&self, shared: &Shared) {
        let mut next = self.next();
        if let Some(settings) = next.settings.take() {
            shared.switch(settings.into_setup());
        }
        match next.canary.take() {
            Some(CanaryChange::Set(routing)) => shared.set_canary(Some(Canary::new(*routing))),
            Some(CanaryChange::End) => shared.set_canary(None),
            None => {}
        }
        if let Some(pools) = next.pools.take() {
            shared.switch(shared.setup().with_pools(pools));
        }
    }

    /// While this lock is held, no thread can record changes for several pools.
    pub(super) fn together(&self) -> MutexGuard<'_, ()> {
        self.together.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn probes(&self) -> MutexGuard<'_, Vec<ProbeOrder>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batches(&self) -> MutexGuard<'_, Vec<BatchOrder>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replays(&self) -> MutexGuard<'_, Vec<ReplayOrder>> {
        self.replays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
