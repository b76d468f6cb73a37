//! admin: pages for operators, on a separate listener that the site's clients do not reach.
//!
//! It has a thread with its own runtime, and a thread that renders pages, so that its requests take
//! no time from the site's requests. It reads figures from crates/insight and queries the server
//! through [`Host`]. Does not change any state of the server. In reading order:
//!
//! | file | content |
//! |---|---|
//! | `listener.rs` | thread of the listener: connections, their limits, the end |
//! | `access.rs` | access control: the token, and the accepted host names |
//! | `response.rs` | responses, and the headers that all have |
//! | `pages.rs` | path → page |
//! | `pages/…` | `/metrics`, `/health`, `/ready`, `/api/…`; the dashboard, a file for each page |
//! | `reader.rs` | thread that renders pages |
//! | `memory.rs` | memory of the processes |
//! | `live.rs` | stream of page updates |
//! | `frame.rs` | frame around every page of the dashboard |
//! | `query.rs` | names from outside in links |
//! | `figures.rs` | data of the pages: time series (the status is defined in crates/wire) |
//! | `compare.rs` | data of the pages: changes since another time |
//! | `health.rs` | health check |
//! | `chart.rs` | charts as SVG |
//! | `format.rs` | figures formatted for people |
//! | `assets/` | style sheet, scripts and icon |

// Displayed values are floats and never negative. No server counts beyond 2⁵³.
#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod access;
mod chart;
mod compare;
mod figures;
mod format;
mod frame;
mod health;
mod listener;
mod live;
mod memory;
mod pages;
mod query;
mod reader;
mod response;

pub use access::Access;
pub use listener::{Admin, AdminError};

use compare::Comparisons;
use memory::Kernel;
use samovar_insight::Insight;
use samovar_insight::export::exposition::Exposition;
use samovar_insight::store::{Event, Store};
use samovar_profile::Profiles;
use samovar_profile::calls::Selected;
use samovar_profile::loads::Explained;
use samovar_wire::Status;
use std::sync::Arc;

/// Interface to the server.
pub trait Host: Send + Sync {
    /// Returns the status, as `samovar status --json` prints it.
    fn status(&self) -> Status;

    /// Returns whether requests should be sent to this server now, as text; `Err` if they should
    /// not. For one pool, or for all.
    fn ready(&self, pool: Option<&str>) -> Result<String, String>;

    /// Writes the server's own metrics: workers, connections, queue, image.
    fn metrics(&self, page: &mut Exposition);

    /// Returns the call graph of a pool's route on a day (since 1970). Arguments that are `None`
    /// have the usual defaults. Returns `None` if requests are not traced.
    fn calls(
        &self,
        _pool: Option<&str>,
        _day: Option<u64>,
        _route: Option<&str>,
    ) -> Option<Result<Selected, String>> {
        None
    }

    /// Returns the cost of a pool's boot (`None`: the default pool) and the files that its requests
    /// still load. Returns `None` if no application was booted.
    fn boot(&self, _pool: Option<&str>) -> Option<Explained> {
        None
    }

    /// Returns the profiles of the workers; `None` if the sampler is off.
    fn profiles(&self) -> Option<Arc<Profiles>> {
        None
    }
}

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
