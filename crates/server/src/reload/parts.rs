//! Data of reloads: the constant parts, the settings of each pool's serving generation, and
//! prepared reloads.

use crate::canary::Canaries;
use crate::convert::Ears;
use crate::pools::Pools;
use crate::publish::FromFile;
use crate::schedules::Scheduling;
use crate::service::ServiceState;
use rustix::process::Rlimit;
use samovar_acme::Keeper;
use samovar_config::{DEFAULT_POOL, Settings, Sources};
use samovar_front::{FrontHandle, PreparedTls, Tls, ValidSettings};
use samovar_insight::store::EventKind;
use samovar_insight::{Insight, Release, Releases};
use samovar_published::Publishing;
use samovar_supervisor::Handle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Begins reloads, and remembers the settings of the serving generations. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reloader(pub(super) Arc<Parts>, pub(super) Arc<Mutex<Vec<Served>>>);

/// Data that does not change between reloads.
pub(crate) struct Parts {
    pub(crate) sources: Sources,
    /// Settings from the server's start; some of them apply until it ends.
    pub(crate) first: Settings,
    /// Environment variables that differ for the template.
    pub(crate) environment: Vec<(String, Option<String>)>,
    /// Limit of open files for PHP.
    pub(crate) open_files: Rlimit,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
    pub(crate) state: ServiceState,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Keeper of issued certificates.
    pub(crate) keeper: Option<Keeper>,
    pub(crate) insight: Option<Arc<Insight>>,
    pub(crate) canaries: Canaries,
    pub(crate) releases: Releases,
    /// Receivers of call graphs and load reports of each pool, the default pool first.
    pub(crate) ears: Vec<Ears>,
    pub(crate) published: Publishing,
    pub(crate) schedules: Scheduling,
    /// Pools other than the default one.
    pub(crate) pools: Pools,
}

impl Parts {
    /// Records an event for the history.
    pub(super) fn note(&self, kind: EventKind, text: impl FnOnce() -> String) {
        if let Some(insight) = &self.insight {
            insight.event(kind, text());
        }
    }

    /// Records that a generation of a pool serves from now on.
    pub(super) fn note_release(
        &self,
        (pool, generation): (Which<'_>, u64),
        label: &str,
        text: impl FnOnce(&str) -> String,
    ) {
        let named = if label.is_empty() { String::new() } else { format!(", release {label},") };
        let text = text(&named);
        let release = self.release(pool, generation, label);
        match &self.insight {
            Some(insight) => insight.release(EventKind::Reload, text, vec![release]),
            None => self.releases.begin(release),
        }
    }

    /// Returns a generation of a pool with its label.
    pub(super) fn release(&self, pool: Which<'_>, generation: u64, label: &str) -> Release {
        let (at, pool) = (samovar_insight::now(), self.name_of(pool));
        Release { at, pool, generation, label: label.into() }
    }

    /// Returns the name of a pool in figures; empty if the server has one pool.
    pub(super) fn name_of(&self, pool: Which<'_>) -> String {
        if self.pools.is_empty() { String::new() } else { pool.name.to_owned() }
    }

    /// Returns the prefix of an event's text, if there are several pools.
    pub(super) fn prefix(&self, pool: Which<'_>) -> String {
        if self.pools.is_empty() { String::new() } else { format!("pool {}: ", pool.name) }
    }

    pub(super) fn note_refusal(&self, why: &str) {
        // The hint is only for the client that requested the reload.
        self.note(EventKind::ReloadFailed, || why.lines().next().unwrap_or_default().to_owned());
    }
}

/// Settings of a pool's serving generation.
pub(super) struct Served {
    pub(super) settings: Settings,
    /// Label of the release; empty: none was given.
    pub(super) release: String,
    pub(super) has_empty_controller: bool,
    /// Settings and label of the generation before.
    pub(super) before: Option<(Settings, String)>,
}

impl Served {
    pub(super) fn new(settings: Settings, release: String) -> Served {
        let controller = settings.front_controller.as_ref();
        let has_empty_controller =
            controller.is_some_and(|file| file.metadata().is_ok_and(|found| found.len() == 0));
        Served { settings, release, has_empty_controller, before: None }
    }

    /// Returns the reason why the next generation must not follow, from the state of the disk only.
    pub(super) fn lost_controller(&self, next: &Served) -> Option<String> {
        let hint = "hint: `samovar reload --force` accepts this";
        match (&self.settings.front_controller, &next.settings.front_controller) {
            (Some(old), None) => Some(format!(
                "the front controller `{}` no longer exists\n{hint}",
                next.settings.root.join(old.file_name()?).display()
            )),
            (Some(_), Some(new)) if next.has_empty_controller && !self.has_empty_controller => {
                Some(format!("the front controller `{}` is empty\n{hint}", new.display()))
            }
            _ => None,
        }
    }

    /// Returns whether a setting that selects the execution model was changed.
    pub(super) fn means_another_model(&self, next: &Served) -> bool {
        let (old, new) = (&self.settings, &next.settings);
        old.compat != new.compat
            || old.rollback_every != new.rollback_every
            || old.disable_checkpoint != new.disable_checkpoint
            || old.checkpoint_after.is_some() != new.checkpoint_after.is_some()
    }
}

/// A prepared reload of one pool.
pub(super) struct Prepared {
    pub(super) serving: Served,
    pub(super) of_supervisor: samovar_supervisor::Settings,
    pub(super) of_front: ValidSettings,
    pub(super) may_change_model: bool,
    pub(super) files: Vec<FromFile>,
    /// `None`: the certificates are not replaced.
    pub(super) tls: Option<PreparedTls>,
}

/// All current settings, limited to changes that a running server can apply.
pub(super) struct Read {
    pub(super) settings: Settings,
    pub(super) needs_restart: Vec<String>,
}

/// One pool of this server; the default pool has index 0.
#[derive(Clone, Copy)]
pub(super) struct Which<'a> {
    pub(super) at: usize,
    pub(super) name: &'a str,
    pub(super) front: &'a FrontHandle,
    pub(super) supervisor: &'a Handle,
    pub(super) published: &'a Publishing,
}

impl Parts {
    pub(super) fn pools(&self) -> impl Iterator<Item = Which<'_>> {
        let Parts { front, supervisor, published, .. } = self;
        let first = Which { at: 0, name: DEFAULT_POOL, front, supervisor, published };
        let others = self.pools.iter().enumerate().map(|(at, pool)| Which {
            at: at + 1,
            name: &pool.name,
            front: &pool.front,
            supervisor: &pool.supervisor,
            published: &pool.published,
        });
        std::iter::once(first).chain(others)
    }
}

impl Reloader {
    pub(super) fn served(&self) -> MutexGuard<'_, Vec<Served>> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_failure(&self, pool: Which<'_>, why: &str) {
        if self.0.pools.is_empty() {
            self.0.note_refusal(why);
        } else {
            self.0.note_refusal(&format!("pool {}: {why}", pool.name));
        }
    }
}
