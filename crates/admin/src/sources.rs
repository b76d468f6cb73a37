//! Data sources of all pages: the server, its figures, its history, its processes' memory.

use crate::host::Host;
use crate::known_releases::{KnownRelease, known_releases};
use crate::memory::Kernel;
use crate::period_cache::PeriodCache;
use crate::planner::{Planned, Planner, compute};
use crate::query::Query;
use crate::range::{InvalidRange, Known, Range};
use samovar_insight::Insight;
use samovar_insight::store::{Event, Store};
use std::sync::Arc;

/// Maximum number of events on a page; the latest ones are shown.
const EVENTS_MAX: u32 = 2_000;

/// Period in seconds in which releases are searched.
const RELEASE_BACK_S: u64 = 30 * 86_400;
/// Maximum number of generations in it, the last ones.
const RELEASES_MAX: u32 = 256;

/// Data sources of all pages.
pub(crate) struct Sources {
    pub(crate) host: Box<dyn Host>,
    pub(crate) insight: Option<Arc<Insight>>,
    pub(crate) periods: PeriodCache,
    pub(crate) kernel: Kernel,
    pub(crate) planner: Planner,
}

impl Sources {
    pub(crate) fn new(host: Box<dyn Host>, insight: Option<Arc<Insight>>) -> Sources {
        let (periods, kernel) = (PeriodCache::default(), Kernel::default());
        Sources { host, insight, periods, kernel, planner: Planner::default() }
    }

    /// Reads the processes' memory from the kernel, if a new reading is due.
    pub(crate) fn look_at_memory(&self) {
        self.kernel.look(|| {
            let status = self.host.status();
            (status.pid, status.workers.iter().map(|worker| worker.pid.into()).collect())
        });
    }

    /// Returns the capacity plan of this server.
    pub(crate) fn plan(&self, now: u64) -> Planned {
        self.planner.get(now, || {
            let status = self.host.status();
            move || compute(&status, now)
        })
    }

    /// Returns the times that a range can refer to.
    pub(crate) fn known(&self, now: u64) -> Known {
        let up = self.host.status().uptime_seconds.max(0.0) as u64;
        Known { now, start: now.saturating_sub(up), releases: self.releases(now) }
    }

    /// Returns the releases of this server and those of the history.
    fn releases(&self, now: u64) -> Vec<KnownRelease> {
        let Some(insight) = &self.insight else { return Vec::new() };
        let mut all = insight.releases().known();
        let from = now.saturating_sub(RELEASE_BACK_S);
        let stored =
            self.store().and_then(|store| store.releases(from, now + 1, RELEASES_MAX).ok());
        // The latest ones are not on disk yet, and the oldest ones may be deleted there.
        let older = stored.unwrap_or_default().into_iter().filter(|one| !all.contains(one));
        let older: Vec<_> = older.collect();
        all.extend(older);
        if !all.is_empty() {
            return known_releases(all);
        }
        // An older version wrote the history.
        let last = insight
            .starts()
            .into_iter()
            .next_back()
            .or_else(|| self.events(from, now + 1).into_iter().rfind(Event::is_release));
        last.map(|event| KnownRelease::since(event.at, event.text)).into_iter().collect()
    }

    /// Reads the selected range from a query, and checks that its releases are known.
    pub(crate) fn range(&self, query: &Query, now: u64) -> Result<Range, InvalidRange> {
        let range = Range::of(query, now)?;
        if range.names_releases() {
            range.check(&self.known(now))?;
        }
        Ok(range)
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
