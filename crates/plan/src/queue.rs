//! Mean use of the CPUs, and the slow-down of requests, at a mean demand.
//!
//! The number of running processes changes all the time. The function in `machine.rs` holds for an
//! instant; figures of history are means of minutes. Requests that arrive at random and share the
//! CPUs form a birth-death process: with demand ρ (arrivals per second times CPU time per request)
//! and service rate `work(k)` at k running processes,
//!
//! ```text
//! p(k) = p(k − 1) · ρ / work(min(k, usable))
//! ```
//!
//! Its mean of `min(k, usable)` is the displayed number of busy CPUs, and its mean of k, divided by
//! ρ, the factor by which requests take longer than their CPU time. With one thread per core this
//! is M/M/c. The result depends on the mean CPU time only, not on its distribution.

use crate::machine::Machine;

/// Points of the curve.
const POINTS: usize = 256;
/// Numbers above this are scaled down.
const HUGE: f64 = 1e200;

#[derive(Clone, Copy, Debug)]
struct Point {
    demand: f64,
    busy: f64,
    running: f64,
}

/// Means at each demand, of one machine.
#[derive(Clone, Debug)]
pub struct Curve {
    points: Vec<Point>,
    capacity: f64,
}

impl Curve {
    /// The curve of a machine of which `usable` threads can be used.
    pub fn new(machine: &Machine, usable: f64) -> Curve {
        let capacity = machine.work(usable);
        let mut points = vec![Point { demand: 0.0, busy: 0.0, running: 0.0 }];
        for n in 1..POINTS {
            let demand = capacity * n as f64 / POINTS as f64;
            points.push(point(machine, usable, demand));
        }
        let running = 4.0 * points.last().map_or(0.0, |last| last.running);
        points.push(Point { demand: capacity, busy: usable, running });
        Curve { points, capacity }
    }

    /// The demand that saturates the machine.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// The demand at a mean number of busy threads.
    pub fn demand(&self, busy: f64) -> f64 {
        self.interpolate(busy, |point| point.busy, |point| point.demand)
    }

    /// The mean number of busy threads at a demand.
    pub fn busy(&self, demand: f64) -> f64 {
        self.interpolate(demand, |point| point.demand, |point| point.busy)
    }

    /// Factor by which requests take longer than their CPU time.
    pub fn slowdown(&self, demand: f64) -> f64 {
        if demand < 1e-9 {
            return 1.0;
        }
        let running = self.interpolate(demand, |point| point.demand, |point| point.running);
        (running / demand.min(self.capacity)).max(1.0)
    }

    fn interpolate(&self, x: f64, of: fn(&Point) -> f64, to: fn(&Point) -> f64) -> f64 {
        let after = self.points.partition_point(|point| of(point) < x).max(1);
        let (Some(low), Some(high)) = (self.points.get(after - 1), self.points.get(after)) else {
            return self.points.last().map_or(0.0, to);
        };
        let width = of(high) - of(low);
        let share = if width > 0.0 { (x - of(low)) / width } else { 0.0 };
        to(low) + share.clamp(0.0, 1.0) * (to(high) - to(low))
    }
}

fn point(machine: &Machine, usable: f64, demand: f64) -> Point {
    let servers = usable.ceil().max(1.0) as usize;
    let (mut p, mut sum, mut busy, mut running) = (1.0, 1.0, 0.0, 0.0);
    for k in 1..=servers {
        let active = (k as f64).min(usable);
        p *= demand / machine.work(active);
        sum += p;
        busy += p * active;
        running += p * k as f64;
        if sum > HUGE {
            for value in [&mut p, &mut sum, &mut busy, &mut running] {
                *value /= HUGE;
            }
        }
    }
    // States above `servers` form a geometric series.
    let ratio = demand / machine.work(usable);
    let rest = p * ratio / (1.0 - ratio);
    sum += rest;
    busy += rest * usable;
    running += rest * (servers as f64 + 1.0 / (1.0 - ratio));
    Point { demand, busy: busy / sum, running: running / sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_machine_is_an_mmc_queue() {
        let curve = Curve::new(&Machine::new("a", 2.0, 1.0), 2.0);
        // M/M/2 at a utilisation of 50 %: slow-down 1 / (1 − 0.25) = 4/3.
        assert!((curve.busy(1.0) - 1.0).abs() < 1e-6);
        assert!((curve.slowdown(1.0) - 4.0 / 3.0).abs() < 1e-6);
        assert!(curve.slowdown(1.98) > 10.0 && curve.slowdown(0.0) <= 1.0);
    }

    #[test]
    fn curve_rises_and_inverts_on_machines_of_all_sizes() {
        for (cores, threads, usable) in [
            (1.0, 1.0, 0.5),
            (1.0, 2.0, 2.0),
            (4.0, 2.0, 8.0),
            (8.0, 2.0, 3.5),
            (512.0, 2.0, 1024.0),
        ] {
            let curve = Curve::new(&Machine::new("a", cores, threads), usable);
            for n in 1..100 {
                let demand = curve.capacity() * f64::from(n) / 100.0;
                let busy = curve.busy(demand);
                assert!(busy > curve.busy(demand * 0.99), "{cores} {n}");
                assert!(busy <= usable + 1e-9 && busy >= demand * 0.999, "{cores} {n} {busy}");
                assert!((curve.demand(busy) - demand).abs() < 1e-3 * demand + 1e-9, "{cores} {n}");
            }
            assert!(curve.demand(1e9) <= curve.capacity() + 1e-9);
        }
    }

    #[test]
    fn large_machine_follows_the_function_of_an_instant() {
        let machine = Machine::new("a", 256.0, 2.0);
        let curve = Curve::new(&machine, 512.0);
        for displayed in [0.2, 0.4, 0.6, 0.8] {
            let share = curve.demand(displayed * 512.0) / curve.capacity();
            assert!((share - machine.share(displayed)).abs() < 0.01, "{displayed}: {share}");
        }
    }
}
