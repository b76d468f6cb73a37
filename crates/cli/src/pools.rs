//! Another pool than the default one, as the rest of the server has to do with it.

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

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
