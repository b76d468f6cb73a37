//! What other threads hold of a front: its switch, its numbers, its end.

use crate::log::AccessLog;
use crate::request::probe::{self, ProbeDone, ProbeOrder};
use crate::runtime::counters::{Counters, CountersSnapshot};
use crate::setup::ValidSettings;
use crate::shared::Shared;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often somebody who waits for other settings looks whether they hold.
const SWITCH_LOOK: Duration = Duration::from_millis(1);

/// What other threads hold of a front. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FrontHandle(pub(super) Arc<Control>);

/// What these threads and the front's own share.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) counters: Arc<Counters>,
    pub(super) is_ready: AtomicBool,
    pub(super) drains: AtomicBool,
    pub(super) log: AccessLog,
    /// What a reload has put in the place of the setup.
    next: Mutex<Option<ValidSettings>>,
    /// Requests of the server's own that wait to be made.
    probes: Mutex<Vec<ProbeOrder>>,
    pub(super) called: Notify,
}

impl FrontHandle {
    /// Requests from now on are answered by other settings. The access log and the ring stay what they are. Returns at once.
    pub fn switch(&self, next: ValidSettings) {
        *self.0.next() = Some(next);
        self.0.called.notify_one();
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
        while self.0.next().is_some() {
            if since.elapsed() > limit {
                return false;
            }
            std::thread::sleep(SWITCH_LOOK);
        }
        true
    }

    /// Ends the front: no new connections, idle ones are closed, what is in flight is finished within
    /// `timeouts.drain`; then [`Front::run`](crate::Front::run) returns. Returns at once.
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
        self.0.log.reopen();
    }

    /// Snapshot of the front's numbers.
    pub fn counters(&self) -> CountersSnapshot {
        self.0.counters.snapshot(self.0.log.lost())
    }
}

impl Control {
    pub(super) fn new(log: AccessLog) -> Control {
        Control {
            counters: Arc::default(),
            is_ready: AtomicBool::new(false),
            drains: AtomicBool::new(false),
            log,
            next: Mutex::default(),
            probes: Mutex::default(),
            called: Notify::new(),
        }
    }

    /// Does what other threads have asked for. Whoever waits for it waits for the lock.
    pub(super) fn obey(&self, shared: &Rc<Shared>) {
        self.switch_settings(shared);
        for order in self.probes().drain(..) {
            tokio::task::spawn_local(probe::carry_out(Rc::clone(shared), order));
        }
    }

    fn switch_settings(&self, shared: &Shared) {
        let mut next = self.next();
        if let Some(next) = next.take() {
            shared.switch(next.into_setup());
        }
    }

    fn probes(&self) -> MutexGuard<'_, Vec<ProbeOrder>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> MutexGuard<'_, Option<ValidSettings>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
