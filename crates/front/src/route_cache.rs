//! Routes decided a moment ago: in steady state a request costs no `stat`.

use crate::route::{Disk, Route, Site};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How long a route is believed: a new or deleted file is seen after it.
const TTL_MS: u64 = 1_000;
/// Routes kept; beyond, all are forgotten.
const ENTRIES_MAX: usize = 4_096;
/// Longer paths are not kept.
const PATH_BYTES_MAX: usize = 256;

/// When, in ms, and what.
type Decided = (u64, Rc<Route>);

#[derive(Debug)]
pub(crate) struct RouteCache {
    disk: Disk,
    entries: RefCell<HashMap<Box<[u8]>, Decided>>,
}

impl RouteCache {
    pub(crate) fn new(disk: Disk) -> RouteCache {
        RouteCache { disk, entries: RefCell::default() }
    }

    /// The route of `path` as of at most [`TTL_MS`] ago.
    pub(crate) fn route(&self, site: &Site, path: &[u8], now_ms: u64) -> Rc<Route> {
        let mut entries = self.entries.borrow_mut();
        if let Some((at, route)) = entries.get(path)
            && now_ms.saturating_sub(*at) < TTL_MS
        {
            return Rc::clone(route);
        }
        let route = Rc::new(site.route(&self.disk, path));
        if path.len() <= PATH_BYTES_MAX {
            if entries.len() >= ENTRIES_MAX {
                entries.clear();
            }
            entries.insert(path.into(), (now_ms, Rc::clone(&route)));
        }
        route
    }
}
