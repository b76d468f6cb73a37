//! Server's side of `samovar reload` and SIGUSR2.
//!
//! All settings are read again. The supervisor boots the application with them in new workers. When
//! these are ready, the front gets its part of the settings, and the new workers take over.

mod canary;
mod gate;
mod multi_pool;
mod parts;
mod transaction;

use crate::convert::{check_limits, front_settings, supervisor_settings};
use crate::engine;
use crate::pools::unknown;
use crate::publish;
use anyhow::{Context, Result, anyhow, bail};
use multi_pool::Round;
pub(crate) use parts::{Parts, Reloader};
use parts::{Prepared, Read, Served, Which};
use samovar_config::names::by_flag;
use samovar_config::{Pool, Settings, needs_restart, pools_need_restart, release_of};
use samovar_front::{PreparedTls, ValidSettings};
use samovar_wire::{ReloadOptions, ReloadResponse};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

impl Reloader {
    /// `labels` are those of the pools' releases, the default pool first.
    pub(crate) fn new(parts: Parts, labels: Vec<String>) -> Reloader {
        let own = parts.first.pools.iter().map(|pool| pool.settings.clone());
        let all = std::iter::once(parts.first.clone()).chain(own).zip(labels);
        let serving = all.map(|(settings, label)| Served::new(settings, label)).collect();
        Reloader(Arc::new(parts), Arc::new(Mutex::new(serving)))
    }

    /// Begins a reload of all pools, or of one. `done` is called once, on any thread, and must not
    /// block. The `error` of its argument is set if all or some pools failed.
    pub(crate) fn begin(
        &self,
        options: &ReloadOptions,
        done: impl FnOnce(ReloadResponse) + Send + 'static,
    ) {
        let since = Instant::now();
        if let Err(why) = self.0.state.begins_reload() {
            return done(ReloadResponse::refused(why.to_owned()));
        }
        let (wanted, read) =
            match self.wanted(options).and_then(|wanted| Ok((wanted, self.read()?))) {
                Ok(begun) => begun,
                Err(error) => {
                    let why = format!("{error:#}");
                    self.0.note_refusal(&why);
                    self.0.state.has_reloaded(0, false);
                    return done(ReloadResponse::refused(why));
                }
            };
        let plan = self.plan(read, options);
        let (mut prepared, mut refused) = (Vec::new(), Vec::new());
        for pool in wanted {
            match self.prepare(pool, plan.settings[pool.at].clone(), options) {
                Ok(ready) => prepared.push((pool, ready)),
                Err(error) => refused.push((pool, format!("{error:#}"))),
            }
        }
        let failed: Vec<usize> = refused.iter().map(|(pool, _)| pool.at).collect();
        if let Some(why) = plan.together.as_ref().and_then(|whole| whole.refusal(&failed, self)) {
            // Nothing is started that could not take over.
            refused.extend(prepared.drain(..).map(|(pool, _)| (pool, why.clone())));
        }
        let tells_boot = !prepared.is_empty();
        let (own, needs_restart, needs_all) =
            (self.clone(), plan.needs_restart.clone(), plan.needs_all.clone());
        let finish = move |mut response: ReloadResponse| {
            let Reloader(parts, _) = &own;
            response.needs_restart =
                if response.generation > 0 { needs_restart } else { Vec::new() };
            response.needs_all = needs_all;
            if response.generation > 0 && parts.pools.is_empty() {
                response.release = parts.releases.serving("").to_string();
            }
            for pool in response.pools.iter_mut().filter(|pool| pool.generation > 0) {
                pool.release = parts.releases.serving(&pool.name).to_string();
            }
            response.milliseconds = since.elapsed().as_millis().try_into().unwrap_or(0);
            let serves = parts.supervisor.report().generation;
            parts.state.has_reloaded(response.generation.max(serves), tells_boot);
            done(response);
        };
        let is_one = self.0.pools.is_empty();
        let round = Round::new(prepared.len() + refused.len(), is_one, Box::new(finish));
        if tells_boot {
            self.0.state.reloads();
        }
        let plan = Arc::new(plan);
        let orders: Vec<_> = prepared
            .into_iter()
            .map(|(pool, ready)| transaction::ordered(pool, ready, options, &plan))
            .collect();
        let gate = plan.together.is_some().then(|| self.gate(&plan));
        for (pool, why) in refused {
            self.note_failure(pool, &why);
            if let Some(gate) = &gate {
                gate.fails(pool.at);
            }
            round.ended(pool.name, Err(why));
        }
        for (pool, order) in orders {
            self.order(pool, order, (&plan, gate.as_ref()), &round, since);
        }
    }

    /// Returns the pools to reload.
    fn wanted(&self, options: &ReloadOptions) -> Result<Vec<Which<'_>>> {
        let is_wanted =
            |pool: &Which<'_>| options.pool.as_deref().is_none_or(|name| name == pool.name);
        let wanted: Vec<_> = self.0.pools().filter(is_wanted).collect();
        if wanted.is_empty() {
            let known: Vec<_> = self.0.pools().map(|pool| pool.name).collect();
            bail!(unknown(options.pool.as_deref().unwrap_or_default(), &known));
        }
        Ok(wanted)
    }

    /// Returns whether PHP's processes may send commands that change the server. The value from the
    /// server's start applies.
    pub(crate) fn obeys_php(&self) -> bool {
        self.0.first.control_from_php
    }

    /// Returns the longest `timeouts.boot` of the serving generations.
    pub(crate) fn boot_limit(&self) -> Duration {
        self.served().iter().map(|served| served.settings.timeouts.boot).max().unwrap_or_default()
    }

    /// Reads all settings again. Pools that the server does not have are ignored. Pools that the
    /// file no longer has stay.
    fn read(&self) -> Result<Read> {
        self.read_at(None)
    }

    /// As [`Self::read`]. `root`: document root of the default pool, instead of the one in the
    /// settings.
    fn read_at(&self, root: Option<&Path>) -> Result<Read> {
        let parts = &self.0;
        let sources = match root.map(Path::to_str) {
            None => parts.sources.clone(),
            Some(Some(root)) => parts.sources.clone().flag(by_flag("root"), root),
            Some(None) => bail!("`--root` must be valid UTF-8"),
        };
        let mut settings = sources.resolve().map_err(|problems| anyhow!("{problems}"))?;
        let mut restart: Vec<String> =
            needs_restart(&parts.first, &settings).into_iter().map(str::to_owned).collect();
        restart.extend(pools_need_restart(&parts.first, &settings));
        let served = self.served();
        let found = std::mem::take(&mut settings.pools);
        // The table of pools stays that of the default pool's generation: it assigns requests to
        // pools.
        let (all, own) = served.split_first().context("there is a default pool")?;
        settings.pools = (all.settings.pools.iter().zip(own))
            .map(|(now, own)| {
                let same = found.iter().find(|pool| pool.name == now.name).cloned();
                same.unwrap_or_else(|| Pool { settings: own.settings.clone(), ..now.clone() })
            })
            .collect();
        drop(served);
        keep(&mut settings, &parts.first);
        for (pool, first) in settings.pools.iter_mut().zip(&parts.first.pools) {
            keep(&mut pool.settings, &first.settings);
        }
        Ok(Read { settings, needs_restart: restart })
    }

    /// Performs all checks that are possible before a process is started.
    fn prepare(
        &self,
        pool: Which<'_>,
        settings: Settings,
        options: &ReloadOptions,
    ) -> Result<Prepared> {
        let (parts, force) = (&self.0, options.force);
        let program = samovar_config::locate_php(&settings)?;
        check_limits(&settings, parts.open_files)?;
        engine::recognise(&settings, &program)?;
        let of_front = ValidSettings::new(front_settings(&settings))?;
        let of_supervisor = supervisor_settings(
            &settings,
            program,
            parts.open_files,
            parts.environment.clone(),
            parts.ears[pool.at].clone(),
        );
        let of_supervisor = match pool.at {
            0 if parts.pools.is_empty() => of_supervisor,
            _ => of_supervisor.of_pool(pool.name),
        };
        if options.pool.is_some() {
            self.lies_apart(pool, &settings.root)?;
        }
        let release = release_of(&settings, options.release.as_deref())?;
        let next = Served::new(settings, release);
        let current = self.served();
        if let Some(why) = current[pool.at].lost_controller(&next).filter(|_| !force) {
            bail!(why);
        }
        let may_change_model = force || current[pool.at].means_another_model(&next);
        drop(current);
        let tls = if pool.at == 0 { self.certificates(&next.settings)? } else { None };
        let files = publish::read(&next.settings)?;
        Ok(Prepared { serving: next, of_supervisor, of_front, may_change_model, files, tls })
    }

    /// Reads the certificates again. A server that has given up root may lack the rights; then the
    /// old certificates stay.
    fn certificates(&self, settings: &Settings) -> Result<Option<PreparedTls>> {
        let has_some = !settings.tls.certificates.is_empty() || !settings.acme.domains.is_empty();
        let Some(tls) = self.0.tls.as_ref().filter(|_| has_some) else {
            return Ok(None);
        };
        match tls.prepare(settings) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(error) if error.is_for_want_of_rights() => {
                tracing::warn!(%error, "keeping the old certificates");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Keeps settings that are fixed at the server's start.
fn keep(settings: &mut Settings, first: &Settings) {
    settings.limits.queue_max = first.limits.queue_max;
    // Collecting of traces is fixed at the start: the front must not announce spans that are never
    // sent.
    settings.insight.otlp = first.insight.otlp.clone();
    settings.insight.enabled = first.insight.enabled;
    // Root may have created the folder for this user.
    settings.acme.folder.clone_from(&first.acme.folder);
    // The existence of tracing workers is fixed at the start, too.
    settings.profile = first.profile.clone();
}
