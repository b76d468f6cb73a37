//! Queue of requests that wait for a slot, in the order in which they get one.
//!
//! Without a client key the order is first come, first served. With one it is fair by client:
//! start-time fair queueing (Goyal, Vin, Cheng, 1996), which gives each client the same share of
//! worker time as deficit round robin does, without rounds. A request of a client starts, in
//! virtual time, when the client's previous one ends, but not before the present. The request with
//! the earliest start is next. A request is as long as the client's requests recently were.
//!
//! Pure. The table (`table`) decides when a request may leave the queue.

use super::slot_waiter::{Position, Waiter};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

/// Number of queues: for requests without a client key, and for each kind of worker.
pub(super) const GROUPS: usize = 3;
/// Number of requests that the ring may have until the workers are known.
const WINDOW_FIRST: usize = 4;
/// Number of clients whose request times are known. More of them share entries.
const COSTS: usize = 1024;
/// Shortest and longest time of a request that counts, in µs. A short request also costs the front
/// and the worker's wake-up. The longest limits the effect of one extreme request.
const COST_US_MIN: u32 = 100;
const COST_US_MAX: u32 = 60_000_000;
/// Assumed time of a client's first request, in µs.
const COST_US_FIRST: u32 = 1_000;
/// Weight of the latest request in a client's average: 1 of this number.
const COST_WEIGHT: u32 = 4;
/// Number of clients, in addition to twice the waiting requests, whose ends are kept.
const ENDS_MIN: usize = 64;

/// Client of a request in a queue that is fair by client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Key of the client (see [`shares::client`](super::shares::client)).
    pub(crate) client: u128,
    /// The request is for a worker with a booted application. Workers of the other kind may be
    /// missing, and then requests for them must not delay this one.
    pub(crate) is_app: bool,
}

/// Number of the queue for requests with that turn.
pub(super) fn group(turn: Option<Turn>) -> usize {
    turn.map_or(0, |turn| 1 + usize::from(!turn.is_app))
}

/// Number of requests that the ring may have while the queue is fair by client.
#[derive(Debug)]
pub(super) struct Window {
    /// The number for each group, as of the last sweep.
    pub(super) size: usize,
    /// The number of workers changes with the load.
    pub(super) is_elastic: bool,
}

impl Window {
    pub(super) fn new() -> Window {
        Window { size: WINDOW_FIRST, is_elastic: false }
    }
}

/// Waiting requests.
#[derive(Debug, Default)]
pub(super) struct TurnQueue {
    waiting: BTreeMap<Position, Rc<Waiter>>,
    /// End of each client's last request in virtual time, if it is after the present.
    ends: HashMap<u128, u64>,
    /// The present in virtual time: start of the request that left last.
    now: u64,
    arrivals: u64,
}

impl TurnQueue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a request. `cost_us`: its expected time.
    pub(super) fn push(&mut self, waiter: &Rc<Waiter>, client: Option<u128>, cost_us: u32) {
        let start = client.map_or(self.now, |client| {
            let end = self.ends.entry(client).or_insert(self.now);
            let start = self.now.max(*end);
            *end = start + u64::from(cost_us);
            start
        });
        self.arrivals += 1;
        let position = (start, self.arrivals);
        waiter.position.set(position);
        self.waiting.insert(position, Rc::clone(waiter));
        if self.ends.len() > ENDS_MIN + 2 * self.waiting.len() {
            self.ends.retain(|_, end| *end > self.now);
        }
    }

    /// Removes and returns the next request.
    pub(super) fn pop(&mut self) -> Option<Rc<Waiter>> {
        let ((start, _), waiter) = self.waiting.pop_first()?;
        self.now = self.now.max(start);
        if self.waiting.is_empty() {
            self.ends.retain(|_, end| *end > self.now);
        }
        Some(waiter)
    }

    /// Removes a request that no longer waits.
    pub(super) fn remove(&mut self, position: Position) {
        self.waiting.remove(&position);
    }

    /// Removes and returns the requests for which `is_over` returns true.
    pub(super) fn take_over(
        &mut self,
        is_over: impl Fn(&Waiter) -> bool,
    ) -> impl Iterator<Item = Rc<Waiter>> {
        self.waiting.extract_if(.., move |_, waiter| is_over(waiter)).map(|(_, waiter)| waiter)
    }

    /// Forgets the clients' past, when nothing waits or runs.
    pub(super) fn rest(&mut self) {
        if self.waiting.is_empty() {
            self.ends.clear();
        }
    }
}

/// Recent request times of clients, in a table of fixed size.
#[derive(Debug)]
pub(super) struct Costs {
    /// In µs; 0: unknown.
    averages: Box<[u32; COSTS]>,
    seed: RandomState,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs { averages: Box::new([0; COSTS]), seed: RandomState::new() }
    }
}

impl Costs {
    /// Expected time of the client's next request, in µs.
    pub(super) fn of(&self, client: u128) -> u32 {
        match self.averages[self.at(client)] {
            0 => COST_US_FIRST,
            known => known,
        }
    }

    /// Records the time of a finished request.
    pub(super) fn learn(&mut self, client: u128, run_us: u64) {
        let latest = u32::try_from(run_us).unwrap_or(u32::MAX).clamp(COST_US_MIN, COST_US_MAX);
        let at = self.at(client);
        let average = &mut self.averages[at];
        *average = match *average {
            0 => latest,
            known => known - known / COST_WEIGHT + latest / COST_WEIGHT,
        };
    }

    fn at(&self, client: u128) -> usize {
        self.seed.hash_one(client) as usize % COSTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A waiter whose `since_ms` names it.
    fn waiter(name: u64) -> Rc<Waiter> {
        Rc::new(Waiter { since_ms: name, ..Waiter::default() })
    }

    fn names(queue: &mut TurnQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|waiter| waiter.since_ms).collect()
    }

    #[test]
    fn requests_without_client_leave_in_order_of_arrival() {
        let mut queue = TurnQueue::default();
        (1..=4).for_each(|name| queue.push(&waiter(name), None, 1));
        assert_eq!(names(&mut queue), [1, 2, 3, 4]);
    }

    #[test]
    fn client_with_one_request_overtakes_flood_of_another() {
        let mut queue = TurnQueue::default();
        (0..100).for_each(|name| queue.push(&waiter(name), Some(1), 10));
        (0..10).for_each(|name| assert_eq!(queue.pop().map(|w| w.since_ms), Some(name)));
        queue.push(&waiter(500), Some(2), 10);
        queue.push(&waiter(501), Some(2), 10);
        let order = names(&mut queue);
        assert_eq!(order[..5], [500, 10, 501, 11, 12]);
    }

    #[test]
    fn client_with_long_requests_gets_fewer_turns() {
        let mut queue = TurnQueue::default();
        (0..100).for_each(|name| queue.push(&waiter(name), Some(1), 100));
        (100..200).for_each(|name| queue.push(&waiter(name), Some(2), 10));
        let first: Vec<_> = (0..55).filter_map(|_| queue.pop()).map(|w| w.since_ms).collect();
        let long = first.iter().filter(|name| **name < 100).count();
        assert!((5..=6).contains(&long), "{long} of 55");
    }

    #[test]
    fn removed_and_expired_requests_do_not_leave_again() {
        let mut queue = TurnQueue::default();
        let all: Vec<_> = (0..6).map(waiter).collect();
        for one in &all {
            queue.push(one, Some(7), 10);
        }
        queue.remove(all[2].position.get());
        let over: Vec<_> = queue.take_over(|one| one.since_ms < 2).map(|w| w.since_ms).collect();
        assert_eq!((over, queue.len()), (vec![0, 1], 3));
        assert_eq!(names(&mut queue), [3, 4, 5]);
    }

    #[test]
    fn averages_follow_request_times_within_limits() {
        let mut costs = Costs::default();
        assert_eq!(costs.of(1), COST_US_FIRST);
        costs.learn(1, 8_000);
        costs.learn(1, 4_000);
        assert_eq!(costs.of(1), 7_000);
        (0..100).for_each(|_| costs.learn(1, u64::MAX));
        assert!(costs.of(1) <= COST_US_MAX);
        (0..200).for_each(|_| costs.learn(1, 0));
        assert!((COST_US_MIN..COST_US_MIN + COST_WEIGHT).contains(&costs.of(1)));
    }

    proptest! {
        /// However many requests others have, a client's only request waits for at most one of
        /// each of the others.
        #[test]
        fn only_request_of_client_waits_for_one_of_each_other(
            others in proptest::collection::vec(1u64..50, 1..8),
            popped in 0usize..100,
        ) {
            let mut queue = TurnQueue::default();
            for (client, count) in others.iter().enumerate() {
                (0..*count).for_each(|_| queue.push(&waiter(0), Some(client as u128), 10));
            }
            (0..popped).for_each(|_| drop(queue.pop()));
            queue.push(&waiter(1), Some(1_000), 10);
            let before = names(&mut queue).iter().position(|name| *name == 1);
            prop_assert!(before.is_some_and(|before| before <= others.len()), "{:?}", before);
        }

        /// The ends of clients do not accumulate.
        #[test]
        fn ends_of_past_clients_are_forgotten(clients in 1u128..2_000) {
            let mut queue = TurnQueue::default();
            for client in 0..clients {
                queue.push(&waiter(0), Some(client), 10);
                queue.push(&waiter(0), Some(client), 10);
                queue.pop();
                queue.pop();
            }
            prop_assert!(queue.ends.len() <= ENDS_MIN + 4, "{}", queue.ends.len());
        }
    }
}
