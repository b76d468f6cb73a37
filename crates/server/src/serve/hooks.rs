//! Events of the supervisor → the log, the service manager, the front.

use super::exporters::SlowLogFile;
use super::limits::Limits;
use super::succession::Beginning;
use crate::development::Developer;
use crate::handover::predecessor::Predecessor;
use crate::logging::Logs;
use crate::pools::Pools;
use crate::reload::Reloader;
use crate::service::{ServiceState, Watchdog};
use crate::upgrade::{Endings, Upgrader};
use samovar_front::FrontHandle;
use samovar_insight::Insight;
use samovar_insight::store::EventKind;
use samovar_supervisor::{Boot, News};
use samovar_wire::{ReloadOptions, ReloadResponse, UpgradeOptions, UpgradeResponse};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Effects of the supervisor's events outside of it.
pub(super) struct Hooks {
    pub(super) beginning: Beginning,
    /// Server that this one replaces.
    pub(super) predecessor: Option<Predecessor>,
    pub(super) upgrader: Upgrader,
    pub(super) endings: Endings,
    pub(super) front: FrontHandle,
    pub(super) reloader: Reloader,
    /// Whether a reload that a signal has requested is reading the settings.
    pub(super) is_reading: Arc<AtomicBool>,
    pub(super) logs: Logs,
    pub(super) state: ServiceState,
    pub(super) insight: Option<Arc<Insight>>,
    pub(super) slow_log: SlowLogFile,
    /// Present in development mode only.
    pub(super) developer: Option<Arc<Developer>>,
    /// Pools other than the default one.
    pub(super) pools: Pools,
    pub(super) limits: Limits,
    pub(super) watchdog: Watchdog,
}

impl Hooks {
    /// Records an event for the history.
    fn note(&self, kind: EventKind, text: String) {
        if let Some(insight) = &self.insight {
            insight.event(kind, text);
        }
    }
}

/// Begins a reload. Its result is logged at any log level, because an operator who sends a signal
/// looks at the log.
fn begin_reload(reloader: &Reloader, logs: Logs) {
    reloader.begin(&ReloadOptions::default(), move |response| match response {
        ReloadResponse { error: Some(why), .. } => {
            logs.say(&format!("reload failed, the old generation keeps serving: {why}"));
        }
        ReloadResponse { pools, .. } if !pools.is_empty() => logs.say("the new generations serve"),
        ReloadResponse { generation, .. } => logs.say(&format!("generation {generation} serves")),
    });
}

/// Begins an upgrade; the result is logged in the same way.
fn begin_upgrade(upgrader: &Upgrader, logs: Logs) {
    let done = move |response: UpgradeResponse, _| match response.error {
        Some(why) => logs.say(&format!("upgrade failed, this server keeps serving: {why}")),
        None => {
            logs.say(&format!("process {} (samovar {}) serves", response.pid, response.version));
        }
    };
    upgrader.begin(UpgradeOptions::default(), Box::new(done));
}

impl samovar_supervisor::Hooks for Hooks {
    fn ready(&mut self, boot: Boot) {
        let Some(predecessor) = &self.predecessor else { return self.beginning.say() };
        if let Err(why) = predecessor.booted(boot) {
            self.logs.say(&format!("this server does not take over: {why}"));
            // This closes the channel, which ends this server.
            predecessor.failed(why);
        }
    }

    fn child_ended(&mut self, pid: i32, status: i32) {
        self.endings.put(pid, status);
    }

    fn upgrade_requested(&mut self) {
        begin_upgrade(&self.upgrader, self.logs.clone());
    }

    fn turned(&mut self) {
        self.watchdog.turn(&self.state);
        self.upgrader.turn();
        if self.insight.is_some() && self.limits.is_due(Instant::now()) {
            let lines_lost = self.logs.lost() + self.slow_log.lost();
            let of_pools = self.pools.iter().map(|pool| pool.front.counters());
            let all = of_pools.fold(self.front.counters(), |sum, pool| sum.with(&pool));
            for reached in self.limits.look(&all, lines_lost) {
                self.note(EventKind::Limit, reached);
            }
        }
    }

    fn stop_requested(&mut self) {
        self.state.stops();
        self.note(EventKind::Stop, String::new());
        if let Some(developer) = &self.developer {
            developer.front.close();
        }
        self.front.drain();
    }

    fn reopen_logs(&mut self) {
        self.logs.reopen();
        self.front.reopen_logs();
        self.slow_log.reopen();
    }

    fn news(&mut self, pool: &str, news: News) {
        let of = |text: String| match pool {
            "" => text,
            name => format!("pool {name}: {text}"),
        };
        match news {
            News::Killed(why) => self.note(EventKind::Kill, of(why)),
            News::Crashed(how) | News::TemplateEnded(how) => self.note(EventKind::Crash, of(how)),
            News::Left(why) => self.note(EventKind::Recycle, of(why.to_owned())),
        }
    }

    fn reload_requested(&mut self) {
        // One at a time: further signals during the reading have no additional effect.
        if self.is_reading.swap(true, Ordering::SeqCst) {
            return;
        }
        let (logs, reloader) = (self.logs.clone(), self.reloader.clone());
        let is_reading = Arc::clone(&self.is_reading);
        // The disk with the settings may hang; the supervisor's thread must not wait for it.
        let begin = move || {
            begin_reload(&reloader, logs);
            is_reading.store(false, Ordering::SeqCst);
        };
        if let Err(error) = std::thread::Builder::new().name("reload".into()).spawn(begin) {
            self.is_reading.store(false, Ordering::SeqCst);
            self.logs.say(&format!("reload failed, the old generation keeps serving: {error}"));
        }
    }
}
