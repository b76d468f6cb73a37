//! submit: connection counts and statistics of each php-fpm server and of the addresses of its
//! name, for all threads of the front.

use super::down::Down;
use super::lru::{Asked, Remembered};
use super::tally::{Tally, TallyFigures};
use crate::runtime::upstream_failure::UpstreamFailure;
use samovar_config::{FastCgi, Upstream};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// Maximum number of remembered servers. Servers in use are always remembered.
const REMEMBERED_MAX: usize = 64;
/// Maximum number of remembered addresses of a name: twice the maximum of a lookup. Addresses with
/// a connection are always remembered.
const ADDRESSES_MAX: usize = 2 * super::names::ADDRESSES_MAX;

/// State of all php-fpm servers, by their addresses.
#[derive(Debug)]
pub(crate) struct AllPlaces {
    by_upstream: Remembered<Upstream, Places>,
    /// Number of requests that wait for a place.
    pub(super) queued: AtomicUsize,
    queue_max: AtomicUsize,
    connections_max: AtomicUsize,
}

/// State of one php-fpm server.
#[derive(Debug)]
pub(crate) struct Places {
    /// Number of connections in use or being opened.
    pub(super) used: AtomicUsize,
    /// Notified when a place becomes free.
    pub(super) freed: Notify,
    /// Number of requests that wait for a place.
    pub(super) waiting: AtomicUsize,
    /// Number of threads that have connections to it, or had one recently.
    pub(super) threads: AtomicUsize,
    pub(super) tally: Tally,
    pub(super) down: Down,
    /// Addresses of its name.
    addresses: Remembered<SocketAddr, Address>,
}

/// State of one address of a name.
#[derive(Debug, Default)]
pub(crate) struct Address {
    /// Number of connections in use.
    pub(super) used: AtomicUsize,
    pub(super) tally: Tally,
    pub(super) down: Down,
}

/// The address of a name to which a connection leads, and its state.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    pub(super) at: SocketAddr,
    pub(super) to: Arc<Address>,
}

/// Statistics of a pool's php-fpm servers.
#[derive(Clone, Debug)]
pub struct PassFigures {
    /// Number of requests that wait for a connection to any of them.
    pub queued: u64,
    /// Maximum number of waiting requests.
    pub queue_max: u64,
    /// Statistics of each server, sorted by address.
    pub all: Vec<UpstreamFigures>,
}

/// Statistics of a php-fpm server that `fastcgi_pass` names.
#[derive(Clone, Debug)]
pub struct UpstreamFigures {
    /// Address as given in the settings.
    pub address: String,
    /// Number of connections in use or being opened.
    pub connections: u64,
    /// Maximum number of connections.
    pub connections_max: u64,
    /// Number of requests that wait for a connection to this server, or to any of several servers
    /// that includes this one.
    pub waiting: u64,
    /// Results of its requests.
    pub tally: TallyFigures,
    /// Addresses that were tried if the server is given by name, sorted.
    pub addresses: Vec<AddressFigures>,
}

/// Statistics of one address of a name.
#[derive(Clone, Debug)]
pub struct AddressFigures {
    /// The address.
    pub address: SocketAddr,
    /// Number of connections in use.
    pub connections: u64,
    /// Results of its requests. A connection that it did not accept counts here even if another
    /// address accepted it.
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
    /// Sets the limits that apply from now on.
    pub(crate) fn limit(&self, settings: &FastCgi) {
        self.queue_max.store(settings.queue_max, Ordering::Relaxed);
        self.connections_max.store(settings.connections_max, Ordering::Relaxed);
    }

    pub(super) fn of(&self, upstream: &Upstream) -> Arc<Places> {
        self.by_upstream.of(upstream, Instant::now())
    }

    /// Statistics of each server that was used within the last hour.
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

    /// Whether a place is free and a request waits for it.
    pub(super) fn has_room_for_others(&self, max: usize) -> bool {
        self.used.load(Ordering::Relaxed) < max && self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Moves addresses that failed to accept a connection recently to the end.
    pub(super) fn put_down_last(&self, addresses: &mut [SocketAddr], now: Instant) {
        let is_down =
            |at: &SocketAddr| self.addresses.known(at).is_some_and(|at| at.down.is_down(now));
        addresses.sort_by_cached_key(is_down);
    }

    /// Returns the state of an address of the name, which is about to be tried.
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
    /// Records that the address did not accept a connection.
    pub(super) fn is_away(&self, trouble: UpstreamFailure, words: Option<&str>) {
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
    fn figures_list_only_servers_that_were_used() {
        let all = AllPlaces::default();
        let held: Vec<_> = (0..100).map(|number| all.of(&upstream(number))).collect();
        let told = all.figures().all;
        assert_eq!(told.len(), 100, "all that are in use");
        assert_eq!(told[7].address, "unix:/run/0007.sock");
        held[7].tally.sent(Instant::now());
        drop(held);
        drop(all.of(&upstream(200)));
        assert_eq!(addresses(&all).len(), 2, "the others are unused");
    }

    #[test]
    fn full_map_evicts_least_recently_used_server() {
        let all = AllPlaces::default();
        for number in 0..=REMEMBERED_MAX {
            all.of(&upstream(number)).tally.sent(Instant::now());
        }
        let addresses = addresses(&all);
        assert_eq!((addresses.len(), &*addresses[0]), (REMEMBERED_MAX, "unix:/run/0001.sock"));
    }

    /// A name whose addresses change at each lookup.
    #[test]
    fn addresses_of_name_have_own_figures_and_are_bounded() {
        let all = AllPlaces::default();
        let places = all.of(&Upstream::Name("php.example".to_owned(), 9000));
        let address =
            |n: usize| SocketAddr::from(([10, 0, 0, u8::try_from(n).expect("few")], 9000));
        for number in 0..100 {
            places
                .address(address(number))
                .to
                .tally
                .failed(UpstreamFailure::Unreachable, Some("gone"));
        }
        places.address(address(99)).to.tally.sent(Instant::now());
        let told = all.figures().all.remove(0).addresses;
        assert_eq!((told.len(), told[0].address), (ADDRESSES_MAX, address(100 - ADDRESSES_MAX)));
        let last = &told[ADDRESSES_MAX - 1];
        assert_eq!((last.tally.requests, told[0].tally.requests), (1, 0));
        assert_eq!(last.tally.troubles[UpstreamFailure::Unreachable as usize], 1);
    }

    #[test]
    fn unreachable_address_is_tried_last() {
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
        assert_eq!(places.address_figures(now).len(), 0, "no attempt recorded");
        places.address(a).to.is_away(UpstreamFailure::Unaccepted, None);
        assert_eq!(order(now), [b, c, a]);
        for at in [b, c] {
            places.address(at).to.is_away(UpstreamFailure::Unreachable, None);
        }
        assert_eq!(order(now), [a, b, c], "all are alike");
        assert!(places.address(b).to.down.was_reached());
        assert_eq!(order(now), [b, a, c]);
        let later = Instant::now() + PASSED_OVER_FOR;
        assert_eq!(order(later), [a, b, c]);
        // One request tries it; the next one does not wait for the result.
        places.address(a).to.down.is_tried(later);
        places.address(b).to.down.is_tried(later);
        assert_eq!(order(later), [b, c, a]);
    }
}
