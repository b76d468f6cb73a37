//! submit: the connections to each php-fpm server. Their number is limited, and some are kept for
//! the next request.
//!
//! `choose` selects one of several servers for a request. If all servers have reached their limit,
//! the request waits after the requests that came earlier. The number of waiting requests is
//! limited too.
//!
//! A kept connection occupies a process of php-fpm, so none is kept for long. If php-fpm has closed
//! a kept connection, this is usually noticed before it is used again. Because it is not always
//! noticed, only requests that may be run twice use a kept connection.

use super::choose::{Candidate, choose};
use super::endpoints::{AllPlaces, Lead, Places};
use super::names::Names;
use super::open::{AnyWire, Failed, open};
use super::tally::Tally;
use crate::runtime::counters::Counters;
use crate::runtime::upstream_failure::UpstreamFailure;
use samovar_config::{FastCgi, Upstream};
use samovar_log::Throttle;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};

/// Time for which a connection is kept.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// Connections to all servers, by address.
#[derive(Debug)]
pub(crate) struct Upstreams {
    pools: RefCell<HashMap<Upstream, Rc<Pool>>>,
    names: Rc<Names>,
    turn: Cell<usize>,
    counters: Arc<Counters>,
    places: Arc<AllPlaces>,
}

/// Reason why there is no connection.
#[derive(Debug)]
pub(crate) struct NoLink {
    pub(crate) trouble: UpstreamFailure,
    /// Index of the server that could not be reached, among the candidates; `None` if none of them
    /// had room.
    pub(crate) at: Option<usize>,
    pub(crate) error: Option<io::Error>,
}

/// The connections of one thread to one php-fpm server.
#[derive(Debug)]
struct Pool {
    places: Arc<Places>,
    kept: RefCell<VecDeque<IdleConnection>>,
    counters: Arc<Counters>,
    broken: Throttle,
}

/// A connection between two requests.
#[derive(Debug)]
struct IdleConnection {
    wire: AnyWire,
    lead: Option<Lead>,
    since: Instant,
}

/// A server that a request has not tried yet, with its index among all servers of the location.
type Untried = (usize, Rc<Pool>);

/// Receives the result of a request for the statistics of the server and, if the server is given by
/// name, of the address used.
#[derive(Debug)]
pub(crate) struct News {
    pool: Rc<Pool>,
    lead: Option<Lead>,
}

impl News {
    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        let lead = self.lead.as_ref().map(|lead| &lead.to.tally);
        std::iter::once(&self.pool.places.tally).chain(lead)
    }

    /// Address to which the request was sent, if the server is given by name.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.lead.as_ref().map(|lead| lead.at)
    }

    /// Counts a request that is about to be sent.
    pub(crate) fn sent(&self, now: Instant) {
        self.tallies().for_each(|tally| tally.sent(now));
    }

    /// Counts a response head that arrived after this time.
    pub(crate) fn responded(&self, waited: Duration) {
        self.tallies().for_each(|tally| tally.responded(waited));
    }

    /// Counts a request without a response.
    pub(crate) fn failed(&self, trouble: UpstreamFailure) {
        self.tallies().for_each(|tally| tally.failed(trouble, None));
    }

    /// Counts and logs a response that has begun but is incomplete.
    pub(super) fn broke_off(
        &self,
        trouble: UpstreamFailure,
        upstream: &Upstream,
        request_id: &str,
    ) {
        self.pool.counters.upstream_errors[trouble as usize].add(1);
        self.failed(trouble);
        if let Some(suppressed) = self.pool.broken.pass() {
            let (reason, hint) = trouble.words();
            tracing::warn!(
                %upstream,
                address = self.address().map(tracing::field::display),
                request_id,
                suppressed,
                "incomplete response from php-fpm: {reason}\nhint: {hint}"
            );
        }
    }
}

/// A place among the connections, and the connection once it exists.
#[derive(Debug)]
pub(crate) struct Link {
    pool: Rc<Pool>,
    /// Index of its server among the candidates.
    pub(crate) at: usize,
    pub(super) wire: Option<AnyWire>,
    /// The address used, if the server is given by name.
    lead: Option<Lead>,
    /// The connection was used before.
    pub(super) is_kept: bool,
    idle_connections_max: usize,
}

impl Upstreams {
    pub(crate) fn new(
        counters: Arc<Counters>,
        places: Arc<AllPlaces>,
        names: Rc<Names>,
    ) -> Upstreams {
        let (pools, turn) = (RefCell::default(), Cell::new(0));
        Upstreams { pools, names, turn, counters, places }
    }

    /// The same names, for another pool of workers.
    pub(crate) fn names(&self) -> Rc<Names> {
        Rc::clone(&self.names)
    }

    /// Opens a connection to one of `among`, except those listed in `tried`, within the connect
    /// timeout. `may_be_kept`: a connection that was used before may be returned.
    pub(crate) async fn connect(
        &self,
        among: &[Upstream],
        tried: &[usize],
        settings: &FastCgi,
        may_be_kept: bool,
    ) -> Result<Link, NoLink> {
        let untried = among.iter().enumerate().filter(|(at, _)| !tried.contains(at));
        let pools: Vec<_> = untried.map(|(at, upstream)| (at, self.pool(upstream))).collect();
        let deadline = tokio::time::Instant::now() + settings.connect_timeout;
        let max = settings.connections_max;
        let chosen = match self.take_one(&pools, max, true) {
            Some(chosen) => chosen,
            None if self.places.queued.load(Ordering::Relaxed) >= settings.queue_max => {
                return Err(full(&pools));
            }
            None => {
                let _waiting = Waiting::new(self, &pools);
                let place = tokio::time::timeout_at(deadline, self.place(&pools, max));
                place.await.map_err(|_| full(&pools))?
            }
        };
        let (at, pool) = &pools[chosen];
        let at = *at;
        let mut link = Link::new(pool, at, settings.idle_connections_max);
        tell_others(&pools, max);
        if may_be_kept && let Some(kept) = link.pool.take_kept() {
            link.is_kept = true;
            link.leads(kept.wire, kept.lead);
            return Ok(link);
        }
        // php-fpm may have no process left for another connection.
        drop(link.pool.kept.borrow_mut().pop_front());
        link.pool.places.down.is_tried(Instant::now());
        let (upstream, places) = (&among[at], &link.pool.places);
        match open(upstream, places, &self.names, settings.connect_timeout, deadline).await {
            Ok((wire, lead)) => {
                link.pool.was_reached(upstream);
                link.leads(wire, lead);
                Ok(link)
            }
            Err(Failed(trouble, error)) => {
                let words = error.as_ref().map(ToString::to_string);
                places.tally.failed(trouble, words.as_deref());
                places.down.was_not_reached(Instant::now());
                Err(NoLink { trouble, at: Some(at), error })
            }
        }
    }

    /// Waits until one of the servers has a place, and takes it.
    async fn place(&self, pools: &[Untried], max: usize) -> usize {
        loop {
            let now = Instant::now();
            // Servers that are down are left out: a place there is more useful to a request that
            // waits only for that server.
            let asked = asked(pools, now);
            let mut freed: Vec<_> =
                asked.map(|(_, pool)| Box::pin(pool.places.freed.notified())).collect();
            let free = poll_fn(|cx| {
                let is_free = freed.iter_mut().any(|freed| freed.as_mut().poll(cx).is_ready());
                if is_free { Poll::Ready(()) } else { Poll::Pending }
            });
            let until = pools.iter().filter_map(|(_, pool)| pool.places.down.until());
            match until.filter(|until| now < *until).min() {
                // At that time the server may be tried again.
                Some(until) => drop(tokio::time::timeout_at(until.into(), free).await),
                None => free.await,
            }
            if let Some(chosen) = self.take_one(pools, max, false) {
                return chosen;
            }
            tell_others(pools, max);
        }
    }

    /// Takes a place at one of the servers, if there is one.
    fn take_one(&self, pools: &[Untried], max: usize, is_new: bool) -> Option<usize> {
        loop {
            let chosen = self.choose(pools, max, is_new)?;
            // Another thread may have taken the place meanwhile; then there is one place less.
            if pools[chosen].1.places.take(max) {
                return Some(chosen);
            }
        }
    }

    /// Selects a server. `is_new`: requests that already wait go first.
    fn choose(&self, pools: &[Untried], max: usize, is_new: bool) -> Option<usize> {
        let now = Instant::now();
        let candidate = |(_, pool): &Untried| {
            let used = pool.places.used.load(Ordering::Relaxed);
            let is_waited_for = pool.places.waiting.load(Ordering::Relaxed) > 0;
            let has_room = used < max && !(is_new && is_waited_for);
            Candidate { used, has_room, is_down: pool.is_down(now) }
        };
        let candidates: Vec<Candidate> = pools.iter().map(candidate).collect();
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        choose(&candidates, turn)
    }

    /// Closes connections that were kept too long. Returns whether any are still kept.
    pub(crate) fn sweep(&self) -> bool {
        let mut pools = self.pools.borrow_mut();
        for pool in pools.values() {
            pool.forget_old();
        }
        // Drops addresses that a reload has removed from the settings.
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

impl Drop for Pool {
    fn drop(&mut self) {
        self.places.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    fn is_down(&self, now: Instant) -> bool {
        self.places.down.is_down(now)
    }

    fn was_reached(&self, upstream: &Upstream) {
        if self.places.down.was_reached() {
            tracing::info!(%upstream, "php-fpm is reachable again");
        }
    }

    fn forget_old(&self) {
        let mut kept = self.kept.borrow_mut();
        kept.retain(|kept| kept.since.elapsed() < KEPT_FOR);
    }

    /// Returns the most recently used kept connection; skips connections that php-fpm has closed.
    fn take_kept(&self) -> Option<IdleConnection> {
        self.forget_old();
        let mut all = self.kept.borrow_mut();
        while let Some(mut kept) = all.pop_back() {
            if is_quiet(&mut kept.wire) {
                return Some(kept);
            }
        }
        None
    }
}

impl Link {
    /// Creates a link for a place that was taken already.
    fn new(pool: &Rc<Pool>, at: usize, idle_connections_max: usize) -> Link {
        pool.counters.pool.upstream_connections.add(1);
        Link {
            pool: Rc::clone(pool),
            at,
            wire: None,
            lead: None,
            is_kept: false,
            idle_connections_max,
        }
    }

    fn leads(&mut self, wire: AnyWire, lead: Option<Lead>) {
        if let Some(lead) = &lead {
            lead.to.used.fetch_add(1, Ordering::Relaxed);
        }
        (self.wire, self.lead) = (Some(wire), lead);
    }

    /// Keeps the connection for another request. Its response must be complete, and no bytes may be
    /// left in it.
    pub(super) fn keep(&mut self, wire: AnyWire) {
        let mut kept = self.pool.kept.borrow_mut();
        // Each kept connection occupies a process of php-fpm, so each thread may keep only its
        // share.
        let threads = self.pool.places.threads.load(Ordering::Relaxed).max(1);
        if kept.len() < self.idle_connections_max / threads {
            let lead = self.lead.clone();
            kept.push_back(IdleConnection { wire, lead, since: Instant::now() });
        }
    }

    /// Receiver of the results of its request.
    pub(crate) fn news(&self) -> News {
        News { pool: Rc::clone(&self.pool), lead: self.lead.clone() }
    }

    /// Whether connections are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.idle_connections_max > 0
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pool.counters.pool.upstream_connections.sub(1);
        if let Some(lead) = &self.lead {
            lead.to.used.fetch_sub(1, Ordering::Relaxed);
        }
        self.pool.places.used.fetch_sub(1, Ordering::Relaxed);
        self.pool.places.freed.notify_one();
    }
}

/// Whether no bytes have arrived and the peer has not closed the connection.
fn is_quiet(wire: &mut AnyWire) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    let mut byte = [0; 1];
    Pin::new(wire).poll_read(&mut cx, &mut ReadBuf::new(&mut byte)).is_pending()
}

/// Counts that no candidate had room; requests that came earlier may have priority. Servers that
/// are skipped because they are down have their failure counted already.
fn full(pools: &[Untried]) -> NoLink {
    for (_, pool) in asked(pools, Instant::now()) {
        pool.places.tally.failed(UpstreamFailure::Full, None);
    }
    NoLink { trouble: UpstreamFailure::Full, at: None, error: None }
}

/// Servers that may be used for a request: those that are not skipped.
fn asked(pools: &[Untried], now: Instant) -> impl Iterator<Item = &Untried> {
    let are_down = pools.iter().all(|(_, pool)| pool.is_down(now));
    pools.iter().filter(move |(_, pool)| are_down || !pool.is_down(now))
}

/// Passes on notifications: a waiting request that was notified of several free places takes only
/// one.
fn tell_others(pools: &[Untried], max: usize) {
    for (_, pool) in pools {
        if pool.places.has_room_for_others(max) {
            pool.places.freed.notify_one();
        }
    }
}

/// Counts a request as waiting for a place until it is dropped.
struct Waiting<'a> {
    upstreams: &'a Upstreams,
    pools: &'a [Untried],
}

impl<'a> Waiting<'a> {
    fn new(upstreams: &'a Upstreams, pools: &'a [Untried]) -> Waiting<'a> {
        upstreams.places.queued.fetch_add(1, Ordering::Relaxed);
        upstreams.counters.pool.upstream_queue_depth.add(1);
        for (_, pool) in pools {
            pool.places.waiting.fetch_add(1, Ordering::Relaxed);
        }
        Waiting { upstreams, pools }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.upstreams.places.queued.fetch_sub(1, Ordering::Relaxed);
        self.upstreams.counters.pool.upstream_queue_depth.sub(1);
        for (_, pool) in self.pools {
            pool.places.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::Settings;
    use std::path::Path;
    use tokio::runtime::{Builder, LocalOptions};

    fn settings() -> FastCgi {
        let all = Settings::defaults(Path::new("/")).expect("defaults");
        FastCgi { connections_max: 1, queue_max: 0, ..all.fastcgi }
    }

    /// The first server is full, the first place at the second one belongs to a waiting request,
    /// and the third one is skipped.
    #[test]
    fn full_servers_count_a_failure_and_down_server_does_not() {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let among =
            ["full", "waited-for", "away"].map(|name| Upstream::Unix(Path::new("/").join(name)));
        let names = Rc::new(Names::new(Names::start().expect("threads")));
        let upstreams = Upstreams::new(Arc::default(), Arc::default(), names);
        let [full, waited_for, away] = among.each_ref().map(|upstream| upstreams.pool(upstream));
        assert!(full.places.take(1));
        waited_for.places.waiting.fetch_add(1, Ordering::Relaxed);
        away.places.tally.failed(UpstreamFailure::Unreachable, None);
        away.places.down.was_not_reached(Instant::now());
        let settings = settings();
        let found = runtime
            .expect("a runtime")
            .block_on(upstreams.connect(&among, &[], &settings, true))
            .expect_err("no server has room");
        assert_eq!((found.trouble, found.at), (UpstreamFailure::Full, None));
        let told = [full, waited_for, away].map(|pool| {
            let figures = pool.places.tally.figures();
            (figures.troubles[UpstreamFailure::Full as usize], figures.last.expect("one").trouble)
        });
        let expected = [
            (1, UpstreamFailure::Full),
            (1, UpstreamFailure::Full),
            (0, UpstreamFailure::Unreachable),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn server_found_down_by_one_thread_is_skipped_by_others() {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.expect("a runtime");
        let [away, full] = ["/nowhere/at.all", "/full"].map(|path| Upstream::Unix(path.into()));
        let names = Rc::new(Names::new(Names::start().expect("threads")));
        let all = Arc::new(AllPlaces::default());
        let thread = || Upstreams::new(Arc::default(), Arc::clone(&all), Rc::clone(&names));
        let (first, second, settings) = (thread(), thread(), settings());
        let away = [away];
        let tried = runtime.block_on(first.connect(&away, &[], &settings, true));
        assert_eq!(tried.expect_err("no server is reachable").at, Some(0));
        // This must also hold after the first thread has dropped its state of that server.
        assert!(!first.sweep());
        for other in [&first, &second] {
            let among = [away[0].clone(), full.clone()];
            let pool = other.pool(&full);
            let _ = pool.places.take(1);
            let found = runtime.block_on(other.connect(&among, &[], &settings, true));
            let found = found.expect_err("no server has room");
            assert_eq!((found.trouble, found.at), (UpstreamFailure::Full, None));
        }
        let told = all.of(&away[0]).tally.figures().troubles;
        assert_eq!(told[UpstreamFailure::Unreachable as usize], 1);
    }
}
