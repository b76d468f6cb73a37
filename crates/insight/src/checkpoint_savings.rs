//! Saving of a booted application: the CPU time of its requests compared with requests to the same
//! routes that ran as whole scripts.

use crate::finished::{Model, Numbers};

/// Minimum number of whole scripts of a route: with fewer, a script that compiled files would
/// distort the mean.
const OF_ROUTE_MIN: u64 = 5;
/// Minimum number of whole scripts in total for a result.
const SCRIPTS_MIN: u64 = 20;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    cpu_ns: u64,
}

impl Sum {
    fn add(&mut self, requests: u64, ns: u64) {
        self.requests += requests;
        self.cpu_ns = self.cpu_ns.saturating_add(ns);
    }

    fn mean_ns(&self) -> f64 {
        self.cpu_ns as f64 / self.requests as f64
    }
}

/// Sums of one route for both execution models since the last reload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BothWays {
    generation: u32,
    ahead: Sum,
    whole: Sum,
}

impl BothWays {
    pub(crate) fn add(&mut self, numbers: &Numbers) {
        self.add_all(numbers, u64::from(numbers.worker != 0), numbers.cpu_ns);
    }

    /// Adds requests of one model and generation that workers ran, and their total CPU time.
    pub(crate) fn add_all(&mut self, numbers: &Numbers, requests: u64, cpu_ns: u64) {
        if numbers.generation > self.generation {
            *self = BothWays { generation: numbers.generation, ..BothWays::default() };
        }
        if requests == 0 || numbers.generation < self.generation {
            return;
        }
        match numbers.model {
            Model::Checkpoint | Model::Resident => self.ahead.add(requests, cpu_ns),
            Model::Script => self.whole.add(requests, cpu_ns),
            Model::None | Model::Elsewhere => {}
        }
    }
}

/// Comparison over routes with requests of both kinds. Each route has the same weight on both
/// sides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Saving {
    /// Number of requests to the booted application.
    pub ahead: u64,
    /// Their mean CPU time in ns.
    pub ahead_ns: f64,
    /// Number of requests that ran as whole scripts.
    pub whole: u64,
    /// Mean CPU time in ns that the booted requests would take as whole scripts.
    pub whole_ns: f64,
}

impl Saving {
    /// Compares the routes. Returns `None` if too few requests ran in both ways.
    pub(crate) fn of<'a>(routes: impl Iterator<Item = &'a BothWays>) -> Option<Saving> {
        let (mut ahead, mut whole, mut as_scripts_ns) = (Sum::default(), 0, 0.0);
        let both = |of: &&BothWays| of.whole.requests >= OF_ROUTE_MIN && of.ahead.requests > 0;
        for of in routes.filter(both) {
            ahead.requests += of.ahead.requests;
            ahead.cpu_ns = ahead.cpu_ns.saturating_add(of.ahead.cpu_ns);
            whole += of.whole.requests;
            as_scripts_ns += of.whole.mean_ns() * of.ahead.requests as f64;
        }
        (whole >= SCRIPTS_MIN).then(|| Saving {
            ahead: ahead.requests,
            ahead_ns: ahead.mean_ns(),
            whole,
            whole_ns: as_scripts_ns / ahead.requests as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{BothWays, Model, Numbers, Saving};

    fn route(ahead: (u64, u64), whole: (u64, u64)) -> BothWays {
        let mut both = BothWays::default();
        for (model, (requests, cpu_ns)) in [(Model::Checkpoint, ahead), (Model::Script, whole)] {
            let numbers = Numbers { model, cpu_ns, worker: 1, generation: 2, ..Numbers::default() };
            (0..requests).for_each(|_| both.add(&numbers));
        }
        both
    }

    #[test]
    fn saving_weights_routes_by_booted_requests() {
        let routes = [
            route((300, 100), (20, 400)),
            route((100, 1_000), (20, 3_000)),
            // Only scripts, and only booted requests: routes that cannot be compared.
            route((0, 0), (900, 7)),
            route((900, 7), (0, 0)),
        ];
        let found = Saving::of(routes.iter()).expect("enough");
        assert_eq!(found, Saving { ahead: 400, ahead_ns: 325.0, whole: 40, whole_ns: 1_050.0 });
    }

    #[test]
    fn saving_of_few_requests_is_none() {
        for few in [&[][..], &[route((50, 1), (19, 1))], &[route((50, 1), (4, 1)); 9]] {
            assert_eq!(Saving::of(few.iter()), None);
        }
    }

    #[test]
    fn new_generation_resets_comparison() {
        let mut both = route((50, 100), (50, 900));
        let of = |generation| Numbers {
            model: Model::Checkpoint,
            worker: 1,
            generation,
            ..Numbers::default()
        };
        both.add(&of(3));
        assert_eq!(Saving::of([both].iter()), None);
        both.add(&of(2));
        assert_eq!(both.ahead.requests, 1, "it was on its way when the next took over");
    }
}
