//! The tables `[[pool]]` → rings, shared memory, a supervisor and a part of the front for each.

use super::link;
use crate::convert::{self, Ears, front_settings, sandbox, supervisor_settings};
use crate::pools::{Pool, Pools};
use crate::{binary, engine, publish, rights};
use anyhow::{Context, Error, Result, bail};
use rustix::process::Rlimit;
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_front::Front;
use samovar_published::Publishing;
use samovar_ring::Ring;
use samovar_shared::Shared;
use samovar_supervisor::{Handle, Running};
use std::path::PathBuf;

/// A pool without its part of the front.
pub(super) struct Prepared {
    ring: Ring,
    shared: Shared,
    published: Publishing,
    supervisor: Handle,
}

/// Returns the worker binaries of all pools, found but not checked yet.
pub(super) fn locate(settings: &Settings) -> Result<Vec<PathBuf>> {
    let of = |pool: &samovar_config::Pool| {
        samovar_config::locate_php(&pool.settings).with_context(|| about(&pool.name))
    };
    settings.pools.iter().map(of).collect()
}

/// Checks whether the kernel allows the limits of each pool's PHP processes.
pub(super) fn check_limits(settings: &Settings, open_files: Rlimit) -> Result<()> {
    let check = |pool: &samovar_config::Pool| {
        convert::check_limits(&pool.settings, open_files).with_context(|| about(&pool.name))
    };
    settings.pools.iter().try_for_each(check)
}

/// Checks whether the binaries are workers of this server, and whether the server's user can access
/// all paths.
pub(super) fn examine(
    settings: &Settings,
    programs: &[PathBuf],
    is_other_user: bool,
) -> Result<()> {
    for (pool, program) in settings.pools.iter().zip(programs) {
        binary::recognise(&pool.settings, program).with_context(|| about(&pool.name))?;
        engine::recognise(&pool.settings, program).with_context(|| about(&pool.name))?;
        let checked = sandbox(&pool.settings, program).check().map_err(Error::msg);
        checked.with_context(|| about(&pool.name))?;
        let obstacles = rights::obstacles(&pool.settings, Some(program));
        if let Some(first) = obstacles.first().filter(|_| is_other_user) {
            bail!("{}: the server's user {first}\nhint: grant the permission", about(&pool.name));
        }
    }
    Ok(())
}

fn about(name: &str) -> String {
    format!("pool `{name}`")
}

/// Adds the pools to the supervisor. Each pool has its own memory: workers of other pools cannot
/// open it by name.
pub(super) fn prepare(
    settings: &Settings,
    fronts: usize,
    running: &mut Running,
) -> Result<Vec<Prepared>> {
    if !settings.pools.is_empty() {
        running.call_first(DEFAULT_POOL);
    }
    let prepare = |pool: &samovar_config::Pool| -> Result<Prepared> {
        let ring = Ring::shared_by(fronts, pool.settings.limits.queue_max)
            .context("cannot create the ring")?;
        let shared = Shared::create(pool.settings.shared.bytes_max)
            .context("cannot create the shared memory of the workers")?;
        let files = publish::read(&pool.settings)?;
        let published = Publishing::new(shared.clone(), publish::limits(&pool.settings))
            .context("cannot create the memory of published values")?;
        let memory = (shared.clone(), published.clone());
        let supervisor = running.add(&pool.name, ring.clone(), memory)?;
        publish::publish(published.publisher(), &files).context("cannot publish a file")?;
        published.start().context("cannot start the publishing thread")?;
        Ok(Prepared { ring, shared, published, supervisor })
    };
    let mut prepare = prepare;
    settings.pools.iter().map(|pool| prepare(pool).with_context(|| about(&pool.name))).collect()
}

/// Adds the pools to the front.
pub(super) fn add(
    settings: &Settings,
    prepared: Vec<Prepared>,
    front: &mut Front,
) -> Result<Pools> {
    let add = |(pool, prepared): (&samovar_config::Pool, Prepared)| -> Result<Pool> {
        let Prepared { ring, shared, published, supervisor } = prepared;
        let (name, link) = (pool.name.clone(), link::link_to(supervisor.clone()));
        let own = front_settings(&pool.settings);
        let front = front.add_pool(&name, ring, own, link).with_context(|| about(&name))?;
        Ok(Pool { name, front, supervisor, shared, published })
    };
    let pools = settings.pools.iter().zip(prepared).map(add).collect::<Result<Vec<_>>>()?;
    Ok(Pools(pools.into()))
}

/// Returns the supervisor's settings of each pool, the default pool first.
pub(super) fn told(
    settings: &Settings,
    (program, of_others): (PathBuf, Vec<PathBuf>),
    open_files: Rlimit,
    environment: &[(String, Option<String>)],
    ears: &[Ears],
) -> Vec<samovar_supervisor::Settings> {
    let of = |(((name, own), program), ears): (((&str, &Settings), PathBuf), &Ears)| {
        let environment = environment.to_vec();
        let told = supervisor_settings(own, program, open_files, environment, ears.clone());
        if settings.pools.is_empty() { told } else { told.of_pool(name) }
    };
    let programs = std::iter::once(program).chain(of_others);
    crate::pools::settings(settings).zip(programs).zip(ears).map(of).collect()
}
