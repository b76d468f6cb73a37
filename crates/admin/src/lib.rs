//! admin: what operators see, over a listener of its own that no client of the site reaches.
//!
//! A thread with a runtime of its own, and one that makes pages, so that no question asked here takes time from requests. It reads figures from
//! crates/insight and asks the server about itself through [`Host`]; it changes nothing. In reading order:
//!
//! | file | |
//! |---|---|
//! | `listener.rs` | the thread: connections, their limits, the end |
//! | `access.rs` | who may ask: the token, and names that a browser may have been led to |
//! | `answer.rs` | answers, and the headers that all have |
//! | `pages.rs` | which path is which page |
//! | `pages/…` | `/metrics`, `/health` and `/ready`, `/api/…`, and the dashboard, a file for each page |
//! | `reader.rs` | the thread that makes pages |
//! | `memory.rs` | the processes' memory |
//! | `live.rs` | a page that is sent again and again |
//! | `frame.rs` | what is around every page of the dashboard |
//! | `query.rs` | names from outside in links |
//! | `figures.rs`, `compare.rs` | what pages are made of: series, changes against another time; the server's own words are those of crates/wire |
//! | `well.rs` | is it well? |
//! | `chart.rs` | charts as SVG |
//! | `human.rs` | figures as people read them |
//! | `assets/` | style sheet, script and icon |

// What is shown is a float, and never negative; counts beyond 2⁵³ are no server's.
#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod access;
mod answer;
mod chart;
mod compare;
mod figures;
mod frame;
mod human;
mod listener;
mod live;
mod memory;
mod pages;
mod query;
mod reader;
mod well;

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

/// The server as this crate asks it.
pub trait Host: Send + Sync {
    /// What `samovar status --json` prints.
    fn status(&self) -> Status;

    /// Whether requests should be sent here now, in words: `Err` if they should not. Of one pool, or of all.
    fn ready(&self, pool: Option<&str>) -> Result<String, String>;

    /// Writes the server's own metrics: workers, connections, queue, image.
    fn metrics(&self, page: &mut Exposition);

    /// What requests of a pool's route called on a day (since 1970), each as it is usual if nobody says; `None`: none is traced.
    fn calls(
        &self,
        _pool: Option<&str>,
        _day: Option<u64>,
        _route: Option<&str>,
    ) -> Option<Result<Selected, String>> {
        None
    }

    /// What a pool's boot went to (`None`: the default one's), and what requests still load; `None`: nothing was booted ahead.
    fn boot(&self, _pool: Option<&str>) -> Option<Explained> {
        None
    }

    /// What its workers were seen at; `None`: nobody looks.
    fn profiles(&self) -> Option<Arc<Profiles>> {
        None
    }
}

/// Events that a page looks at, the latest.
const EVENTS_MAX: u32 = 2_000;

/// What all pages read.
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

    /// Sees whether the kernel is to be asked about memory.
    pub(crate) fn look_at_memory(&self) {
        self.kernel.look(|| {
            let status = self.host.status();
            (status.pid, status.workers.iter().map(|worker| worker.pid.into()).collect())
        });
    }

    /// The history; `None` where there is none, or none that can be read.
    pub(crate) fn store(&self) -> Option<Store> {
        // Opened for each question: a file that was moved aside is not held on to.
        Store::reader(self.insight.as_ref()?.history_path()?).ok()
    }

    /// What happened in `from..to`; from before the start, too, where there is a history.
    pub(crate) fn events(&self, from: u64, to: u64) -> Vec<Event> {
        let recent = self.insight.as_ref().map(|insight| insight.events()).unwrap_or_default();
        let stored = self.store().and_then(|store| store.latest_events(from, to, EVENTS_MAX).ok());
        let mut events = stored.unwrap_or_default();
        // The last ones are not on disk yet.
        let inside = recent.into_iter().filter(|event| (from..to).contains(&event.at));
        let fresh: Vec<_> = inside.filter(|event| !events.contains(event)).collect();
        events.extend(fresh);
        events.sort_by_key(|event| event.at);
        events
    }
}
