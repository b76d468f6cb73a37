//! What other threads hold of a front: its switch, its numbers, its end.

use crate::client::listeners::{Handed, Kept};
use crate::log::AccessLog;
use crate::request::probe::{self, ProbeDone, ProbeOrder};
use crate::runtime::counters::{Counters, CountersSnapshot};
use crate::setup::ValidSettings;
use crate::shared::Shared;
use crate::upstream::{AllPlaces, PassFigures};
use samovar_config::Pool;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often somebody who waits for other settings, or for the end of the listeners, looks whether it is so.
const LOOK: Duration = Duration::from_millis(1);

/// What other threads hold of a front. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FrontHandle(pub(super) Arc<Control>);

/// What a front is to change to.
#[derive(Debug, Default)]
struct Next {
    settings: Option<ValidSettings>,
    /// Whose requests are not this pool's, where the other pools' roots have changed.
    pools: Option<Vec<Pool>>,
}

impl Next {
    fn is_none(&self) -> bool {
        self.settings.is_none() && self.pools.is_none()
    }
}

/// What these threads and the front's own share.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) counters: Arc<Counters>,
    pub(super) is_ready: AtomicBool,
    pub(super) drains: AtomicBool,
    /// Nothing is accepted yet: another server does so.
    held: AtomicBool,
    /// It drains because another server goes on.
    pub(super) is_succeeded: AtomicBool,
    /// Its listeners are closed: nobody is accepted any more.
    is_closed: AtomicBool,
    /// To be handed over.
    listeners: Mutex<Vec<Kept>>,
    pub(super) log: AccessLog,
    /// What a reload has put in the place of the setup.
    next: Mutex<Next>,
    /// Held while several pools are given what they are to change to together; one for all pools.
    together: Arc<Mutex<()>>,
    /// Requests of the server's own that wait to be made.
    probes: Mutex<Vec<ProbeOrder>>,
    pub(super) called: Arc<Notify>,
    /// Of all threads.
    pub(super) upstreams: Arc<AllPlaces>,
    /// What the other threads of the front are told, and count.
    beside: Vec<Arc<Control>>,
}

impl FrontHandle {
    /// Requests from now on are answered by other settings. The access log and the ring stay what they are. Returns at once.
    pub fn switch(&self, next: &ValidSettings) {
        self.0.change(|to| to.settings = Some(next.clone()));
        self.0.wake();
    }

    /// As [`Self::switch`] for several pools: no request is answered while some of them have changed and others have not. This is the
    /// default pool's, and `pools` are what its settings say of the others from now on.
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

    /// Asks workers that are held back for `target`, as `next` routes it, and tells `done` whether they may take over: they
    /// may unless they fail where those that serve do not. Returns at once; without an answer `done` is not called.
    pub fn probe(&self, target: String, next: ValidSettings, done: ProbeDone) {
        self.0.probes().push(ProbeOrder { target, next, done });
        self.0.called.notify_one();
    }

    /// Waits until what [`Self::switch`] was given holds, for at most `limit`; false: it does not yet.
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

    /// Ends the front: no new connections, idle ones are closed, what is in flight is finished within
    /// `timeouts.drain`; then [`Front::run`](crate::Front::run) returns. Returns at once.
    pub fn drain(&self) {
        self.0.drains.store(true, Ordering::Release);
        self.0.called.notify_one();
    }

    /// To be called before the front runs: it accepts nothing until [`Self::begin`].
    pub fn hold(&self) {
        self.0.held.store(true, Ordering::Release);
    }

    /// Accepts connections from now on, and the files of its sockets are its own.
    pub fn begin(&self) {
        self.0.listeners().iter().for_each(|kept| kept.own_file(true));
        self.0.held.store(false, Ordering::Release);
        self.0.called.notify_one();
    }

    /// Copies of its listeners, for a server that is to take over; none once it drains.
    pub fn listeners(&self) -> io::Result<Vec<Handed>> {
        self.0.listeners().iter().map(Kept::copy).collect()
    }

    /// As [`Self::drain`], while another server accepts connections: the files of sockets stay, and clients may take their
    /// time to hear that it was the last time.
    pub fn hand_over(&self) {
        self.0.listeners().iter().for_each(|kept| kept.own_file(false));
        self.0.is_succeeded.store(true, Ordering::Release);
        self.drain();
    }

    /// Waits until it accepts nobody any more, for at most `limit`; false: it may yet. [`Self::drain`] and [`Self::hand_over`] begin that.
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

    /// Opens the access log's file again, after it was moved away. Happens with its next line.
    pub fn reopen_logs(&self) {
        self.0.log.reopen();
    }

    /// Open connections of each thread.
    #[cfg(test)]
    pub(crate) fn connections_by_thread(&self) -> Vec<u64> {
        self.0.of_threads_ref().map(|control| control.counters.connections.get()).collect()
    }

    /// How each php-fpm fares that `fastcgi_pass` names and that was asked within the last hour.
    pub fn upstreams(&self) -> PassFigures {
        self.0.upstreams.figures()
    }

    /// Snapshot of the front's numbers, of all its threads.
    pub fn counters(&self) -> CountersSnapshot {
        let first = self.0.counters.snapshot(self.0.log.lost());
        let others = self.0.beside.iter().map(|control| control.counters.snapshot(0));
        others.fold(first, |all, one| all.with_thread(&one))
    }
}

impl Control {
    /// Of the first of so many threads.
    pub(super) fn new(log: &AccessLog, listeners: Vec<Kept>, threads: usize) -> Control {
        let together = Arc::default();
        let one = || Control { together: Arc::clone(&together), ..Control::of_thread(log.clone()) };
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
            called: Arc::default(),
            upstreams: Arc::default(),
            beside: Vec::new(),
        }
    }

    /// Of each thread, this one's first.
    pub(super) fn of_threads(self: &Arc<Self>) -> impl Iterator<Item = Arc<Control>> {
        std::iter::once(Arc::clone(self)).chain(self.beside.iter().cloned())
    }

    fn of_threads_ref(&self) -> impl Iterator<Item = &Control> {
        std::iter::once(self).chain(self.beside.iter().map(|control| &**control))
    }

    /// That of another pool: what it has to be told wakes the same threads.
    pub(super) fn of_pool(&self) -> Control {
        let beside = self.beside.iter().map(|control| Arc::new(control.of_pool())).collect();
        let (called, together) = (Arc::clone(&self.called), Arc::clone(&self.together));
        Control { together, called, beside, ..Control::of_thread(self.log.clone()) }
    }

    /// Does what other threads have asked for. Whoever waits for it waits for the lock.
    pub(super) fn obey(&self, shared: &Rc<Shared>) {
        self.switch_settings(shared);
        for order in self.probes().drain(..) {
            tokio::task::spawn_local(probe::carry_out(Rc::clone(shared), order));
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// Copies would go on queueing connections that nobody takes.
    pub(super) fn forget_listeners(&self) {
        self.listeners().clear();
    }

    pub(super) fn has_closed(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread is to change to.
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
        if let Some(pools) = next.pools.take() {
            shared.switch(shared.setup().with_pools(pools));
        }
    }

    /// While this is held, nobody gives several pools something to change to.
    pub(super) fn together(&self) -> MutexGuard<'_, ()> {
        self.together.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn probes(&self) -> MutexGuard<'_, Vec<ProbeOrder>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
