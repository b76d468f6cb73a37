//! What the server does about `samovar reload` and SIGUSR2.
//!
//! All settings are read again. The supervisor boots the application by them in new workers; when these are up, the
//! front is given its part, and they take over.

use crate::certificates;
use crate::convert::{Ears, front_settings, supervisor_settings};
use crate::publish::{self, FromFile};
use crate::service::ServiceState;
use anyhow::{Result, anyhow, bail};
use rustix::process::Rlimit;
use samovar_acme::Keeper;
use samovar_config::{Settings, Sources, needs_restart};
use samovar_front::{FrontHandle, PreparedTls, Tls, ValidSettings};
use samovar_insight::Insight;
use samovar_insight::store::EventKind;
use samovar_published::Publishing;
use samovar_supervisor::{Command, Handle, Reload};
use samovar_wire::{ReloadAnswer, ReloadOptions};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Begins reloads, and remembers by what the generation that serves was booted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reloader(Arc<Parts>, Arc<Mutex<Served>>);

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
    pub(crate) ears: Ears,
    pub(crate) published: Publishing,
}

impl Parts {
    /// For the history.
    fn note(&self, kind: EventKind, text: impl FnOnce() -> String) {
        if let Some(insight) = &self.insight {
            insight.event(kind, text());
        }
    }

    fn note_refusal(&self, why: &str) {
        // The hint is for whoever has asked.
        self.note(EventKind::ReloadFailed, || why.lines().next().unwrap_or_default().to_owned());
    }
}

/// What the generation that serves was booted by.
struct Served {
    settings: Settings,
    has_empty_controller: bool,
}

impl Served {
    fn new(settings: Settings) -> Served {
        let controller = settings.front_controller.as_ref();
        let has_empty_controller =
            controller.is_some_and(|file| file.metadata().is_ok_and(|found| found.len() == 0));
        Served { settings, has_empty_controller }
    }

    /// Why the next must not follow, going by the disk alone.
    fn lost_controller(&self, next: &Served) -> Option<String> {
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
    fn means_another_model(&self, next: &Served) -> bool {
        let (old, new) = (&self.settings, &next.settings);
        old.compat != new.compat
            || old.rollback_every != new.rollback_every
            || old.whole_scripts != new.whole_scripts
            || old.checkpoint_after.is_some() != new.checkpoint_after.is_some()
    }
}

/// Everything that a reload is begun with.
struct Prepared {
    serving: Served,
    of_supervisor: samovar_supervisor::Settings,
    of_front: ValidSettings,
    needs_restart: Vec<String>,
    may_change_model: bool,
    files: Vec<FromFile>,
    /// `None`: the certificates stay what they are.
    tls: Option<PreparedTls>,
}

impl Reloader {
    pub(crate) fn new(parts: Parts) -> Reloader {
        let serving = Served::new(parts.first.clone());
        Reloader(Arc::new(parts), Arc::new(Mutex::new(serving)))
    }

    /// Begins a reload. `done` is called once, on some thread, and must not block; the answer's `error` says whether it
    /// came to nothing.
    pub(crate) fn begin(
        &self,
        options: &ReloadOptions,
        done: impl FnOnce(ReloadAnswer) + Send + 'static,
    ) {
        let since = Instant::now();
        if let Err(why) = self.0.state.begins_reload() {
            return done(ReloadAnswer::refused(why.to_owned()));
        }
        match self.prepare(options.force) {
            Err(error) => {
                let why = format!("{error:#}");
                self.0.note_refusal(&why);
                self.0.state.has_reloaded(0, false);
                done(ReloadAnswer::refused(why));
            }
            Ok(prepared) => {
                let probe = self.probe(options, &prepared);
                let Prepared { serving, of_supervisor, of_front, needs_restart, .. } = prepared;
                let Prepared { may_change_model, files, tls, .. } = prepared;
                let reloader = self.clone();
                let tell = move |outcome: Result<u64, String>| {
                    let Reloader(parts, current) = &reloader;
                    let answer = match outcome {
                        Err(why) => {
                            parts.note_refusal(&why);
                            ReloadAnswer::refused(why)
                        }
                        Ok(generation) => {
                            parts.front.switch(of_front);
                            let publisher = parts.published.publisher();
                            if let Err(error) = publish::publish(publisher, &files) {
                                tracing::warn!("not all files are published: {error:#}");
                            }
                            if let (Some(tls), Some(prepared)) = (&parts.tls, tls) {
                                tls.install(prepared);
                            }
                            if let Some(keeper) = &parts.keeper {
                                keeper.change(certificates::plan(&serving.settings));
                            }
                            let mut served = current.lock().unwrap_or_else(PoisonError::into_inner);
                            let before = std::mem::replace(&mut *served, serving);
                            let changed = before.settings.changed(&served.settings);
                            drop(served);
                            let milliseconds = since.elapsed().as_millis().try_into().unwrap_or(0);
                            if !changed.is_empty() {
                                parts.note(EventKind::Config, || changed.join(", "));
                            }
                            parts.note(EventKind::Reload, || {
                                format!("generation {generation} took over after {milliseconds} ms")
                            });
                            ReloadAnswer { generation, milliseconds, needs_restart, error: None }
                        }
                    };
                    let serves = match answer.generation {
                        0 => parts.supervisor.report().generation,
                        new => new,
                    };
                    parts.state.has_reloaded(serves, true);
                    done(answer);
                };
                let settings = Box::new(of_supervisor);
                let reload = Reload { settings, probe, may_change_model, done: Box::new(tell) };
                self.0.state.reloads();
                self.0.supervisor.send(Command::Reload(reload));
            }
        }
    }

    /// `timeouts.boot` of the generation that serves.
    pub(crate) fn boot_limit(&self) -> Duration {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).settings.timeouts.boot
    }

    /// What the new workers are asked before they take over.
    fn probe(
        &self,
        options: &ReloadOptions,
        prepared: &Prepared,
    ) -> Option<samovar_supervisor::Probe> {
        let target =
            options.probe.clone().or_else(|| prepared.serving.settings.reload_probe.clone());
        let target = target.filter(|_| !options.force)?;
        let (front, next) = (self.0.front.clone(), prepared.of_front.clone());
        Some(Box::new(move |done| {
            front.probe(target, next, Box::new(|came| done(came.map(|probed| probed.is_app))));
        }))
    }

    /// Everything that can be wrong before a process is started.
    fn prepare(&self, force: bool) -> Result<Prepared> {
        let parts = &self.0;
        let mut settings = parts.sources.resolve().map_err(|problems| anyhow!("{problems}"))?;
        let restart = needs_restart(&parts.first, &settings);
        settings.limits.queue_max = parts.first.limits.queue_max;
        // Whether traces are collected is decided once: the front must not promise spans that nobody sends.
        settings.insight.otlp = parts.first.insight.otlp.clone();
        settings.insight.enabled = parts.first.insight.enabled;
        // Root may have made it, for this user.
        settings.acme.folder = parts.first.acme.folder.clone();
        // Whether there are workers that trace, likewise.
        settings.profile = parts.first.profile.clone();
        let program = samovar_config::locate_php(&settings)?;
        let of_front = ValidSettings::new(front_settings(&settings))?;
        let of_supervisor = supervisor_settings(
            &settings,
            program,
            parts.open_files,
            parts.environment.clone(),
            parts.ears.clone(),
        );
        let next = Served::new(settings);
        let current = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = current.lost_controller(&next).filter(|_| !force) {
            bail!(why);
        }
        let may_change_model = force || current.means_another_model(&next);
        drop(current);
        let needs_restart = restart.into_iter().map(str::to_owned).collect();
        let tls = self.certificates(&next.settings)?;
        let files = publish::read(&next.settings)?;
        Ok(Prepared {
            serving: next,
            of_supervisor,
            of_front,
            needs_restart,
            may_change_model,
            files,
            tls,
        })
    }

    /// Reads them again. A server that has given up root may lack the right to: then the old ones hold.
    fn certificates(&self, settings: &Settings) -> Result<Option<PreparedTls>> {
        let has_some = !settings.tls.certificates.is_empty() || !settings.acme.domains.is_empty();
        let Some(tls) = self.0.tls.as_ref().filter(|_| has_some) else {
            return Ok(None);
        };
        match tls.prepare(settings) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(error) if error.is_for_want_of_rights() => {
                tracing::warn!(%error, "the certificates stay what they are");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
