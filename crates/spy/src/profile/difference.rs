//! Compares two profiles: the functions whose cost has grown, in time per request.

#![allow(clippy::cast_precision_loss)] // Means of samples; their last bits do not matter.

use super::measure::{Measure, of};
use super::stacks::{Profile, Share};
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
}

impl Change {
    /// Growth of its own time.
    pub fn own_difference(&self) -> f64 {
        self.own.1 - self.own.0
    }
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
    let mut all: HashMap<String, Change> = HashMap::new();
    let sides = [(before, divisor(before, now, measure)), (now, divisor(now, before, measure))];
    for (at, (side, by)) in sides.into_iter().enumerate() {
        for Share { function, own, total } in side.profile.shares() {
            let label = function.label();
            let change = all.entry(label.clone()).or_insert_with(|| Change {
                label,
                own: (0.0, 0.0),
                total: (0.0, 0.0),
            });
            let (own, total) = (of(own, measure) as f64 / by, of(total, measure) as f64 / by);
            let (own_sum, total_sum) = if at == 0 {
                (&mut change.own.0, &mut change.total.0)
            } else {
                (&mut change.own.1, &mut change.total.1)
            };
            *own_sum += own;
            *total_sum += total;
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
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
            let weight = Weight { samples: 1, wall_ns: us * 1_000, cpu_ns: 0 };
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
    fn profiles_without_requests_compare_shares() {
        let (before, now) =
            (profile(&[("a", 100), ("b", 300)]), profile(&[("a", 900), ("b", 300)]));
        let before = Side { profile: &before, requests: 0 };
        let now = Side { profile: &now, requests: 300 };
        let found = changes(before, now, Measure::Wall);
        assert_eq!((&*found[0].label, found[0].own), ("a", (250_000.0, 750_000.0)));
    }
}
