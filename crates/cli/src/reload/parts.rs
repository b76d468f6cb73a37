//! What reloads have in hand: what does not change, by what each pool's generation was booted, what is prepared.

use crate::convert::Ears;
use crate::pools::Pools;
use crate::publish::FromFile;
use crate::service::ServiceState;
use rustix::process::Rlimit;
use samovar_acme::Keeper;
use samovar_config::{DEFAULT_POOL, Settings, Sources};
use samovar_front::{FrontHandle, PreparedTls, Tls, ValidSettings};
use samovar_insight::Insight;
use samovar_insight::store::EventKind;
use samovar_published::Publishing;
use samovar_supervisor::Handle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Begins reloads, and remembers by what the generation that serves was booted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reloader(pub(super) Arc<Parts>, pub(super) Arc<Mutex<Vec<Served>>>);

/// What does not change from one reload to the next.
pub(crate) struct Parts {
    pub(crate) sources: Sources,
    /// By which the server was started: some of them hold until it ends.
    pub(crate) first: Settings,
    /// Variables that the template has otherwise than this process.
    pub(crate) environment: Vec<(String, Option<String>)>,
    /// The limit of open files that PHP is to have.
    pub(crate) open_files: Rlimit,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
    pub(crate) state: ServiceState,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Who looks after certificates.
    pub(crate) keeper: Option<Keeper>,
    pub(crate) insight: Option<Arc<Insight>>,
    /// Who hears of call graphs, and of what is loaded.
    /// Of each pool, the default one first.
    pub(crate) ears: Vec<Ears>,
    pub(crate) published: Publishing,
    /// Beside the default one.
    pub(crate) pools: Pools,
}

impl Parts {
    /// For the history.
    pub(super) fn note(&self, kind: EventKind, text: impl FnOnce() -> String) {
        if let Some(insight) = &self.insight {
            insight.event(kind, text());
        }
    }

    /// Whose history it is, where there are several pools.
    pub(super) fn prefix(&self, pool: Which<'_>) -> String {
        if self.pools.is_empty() { String::new() } else { format!("pool {}: ", pool.name) }
    }

    pub(super) fn note_refusal(&self, why: &str) {
        // The hint is for whoever has asked.
        self.note(EventKind::ReloadFailed, || why.lines().next().unwrap_or_default().to_owned());
    }
}

/// What the generation of a pool that serves was booted by.
pub(super) struct Served {
    pub(super) settings: Settings,
    pub(super) has_empty_controller: bool,
    /// Those of the one before.
    pub(super) before: Option<Settings>,
}

impl Served {
    pub(super) fn new(settings: Settings) -> Served {
        let controller = settings.front_controller.as_ref();
        let has_empty_controller =
            controller.is_some_and(|file| file.metadata().is_ok_and(|found| found.len() == 0));
        Served { settings, has_empty_controller, before: None }
    }

    /// Why the next must not follow, going by the disk alone.
    pub(super) fn lost_controller(&self, next: &Served) -> Option<String> {
        let hint = "hint: `samovar reload --force` lets it go";
        match (&self.settings.front_controller, &next.settings.front_controller) {
            (Some(old), None) => Some(format!(
                "the front controller is gone: there is no `{}` any more\n{hint}",
                next.settings.root.join(old.file_name()?).display()
            )),
            (Some(_), Some(new)) if next.has_empty_controller && !self.has_empty_controller => {
                Some(format!("the front controller `{}` is empty\n{hint}", new.display()))
            }
            _ => None,
        }
    }

    /// Whether somebody has set what decides about the model.
    pub(super) fn means_another_model(&self, next: &Served) -> bool {
        let (old, new) = (&self.settings, &next.settings);
        old.compat != new.compat
            || old.rollback_every != new.rollback_every
            || old.whole_scripts != new.whole_scripts
            || old.checkpoint_after.is_some() != new.checkpoint_after.is_some()
    }
}

/// What one pool's reload is begun with.
pub(super) struct Prepared {
    pub(super) serving: Served,
    pub(super) of_supervisor: samovar_supervisor::Settings,
    pub(super) of_front: ValidSettings,
    pub(super) may_change_model: bool,
    pub(super) files: Vec<FromFile>,
    /// `None`: the certificates stay what they are.
    pub(super) tls: Option<PreparedTls>,
}

/// All settings as they are now, as far as a running server can have them.
pub(super) struct Read {
    pub(super) settings: Settings,
    pub(super) needs_restart: Vec<String>,
}

/// A pool of this server: the default one has number 0.
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
