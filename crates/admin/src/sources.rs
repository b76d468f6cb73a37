//! Data sources of all pages: the server, its figures, its history, its processes' memory.

use crate::host::Host;
use crate::memory::Kernel;
use crate::period_cache::PeriodCache;
use crate::range::Known;
use samovar_insight::Insight;
use samovar_insight::store::{Event, Store};
use std::sync::Arc;

/// Maximum number of events on a page; the latest ones are shown.
const EVENTS_MAX: u32 = 2_000;

/// Period in seconds in which the last start or reload is searched.
const RELEASE_BACK_S: u64 = 30 * 86_400;

/// Data sources of all pages.
pub(crate) struct Sources {
    pub(crate) host: Box<dyn Host>,
    pub(crate) insight: Option<Arc<Insight>>,
    pub(crate) periods: PeriodCache,
    pub(crate) kernel: Kernel,
}

impl Sources {
    pub(crate) fn new(host: Box<dyn Host>, insight: Option<Arc<Insight>>) -> Sources {
        Sources { host, insight, periods: PeriodCache::default(), kernel: Kernel::default() }
    }

    /// Reads the processes' memory from the kernel, if a new reading is due.
    pub(crate) fn look_at_memory(&self) {
        self.kernel.look(|| {
            let status = self.host.status();
            (status.pid, status.workers.iter().map(|worker| worker.pid.into()).collect())
        });
    }

    /// Returns the times that a range can refer to.
    pub(crate) fn known(&self, now: u64) -> Known {
        let up = self.host.status().uptime_seconds.max(0.0) as u64;
        let releases = self.insight.as_ref().map(|insight| insight.releases()).unwrap_or_default();
        let release = releases.into_iter().next_back().or_else(|| {
            // A server without an event of its own: the last one of the history.
            let events = self.events(now.saturating_sub(RELEASE_BACK_S), now + 1);
            events.into_iter().rfind(Event::is_release)
        });
        let release = release.map(|event| (event.at, event.text));
        Known { now, start: now.saturating_sub(up), release }
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
