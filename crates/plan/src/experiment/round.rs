//! Requests of one round → difference of each route, as the logarithm of a ratio.

use crate::numbers::median;
use std::collections::BTreeMap;

/// One out of this number of blocks is cut at each end.
const CUT: usize = 5;

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// With the settings as they are.
    Before,
    /// With the change.
    After,
}

/// A measured request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Name of its route.
    pub route: String,
    /// The server that it was sent to.
    pub side: Side,
    /// Number of its block: both servers get the same requests in a block.
    pub block: u32,
    /// CPU time in the worker, µs; `None`: no worker ran it.
    pub cpu_us: Option<f64>,
    /// Time until the response was complete, µs.
    pub wall_us: f64,
}

/// Values of both servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Pair {
    /// Without the change.
    pub before: f64,
    /// With the change.
    pub after: f64,
}

impl Pair {
    pub(super) fn of(&self, side: Side) -> f64 {
        if side == Side::Before { self.before } else { self.after }
    }

    fn of_mut(&mut self, side: Side) -> &mut f64 {
        if side == Side::Before { &mut self.before } else { &mut self.after }
    }

    /// Logarithm of the ratio; `None` if one of the values is missing.
    pub(super) fn log_ratio(&self) -> Option<f64> {
        let is_usable = self.before > 0.0 && self.after > 0.0;
        Some((self.after / self.before).ln()).filter(|ratio| is_usable && ratio.is_finite())
    }
}

/// All figures of one round.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The requests, those of the warm-up excluded.
    pub requests: Vec<Request>,
    /// Time from the start to the first response that the server could give, ms.
    pub boot_ms: Pair,
    /// Memory of a worker that it shares with no process, bytes; 0: unknown.
    pub worker_bytes: Pair,
}

/// Figures of a route, or of all requests, in one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RoundFigures {
    /// Logarithm of the ratio of the CPU times.
    pub(super) cpu: Option<f64>,
    /// The same for the median times until the response was complete.
    pub(super) wall: Option<f64>,
    /// Mean CPU time per request, µs.
    pub(super) cpu_us: Pair,
    /// Number of requests to each server.
    pub(super) requests: u64,
}

/// Sum of the requests of a block to one server.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    us: f64,
    count: f64,
}

/// Returns the figures of the requests that `is_of` selects.
pub(super) fn figures(requests: &[Request], is_of: impl Fn(&Request) -> bool) -> RoundFigures {
    let mut blocks: BTreeMap<u32, [Sum; 2]> = BTreeMap::new();
    let mut walls = [Vec::new(), Vec::new()];
    for request in requests.iter().filter(|request| is_of(request)) {
        walls[request.side as usize].push(request.wall_us);
        if let Some(us) = request.cpu_us {
            let sum = &mut blocks.entry(request.block).or_default()[request.side as usize];
            sum.us += us;
            sum.count += 1.0;
        }
    }
    let mean = |sum: &Sum| if sum.count > 0.0 { sum.us / sum.count } else { 0.0 };
    let ratios = blocks.values().filter_map(|[before, after]| {
        Pair { before: mean(before), after: mean(after) }.log_ratio()
    });
    let cpu = trimmed(ratios.collect());
    let mut cpu_us = Pair::default();
    for side in [Side::Before, Side::After] {
        let all = blocks.values().fold(Sum::default(), |all, block| {
            let one = block[side as usize];
            Sum { us: all.us + one.us, count: all.count + one.count }
        });
        *cpu_us.of_mut(side) = mean(&all);
    }
    let count = walls[0].len().min(walls[1].len());
    let [before, after] = walls.map(|mut walls| median(&mut walls));
    RoundFigures { cpu, wall: Pair { before, after }.log_ratio(), cpu_us, requests: count as u64 }
}

/// Mean without the highest and the lowest fifth: a block that another process has disturbed does
/// not count.
fn trimmed(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / CUT;
    let kept = &values[cut..values.len() - cut];
    (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(side: Side, block: u32, cpu_us: f64) -> Request {
        let (route, wall_us) = ("/".to_owned(), 2.0 * cpu_us);
        Request { route, side, block, cpu_us: Some(cpu_us), wall_us }
    }

    #[test]
    fn drift_and_disturbed_block_are_no_difference() {
        let mut requests = Vec::new();
        for block in 0..10 {
            let speed = 1.0 + f64::from(block);
            requests.push(request(Side::Before, block, 100.0 * speed));
            requests.push(request(Side::After, block, 110.0 * speed));
        }
        requests.push(request(Side::After, 10, 1e6));
        requests.push(request(Side::Before, 10, 100.0));
        let found = figures(&requests, |_| true);
        let cpu = found.cpu.expect("ten blocks");
        assert!((cpu.exp() - 1.1).abs() < 1e-9, "{found:?}");
        assert_eq!(found.requests, 11);
    }

    #[test]
    fn route_of_one_server_only_has_no_difference() {
        let found = figures(&[request(Side::After, 0, 5.0)], |_| true);
        assert_eq!((found.cpu, found.wall, found.requests), (None, None, 0));
        let none = figures(&[], |_| true);
        assert_eq!((none.cpu, none.wall), (None, None));
        let without_worker = Request { cpu_us: None, ..request(Side::Before, 0, 5.0) };
        let found = figures(&[without_worker, request(Side::After, 0, 5.0)], |_| true);
        assert_eq!((found.cpu, found.requests), (None, 1));
        assert!(found.wall.is_some());
    }
}
