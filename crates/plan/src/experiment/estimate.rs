//! Rounds → differences with intervals that are right together.

use super::round::{Measured, Pair, RoundFigures, Side, figures};
use super::student::two_sided;
use crate::numbers::quantile;
use serde::Serialize;
use std::collections::BTreeMap;

/// Minimum number of rounds before an experiment ends early.
pub const ROUNDS_MIN: usize = 6;
/// Minimum number of rounds for an interval.
const ROUNDS_OF_INTERVAL_MIN: usize = 3;
/// Number of rounds for one that is left out at each end of the figures.
const ROUNDS_PER_TRIMMED: usize = 10;
/// Probability that one of the intervals of a figure is wrong.
const ALPHA: f64 = 0.01;
/// The same for memory and boot time, which have one interval each.
const ALPHA_ALONE: f64 = 0.05;
/// Smallest half of an interval: CPU times are in whole µs.
const HALF_MIN: f64 = 0.002;
/// Maximum number of routes with figures of their own; the most frequent ones are kept.
const ROUTES_MAX: usize = 100;
/// Fraction of the requests from which on a route delays the end.
const SHARE_MIN: f64 = 0.05;
/// Maximum number of times that are kept for the percentiles of a route and server.
const TIMES_MAX: usize = 200_000;

/// Difference of a figure, as a fraction of its value before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Estimate: 0.041 is 4.1 % more.
    pub fraction: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Conclusion.
    pub change: Change,
}

/// Whether a figure has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The interval contains 0.
    None,
    /// The interval is below 0.
    Less,
    /// The interval is above 0.
    More,
}

impl Difference {
    /// Half of the interval.
    #[must_use]
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Interval of logarithms of ratios. A round next to other work of the machine is far from the
    /// others, so this is the trimmed mean with Winsorized variance: K. K. Yuen, "The two-sample
    /// trimmed t for unequal population variances", Biometrika 61 (1974), for one sample.
    fn of(ratios: &[f64], alpha: f64) -> Option<Difference> {
        if ratios.len() < ROUNDS_OF_INTERVAL_MIN {
            return None;
        }
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        let cut = sorted.len() / ROUNDS_PER_TRIMMED;
        let kept = &sorted[cut..sorted.len() - cut];
        let (n, of_kept) = (sorted.len() as f64, kept.len() as f64);
        let mean = kept.iter().sum::<f64>() / of_kept;
        let (lowest, highest) = (kept[0], kept[kept.len() - 1]);
        let moved = || sorted.iter().map(|one| one.clamp(lowest, highest));
        let moved_mean = moved().sum::<f64>() / n;
        let squares = moved().map(|one| (one - moved_mean).powi(2)).sum::<f64>();
        let error = (squares / (of_kept * (of_kept - 1.0))).sqrt();
        let half = (two_sided(alpha, of_kept - 1.0) * error).max(HALF_MIN);
        let (low, high) = ((mean - half).exp() - 1.0, (mean + half).exp() - 1.0);
        let change = match (low > 0.0, high < 0.0) {
            (true, _) => Change::More,
            (_, true) => Change::Less,
            _ => Change::None,
        };
        Some(Difference { fraction: mean.exp() - 1.0, low, high, change })
    }
}

/// Value of a figure on both servers, and its difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Mean over the rounds.
    #[serde(flatten)]
    pub value: Pair,
    /// `null`: too few rounds.
    pub difference: Option<Difference>,
}

/// Figures of a route, or of all requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subject {
    /// Name of the route; empty: all requests.
    pub route: String,
    /// Number of requests to each server.
    pub requests: u64,
    /// CPU time per request, µs.
    pub cpu_us: Figure,
    /// Median time until the response was complete, µs.
    pub p50_us: Figure,
    /// 99th percentile of the same, without an interval, µs.
    pub p99_us: Pair,
}

/// Figures of a route so far.
#[derive(Clone, Debug, Default)]
struct Series {
    rounds: Vec<RoundFigures>,
    times: [Vec<f64>; 2],
    requests: u64,
}

/// Rounds so far.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// By name of the route; the empty name is that of all requests.
    series: BTreeMap<String, Series>,
    rounds: usize,
    boot_ms: Vec<Pair>,
    worker_bytes: Vec<Pair>,
}

impl Experiment {
    /// Adds a round.
    pub fn add(&mut self, round: &Measured) {
        self.rounds += 1;
        self.boot_ms.push(round.boot_ms);
        self.worker_bytes.push(round.worker_bytes);
        self.put("", round, |_| true);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for request in &round.requests {
            *counts.entry(&request.route).or_default() += 1;
        }
        let mut routes: Vec<(&str, u64)> = counts.into_iter().collect();
        routes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (name, _) in routes {
            // The first name is that of all requests.
            if self.series.contains_key(name) || self.series.len() <= ROUTES_MAX {
                self.put(name, round, |route| route == name);
            }
        }
    }

    fn put(&mut self, name: &str, round: &Measured, is_of: impl Fn(&str) -> bool) {
        let found = figures(&round.requests, |request| is_of(&request.route));
        let series = self.series.entry(name.to_owned()).or_default();
        series.requests += found.requests;
        series.rounds.push(found);
        for request in round.requests.iter().filter(|request| is_of(&request.route)) {
            let times = &mut series.times[request.side as usize];
            if times.len() < TIMES_MAX {
                times.push(request.wall_us);
            }
        }
    }

    /// Returns the number of rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Returns the figures of all requests first, then those of the routes, the most frequent one
    /// first.
    #[must_use]
    pub fn subjects(&self) -> Vec<Subject> {
        let alpha = ALPHA / self.series.len().max(1) as f64;
        let mut all: Vec<Subject> =
            self.series.iter().map(|(name, series)| subject(name, series, alpha)).collect();
        all.sort_by(|one, other| {
            let key = |of: &Subject| (!of.route.is_empty(), std::cmp::Reverse(of.requests));
            key(one).cmp(&key(other)).then_with(|| one.route.cmp(&other.route))
        });
        all
    }

    /// Whether the intervals of the CPU time are within `half`: of all requests, and of each route
    /// that is not rare. The end never depends on whether a difference was found, so that chance
    /// does not become a result.
    #[must_use]
    pub fn is_precise(&self, half: f64) -> bool {
        let subjects = self.subjects();
        let all = subjects.first().map_or(0, |all| all.requests);
        let mut counting = subjects
            .iter()
            .filter(|one| one.requests as f64 >= SHARE_MIN * all as f64)
            .filter(|one| one.cpu_us.value.before > 0.0);
        let is_within =
            |one: &Subject| one.cpu_us.difference.is_some_and(|found| found.half() <= half);
        self.rounds >= ROUNDS_MIN && all > 0 && counting.all(is_within)
    }

    /// Returns the time of the boot, ms, and the private memory of a worker, bytes.
    #[must_use]
    pub fn boot_and_memory(&self) -> (Figure, Figure) {
        (alone(&self.boot_ms), alone(&self.worker_bytes))
    }
}

fn alone(values: &[Pair]) -> Figure {
    let ratios: Vec<f64> = values.iter().filter_map(Pair::log_ratio).collect();
    Figure { value: mean(&values.iter()), difference: Difference::of(&ratios, ALPHA_ALONE) }
}

fn mean<'a>(values: &(impl Iterator<Item = &'a Pair> + Clone)) -> Pair {
    let of = |side| {
        let known = values.clone().map(|value| value.of(side)).filter(|value| *value > 0.0);
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), one| (sum + one, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    };
    Pair { before: of(Side::Before), after: of(Side::After) }
}

fn subject(name: &str, series: &Series, alpha: f64) -> Subject {
    let ratios = |of: fn(&RoundFigures) -> Option<f64>| -> Vec<f64> {
        series.rounds.iter().filter_map(of).collect()
    };
    let [before, after] = [0, 1].map(|side| {
        let mut times = series.times[side].clone();
        [0.5, 0.99].map(|share| quantile(&mut times, share))
    });
    let pair = |n: usize| Pair { before: before[n], after: after[n] };
    Subject {
        route: name.to_owned(),
        requests: series.requests,
        cpu_us: Figure {
            value: mean(&series.rounds.iter().map(|round| &round.cpu_us)),
            difference: Difference::of(&ratios(|round| round.cpu), alpha),
        },
        p50_us: Figure {
            value: pair(0),
            difference: Difference::of(&ratios(|round| round.wall), alpha),
        },
        p99_us: pair(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ratios: &[f64]) -> Difference {
        Difference::of(ratios, ALPHA).expect("enough rounds")
    }

    #[test]
    fn disturbed_round_does_not_widen_the_interval() {
        let calm: Vec<f64> = (0..12).map(|n| 0.04 + 0.002 * f64::from(n % 5)).collect();
        let mut disturbed = calm.clone();
        disturbed[3] = 0.5;
        let (calm, disturbed) = (found(&calm), found(&disturbed));
        assert_eq!((calm.change, disturbed.change), (Change::More, Change::More));
        assert!(disturbed.half() < 1.5 * calm.half(), "{calm:?} {disturbed:?}");
        assert!((disturbed.fraction - calm.fraction).abs() < 0.002, "{calm:?} {disturbed:?}");
    }

    #[test]
    fn few_rounds_have_students_interval() {
        // Mean 0.02, standard deviation 0.01; t of 99 % and 2 degrees of freedom is 9.925.
        let of_three = found(&[0.01, 0.02, 0.03]);
        let half = 9.925 * 0.01 / 3_f64.sqrt();
        assert!((of_three.high - ((0.02 + half).exp() - 1.0)).abs() < 1e-4, "{of_three:?}");
        assert_eq!(Difference::of(&[0.01, 0.02], ALPHA), None);
    }
}
