//! Results of one URL: its responses from scripts and from the booted application, and their cost.

use super::diff::{Difference, Texts};
use super::servers::Pair;
use crate::trial::cost;
use crate::trial::response::TrialResponse;
use crate::trial::server::Server;
use crate::trial::targets::Target;
use crate::trial::visitor::Visitor;
use anyhow::Result;

/// Fraction of the samples removed at each end before the mean is computed: one in this many.
const TRIMMED: usize = 10;
/// Minimum number of costs for an interval.
const COSTS_MIN: f64 = 3.0;

/// Results of one URL.
pub(super) struct Page {
    pub(super) target: Target,
    heads: Texts,
    bodies: Texts,
    pub(super) script: Side,
    pub(super) booted: Side,
}

/// Results of one execution model.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// Status of the last response.
    pub(super) status: Option<u16>,
    /// First error.
    pub(super) error: Option<String>,
    pub(super) errors: u32,
    costs_ns: Vec<u64>,
}

impl Page {
    pub(super) fn new(target: &Target) -> Page {
        Page {
            target: target.clone(),
            heads: Texts::default(),
            bodies: Texts::default(),
            script: Side::default(),
            booted: Side::default(),
        }
    }

    pub(super) fn ask_script(&mut self, visitor: &mut Visitor, pair: &Pair, counts: bool) {
        if let Some(response) = self.script.ask(visitor, &self.target, &pair.script, counts) {
            self.heads.add_script(response.head);
            self.bodies.add_script(response.body);
        }
    }

    pub(super) fn ask_booted(&mut self, visitor: &mut Visitor, pair: &Pair, counts: bool) {
        if let Some(response) = self.booted.ask(visitor, &self.target, &pair.booted, counts) {
            self.heads.add_booted(&response.head);
            self.bodies.add_booted(&response.body);
        }
    }

    /// Returns the differences in head and body, with the name of the part.
    pub(super) fn differences(&self) -> Vec<(&'static str, Difference)> {
        let heads = self.heads.differences().into_iter().map(|found| ("head", found));
        let bodies = self.bodies.differences().into_iter().map(|found| ("body", found));
        heads.chain(bodies).collect()
    }
}

impl Side {
    fn ask(
        &mut self,
        visitor: &mut Visitor,
        target: &Target,
        server: &Server,
        counts: bool,
    ) -> Option<TrialResponse> {
        let before = cost::at_rest_ns(server.pid());
        let asked = visitor.get(server.address(), target);
        let used = cost::at_rest_ns(server.pid()).saturating_sub(before);
        let response = self.note(asked, server)?;
        if counts {
            self.costs_ns.push(used);
        }
        Some(response)
    }

    fn note(&mut self, asked: Result<TrialResponse>, server: &Server) -> Option<TrialResponse> {
        match asked {
            Ok(mut response) => {
                self.status = Some(response.status);
                response.hide_port(server.address().port());
                Some(response)
            }
            Err(error) => {
                self.errors += 1;
                self.error.get_or_insert_with(|| format!("{error:#}"));
                None
            }
        }
    }

    /// Returns the trimmed mean of the requests' CPU time, and its standard error, in µs. The error
    /// of a trimmed mean is that of the costs with the cut ones moved to the edges (Yuen).
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    pub(super) fn cost(&self) -> Option<(f64, Option<f64>)> {
        let mut costs: Vec<f64> = self.costs_ns.iter().map(|ns| *ns as f64 / 1000.0).collect();
        costs.sort_unstable_by(f64::total_cmp);
        let cut = costs.len().div_ceil(TRIMMED);
        let cut = if costs.len() > 2 * cut { cut } else { 0 };
        let (first, end) = (cut, costs.len() - cut);
        let kept = (end - first) as f64;
        let mean = costs[first..end].iter().sum::<f64>() / kept;
        if kept < 1.0 || mean <= 0.0 {
            return None;
        }
        if kept < COSTS_MIN {
            return Some((mean, None));
        }
        let (low, high) = (costs[first], costs[end - 1]);
        let moved: Vec<f64> = costs.iter().map(|cost| cost.clamp(low, high)).collect();
        let n = moved.len() as f64;
        let middle = moved.iter().sum::<f64>() / n;
        let squares = moved.iter().map(|cost| (cost - middle).powi(2)).sum::<f64>();
        Some((mean, Some((squares / (kept * (kept - 1.0))).sqrt())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_trimmed_mean() {
        let check = |costs_ns: Vec<u64>, expected: Option<f64>| {
            let side = Side { costs_ns, ..Side::default() };
            assert_eq!(side.cost().map(|(mean, _)| mean), expected);
        };
        check(vec![], None);
        check(vec![0, 0, 0], None);
        check(vec![2000], Some(2.0));
        check(vec![1000, 3000], Some(2.0));
        check(vec![1_000_000, 2000, 1000, 3000, 0], Some(2.0));
        let costs_ns = vec![2000, 1000, 3000, 0, 9000];
        let error = Side { costs_ns, ..Side::default() }.cost().and_then(|(_, error)| error);
        // 1, 1, 2, 3, 3: the sum of squares is 4, three are kept.
        assert!(
            error.is_some_and(|error| (error - (4.0f64 / 6.0).sqrt()).abs() < 1e-9),
            "{error:?}"
        );
        let few = Side { costs_ns: vec![2000, 3000], ..Side::default() };
        assert_eq!(few.cost(), Some((2.5, None)));
    }
}
