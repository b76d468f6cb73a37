//! Routes decided a moment ago: in steady state a request costs no `stat`.

use super::files::DiskFiles;
use super::path::{encoded, merge_slashes, normalise};
use super::site::{Routed, Site};
use foldhash::quality::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How long a route is believed: a new or deleted file is seen after it.
const TTL_MS: u64 = 1_000;
/// Routes kept; beyond, all are forgotten.
const ENTRIES_MAX: usize = 4_096;
/// Longer paths, with their hosts where these count, are not kept.
const KEY_BYTES_MAX: usize = 256;

/// When, in ms, and what.
type Decided = (u64, Rc<Routed>);

#[derive(Debug)]
pub(crate) struct RouteCache {
    files: DiskFiles,
    entries: RefCell<HashMap<Box<[u8]>, Decided, RandomState>>,
}

impl RouteCache {
    pub(crate) fn new(files: DiskFiles) -> RouteCache {
        RouteCache { files, entries: RefCell::default() }
    }

    /// The route of `path` as of at most [`TTL_MS`] ago. `host` is without port; nobody asks for it where no rule does.
    pub(crate) fn route<'a>(
        &self,
        site: &Site,
        host: impl FnOnce() -> &'a [u8],
        path: &[u8],
        now_ms: u64,
    ) -> Rc<Routed> {
        if !site.locations.has_hosts() {
            return self.look_up(path, now_ms, || site.route(&self.files, b"", path));
        }
        let host = host();
        // No path that is routed has a NUL in it, and no host has.
        let key = [host, b"\0", path].concat();
        self.look_up(&key, now_ms, || site.route(&self.files, host, path))
    }

    /// The route of the script with this file name, if it lies below the root, and the path of the site that it has.
    pub(crate) fn route_script<'a>(
        &self,
        site: &Site,
        host: impl FnOnce() -> &'a [u8],
        filename: &[u8],
        now_ms: u64,
    ) -> Option<(Rc<Routed>, Vec<u8>)> {
        // Apache begins it with two slashes.
        let filename = merge_slashes(filename);
        let path = encoded(self.files.below_root(&filename)?);
        let name = normalise(path.as_bytes()).ok()?;
        Some((self.route(site, host, path.as_bytes(), now_ms), name))
    }

    fn look_up(&self, key: &[u8], now_ms: u64, decide: impl FnOnce() -> Routed) -> Rc<Routed> {
        let mut entries = self.entries.borrow_mut();
        if let Some((at, route)) = entries.get(key)
            && now_ms.saturating_sub(*at) < TTL_MS
        {
            return Rc::clone(route);
        }
        let route = Rc::new(decide());
        if key.len() <= KEY_BYTES_MAX {
            if entries.len() >= ENTRIES_MAX {
                entries.clear();
            }
            entries.insert(key.into(), (now_ms, Rc::clone(&route)));
        }
        route
    }
}
