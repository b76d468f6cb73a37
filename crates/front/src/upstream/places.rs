//! submit: how many connections all threads of the front have to each php-fpm and to the addresses of its name, and how they fare.

use super::down::Down;
use super::remembered::{Asked, Remembered};
use super::tally::{Tally, TallyFigures};
use crate::runtime::trouble::Trouble;
use samovar_config::{FastCgi, Upstream};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// php-fpms that are remembered; those that the settings name, however many there are.
const REMEMBERED_MAX: usize = 64;
/// Addresses of a name that are remembered: twice as many as a lookup has. Those with a connection, however many there are.
const ADDRESSES_MAX: usize = 2 * super::names::ADDRESSES_MAX;

/// Of each php-fpm, by its address.
#[derive(Debug)]
pub(crate) struct AllPlaces {
    by_upstream: Remembered<Upstream, Places>,
    /// Requests that wait for a place.
    pub(super) queued: AtomicUsize,
    queue_max: AtomicUsize,
    connections_max: AtomicUsize,
}

/// Of one php-fpm.
#[derive(Debug)]
pub(crate) struct Places {
    /// Those in use, and those that are being made.
    pub(super) used: AtomicUsize,
    /// A place has become free.
    pub(super) freed: Notify,
    /// Who waits for one.
    pub(super) waiting: AtomicUsize,
    /// Threads that have connections to it, or had one lately.
    pub(super) threads: AtomicUsize,
    pub(super) tally: Tally,
    pub(super) down: Down,
    /// Of a name.
    addresses: Remembered<SocketAddr, Address>,
}

/// One of those that a name stands for.
#[derive(Debug, Default)]
pub(crate) struct Address {
    /// Connections in use.
    pub(super) used: AtomicUsize,
    pub(super) tally: Tally,
    pub(super) down: Down,
}

/// To which of a name's addresses something leads.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    pub(super) at: SocketAddr,
    pub(super) to: Arc<Address>,
}

/// How a pool's php-fpms fare.
#[derive(Clone, Debug)]
pub struct PassFigures {
    /// Requests that wait for a connection to any of them.
    pub queued: u64,
    /// How many may wait.
    pub queue_max: u64,
    /// Each of them, in the order of their addresses.
    pub all: Vec<UpstreamFigures>,
}

/// How a php-fpm fares that `fastcgi_pass` names.
#[derive(Clone, Debug)]
pub struct UpstreamFigures {
    /// As the settings name it.
    pub address: String,
    /// Connections that are in use, or being made.
    pub connections: u64,
    /// How many there may be.
    pub connections_max: u64,
    /// Requests that wait for one, be it of this php-fpm or of another that would do.
    pub waiting: u64,
    /// What came of its requests.
    pub tally: TallyFigures,
    /// Of a name, the addresses that were tried; in their order.
    pub addresses: Vec<AddressFigures>,
}

/// How one of the addresses fares that a name stands for.
#[derive(Clone, Debug)]
pub struct AddressFigures {
    /// Which.
    pub address: SocketAddr,
    /// Connections that are in use.
    pub connections: u64,
    /// What came of its requests. A connection that it did not take counts here, also where another address took it.
    pub tally: TallyFigures,
}

impl Default for AllPlaces {
    fn default() -> AllPlaces {
        AllPlaces {
            by_upstream: Remembered::new(REMEMBERED_MAX),
            queued: AtomicUsize::default(),
            queue_max: AtomicUsize::default(),
            connections_max: AtomicUsize::default(),
        }
    }
}

impl AllPlaces {
    /// What holds from now on.
    pub(crate) fn limit(&self, settings: &FastCgi) {
        self.queue_max.store(settings.queue_max, Ordering::Relaxed);
        self.connections_max.store(settings.connections_max, Ordering::Relaxed);
    }

    pub(super) fn of(&self, upstream: &Upstream) -> Arc<Places> {
        self.by_upstream.of(upstream, Instant::now())
    }

    /// How each fares that was asked within the last hour.
    pub(crate) fn figures(&self) -> PassFigures {
        let (now, connections_max) = (Instant::now(), get(&self.connections_max));
        let told = self.by_upstream.told_of(now);
        let figures = told.iter().map(|(upstream, places)| UpstreamFigures {
            address: upstream.to_string(),
            connections: get(&places.used),
            connections_max,
            waiting: get(&places.waiting),
            tally: places.tally.figures(),
            addresses: places.address_figures(now),
        });
        let mut all: Vec<_> = figures.collect();
        all.sort_by(|a, b| a.address.cmp(&b.address));
        PassFigures { queued: get(&self.queued), queue_max: get(&self.queue_max), all }
    }
}

fn get(count: &AtomicUsize) -> u64 {
    count.load(Ordering::Relaxed) as u64
}

impl Default for Places {
    fn default() -> Places {
        Places {
            used: AtomicUsize::default(),
            freed: Notify::default(),
            waiting: AtomicUsize::default(),
            threads: AtomicUsize::default(),
            tally: Tally::default(),
            down: Down::default(),
            addresses: Remembered::new(ADDRESSES_MAX),
        }
    }
}

impl Places {
    pub(super) fn take(&self, max: usize) -> bool {
        let more = |used: usize| (used < max).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether somebody waits for one of those that are free.
    pub(super) fn has_room_for_others(&self, max: usize) -> bool {
        self.used.load(Ordering::Relaxed) < max && self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Those that took no connection a short while ago come behind the others.
    pub(super) fn put_down_last(&self, addresses: &mut [SocketAddr], now: Instant) {
        let is_down =
            |at: &SocketAddr| self.addresses.known(at).is_some_and(|at| at.down.is_down(now));
        addresses.sort_by_cached_key(is_down);
    }

    /// One of those that its name stands for is tried.
    pub(super) fn address(&self, at: SocketAddr) -> Lead {
        Lead { at, to: self.addresses.of(&at, Instant::now()) }
    }

    fn address_figures(&self, now: Instant) -> Vec<AddressFigures> {
        let told = self.addresses.told_of(now);
        let figures = told.iter().map(|(address, of)| AddressFigures {
            address: *address,
            connections: get(&of.used),
            tally: of.tally.figures(),
        });
        let mut all: Vec<_> = figures.collect();
        all.sort_by_key(|one| one.address);
        all
    }
}

impl Address {
    /// It took no connection.
    pub(super) fn is_away(&self, trouble: Trouble, words: Option<&str>) {
        self.tally.failed(trouble, words);
        self.down.was_not_reached(Instant::now());
    }
}

impl Asked for Places {
    fn asked(&self) -> Option<Instant> {
        self.tally.asked()
    }

    fn is_in_use(&self) -> bool {
        get(&self.used) > 0 || get(&self.waiting) > 0
    }
}

impl Asked for Address {
    fn asked(&self) -> Option<Instant> {
        self.tally.asked()
    }

    fn is_in_use(&self) -> bool {
        get(&self.used) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::down::PASSED_OVER_FOR;
    use super::*;
    use std::path::PathBuf;

    fn upstream(number: usize) -> Upstream {
        Upstream::Unix(PathBuf::from(format!("/run/{number:04}.sock")))
    }

    fn addresses(all: &AllPlaces) -> Vec<String> {
        all.figures().all.into_iter().map(|one| one.address).collect()
    }

    #[test]
    fn what_is_told_of_each_is_bounded() {
        let all = AllPlaces::default();
        let held: Vec<_> = (0..100).map(|number| all.of(&upstream(number))).collect();
        let told = all.figures().all;
        assert_eq!(told.len(), 100, "all that are in use");
        assert_eq!(told[7].address, "unix:/run/0007.sock");
        held[7].tally.sent(Instant::now());
        drop(held);
        drop(all.of(&upstream(200)));
        assert_eq!(addresses(&all).len(), 2, "nobody has asked the others");
    }

    #[test]
    fn of_too_many_the_one_is_forgotten_that_was_asked_longest_ago() {
        let all = AllPlaces::default();
        for number in 0..=REMEMBERED_MAX {
            all.of(&upstream(number)).tally.sent(Instant::now());
        }
        let addresses = addresses(&all);
        assert_eq!((addresses.len(), &*addresses[0]), (REMEMBERED_MAX, "unix:/run/0001.sock"));
    }

    /// A name whose addresses change at each lookup.
    #[test]
    fn addresses_of_a_name_have_figures_of_their_own_and_are_bounded() {
        let all = AllPlaces::default();
        let places = all.of(&Upstream::Name("php.example".to_owned(), 9000));
        let address =
            |n: usize| SocketAddr::from(([10, 0, 0, u8::try_from(n).expect("few")], 9000));
        for number in 0..100 {
            places.address(address(number)).to.tally.failed(Trouble::Unreachable, Some("gone"));
        }
        places.address(address(99)).to.tally.sent(Instant::now());
        let told = all.figures().all.remove(0).addresses;
        assert_eq!((told.len(), told[0].address), (ADDRESSES_MAX, address(100 - ADDRESSES_MAX)));
        let last = &told[ADDRESSES_MAX - 1];
        assert_eq!((last.tally.requests, told[0].tally.requests), (1, 0));
        assert_eq!(last.tally.troubles[Trouble::Unreachable as usize], 1);
    }

    #[test]
    fn an_address_that_takes_no_connection_is_tried_last() {
        let all = AllPlaces::default();
        let places = all.of(&Upstream::Name("php.example".to_owned(), 9000));
        let [a, b, c] = [1, 2, 3].map(|n| SocketAddr::from(([10, 0, 0, n], 9000)));
        let order = |now| {
            let mut order = [a, b, c];
            places.put_down_last(&mut order, now);
            order
        };
        let now = Instant::now();
        assert_eq!(order(now), [a, b, c]);
        assert_eq!(places.address_figures(now).len(), 0, "nobody has tried them");
        places.address(a).to.is_away(Trouble::Unaccepted, None);
        assert_eq!(order(now), [b, c, a]);
        for at in [b, c] {
            places.address(at).to.is_away(Trouble::Unreachable, None);
        }
        assert_eq!(order(now), [a, b, c], "all are alike");
        assert!(places.address(b).to.down.was_reached());
        assert_eq!(order(now), [b, a, c]);
        let later = Instant::now() + PASSED_OVER_FOR;
        assert_eq!(order(later), [a, b, c]);
        // One request tries it; the next does not wait for that.
        places.address(a).to.down.is_tried(later);
        places.address(b).to.down.is_tried(later);
        assert_eq!(order(later), [b, c, a]);
    }
}
