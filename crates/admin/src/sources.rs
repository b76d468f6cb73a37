//! Data sources of all pages: the server, its figures, its history, its processes' memory.

use crate::comparisons::Comparisons;
use crate::host::Host;
use crate::memory::Kernel;
use samovar_insight::Insight;
use samovar_insight::store::{Event, Store};
use std::sync::Arc;

/// Maximum number of events on a page; the latest ones are shown.
const EVENTS_MAX: u32 = 2_000;

/// Data sources of all pages.
pub(crate) struct Sources {
    pub(crate) host: Box<dyn Host>,
    pub(crate) insight: Option<Arc<Insight>>,
    pub(crate) comparisons: Comparisons,
    pub(crate) kernel: Kernel,
}

impl Sources {
    pub(crate) fn new(host: Box<dyn Host>, insight: Option<Arc<Insight>>) -> Sources {
        Sources { host, insight, comparisons: Comparisons::default(), kernel: Kernel::default() }
    }

    /// Reads the processes' memory from the kernel, if a new reading is due.
    pub(crate) fn look_at_memory(&self) {
        self.kernel.look(|| {
            let status = self.host.status();
            (status.pid, status.workers.iter().map(|worker| worker.pid.into()).collect())
        });
    }

    /// Returns the history; `None` if there is none or it cannot be read.
    pub(crate) fn store(&self) -> Option<Store> {
        // Opened for each query, so that a file that was moved away is not kept open.
        Store::reader(self.insight.as_ref()?.history_path()?).ok()
    }

    /// Returns the events in `from..to`. With a history, this includes events before the server's
    /// start.
    pub(crate) fn events(&self, from: u64, to: u64) -> Vec<Event> {
        let recent = self.insight.as_ref().map(|insight| insight.events()).unwrap_or_default();
        let stored = self.store().and_then(|store| store.latest_events(from, to, EVENTS_MAX).ok());
        let mut events = stored.unwrap_or_default();
        // The latest events are not on disk yet.
        let inside = recent.into_iter().filter(|event| (from..to).contains(&event.at));
        let fresh: Vec<_> = inside.filter(|event| !events.contains(event)).collect();
        events.extend(fresh);
        events.sort_by_key(|event| event.at);
        events
    }
}
