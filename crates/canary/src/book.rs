//! All routes and messages of a comparison, and the split of its false-alarm rate over them.
//!
//! Each test gets a part of the rate: half of it goes to the requests of all routes and to
//! messages, half to single routes. Route number n (in the order of appearance) gets the part
//! 1/(n(n+1)), so the sum stays within the rate for any number of routes.

use crate::evidence::Evidence;
use crate::metric::{Arm, Metric, Observation};
use crate::route::Route;
use std::collections::HashMap;

/// Maximum number of separate routes; further ones are only counted in the sum.
pub const ROUTES_MAX: usize = 200;
/// Maximum number of separate messages; further ones only raise the rate of errors.
pub const FINGERPRINTS_MAX: usize = 200;
/// Maximum number of workers whose warm-up is counted.
const WORKERS_MAX: usize = 8_192;
/// Number of a worker's first requests whose costs are not compared.
const WARMUP: u8 = 5;

/// Evidence of one kind, with its threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// Index of the route; 0: all routes.
    pub(crate) route: usize,
    pub(crate) metric: Metric,
    /// Evidence above the threshold, as a natural logarithm; negative: below.
    pub(crate) excess: f64,
}

/// One message: the requests that reported it.
#[derive(Clone, Debug)]
struct Message {
    evidence: Evidence,
    /// Requests of all routes at its first occurrence count as requests without it.
    seen: [u64; 2],
    count: [u64; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct Book {
    /// The first entry has the requests of all routes.
    pub(crate) routes: Vec<Route>,
    by_name: HashMap<String, usize>,
    messages: HashMap<u64, Message>,
    /// Fingerprints in the order of their first occurrence.
    order: Vec<u64>,
    /// Requests of each worker during its warm-up.
    workers: HashMap<u32, u8>,
}

impl Book {
    pub(crate) fn new() -> Book {
        Book {
            routes: vec![Route::new("")],
            by_name: HashMap::new(),
            messages: HashMap::new(),
            order: Vec::new(),
            workers: HashMap::new(),
        }
    }

    /// Begins again with empty evidence. Workers stay warm.
    pub(crate) fn restart(&mut self) {
        let workers = std::mem::take(&mut self.workers);
        *self = Book { workers, ..Book::new() };
    }

    pub(crate) fn add(&mut self, seen: &Observation, is_saturated: bool) {
        let is_warm = self.is_warm(seen.worker);
        self.routes[0].add(seen, is_warm, is_saturated);
        let at = match self.by_name.get(seen.route) {
            Some(at) => *at,
            None if self.routes.len() <= ROUTES_MAX => {
                self.routes.push(Route::new(seen.route));
                self.by_name.insert(seen.route.to_owned(), self.routes.len() - 1);
                self.routes.len() - 1
            }
            None => return,
        };
        self.routes[at].add(seen, is_warm, is_saturated);
    }

    fn is_warm(&mut self, worker: u32) -> bool {
        if worker == 0 {
            return false;
        }
        if self.workers.len() >= WORKERS_MAX && !self.workers.contains_key(&worker) {
            self.workers.clear();
        }
        let count = self.workers.entry(worker).or_insert(0);
        let is_warm = *count >= WARMUP;
        *count = count.saturating_add(1);
        is_warm
    }

    /// Adds a message of the request that was added last. Returns whether it is the first one with
    /// this fingerprint.
    pub(crate) fn add_message(&mut self, arm: Arm, fingerprint: u64) -> bool {
        let total = self.routes[0].requests;
        let is_known = self.messages.contains_key(&fingerprint);
        if !is_known {
            if self.messages.len() >= FINGERPRINTS_MAX {
                return false;
            }
            self.order.push(fingerprint);
            let mut evidence = Evidence::default();
            // The request itself is counted below.
            let mut before = total;
            before[arm as usize] = before[arm as usize].saturating_sub(1);
            evidence.add_misses(Arm::Old, before[0] as f64);
            evidence.add_misses(Arm::New, before[1] as f64);
            evidence.close_block();
            let message = Message { evidence, seen: before, count: [0; 2] };
            self.messages.insert(fingerprint, message);
        }
        let Some(message) = self.messages.get_mut(&fingerprint) else { return false };
        message.count[arm as usize] += 1;
        message.evidence.add(arm, true);
        message.seen[arm as usize] += 1;
        !is_known
    }

    pub(crate) fn close_block(&mut self) {
        self.routes.iter_mut().for_each(Route::close_block);
        let total = self.routes[0].requests;
        for message in self.messages.values_mut() {
            for arm in [Arm::Old, Arm::New] {
                let more = total[arm as usize].saturating_sub(message.seen[arm as usize]);
                message.evidence.add_misses(arm, more as f64);
                message.seen[arm as usize] = total[arm as usize].max(message.seen[arm as usize]);
            }
            message.evidence.close_block();
        }
    }

    /// Returns the strongest evidence of a route, for a false-alarm rate.
    pub(crate) fn strongest(&self, alpha: f64) -> Option<Found> {
        let all = self.routes.iter().enumerate().flat_map(|(at, route)| {
            let part = if at == 0 { 0.25 } else { 0.5 / (at as f64 * (at as f64 + 1.0)) };
            let threshold = -(alpha * part / Metric::ALL.len() as f64).ln();
            Metric::ALL.map(|metric| Found {
                route: at,
                metric,
                excess: route.log_e(metric) - threshold,
            })
        });
        all.max_by(|a, b| a.excess.total_cmp(&b.excess))
    }

    /// Returns the message with the strongest evidence, and its excess.
    pub(crate) fn strongest_message(&self, alpha: f64) -> Option<(u64, f64)> {
        let excess = |(at, fingerprint): (usize, &u64)| {
            let rank = at as f64 + 1.0;
            let threshold = -(alpha * 0.25 / (rank * (rank + 1.0))).ln();
            Some((*fingerprint, self.messages.get(fingerprint)?.evidence.log_e() - threshold))
        };
        self.order.iter().enumerate().filter_map(excess).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Occurrences of a message, by arm.
    pub(crate) fn occurrences(&self, fingerprint: u64) -> [u64; 2] {
        self.messages.get(&fingerprint).map_or([0; 2], |message| message.count)
    }
}
