//! What a reload brings takes effect: in one pool when its generation takes over; in all at once, or in none, where settings of
//! the whole server have changed.

use super::gate::Gate;
use super::parts::{Prepared, Read, Reloader, Served, Which};
use super::round::Round;
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

/// What one reload is to bring.
pub(super) struct Plan {
    /// Each pool's, the default one's first.
    pub(super) settings: Vec<Settings>,
    pub(super) needs_restart: Vec<String>,
    /// Keys that wait until all pools are reloaded.
    pub(super) needs_all: Vec<String>,
    /// `None`: each pool for itself.
    pub(super) together: Option<Together>,
    /// What takes effect with each pool's generation, until it does.
    brought: Mutex<BTreeMap<usize, Brought>>,
}

/// Why all pools take over, or none.
pub(super) struct Together {
    /// What has changed, for people.
    what: String,
    /// Pools that fail are left behind, with the server's new settings.
    goes_on: bool,
}

/// What a generation brings with it.
struct Brought {
    serving: Served,
    of_front: ValidSettings,
    files: Vec<FromFile>,
    tls: Option<PreparedTls>,
}

/// What the supervisor is told.
pub(super) struct Order {
    settings: Box<samovar_supervisor::Settings>,
    probe: Option<Probe>,
    may_change_model: bool,
}

impl Plan {
    fn brought(&self) -> MutexGuard<'_, BTreeMap<usize, Brought>> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Together {
    /// Why none takes over after these have failed; `None`: the others may.
    pub(super) fn refusal(&self, failed: &[usize], reloader: &Reloader) -> Option<String> {
        if failed.is_empty() || self.goes_on {
            return None;
        }
        let name = |at: &usize| reloader.0.pools().nth(*at).map(|pool| format!("`{}`", pool.name));
        let names: Vec<String> = failed.iter().filter_map(name).collect();
        Some(format!(
            "it does not take over: {} for all pools, which take over together, and {} cannot\n\
             hint: mend that; `samovar reload --pool` takes over what is one pool's own, `--force` goes on without who fails",
            self.what,
            names.join(", ")
        ))
    }
}

impl Reloader {
    /// What is to come of all settings as they are now. A reload of one pool brings what is that pool's own.
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
            (true, true) => "roots change places".to_owned(),
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

    /// That folder must not lie in another pool's, or around it: files would be reached by the rules of the wrong pool.
    pub(super) fn lies_apart(&self, pool: Which<'_>, root: &Path) -> Result<()> {
        let served = self.served();
        let mut others = served.iter().enumerate().filter(|(at, _)| *at != pool.at);
        let Some((at, other)) = others.find(|(_, other)| are_nested(root, &other.settings.root))
        else {
            return Ok(());
        };
        let name = self.0.pools().nth(at).map_or_else(String::new, |pool| pool.name.to_owned());
        bail!(
            "the root `{}` and `{}` of pool `{name}` lie within each other\n\
             hint: give them folders beside each other, or the same one; or reload all pools",
            root.display(),
            other.settings.root.display()
        );
    }

    /// Has the pool's supervisor do it.
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
        let tell = move |outcome: Result<u64, String>| {
            let Reloader(parts, _) = &reloader;
            let Some(pool) = parts.pools().nth(at) else { return };
            match &outcome {
                Err(why) => {
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
                    parts.note(EventKind::Reload, || {
                        format!("{of}generation {generation} took over after {milliseconds} ms")
                    });
                }
            }
            round.ended(pool.name, outcome);
        };
        let gate = waits.map(|gate| -> samovar_supervisor::Gate {
            Box::new(move |done| gate.arrives(at, done))
        });
        let reload = Reload { settings, probe, gate, may_change_model, done: Box::new(tell) };
        pool.supervisor.send(Command::Reload(reload));
    }

    /// Where all pools wait for each other; what they bring takes effect in all of them at once.
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
                return Err("no pool could take over".to_owned());
            }
            for at in failed {
                // What it serves goes on, by the server's new settings.
                let behind = reloader.behind(*at, &plan).map_err(|error| format!("{error:#}"))?;
                brought.insert(*at, behind);
            }
            reloader.take_over(brought);
            Ok(())
        };
        Gate::new(self.served().len(), Box::new(decide))
    }

    /// A pool has failed after all were let through.
    fn leave_behind(&self, at: usize, plan: &Plan) {
        let own = |served: &Served| served.before.clone();
        let Some(before) = self.served().get(at).and_then(own) else { return };
        let settings = plan.settings[at].with_own(&before);
        match ValidSettings::new(front_settings(&settings)) {
            Ok(of_front) => {
                let brought = Brought {
                    serving: Served::new(settings),
                    of_front,
                    files: Vec::new(),
                    tls: None,
                };
                self.take_over(BTreeMap::from([(at, brought)]));
            }
            Err(error) => {
                tracing::warn!(%error, "what this pool served before cannot be served any more");
            }
        }
    }

    /// What a pool serves, with the server's new settings.
    fn behind(&self, at: usize, plan: &Plan) -> Result<Brought> {
        let settings = plan.settings[at].with_own(&self.served()[at].settings);
        let of_front = ValidSettings::new(front_settings(&settings))?;
        Ok(Brought { serving: Served::new(settings), of_front, files: Vec::new(), tls: None })
    }

    /// In all of these pools at once.
    fn take_over(&self, brought: BTreeMap<usize, Brought>) {
        let parts = &self.0;
        let pools: Vec<Which<'_>> = parts.pools().collect();
        let mut served = self.served();
        let mut fronts: Vec<(FrontHandle, ValidSettings)> = Vec::new();
        for (at, Brought { serving, of_front, files, tls }) in brought {
            let pool = pools[at];
            if let Err(error) = publish::publish(pool.published.publisher(), &files) {
                tracing::warn!("not all files are published: {error:#}");
            }
            if let (Some(tls), Some(prepared)) = (&parts.tls, tls) {
                tls.install(prepared);
            }
            if let Some(keeper) = parts.keeper.as_ref().filter(|_| at == 0) {
                keeper.change(certificates::plan(&serving.settings));
            }
            fronts.push((pool.front.clone(), of_front));
            let before = std::mem::replace(&mut served[at], serving);
            let changed = before.settings.changed(&served[at].settings);
            served[at].before = Some(before.settings);
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

/// Splits what was prepared into what the supervisor is told, and what takes effect later.
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

/// Whose requests are whose: by the tables of the default pool's settings, and by where the other pools' applications lie now.
fn tables(served: &[Served]) -> Vec<Pool> {
    let Some((all, own)) = served.split_first() else { return Vec::new() };
    let table =
        |(pool, own): (&Pool, &Served)| Pool { settings: own.settings.clone(), ..pool.clone() };
    all.settings.pools.iter().zip(own).map(table).collect()
}

/// Whether a pool that takes over alone would have a root in one that another pool has yet.
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

/// What the new workers are asked before they take over.
fn probe(pool: Which<'_>, options: &ReloadOptions, prepared: &Prepared) -> Option<Probe> {
    let target = options.probe.clone().or_else(|| prepared.serving.settings.reload_probe.clone());
    let target = target.filter(|_| !options.force)?;
    let (front, next) = (pool.front.clone(), prepared.of_front.clone());
    Some(Box::new(move |done| {
        front.probe(target, next, Box::new(|came| done(came.map(|probed| probed.is_app))));
    }))
}
