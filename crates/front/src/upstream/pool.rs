//! submit: the connections to each php-fpm. So many at most, of which some are kept for the next request.
//!
//! Of several that may run a request `choose` says which. Who comes when all have as many as they may waits, behind those who
//! came before; so many requests may, and no more.
//!
//! A kept connection has a process of php-fpm to itself, so none is kept for long. What php-fpm has closed meanwhile is
//! seen before it is used again, mostly; only requests that may be run twice go over one.

use super::choose::{Candidate, choose};
use super::names::Names;
use super::open::{AnyWire, Failed, open};
use super::places::{AllPlaces, Lead, Places};
use super::tally::Tally;
use crate::runtime::counters::Counters;
use crate::runtime::trouble::Trouble;
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

/// How long a connection is kept.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// All of them, by their addresses.
#[derive(Debug)]
pub(crate) struct Upstreams {
    pools: RefCell<HashMap<Upstream, Rc<Pool>>>,
    names: Rc<Names>,
    turn: Cell<usize>,
    counters: Arc<Counters>,
    places: Arc<AllPlaces>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct NoLink {
    pub(crate) trouble: Trouble,
    /// Who could not be reached, by its place among those who might be; `None`: none of them had room.
    pub(crate) at: Option<usize>,
    pub(crate) error: Option<io::Error>,
}

/// The connections to one php-fpm, of one thread.
#[derive(Debug)]
struct Pool {
    places: Arc<Places>,
    kept: RefCell<VecDeque<Kept>>,
    counters: Arc<Counters>,
    broken: Throttle,
}

/// A connection between two requests.
#[derive(Debug)]
struct Kept {
    wire: AnyWire,
    lead: Option<Lead>,
    since: Instant,
}

/// One that a request may go to, and its place among all that the location names.
type Untried = (usize, Rc<Pool>);

/// Where is told what became of a request: of a php-fpm whose name stands for addresses, of that address as well.
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

    /// Of a name: to which of its addresses the request has gone.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.lead.as_ref().map(|lead| lead.at)
    }

    /// A request is about to be sent.
    pub(crate) fn sent(&self, now: Instant) {
        self.tallies().for_each(|tally| tally.sent(now));
    }

    /// The head of its answer is there, after this time.
    pub(crate) fn answered(&self, waited: Duration) {
        self.tallies().for_each(|tally| tally.answered(waited));
    }

    /// There is no answer.
    pub(crate) fn failed(&self, trouble: Trouble) {
        self.tallies().for_each(|tally| tally.failed(trouble, None));
    }

    /// An answer has begun, and does not come to its end.
    pub(super) fn broke_off(&self, trouble: Trouble, upstream: &Upstream, request_id: &str) {
        self.pool.counters.pass_troubles[trouble as usize].add(1);
        self.failed(trouble);
        if let Some(suppressed) = self.pool.broken.pass() {
            let (what, hint) = trouble.words();
            tracing::warn!(
                %upstream,
                address = self.address().map(tracing::field::display),
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
    /// Whose it is, by its place among those who might have been asked.
    pub(crate) at: usize,
    pub(super) wire: Option<AnyWire>,
    /// Of a name.
    lead: Option<Lead>,
    /// It was used before.
    pub(super) is_kept: bool,
    kept_max: usize,
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

    /// The same names for another pool of workers.
    pub(crate) fn names(&self) -> Rc<Names> {
        Rc::clone(&self.names)
    }

    /// A connection to one of `among`, but for those that `tried` names, in time. `may_be_kept`: one that was used before will do.
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
        let mut link = Link::new(pool, at, settings.kept_max);
        tell_others(&pools, max);
        if may_be_kept && let Some(kept) = link.pool.take_kept() {
            link.is_kept = true;
            link.leads(kept.wire, kept.lead);
            return Ok(link);
        }
        // php-fpm may have no process left for another one.
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

    /// Waits until one of them has a place, and takes it.
    async fn place(&self, pools: &[Untried], max: usize) -> usize {
        loop {
            let now = Instant::now();
            // Whoever waits for another one alone has more use of what becomes free there.
            let asked = asked(pools, now);
            let mut freed: Vec<_> =
                asked.map(|(_, pool)| Box::pin(pool.places.freed.notified())).collect();
            let free = poll_fn(|cx| {
                let is_free = freed.iter_mut().any(|freed| freed.as_mut().poll(cx).is_ready());
                if is_free { Poll::Ready(()) } else { Poll::Pending }
            });
            let until = pools.iter().filter_map(|(_, pool)| pool.places.down.until());
            match until.filter(|until| now < *until).min() {
                // Then it may be tried again.
                Some(until) => drop(tokio::time::timeout_at(until.into(), free).await),
                None => free.await,
            }
            if let Some(chosen) = self.take_one(pools, max, false) {
                return chosen;
            }
            tell_others(pools, max);
        }
    }

    /// Takes a place with one of them, if there is one.
    fn take_one(&self, pools: &[Untried], max: usize, is_new: bool) -> Option<usize> {
        loop {
            let chosen = self.choose(pools, max, is_new)?;
            // Another thread may have been faster: then there is one place less.
            if pools[chosen].1.places.take(max) {
                return Some(chosen);
            }
        }
    }

    /// Who is asked now. `is_new`: who waits already goes first.
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
            tracing::info!(%upstream, "a php-fpm that could not be reached takes requests again");
        }
    }

    fn forget_old(&self) {
        let mut kept = self.kept.borrow_mut();
        kept.retain(|kept| kept.since.elapsed() < KEPT_FOR);
    }

    /// The one that was used last; what was closed meanwhile is none.
    fn take_kept(&self) -> Option<Kept> {
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
    /// With the place that was taken for it.
    fn new(pool: &Rc<Pool>, at: usize, kept_max: usize) -> Link {
        pool.counters.passes_open.add(1);
        Link { pool: Rc::clone(pool), at, wire: None, lead: None, is_kept: false, kept_max }
    }

    fn leads(&mut self, wire: AnyWire, lead: Option<Lead>) {
        if let Some(lead) = &lead {
            lead.to.used.fetch_add(1, Ordering::Relaxed);
        }
        (self.wire, self.lead) = (Some(wire), lead);
    }

    /// Its request is answered, and nothing is left in it.
    pub(super) fn keep(&mut self, wire: AnyWire) {
        let mut kept = self.pool.kept.borrow_mut();
        // Each keeps a process of php-fpm: of several threads each has its part of them.
        let threads = self.pool.places.threads.load(Ordering::Relaxed).max(1);
        if kept.len() < self.kept_max / threads {
            let lead = self.lead.clone();
            kept.push_back(Kept { wire, lead, since: Instant::now() });
        }
    }

    /// Who is told what becomes of its request.
    pub(crate) fn news(&self) -> News {
        News { pool: Rc::clone(&self.pool), lead: self.lead.clone() }
    }

    /// Whether connections are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.kept_max > 0
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pool.counters.passes_open.sub(1);
        if let Some(lead) = &self.lead {
            lead.to.used.fetch_sub(1, Ordering::Relaxed);
        }
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

/// None had room, be it that those who came before go first; of those who are passed over because they could not be reached that is told
/// already.
fn full(pools: &[Untried]) -> NoLink {
    for (_, pool) in asked(pools, Instant::now()) {
        pool.places.tally.failed(Trouble::Full, None);
    }
    NoLink { trouble: Trouble::Full, at: None, error: None }
}

/// Those that might have room for a request: but for those that are passed over.
fn asked(pools: &[Untried], now: Instant) -> impl Iterator<Item = &Untried> {
    let are_down = pools.iter().all(|(_, pool)| pool.is_down(now));
    pools.iter().filter(move |(_, pool)| are_down || !pool.is_down(now))
}

/// A waiting request that was told of several free places takes one of them.
fn tell_others(pools: &[Untried], max: usize) {
    for (_, pool) in pools {
        if pool.places.has_room_for_others(max) {
            pool.places.freed.notify_one();
        }
    }
}

/// A request that waits for a place, until this is dropped.
struct Waiting<'a> {
    upstreams: &'a Upstreams,
    pools: &'a [Untried],
}

impl<'a> Waiting<'a> {
    fn new(upstreams: &'a Upstreams, pools: &'a [Untried]) -> Waiting<'a> {
        upstreams.places.queued.fetch_add(1, Ordering::Relaxed);
        upstreams.counters.passes_queued.add(1);
        for (_, pool) in pools {
            pool.places.waiting.fetch_add(1, Ordering::Relaxed);
        }
        Waiting { upstreams, pools }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.upstreams.places.queued.fetch_sub(1, Ordering::Relaxed);
        self.upstreams.counters.passes_queued.sub(1);
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

    /// One has no room; of another's the first place is for who waits for it; the third is passed over.
    #[test]
    fn who_has_no_room_is_told_of_and_who_is_away_stays_so() {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let among =
            ["full", "waited-for", "away"].map(|name| Upstream::Unix(Path::new("/").join(name)));
        let names = Rc::new(Names::new(Names::start().expect("threads")));
        let upstreams = Upstreams::new(Arc::default(), Arc::default(), names);
        let [full, waited_for, away] = among.each_ref().map(|upstream| upstreams.pool(upstream));
        assert!(full.places.take(1));
        waited_for.places.waiting.fetch_add(1, Ordering::Relaxed);
        away.places.tally.failed(Trouble::Unreachable, None);
        away.places.down.was_not_reached(Instant::now());
        let settings = settings();
        let found = runtime
            .expect("a runtime")
            .block_on(upstreams.connect(&among, &[], &settings, true))
            .expect_err("nobody has room");
        assert_eq!((found.trouble, found.at), (Trouble::Full, None));
        let told = [full, waited_for, away].map(|pool| {
            let figures = pool.places.tally.figures();
            (figures.troubles[Trouble::Full as usize], figures.last.expect("one").trouble)
        });
        let expected = [(1, Trouble::Full), (1, Trouble::Full), (0, Trouble::Unreachable)];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_one_thread_has_found_away_the_others_pass_over() {
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
        assert_eq!(tried.expect_err("nobody is there").at, Some(0));
        // Also after this thread has forgotten what it had of it.
        assert!(!first.sweep());
        for other in [&first, &second] {
            let among = [away[0].clone(), full.clone()];
            let pool = other.pool(&full);
            let _ = pool.places.take(1);
            let found = runtime.block_on(other.connect(&among, &[], &settings, true));
            let found = found.expect_err("nobody has room");
            assert_eq!((found.trouble, found.at), (Trouble::Full, None));
        }
        let told = all.of(&away[0]).tally.figures().troubles;
        assert_eq!(told[Trouble::Unreachable as usize], 1);
    }
}
