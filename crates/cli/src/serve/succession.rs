//! One server after another: what this one does when it takes over, and when another takes over from it.

use crate::control::clients::Door;
use crate::control::socket::Socket;
use crate::handover::predecessor::Entry;
use crate::logging::Logs;
use crate::reload::Reloader;
use crate::service::{ServiceState, Watchdog};
use crate::upgrade::{Inventory, Serving};
use samovar_admin::Admin;
use samovar_front::FrontHandle;
use samovar_front::listeners::Handed;
use samovar_insight::Insight;
use samovar_insight::store::EventKind;
use samovar_supervisor::{Command, Elsewhere, Handle};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All that takes something in.
#[derive(Clone)]
pub(super) struct Entrances {
    pub(super) front: FrontHandle,
    pub(super) admin: Option<Arc<Admin>>,
    pub(super) control: Arc<Socket>,
    pub(super) door: Door,
    pub(super) supervisor: Handle,
    pub(super) insight: Option<Arc<Insight>>,
}

impl Entrances {
    /// Commands, and pages for operators. The front's listeners follow by themselves, unless it is held.
    pub(super) fn open(&self) {
        self.control.own(true);
        self.door.open(true);
        if let Some(admin) = &self.admin {
            admin.begin();
        }
    }
}

impl Entrances {
    /// The end.
    pub(super) fn close(&self) {
        self.control.remove();
        if let Some(admin) = &self.admin {
            admin.leave();
        }
    }
}

/// What is said and done when this server begins to serve.
#[derive(Clone)]
pub(super) struct Beginning {
    pub(super) addresses: Vec<String>,
    pub(super) control: PathBuf,
    pub(super) logs: Logs,
    pub(super) state: ServiceState,
    pub(super) insight: Option<Arc<Insight>>,
}

impl Beginning {
    pub(super) fn say(&self) {
        // The line that people, scripts and tests wait for; not a log line, so no log level hides it.
        let control = self.control.display();
        self.logs.say(&format!("listening on {} (control {control})", self.addresses.join(" ")));
        self.state.serves(1);
        if let Some(insight) = &self.insight {
            insight.event(EventKind::Start, self.addresses.join(" "));
        }
    }
}

/// This server takes over.
pub(super) struct TakingOver {
    pub(super) entrances: Entrances,
    pub(super) beginning: Beginning,
}

impl Entry for TakingOver {
    fn go(&self) {
        self.entrances.front.begin();
        self.entrances.open();
        self.beginning.say();
    }

    fn consoles(&self, elsewhere: Elsewhere) {
        self.entrances.supervisor.send(Command::Consoles(elsewhere));
    }

    fn abandoned(&self) {
        self.beginning
            .logs
            .say("the server that has started this one goes on without it, or has ended");
        self.entrances.front.drain();
        // Nothing of it has answered anybody.
        self.entrances.supervisor.send(Command::StopNow);
    }
}

/// Another one takes over.
pub(super) struct Leaving {
    pub(super) entrances: Entrances,
    pub(super) reloader: Reloader,
}

impl Serving for Leaving {
    fn listeners(&self) -> std::io::Result<Vec<Handed>> {
        self.entrances.front.listeners()
    }

    fn boots(&self) -> bool {
        !self.entrances.supervisor.report().boot_failed
    }

    fn boot_limit(&self) -> Duration {
        self.reloader.boot_limit()
    }

    fn leave(&self) {
        self.entrances.control.own(false);
        self.entrances.door.open(false);
        if let Some(admin) = &self.entrances.admin {
            admin.leave();
        }
        self.entrances.supervisor.send(Command::Draining);
        self.entrances.front.hand_over();
        if let Some(insight) = &self.entrances.insight {
            insight.event(EventKind::Stop, "another server has taken over".to_owned());
            insight.stop_listening();
        }
    }

    fn nudge(&self) {
        self.entrances.supervisor.nudge();
    }

    fn consoles(&self) -> Option<Vec<(String, usize)>> {
        let report = self.entrances.supervisor.report();
        report.is_ending.then_some(report.living_consoles)
    }
}

/// Variables that a successor has otherwise than this process: a service manager's word for the one that it has started.
pub(super) fn environment(of_php: Vec<(String, Option<String>)>) -> Vec<(String, Option<String>)> {
    let goes_on = |name: &str| matches!(name, "NOTIFY_SOCKET" | "WATCHDOG_USEC");
    let is_watched = Watchdog::is_of_this_process();
    of_php
        .into_iter()
        .filter(|(name, _)| !(goes_on(name) && (name != "WATCHDOG_USEC" || is_watched)))
        .collect()
}

/// Copies of what a successor gets beside the front's listeners.
pub(super) fn inventory(
    admin: (&[samovar_config::Listen], &[TcpListener]),
    pinba: Option<(String, std::os::fd::OwnedFd)>,
    control: &Socket,
) -> std::io::Result<Inventory> {
    let (entries, sockets) = admin;
    let copy = |(at, socket): (&samovar_config::Listen, &TcpListener)| {
        Ok((at.to_string(), socket.try_clone()?.into()))
    };
    Ok(Inventory {
        admin: entries.iter().zip(sockets).map(copy).collect::<std::io::Result<_>>()?,
        pinba: pinba.into_iter().collect(),
        control: Some((control.path.clone(), control.copy()?)),
    })
}
