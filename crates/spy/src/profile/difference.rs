//! Compares two profiles: the functions whose cost has grown, in time per request.

#![allow(clippy::cast_precision_loss)] // Means of samples; their last bits do not matter.

use super::measure::{Measure, of};
use super::stacks::{Profile, Share, Weight};
use std::collections::HashMap;

/// A profile, and the divisor of its time.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The stacks.
    pub profile: &'a Profile,
    /// Requests served in that time. If it is 0 on any side, shares of the whole are compared.
    pub requests: u64,
}

/// A function, before and now. Times in ns per request; or parts of a million, if the number of
/// requests is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its name.
    pub label: String,
    /// Time as the innermost call.
    pub own: (f64, f64),
    /// Time anywhere among the calls.
    pub total: (f64, f64),
    /// Half of the interval of the growth of its own time, because the samples are a random choice.
    pub own_error: f64,
    /// The same for the time anywhere among the calls.
    pub total_error: f64,
}

impl Change {
    /// Growth of its own time.
    pub fn own_difference(&self) -> f64 {
        self.own.1 - self.own.0
    }

    /// Growth of the time anywhere among the calls.
    pub fn total_difference(&self) -> f64 {
        self.total.1 - self.total.0
    }

    /// Returns whether the growth of its own time is too large to be chance.
    pub fn is_significant(&self) -> bool {
        self.own_difference().abs() > self.own_error
    }
}

/// Number of standard errors on each side of a growth within which the true one is with a
/// probability of 99.7 %. With 95 %, some of a list's hundreds of functions would differ by chance.
const ERRORS: f64 = 3.0;

/// A sum of samples' weights.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) value: f64,
    pub(super) samples: u64,
}

impl Sum {
    fn of(weight: Weight, by: f64, measure: Measure) -> Sum {
        Sum { value: of(weight, measure) as f64 / by, samples: weight.samples }
    }

    fn add(&mut self, other: Sum) {
        self.value += other.value;
        self.samples += other.samples;
    }

    /// Standard error: the number of samples has a Poisson distribution. Without a sample, it is
    /// the mean weight of one (`each`).
    fn error(self, each: f64) -> f64 {
        if self.samples == 0 { each } else { self.value / (self.samples as f64).sqrt() }
    }
}

/// Returns half of the interval of the difference of two sums. `each` are the mean weights of a
/// sample on both sides.
pub(super) fn error(before: Sum, now: Sum, each: (f64, f64)) -> f64 {
    let (before, now) = (before.error(each.0), now.error(each.1));
    ERRORS * (before.powi(2) + now.powi(2)).sqrt()
}

/// Returns the mean weight of a sample.
pub(super) fn each(whole: Sum) -> f64 {
    whole.value / whole.samples.max(1) as f64
}

/// Divisor of a side's weights: its requests, or the whole in millionths.
pub fn divisor(side: Side<'_>, other: Side<'_>, measure: Measure) -> f64 {
    if side.requests > 0 && other.requests > 0 {
        side.requests as f64
    } else {
        of(side.profile.total(), measure).max(1) as f64 / 1e6
    }
}

/// Factor that makes the previous weights comparable with the present ones.
pub fn factor(before: Side<'_>, now: Side<'_>, measure: Measure) -> f64 {
    divisor(now, before, measure) / divisor(before, now, measure)
}

/// All functions of both profiles, the largest growth of own time first.
pub fn changes(before: Side<'_>, now: Side<'_>, measure: Measure) -> Vec<Change> {
    let mut all: HashMap<String, [[Sum; 2]; 2]> = HashMap::new();
    let sides = [(before, divisor(before, now, measure)), (now, divisor(now, before, measure))];
    for (at, (side, by)) in sides.into_iter().enumerate() {
        for Share { function, own, total } in side.profile.shares() {
            let label = function.label();
            let [own_sum, total_sum] = &mut all.entry(label).or_default()[at];
            own_sum.add(Sum::of(own, by, measure));
            total_sum.add(Sum::of(total, by, measure));
        }
    }
    let [was, is] = sides.map(|(side, by)| each(Sum::of(side.profile.total(), by, measure)));
    let change = |(label, [before, now]): (String, [[Sum; 2]; 2])| Change {
        label,
        own: (before[0].value, now[0].value),
        total: (before[1].value, now[1].value),
        own_error: error(before[0], now[0], (was, is)),
        total_error: error(before[1], now[1], (was, is)),
    };
    let mut all: Vec<_> = all.into_iter().map(change).collect();
    all.sort_by(|a, b| {
        b.own_difference().total_cmp(&a.own_difference()).then_with(|| a.label.cmp(&b.label))
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Activity;
    use crate::profile::stacks::Weight;
    use crate::stack::{Frame, Function};
    use std::sync::Arc;

    fn profile(parts: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::new();
        for (name, us) in parts {
            let frame = |name: &str| Frame {
                function: Arc::new(Function { name: name.to_owned(), ..Function::default() }),
                line: 1,
            };
            let weight = Weight { samples: us / 10, wall_ns: us * 1_000, cpu_ns: 0 };
            profile.add(&[frame(name), frame("main")], &Activity::Running, weight);
        }
        profile
    }

    #[test]
    fn largest_growth_comes_first() {
        let (before, now) =
            (profile(&[("a", 100), ("b", 300)]), profile(&[("a", 900), ("b", 300)]));
        let before = Side { profile: &before, requests: 100 };
        let now = Side { profile: &now, requests: 300 };
        let found = changes(before, now, Measure::Wall);
        let told: Vec<_> = found.iter().map(|c| (&*c.label, c.own)).collect();
        // µs per request: a 1 → 3, b 3 → 1.
        assert_eq!(
            told,
            [("a", (1_000.0, 3_000.0)), ("main", (0.0, 0.0)), ("b", (3_000.0, 1_000.0))]
        );
        assert_eq!(found[1].total, (4_000.0, 4_000.0));
    }

    #[test]
    fn change_within_noise_is_not_significant() {
        // 10 and 14 samples, 100 and 300, none and 40.
        let before = profile(&[("noise", 100), ("real", 1_000)]);
        let now = profile(&[("noise", 140), ("real", 3_000), ("new", 400)]);
        let side = |profile| Side { profile, requests: 1 };
        let found = changes(side(&before), side(&now), Measure::Wall);
        let of = |name| found.iter().find(|change| change.label == name).expect("it changed");
        assert!(!of("noise").is_significant(), "{:?}", of("noise"));
        assert!(of("real").is_significant(), "{:?}", of("real"));
        assert!(of("new").is_significant(), "{:?}", of("new"));
        // 3 · hypot(√10, √14) samples of 10 µs.
        assert!((of("noise").own_error - 30_000.0 * 24f64.sqrt()).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn profiles_without_requests_compare_shares() {
        let (before, now) =
            (profile(&[("a", 100), ("b", 300)]), profile(&[("a", 900), ("b", 300)]));
        let before = Side { profile: &before, requests: 0 };
        let now = Side { profile: &now, requests: 300 };
        let found = changes(before, now, Measure::Wall);
        assert_eq!((&*found[0].label, found[0].own), ("a", (250_000.0, 750_000.0)));
    }
}
