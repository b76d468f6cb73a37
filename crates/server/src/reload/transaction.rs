//! Applies the changes of a reload: in a single pool when its generation takes over, or in all
//! pools at once or in none, if settings of the whole server have changed.

use super::gate::Gate;
use super::multi_pool::Round;
use super::parts::{Prepared, Read, Reloader, Served, Which};
use crate::certificates;
use crate::convert::front_settings;
use crate::publish::{self, FromFile};
use anyhow::{Result, bail};
use samovar_config::{Pool, Settings};
use samovar_front::{FrontHandle, PreparedTls, ValidSettings};
use samovar_insight::store::EventKind;
use samovar_supervisor::{Command, Probe, Reload};
use samovar_wire::ReloadOptions;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Planned changes of one reload.
pub(super) struct Plan {
    /// Settings of each pool, the default pool first.
    pub(super) settings: Vec<Settings>,
    pub(super) needs_restart: Vec<String>,
    /// Keys that take effect only when all pools are reloaded.
    pub(super) needs_all: Vec<String>,
    /// Set if all pools take over together; `None`: each pool takes over separately.
    pub(super) together: Option<Together>,
    /// Changes that take effect with each pool's generation, by the pool's index, until they do.
    brought: Mutex<BTreeMap<usize, Brought>>,
}

/// Reason why all pools take over, or none.
pub(super) struct Together {
    /// Description of the change, for people.
    what: String,
    /// Whether pools that fail keep their generation, with the server's new settings.
    goes_on: bool,
}

/// Changes that take effect with a generation.
pub(super) struct Brought {
    serving: Served,
    of_front: ValidSettings,
    files: Vec<FromFile>,
    tls: Option<PreparedTls>,
}

/// Order to the supervisor.
pub(super) struct Order {
    pub(super) settings: Box<samovar_supervisor::Settings>,
    pub(super) probe: Option<Probe>,
    pub(super) may_change_model: bool,
}

impl Plan {
    pub(super) fn brought(&self) -> MutexGuard<'_, BTreeMap<usize, Brought>> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Together {
    /// Returns the reason why no pool takes over after these have failed. Returns `None` if the
    /// others may take over.
    pub(super) fn refusal(&self, failed: &[usize], reloader: &Reloader) -> Option<String> {
        if failed.is_empty() || self.goes_on {
            return None;
        }
        let name = |at: &usize| reloader.0.pools().nth(*at).map(|pool| format!("`{}`", pool.name));
        let names: Vec<String> = failed.iter().filter_map(name).collect();
        Some(format!(
            "the reload is cancelled in all pools: {} for all pools, so that they switch \
             together, and {} failed\nhint: fix that; `samovar reload --pool` applies only the \
             settings of one pool, `--force` continues without the failed pools",
            self.what,
            names.join(", ")
        ))
    }
}

impl Reloader {
    /// Returns the plan for the current settings. A reload of one pool changes only that pool's own
    /// settings.
    pub(super) fn plan(&self, read: Read, options: &ReloadOptions) -> Plan {
        let Read { settings: all, needs_restart } = read;
        let served = self.served();
        let is_one = served.len() == 1;
        let changed = if is_one { Vec::new() } else { served[0].settings.changed_for_all(&all) };
        let others: Vec<Settings> = all.pools.iter().map(|pool| pool.settings.clone()).collect();
        let mut settings: Vec<Settings> = std::iter::once(all).chain(others).collect();
        let is_partial = options.pool.is_some() && !is_one;
        if is_partial {
            let own = settings.iter().zip(served.iter());
            settings = own.map(|(next, now)| now.settings.with_own(next)).collect();
        }
        let crossing = !is_partial && crosses(&served, &settings);
        let what = match (changed.is_empty(), crossing) {
            (true, true) => "pools swap their roots".to_owned(),
            _ => format!("`{}` has changed", changed.join("`, `")),
        };
        let is_together = !is_one && !is_partial && (crossing || !changed.is_empty());
        Plan {
            settings,
            needs_restart,
            needs_all: if is_partial { changed } else { Vec::new() },
            together: is_together.then_some(Together { what, goes_on: options.force && !crossing }),
            brought: Mutex::default(),
        }
    }

    /// Checks that the folder is not inside another pool's root, or around it. Otherwise files
    /// would be reached by the rules of the wrong pool.
    pub(super) fn lies_apart(&self, pool: Which<'_>, root: &Path) -> Result<()> {
        let served = self.served();
        let mut others = served.iter().enumerate().filter(|(at, _)| *at != pool.at);
        let Some((at, other)) = others.find(|(_, other)| are_nested(root, &other.settings.root))
        else {
            return Ok(());
        };
        let name = self.0.pools().nth(at).map_or_else(String::new, |pool| pool.name.to_owned());
        bail!(
            "the root `{}` and the root `{}` of pool `{name}` are nested\nhint: use separate \
             folders, or the same folder; or reload all pools",
            root.display(),
            other.settings.root.display()
        );
    }

    /// Sends the order to the pool's supervisor.
    pub(super) fn order(
        &self,
        pool: Which<'_>,
        order: Order,
        (plan, gate): (&Arc<Plan>, Option<&Gate>),
        round: &Round,
        since: Instant,
    ) {
        let Order { settings, probe, may_change_model } = order;
        let (reloader, round, at) = (self.clone(), round.clone(), pool.at);
        let (plan, gate, waits) = (Arc::clone(plan), gate.cloned(), gate.cloned());
        let label = plan.brought().get(&pool.at).map(|brought| brought.serving.release.clone());
        self.0.releases.expect(&self.0.name_of(pool), &label.unwrap_or_default());
        let tell = move |outcome: Result<u64, String>| {
            let Reloader(parts, _) = &reloader;
            let Some(pool) = parts.pools().nth(at) else { return };
            match &outcome {
                Err(why) => {
                    parts.releases.keep(&parts.name_of(pool));
                    reloader.note_failure(pool, why);
                    if gate.is_some_and(|gate| gate.fails(at)) {
                        reloader.leave_behind(at, &plan);
                    }
                }
                Ok(generation) => {
                    if gate.is_none() {
                        let own = plan.brought().remove(&at);
                        reloader.take_over(own.map(|brought| (at, brought)).into_iter().collect());
                    }
                    let of = parts.prefix(pool);
                    let milliseconds = since.elapsed().as_millis();
                    let label = reloader.served()[at].release.clone();
                    parts.note_release((pool, *generation), &label, |named| {
                        format!(
                            "{of}generation {generation}{named} took over after {milliseconds} ms"
                        )
                    });
                }
            }
            round.ended(pool.name, outcome);
        };
        let gate = waits.map(|gate| -> samovar_supervisor::Gate {
            Box::new(move |_, done| gate.arrives(at, done))
        });
        let (done, is_canary) = (Box::new(tell), false);
        let reload = Reload { settings, probe, gate, is_canary, may_change_model, done };
        pool.supervisor.send(Command::Reload(reload));
    }

    /// Creates the gate where all pools wait for each other. Their changes take effect at once in
    /// all of them.
    pub(super) fn gate(&self, plan: &Arc<Plan>) -> Gate {
        let (reloader, plan) = (self.clone(), Arc::clone(plan));
        let decide = move |failed: &[usize]| {
            let whole = plan.together.as_ref();
            if let Some(why) = whole.and_then(|whole| whole.refusal(failed, &reloader)) {
                return Err(why);
            }
            let mut brought = std::mem::take(&mut *plan.brought());
            brought.retain(|at, _| !failed.contains(at));
            if brought.is_empty() {
                return Err("all pools failed".to_owned());
            }
            for at in failed {
                // The pool's generation continues with the server's new settings.
                let behind = reloader.behind(*at, &plan).map_err(|error| format!("{error:#}"))?;
                brought.insert(*at, behind);
            }
            reloader.take_over(brought);
            Ok(())
        };
        Gate::new(self.served().len(), Box::new(decide))
    }

    /// Handles a pool that has failed after all pools had passed the gate.
    fn leave_behind(&self, at: usize, plan: &Plan) {
        let own = |served: &Served| served.before.clone();
        let Some((before, label)) = self.served().get(at).and_then(own) else { return };
        let settings = plan.settings[at].with_own(&before);
        match ValidSettings::new(front_settings(&settings)) {
            Ok(of_front) => {
                let brought = Brought {
                    serving: Served::new(settings, label),
                    of_front,
                    files: Vec::new(),
                    tls: None,
                };
                self.take_over(BTreeMap::from([(at, brought)]));
            }
            Err(error) => {
                tracing::warn!(%error, "the previous settings of this pool are no longer valid");
            }
        }
    }

    /// Returns the changes for a pool that keeps its generation: the server's new settings.
    fn behind(&self, at: usize, plan: &Plan) -> Result<Brought> {
        let served = self.served();
        let (settings, label) =
            (plan.settings[at].with_own(&served[at].settings), served[at].release.clone());
        drop(served);
        let of_front = ValidSettings::new(front_settings(&settings))?;
        let serving = Served::new(settings, label);
        Ok(Brought { serving, of_front, files: Vec::new(), tls: None })
    }

    /// Applies the changes in all of these pools at once.
    pub(super) fn take_over(&self, brought: BTreeMap<usize, Brought>) {
        let parts = &self.0;
        let pools: Vec<Which<'_>> = parts.pools().collect();
        let mut served = self.served();
        let mut fronts: Vec<(FrontHandle, ValidSettings)> = Vec::new();
        for (at, Brought { serving, of_front, files, tls }) in brought {
            let pool = pools[at];
            if let Err(error) = publish::publish(pool.published.publisher(), &files) {
                tracing::warn!("not all files were published: {error:#}");
            }
            if let (Some(tls), Some(prepared)) = (&parts.tls, tls) {
                tls.install(prepared);
            }
            if let Some(keeper) = parts.keeper.as_ref().filter(|_| at == 0) {
                keeper.change(certificates::plan(&serving.settings));
            }
            if at == 0
                && let Err(error) = parts.schedules.apply(&serving.settings)
            {
                tracing::error!("cannot start the schedules: {error:#}");
            }
            fronts.push((pool.front.clone(), of_front));
            let before = std::mem::replace(&mut served[at], serving);
            let changed = before.settings.changed(&served[at].settings);
            served[at].before = Some((before.settings, before.release));
            if !changed.is_empty() {
                let of = parts.prefix(pool);
                parts.note(EventKind::Config, || format!("{of}{}", changed.join(", ")));
            }
        }
        if parts.pools.is_empty() {
            for (front, next) in fronts {
                front.switch(&next);
            }
        } else {
            parts.front.switch_together(fronts, &tables(&served));
        }
    }
}

/// Splits a prepared reload into the order to the supervisor, and the changes that take effect
/// later.
pub(super) fn ordered<'a>(
    pool: Which<'a>,
    ready: Prepared,
    options: &ReloadOptions,
    plan: &Plan,
) -> (Which<'a>, Order) {
    let probe = probe(pool, options, &ready);
    let Prepared { serving, of_supervisor, of_front, may_change_model, files, tls } = ready;
    plan.brought().insert(pool.at, Brought { serving, of_front, files, tls });
    (pool, Order { settings: Box::new(of_supervisor), probe, may_change_model })
}

/// Returns the table that assigns requests to pools: from the default pool's settings, with the
/// other pools' current roots.
fn tables(served: &[Served]) -> Vec<Pool> {
    let Some((all, own)) = served.split_first() else { return Vec::new() };
    let table =
        |(pool, own): (&Pool, &Served)| Pool { settings: own.settings.clone(), ..pool.clone() };
    all.settings.pools.iter().zip(own).map(table).collect()
}

/// Returns whether a pool that takes over alone would have a root inside another pool's current
/// root.
fn crosses(served: &[Served], next: &[Settings]) -> bool {
    let pairs = next.iter().enumerate();
    pairs.into_iter().any(|(at, next)| {
        let mut others = served.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(_, now)| are_nested(&next.root, &now.settings.root))
    })
}

fn are_nested(one: &Path, other: &Path) -> bool {
    one != other && (one.starts_with(other) || other.starts_with(one))
}

/// Returns the probe for the new workers before they take over.
fn probe(pool: Which<'_>, options: &ReloadOptions, prepared: &Prepared) -> Option<Probe> {
    let target = options.probe.clone().or_else(|| prepared.serving.settings.reload_probe.clone());
    let target = target.filter(|_| !options.force)?;
    let (front, next) = (pool.front.clone(), prepared.of_front.clone());
    Some(Box::new(move |done| {
        front.probe(target, next, Box::new(|came| done(came.map(|probed| probed.is_app))));
    }))
}
