//! Pools, as the rest of the server has to do with them: those beside the default one, and all by their names.

use samovar_config::{DEFAULT_POOL, Settings};
use samovar_front::FrontHandle;
use samovar_published::Publishing;
use samovar_shared::Shared;
use samovar_supervisor::{Command, Handle};
use std::sync::Arc;

/// One of `[[pool]]`.
#[derive(Clone)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
    pub(crate) shared: Shared,
    pub(crate) published: Publishing,
}

/// Those beside the default one, in the order of the file. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Pools(pub(crate) Arc<[Pool]>);

impl Pools {
    /// Tells each of them what the default one is told.
    pub(crate) fn tell(&self, command: impl Fn() -> Command) {
        self.0.iter().for_each(|pool| pool.supervisor.send(command()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.0.iter()
    }

    /// All, by name, the default one first; that has none where it is alone.
    pub(crate) fn with_default(&self, supervisor: &Handle) -> Vec<(String, Handle)> {
        let first = if self.is_empty() { "" } else { DEFAULT_POOL };
        let others = self.iter().map(|pool| (pool.name.clone(), pool.supervisor.clone()));
        std::iter::once((first.to_owned(), supervisor.clone())).chain(others).collect()
    }

    /// All names, the default one's first.
    pub(crate) fn names(&self) -> Vec<&str> {
        std::iter::once(DEFAULT_POOL).chain(self.iter().map(|pool| &*pool.name)).collect()
    }

    /// The supervisor of the pool of that name, `None`: of the default one, which is `first`; or that there is no such pool.
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

/// Names and settings of all pools, the default one first.
pub(crate) fn settings(of: &Settings) -> impl Iterator<Item = (&str, &Settings)> {
    let others = of.pools.iter().map(|pool| (&*pool.name, &pool.settings));
    std::iter::once((DEFAULT_POOL, of)).chain(others)
}

/// There is no pool of that name, but there are these.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    let name = name.escape_debug();
    format!("there is no pool `{name}`\nhint: this server has {}", known.join(", "))
}
