//! Pools for the rest of the server: those other than the default one, and all by name.

use samovar_config::{DEFAULT_POOL, Settings};
use samovar_front::FrontHandle;
use samovar_published::Publishing;
use samovar_shared::Shared;
use samovar_supervisor::{Command, Handle};
use std::sync::Arc;

/// One `[[pool]]`.
#[derive(Clone)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
    pub(crate) shared: Shared,
    pub(crate) published: Publishing,
}

/// Pools other than the default one, in the order of the file. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Pools(pub(crate) Arc<[Pool]>);

impl Pools {
    /// Sends each of these pools a command; the caller sends it to the default pool.
    pub(crate) fn tell(&self, command: impl Fn() -> Command) {
        self.0.iter().for_each(|pool| pool.supervisor.send(command()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.0.iter()
    }

    /// Returns all pools by name, the default pool first; its name is empty if it is the only one.
    pub(crate) fn with_default(&self, supervisor: &Handle) -> Vec<(String, Handle)> {
        let first = if self.is_empty() { "" } else { DEFAULT_POOL };
        let others = self.iter().map(|pool| (pool.name.clone(), pool.supervisor.clone()));
        std::iter::once((first.to_owned(), supervisor.clone())).chain(others).collect()
    }

    /// Returns all names, the default pool's first.
    pub(crate) fn names(&self) -> Vec<&str> {
        std::iter::once(DEFAULT_POOL).chain(self.iter().map(|pool| &*pool.name)).collect()
    }

    /// Returns the supervisor of the pool with this name. `None` is the default pool, whose
    /// supervisor is `first`. Returns an error if there is no such pool.
    pub(crate) fn supervisor(
        &self,
        name: Option<&str>,
        first: &Handle,
    ) -> Result<(String, Handle), String> {
        let name = name.unwrap_or(DEFAULT_POOL);
        if name == DEFAULT_POOL {
            return Ok((name.to_owned(), first.clone()));
        }
        let found = self.iter().find(|pool| pool.name == name);
        let found = found.map(|pool| (pool.name.clone(), pool.supervisor.clone()));
        found.ok_or_else(|| unknown(name, &self.names()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns names and settings of all pools, the default pool first.
pub(crate) fn settings(of: &Settings) -> impl Iterator<Item = (&str, &Settings)> {
    let others = of.pools.iter().map(|pool| (&*pool.name, &pool.settings));
    std::iter::once((DEFAULT_POOL, of)).chain(others)
}

/// Returns the error message for an unknown pool, with the known ones.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    let name = name.escape_debug();
    format!("there is no pool `{name}`\nhint: the pools are {}", known.join(", "))
}
