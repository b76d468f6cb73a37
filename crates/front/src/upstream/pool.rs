//! submit: the connections to each php-fpm. So many at most, of which some are kept for the next request.
//!
//! A kept connection has a process of php-fpm to itself, so none is kept for long. What php-fpm has closed meanwhile is
//! seen before it is used again, mostly; only requests that may be run twice go over one.

use crate::runtime::counters::Counters;
use crate::runtime::throttle::Throttle;
use crate::runtime::trouble::Trouble;
use samovar_config::{FastCgi, Upstream};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;

/// How long a connection is kept.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// How long to wait before a socket whose queue is full is asked again: the kernel says nothing when there is room.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// A connection, below FastCGI.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Debug {}

impl Wire for TcpStream {}
impl Wire for UnixStream {}

pub(super) type AnyWire = Box<dyn Wire>;

/// All of them, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    pools: RefCell<HashMap<Upstream, Rc<Pool>>>,
    counters: Arc<Counters>,
    places: Arc<AllPlaces>,
}

/// How many connections the front's threads have to each php-fpm, by its address.
#[derive(Debug, Default)]
pub(crate) struct AllPlaces(Mutex<HashMap<Upstream, Arc<Places>>>);

/// Of one php-fpm.
#[derive(Debug, Default)]
struct Places {
    /// Those in use, and those that are being made.
    used: AtomicUsize,
    freed: Notify,
    /// Threads that have connections to it, or had one lately.
    threads: AtomicUsize,
}

impl AllPlaces {
    fn of(&self, upstream: &Upstream) -> Arc<Places> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An address that a reload has taken out is forgotten.
        all.retain(|known, places| known == upstream || Arc::strong_count(places) > 1);
        Arc::clone(all.entry(upstream.clone()).or_default())
    }
}

/// The connections to one php-fpm, of one thread.
#[derive(Debug)]
struct Pool {
    places: Arc<Places>,
    kept: RefCell<VecDeque<(AnyWire, Instant)>>,
    counters: Arc<Counters>,
    broken: Throttle,
}

/// Where is told what became of a request.
#[derive(Debug)]
pub(super) struct News(Rc<Pool>);

impl News {
    /// An answer has begun, and does not come to its end.
    pub(super) fn broke_off(&self, trouble: Trouble, upstream: &Upstream, request_id: &str) {
        self.0.counters.pass_troubles[trouble as usize].add(1);
        if let Some(suppressed) = self.0.broken.pass() {
            let (what, hint) = trouble.words();
            tracing::warn!(
                %upstream,
                request_id,
                suppressed,
                "php-fpm's answer broke off: {what}\nhint: {hint}"
            );
        }
    }
}

/// A place among the connections, with one if it is there.
#[derive(Debug)]
pub(crate) struct Link {
    pool: Rc<Pool>,
    pub(super) wire: Option<AnyWire>,
    /// It was used before.
    pub(super) is_kept: bool,
    kept_max: usize,
}

impl Upstreams {
    pub(crate) fn new(counters: Arc<Counters>, places: Arc<AllPlaces>) -> Upstreams {
        Upstreams { pools: RefCell::default(), counters, places }
    }

    /// A connection to `upstream`, in time. `may_be_kept`: one that was used before will do.
    pub(crate) async fn connect(
        &self,
        upstream: &Upstream,
        settings: &FastCgi,
        may_be_kept: bool,
    ) -> Result<Link, (Trouble, Option<io::Error>)> {
        let pool = self.pool(upstream);
        let deadline = tokio::time::Instant::now() + settings.connect_timeout;
        let place = Rc::clone(&pool).place(settings.connections_max);
        let place = tokio::time::timeout_at(deadline, place).await;
        place.map_err(|_| (Trouble::Full, None))?;
        let kept_max = settings.kept_max;
        let mut link = Link { pool, wire: None, is_kept: false, kept_max };
        if may_be_kept && let Some(wire) = link.pool.take_kept() {
            link.wire = Some(wire);
            link.is_kept = true;
            return Ok(link);
        }
        // php-fpm may have no process left for another one.
        drop(link.pool.kept.borrow_mut().pop_front());
        match tokio::time::timeout_at(deadline, open(upstream)).await {
            Ok(Ok(wire)) => link.wire = Some(wire),
            Ok(Err(error)) => return Err((Trouble::Unreachable, Some(error))),
            Err(_) => return Err((Trouble::Unaccepted, None)),
        }
        Ok(link)
    }

    /// Closes what was kept for too long; whether something is kept still.
    pub(crate) fn sweep(&self) -> bool {
        let mut pools = self.pools.borrow_mut();
        for pool in pools.values() {
            pool.forget_old();
        }
        // An address that a reload has taken out is forgotten.
        pools.retain(|_, pool| Rc::strong_count(pool) > 1 || !pool.kept.borrow().is_empty());
        pools.values().any(|pool| !pool.kept.borrow().is_empty())
    }

    fn pool(&self, upstream: &Upstream) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        if let Some(pool) = pools.get(upstream) {
            return Rc::clone(pool);
        }
        let (places, counters) = (self.places.of(upstream), Arc::clone(&self.counters));
        places.threads.fetch_add(1, Ordering::Relaxed);
        let pool = Rc::new(Pool {
            places,
            counters,
            kept: RefCell::default(),
            broken: Throttle::default(),
        });
        pools.insert(upstream.clone(), Rc::clone(&pool));
        pool
    }
}

impl Places {
    fn take(&self, max: usize) -> bool {
        let more = |used: usize| (used < max).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.places.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Waits for a place, and takes it.
    async fn place(self: Rc<Pool>, max: usize) {
        while !self.places.take(max) {
            self.places.freed.notified().await;
        }
        self.counters.passes_open.add(1);
    }

    fn forget_old(&self) {
        let mut kept = self.kept.borrow_mut();
        kept.retain(|(_, since)| since.elapsed() < KEPT_FOR);
    }

    /// The one that was used last; what was closed meanwhile is none.
    fn take_kept(&self) -> Option<AnyWire> {
        self.forget_old();
        let mut kept = self.kept.borrow_mut();
        while let Some((mut wire, _)) = kept.pop_back() {
            if is_quiet(&mut wire) {
                return Some(wire);
            }
        }
        None
    }
}

impl Link {
    /// Its request is answered, and nothing is left in it.
    pub(super) fn keep(&mut self, wire: AnyWire) {
        let mut kept = self.pool.kept.borrow_mut();
        // Each keeps a process of php-fpm: of several threads each has its part of them.
        let threads = self.pool.places.threads.load(Ordering::Relaxed).max(1);
        if kept.len() < self.kept_max / threads {
            kept.push_back((wire, Instant::now()));
        }
    }

    pub(super) fn news(&self) -> News {
        News(Rc::clone(&self.pool))
    }

    /// Whether connections are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.kept_max > 0
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pool.counters.passes_open.sub(1);
        self.pool.places.used.fetch_sub(1, Ordering::Relaxed);
        self.pool.places.freed.notify_one();
    }
}

/// Whether nothing has come, and the other end is there.
fn is_quiet(wire: &mut AnyWire) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    let mut byte = [0; 1];
    Pin::new(wire).poll_read(&mut cx, &mut ReadBuf::new(&mut byte)).is_pending()
}

async fn open(upstream: &Upstream) -> io::Result<AnyWire> {
    match upstream {
        Upstream::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            // A request is written in few pieces, each of which has to go out.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Upstream::Unix(path) => loop {
            match UnixStream::connect(path).await {
                Ok(stream) => return Ok(Box::new(stream)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                Err(error) => return Err(error),
            }
        },
    }
}
