//! What the server does about `samovar reload` and SIGUSR2.
//!
//! All settings are read again. The supervisor boots the application by them in new workers; when these are up, the
//! front is given its part, and they take over.

mod gate;
mod parts;
mod round;
mod together;

use crate::convert::{check_limits, front_settings, supervisor_settings};
use crate::engine;
use crate::pools::unknown;
use crate::publish;
use anyhow::{Context, Result, anyhow, bail};
pub(crate) use parts::{Parts, Reloader};
use parts::{Prepared, Read, Served, Which};
use round::Round;
use samovar_config::{Pool, Settings, needs_restart, pools_need_restart};
use samovar_front::{PreparedTls, ValidSettings};
use samovar_wire::{ReloadAnswer, ReloadOptions};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

impl Reloader {
    pub(crate) fn new(parts: Parts) -> Reloader {
        let own = parts.first.pools.iter().map(|pool| pool.settings.clone());
        let serving = std::iter::once(parts.first.clone()).chain(own).map(Served::new).collect();
        Reloader(Arc::new(parts), Arc::new(Mutex::new(serving)))
    }

    /// Begins a reload of all pools, or of one. `done` is called once, on some thread, and must not block; the answer's `error`
    /// says whether it came to nothing, or not to all.
    pub(crate) fn begin(
        &self,
        options: &ReloadOptions,
        done: impl FnOnce(ReloadAnswer) + Send + 'static,
    ) {
        let since = Instant::now();
        if let Err(why) = self.0.state.begins_reload() {
            return done(ReloadAnswer::refused(why.to_owned()));
        }
        let (wanted, read) =
            match self.wanted(options).and_then(|wanted| Ok((wanted, self.read()?))) {
                Ok(begun) => begun,
                Err(error) => {
                    let why = format!("{error:#}");
                    self.0.note_refusal(&why);
                    self.0.state.has_reloaded(0, false);
                    return done(ReloadAnswer::refused(why));
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
            // Nothing is begun that could not take over.
            refused.extend(prepared.drain(..).map(|(pool, _)| (pool, why.clone())));
        }
        let tells_boot = !prepared.is_empty();
        let (own, needs_restart, needs_all) =
            (self.clone(), plan.needs_restart.clone(), plan.needs_all.clone());
        let finish = move |mut answer: ReloadAnswer| {
            let Reloader(parts, _) = &own;
            answer.needs_restart = if answer.generation > 0 { needs_restart } else { Vec::new() };
            answer.needs_all = needs_all;
            answer.milliseconds = since.elapsed().as_millis().try_into().unwrap_or(0);
            let serves = parts.supervisor.report().generation;
            parts.state.has_reloaded(answer.generation.max(serves), tells_boot);
            done(answer);
        };
        let is_one = self.0.pools.is_empty();
        let round = Round::new(prepared.len() + refused.len(), is_one, Box::new(finish));
        if tells_boot {
            self.0.state.reloads();
        }
        let plan = Arc::new(plan);
        let orders: Vec<_> = prepared
            .into_iter()
            .map(|(pool, ready)| together::ordered(pool, ready, options, &plan))
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

    /// Which pools are to be reloaded.
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

    /// Whether PHP's processes may give orders: as the server was started.
    pub(crate) fn obeys_php(&self) -> bool {
        self.0.first.control_from_php
    }

    /// The longest `timeouts.boot` of the generations that serve.
    pub(crate) fn boot_limit(&self) -> Duration {
        self.served().iter().map(|served| served.settings.timeouts.boot).max().unwrap_or_default()
    }

    /// All settings anew. Pools that the server does not have are left out, those that it has and the file has not stay.
    fn read(&self) -> Result<Read> {
        let parts = &self.0;
        let mut settings = parts.sources.resolve().map_err(|problems| anyhow!("{problems}"))?;
        let mut restart: Vec<String> =
            needs_restart(&parts.first, &settings).into_iter().map(str::to_owned).collect();
        restart.extend(pools_need_restart(&parts.first, &settings));
        let served = self.served();
        let found = std::mem::take(&mut settings.pools);
        // As the default pool's generation was begun with: that says which requests are whose.
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

    /// Everything that can be wrong before a process is started.
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
        let next = Served::new(settings);
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

/// What is made once, when the server starts.
fn keep(settings: &mut Settings, first: &Settings) {
    settings.limits.queue_max = first.limits.queue_max;
    // Whether traces are collected is decided once: the front must not promise spans that nobody sends.
    settings.insight.otlp = first.insight.otlp.clone();
    settings.insight.enabled = first.insight.enabled;
    // Root may have made it, for this user.
    settings.acme.folder.clone_from(&first.acme.folder);
    // Whether there are workers that trace, likewise.
    settings.profile = first.profile.clone();
}
