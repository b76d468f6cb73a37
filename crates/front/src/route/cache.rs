//! Cache of recent routes: in steady state a request costs no `stat`.
//!
//! If no mounted file system may hang, a missing route is decided immediately. Otherwise a disk
//! thread decides it, once for all requests that wait for it. So a hanging file system delays only
//! requests that need it. A request that has waited too long gets the previous route, if there is
//! one.

use super::files::DiskFiles;
use super::path::{encoded, merge_slashes, normalise};
use super::site::{Route, Routed, Site};
use crate::runtime::disk::{DiskThreads, may_hang};
use crate::runtime::disk_jobs::JobTarget;
use foldhash::quality::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// Time for which a route is valid. A new or deleted file is noticed after it.
const TTL_MS: u64 = 1_000;
/// Maximum number of routes; when it is reached, all are dropped. Also the maximum number of
/// pending decisions.
const ENTRIES_MAX: usize = 4_096;
/// Maximum length of a key: the path, with its host if a rule depends on hosts. Longer ones are not
/// cached.
const KEY_BYTES_MAX: usize = 256;

/// Time of the decision in ms, and the route.
type Decided = (u64, Rc<Routed>);
/// Result of a lookup. The error is the disk's; `TimedOut` if the disk does not respond.
type Lookup = Result<Rc<Routed>, ErrorKind>;

#[derive(Debug)]
pub(crate) struct RouteCache {
    site: Arc<Site>,
    files: Arc<DiskFiles>,
    memory: Rc<Memory>,
}

/// Decided routes, and decisions that are pending on the disk.
#[derive(Debug, Default)]
struct Memory {
    decided: RefCell<HashMap<Box<[u8]>, Decided, RandomState>>,
    asked: RefCell<HashMap<Box<[u8]>, Asked, RandomState>>,
}

/// A decision that is pending on the disk.
#[derive(Debug)]
struct Asked {
    since: Instant,
    waiting: Vec<oneshot::Sender<Lookup>>,
}

/// Parameters of a lookup.
#[derive(Clone, Copy)]
struct Question<'a> {
    host: &'a [u8],
    path: &'a [u8],
    key: &'a [u8],
    now_ms: u64,
}

impl RouteCache {
    pub(crate) fn new(site: Arc<Site>, files: Arc<DiskFiles>) -> RouteCache {
        RouteCache { site, files, memory: Rc::default() }
    }

    /// The files that routes are decided with.
    pub(crate) fn files(&self) -> &Arc<DiskFiles> {
        &self.files
    }

    /// Returns the route of `path`, at most [`TTL_MS`] old. `host` returns the host without port;
    /// it is called only if a rule depends on the host.
    pub(crate) async fn route<'a>(
        &self,
        disk: &DiskThreads,
        host: impl FnOnce() -> &'a [u8],
        path: &[u8],
        now_ms: u64,
    ) -> Lookup {
        if !self.site.locations.has_hosts() {
            return self.look_up(disk, Question { host: b"", path, key: path, now_ms }).await;
        }
        let host = host();
        // Neither a host nor a path that can be routed contains a NUL.
        let key = [host, b"\0", path].concat();
        self.look_up(disk, Question { host, path, key: &key, now_ms }).await
    }

    /// Returns the route of the script with this file name, and its path in the site. `None` if it
    /// is not below the root.
    pub(crate) async fn route_script<'a>(
        &self,
        disk: &DiskThreads,
        host: impl FnOnce() -> &'a [u8],
        filename: &[u8],
        now_ms: u64,
    ) -> Result<Option<(Rc<Routed>, Vec<u8>)>, ErrorKind> {
        // Apache sends file names that begin with two slashes.
        let filename = merge_slashes(filename);
        let path = match self.files.below_known_root(&filename) {
            Some(below) => encoded(below),
            None => match self.below_root(disk, filename.into()).await? {
                Some(path) => path,
                None => return Ok(None),
            },
        };
        let Ok(name) = normalise(path.as_bytes()) else { return Ok(None) };
        Ok(Some((self.route(disk, host, path.as_bytes(), now_ms).await?, name)))
    }

    /// Resolves the root again to find the part of the file name below it.
    async fn below_root(
        &self,
        disk: &DiskThreads,
        filename: Vec<u8>,
    ) -> Result<Option<String>, ErrorKind> {
        if disk.are_spared() {
            return Ok(self.files.below_root(&filename).map(encoded));
        }
        let files = Arc::clone(&self.files);
        let below = move || Ok(files.below_root(&filename).map(encoded));
        let asking = Box::pin(disk.ask(self.site.root.clone(), below));
        asking.await.map_err(|error| error.kind())
    }

    async fn look_up(&self, disk: &DiskThreads, question: Question<'_>) -> Lookup {
        match self.memory.recall(question.key, Some(question.now_ms)) {
            Some(route) => Ok(route),
            None if disk.are_spared() => Ok(self.decide_now(question)),
            None => Box::pin(self.ask(disk, question)).await,
        }
    }

    fn decide_now(&self, question: Question<'_>) -> Rc<Routed> {
        let Question { host, path, key, now_ms } = question;
        let route = Rc::new(self.site.route(&*self.files, host, path));
        self.memory.note(key.into(), now_ms, &route);
        route
    }

    async fn ask(&self, disk: &DiskThreads, question: Question<'_>) -> Lookup {
        let responded = match self.wait_in(disk, question) {
            Some((until, told)) => match timeout_at(until, told).await {
                // The task that should have sent the result has panicked.
                Ok(response) => response.unwrap_or(Err(ErrorKind::Other)),
                Err(_) => Err(ErrorKind::TimedOut),
            },
            None => Err(ErrorKind::TimedOut),
        };
        match responded {
            Err(ErrorKind::TimedOut) => {
                disk.report_hanging();
                self.memory.recall(question.key, None).ok_or(ErrorKind::TimedOut)
            }
            response => response,
        }
    }

    /// Returns the deadline and the receiver of the result; `None` if other requests have already
    /// waited too long for it.
    fn wait_in(
        &self,
        disk: &DiskThreads,
        question: Question<'_>,
    ) -> Option<(Instant, oneshot::Receiver<Lookup>)> {
        let (tell, told) = oneshot::channel();
        let mut asked = self.memory.asked.borrow_mut();
        if let Some(asked) = asked.get_mut(question.key) {
            let until = asked.since + disk.patience();
            if until <= Instant::now() {
                return None;
            }
            asked.waiting.push(tell);
            return Some((until, told));
        }
        if asked.len() >= ENTRIES_MAX {
            return None;
        }
        let since = Instant::now();
        asked.insert(question.key.into(), Asked { since, waiting: vec![tell] });
        drop(asked);
        self.begin(disk, question);
        Some((since + disk.patience(), told))
    }

    /// Starts the decision on a disk thread. It completes even if no request waits for it any more.
    fn begin(&self, disk: &DiskThreads, question: Question<'_>) {
        let Question { host, path, key, now_ms } = question;
        let (site, files) = (Arc::clone(&self.site), Arc::clone(&self.files));
        let place = JobTarget::Path(site.place_of(path));
        let (host, path) = (host.to_vec(), path.to_vec());
        let deciding = disk.run(place, move || Ok(decide(&site, &files, &host, &path)));
        let (memory, key) = (Rc::clone(&self.memory), Box::<[u8]>::from(key));
        tokio::task::spawn_local(async move {
            let decided = deciding.await.map(Rc::new).map_err(|error| error.kind());
            let asked = memory.asked.borrow_mut().remove(&key);
            if let Ok(route) = &decided {
                memory.note(key, now_ms, route);
            }
            // In the order of arrival.
            for tell in asked.into_iter().flat_map(|asked| asked.waiting) {
                let _ = tell.send(decided.clone());
            }
        });
    }
}

/// Decides a route. Runs on a disk thread, because it may wait for the disk.
fn decide(site: &Site, files: &DiskFiles, host: &[u8], path: &[u8]) -> Routed {
    let mut routed = site.route(files, host, path);
    routed.is_far = matches!(&routed.route, Route::Static(file) if may_hang(file));
    routed
}

impl Memory {
    /// Returns a route that was decided less than [`TTL_MS`] ago; without a time, a route of any
    /// age.
    fn recall(&self, key: &[u8], now_ms: Option<u64>) -> Option<Rc<Routed>> {
        let decided = self.decided.borrow();
        let (at, route) = decided.get(key)?;
        let is_fresh = now_ms.is_none_or(|now_ms| now_ms.saturating_sub(*at) < TTL_MS);
        is_fresh.then(|| Rc::clone(route))
    }

    fn note(&self, key: Box<[u8]>, now_ms: u64, route: &Rc<Routed>) {
        if key.len() <= KEY_BYTES_MAX {
            let mut decided = self.decided.borrow_mut();
            if decided.len() >= ENTRIES_MAX {
                decided.clear();
            }
            decided.insert(key, (now_ms, Rc::clone(route)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, LocalOptions};

    #[test]
    fn hanging_lookup_times_out_and_known_route_stays_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("index.php"), "").expect("our own folder");
        let site = Arc::new(Site { root: folder.path().to_owned(), ..Site::sample() });
        let files = Arc::new(DiskFiles::new([folder.path().to_owned()], &[]));
        let routes = RouteCache::new(site, files);
        let runtime =
            Builder::new_current_thread().enable_time().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(async {
            let is_script =
                |response: Lookup| matches!(response.expect("a route").route, Route::Script(_));
            let disk = DiskThreads::start().expect("threads");
            assert!(is_script(routes.route(&disk, || b"", b"/a", 1_000).await));
            let (hanging, held) = DiskThreads::hanging();
            let ask = |path: &'static [u8]| routes.route(&hanging, || b"", path, 9_000);
            let both = tokio::join!(ask(b"/b"), ask(b"/b"));
            assert!(matches!(both, (Err(ErrorKind::TimedOut), Err(ErrorKind::TimedOut))));
            let waiting = routes.memory.asked.borrow()[&b"/b"[..]].waiting.len();
            assert_eq!(waiting, 2, "equal requests share one lookup");
            assert!(is_script(ask(b"/a").await), "as before");
            drop(held);
            while !routes.memory.asked.borrow().is_empty() {
                tokio::task::yield_now().await;
            }
            assert!(is_script(ask(b"/b").await));
        });
    }
}
