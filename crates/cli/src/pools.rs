//! Another pool than the default one, as the rest of the server has to do with it.

use samovar_config::DEFAULT_POOL;
use samovar_front::FrontHandle;
use samovar_published::Publishing;
use samovar_supervisor::{Command, Handle};
use std::sync::Arc;

/// One of `[[pool]]`.
#[derive(Clone)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) front: FrontHandle,
    pub(crate) supervisor: Handle,
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

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
