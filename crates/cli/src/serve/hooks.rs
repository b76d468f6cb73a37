//! The supervisor's news → the log, the service manager, the front.

use super::limits::Limits;
use super::succession::Beginning;
use super::ways::SlowLogFile;
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
use samovar_wire::{ReloadAnswer, ReloadOptions, UpgradeAnswer, UpgradeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What a run of the supervisor brings about outside of it.
pub(super) struct Hooks {
    pub(super) beginning: Beginning,
    /// The server that this one is to take over from.
    pub(super) predecessor: Option<Predecessor>,
    pub(super) upgrader: Upgrader,
    pub(super) endings: Endings,
    pub(super) front: FrontHandle,
    pub(super) reloader: Reloader,
    /// A signal to reload is being answered: its settings are read.
    pub(super) is_reading: Arc<AtomicBool>,
    pub(super) logs: Logs,
    pub(super) state: ServiceState,
    pub(super) insight: Option<Arc<Insight>>,
    pub(super) slow_log: SlowLogFile,
    /// Beside the default one.
    pub(super) pools: Pools,
    pub(super) limits: Limits,
    pub(super) watchdog: Watchdog,
}

impl Hooks {
    /// For the history.
    fn note(&self, kind: EventKind, text: String) {
        if let Some(insight) = &self.insight {
            insight.event(kind, text);
        }
    }
}

/// Whoever sends a signal reads the log: both ends are told there, whatever its level is.
fn begin_reload(reloader: &Reloader, logs: Logs) {
    reloader.begin(&ReloadOptions::default(), move |answer| match answer {
        ReloadAnswer { error: Some(why), .. } => {
            logs.say(&format!("no reload, the old generation goes on: {why}"));
        }
        ReloadAnswer { pools, .. } if !pools.is_empty() => logs.say("the new generations serve"),
        ReloadAnswer { generation, .. } => logs.say(&format!("generation {generation} serves")),
    });
}

/// Likewise.
fn begin_upgrade(upgrader: &Upgrader, logs: Logs) {
    let done = move |answer: UpgradeAnswer, _| match answer.error {
        Some(why) => logs.say(&format!("no upgrade, this server goes on: {why}")),
        None => logs.say(&format!("process {} (samovar {}) serves", answer.pid, answer.version)),
    };
    upgrader.begin(UpgradeOptions::default(), Box::new(done));
}

impl samovar_supervisor::Hooks for Hooks {
    fn ready(&mut self, boot: Boot) {
        let Some(predecessor) = &self.predecessor else { return self.beginning.say() };
        if let Err(why) = predecessor.booted(boot) {
            self.logs.say(&format!("this server does not take over: {why}"));
            // Which ends the channel, and by that this server.
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
        // One at a time: more signals than that mean no more than one.
        if self.is_reading.swap(true, Ordering::SeqCst) {
            return;
        }
        let (logs, reloader) = (self.logs.clone(), self.reloader.clone());
        let is_reading = Arc::clone(&self.is_reading);
        // The settings' disk may hang, and nobody would supervise meanwhile.
        let begin = move || {
            begin_reload(&reloader, logs);
            is_reading.store(false, Ordering::SeqCst);
        };
        if let Err(error) = std::thread::Builder::new().name("reload".into()).spawn(begin) {
            self.is_reading.store(false, Ordering::SeqCst);
            self.logs.say(&format!("no reload, the old generation goes on: {error}"));
        }
    }
}
