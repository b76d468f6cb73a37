//! The figures and tests of one route.

use crate::costs::CostTest;
use crate::evidence::Evidence;
use crate::metric::{Arm, Metric, Observation};

/// Number of a route's first requests, in each generation, whose costs are not compared: caches are
/// cold.
const WARMUP: u32 = 5;

/// One route, or all routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    pub(crate) name: String,
    rates: [Evidence; Metric::RATES.len()],
    values: [CostTest; Metric::VALUES.len()],
    warm: [u32; 2],
    /// Requests, by arm.
    pub(crate) requests: [u64; 2],
}

impl Route {
    pub(crate) fn new(name: &str) -> Route {
        Route { name: name.to_owned(), ..Route::default() }
    }

    /// Adds a request. `is_warm`: its worker has left its warm-up.
    pub(crate) fn add(&mut self, seen: &Observation, is_warm: bool, is_saturated: bool) {
        self.requests[seen.arm as usize] += 1;
        for (evidence, is_hit) in self.rates.iter_mut().zip(seen.events()) {
            evidence.add(seen.arm, is_hit);
        }
        let Some(costs) = seen.costs.filter(|_| is_warm) else { return };
        for (test, value) in self.values.iter_mut().zip(costs.values()) {
            test.note(seen.arm, value);
        }
        let warm = &mut self.warm[seen.arm as usize];
        if *warm < WARMUP {
            *warm += 1;
            return;
        }
        let tests = self.values.iter_mut().zip(Metric::VALUES);
        for ((test, metric), value) in tests.zip(costs.values()) {
            test.add(metric.tolerance(is_saturated), seen.arm, value);
        }
    }

    pub(crate) fn close_block(&mut self) {
        self.rates.iter_mut().for_each(Evidence::close_block);
        self.values.iter_mut().for_each(CostTest::close_block);
    }

    /// Natural logarithm of the evidence against the canary.
    pub(crate) fn log_e(&self, metric: Metric) -> f64 {
        match self.place(metric) {
            TestIndex::Rate(at) => self.rates[at].log_e(),
            TestIndex::Value(at) => self.values[at].log_e(),
        }
    }

    /// Values of the serving generation and of the canary: the share of requests, or the mean.
    pub(crate) fn figures(&self, metric: Metric) -> [f64; 2] {
        match self.place(metric) {
            TestIndex::Rate(at) => {
                let share = |tally: crate::evidence::Tally| tally.hits / tally.of.max(1.0);
                self.rates[at].totals().map(share)
            }
            TestIndex::Value(at) => self.values[at].means(),
        }
    }

    #[expect(clippy::unused_self, reason = "reads as a property of the route's arrays")]
    fn place(&self, metric: Metric) -> TestIndex {
        let at = Metric::RATES.iter().position(|rate| *rate == metric);
        let value = || Metric::VALUES.iter().position(|value| *value == metric);
        at.map_or_else(|| TestIndex::Value(value().unwrap_or(0)), TestIndex::Rate)
    }

    /// Requests of the arm.
    pub(crate) fn count(&self, arm: Arm) -> u64 {
        self.requests[arm as usize]
    }
}

enum TestIndex {
    Rate(usize),
    Value(usize),
}
