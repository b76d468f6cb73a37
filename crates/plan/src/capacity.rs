//! Capacity of one machine: each limit as a rate of requests.

use crate::cost::{self, Cost, RouteCost};
use crate::machine::Machine;
use crate::numbers::{median, quantile, robust_line};
use crate::queue::Curve;
use crate::samples::{History, Sample};
use serde::Serialize;

/// Share of workers and of memory that a plan uses; above, requests wait.
const SHARE_MAX: f64 = 0.9;
/// Slow-down of the knee: requests take twice their CPU time.
const KNEE: f64 = 2.0;
/// Share of the capacity that is the ceiling; the queue grows without end at all of it.
const CEILING: f64 = 0.99;
/// Steps of a search.
const HALVINGS: usize = 60;
/// Correlation of memory with requests, from which memory can be the limit.
const CORRELATED: f64 = 0.5;
/// Length of a minute's bins that count for memory.
const SAMPLES_MIN: usize = 24;

/// A resource that can end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// CPU.
    Cpu,
    /// Number of workers.
    Workers,
    /// Memory.
    Memory,
    /// Mean response time.
    Latency,
}

impl Resource {
    /// Returns its name in a sentence such as `CPU is the limit`.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "CPU",
            Resource::Workers => "the number of workers",
            Resource::Memory => "memory",
            Resource::Latency => "the response time",
        }
    }
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Resource.
    pub resource: Resource,
    /// Requests per second.
    pub rate: f64,
    /// Value of the resource at this rate.
    pub at: String,
}

/// A machine with its history.
#[derive(Clone, Debug)]
pub struct Input {
    /// Machine.
    pub machine: Machine,
    /// History.
    pub history: History,
    /// CPUs used by other processes that are not part of the history's CPU.
    pub others: f64,
}

/// Fitted model of one machine.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) curve: Curve,
    pub(crate) cost: Cost,
    pub(crate) routes: Vec<RouteCost>,
    pub(crate) usable: f64,
    /// Time of a request in a worker without its CPU time, in seconds; `None`: unknown.
    pub(crate) waiting: Option<f64>,
    memory: Option<(f64, f64)>,
}

impl Model {
    pub(crate) fn fit(input: &Input) -> Result<Model, String> {
        let Input { machine, history, others } = input;
        let recent = history.since(history.end() - 28 * crate::calendar::DAY);
        let mut stolen: Vec<f64> = recent.iter().map(|sample| sample.stolen).collect();
        let usable = machine.usable(quantile(&mut stolen, 0.95));
        let curve = Curve::new(machine, usable);
        let mut cost = cost::fit(history, &curve, usable, *others)?;
        if cost.background > 0.5 * curve.capacity() {
            let share = 100.0 * cost.background / curve.capacity();
            cost.notes.push(format!("other work uses {share:.0} % of the capacity"));
        }
        let routes = cost::routes(history, &curve, &cost, *others);
        let samples = history.since(cost.since);
        let waiting = waiting(samples, &curve, &cost);
        let memory = memory(samples);
        Ok(Model { curve, cost, routes, usable, waiting, memory })
    }

    /// Mean time of a request in a worker at a rate.
    pub(crate) fn response(&self, rate: f64, cpu_factor: f64) -> Option<f64> {
        let slowdown = self.curve.slowdown(self.cost.demand(rate, cpu_factor));
        Some(self.waiting? + self.cost.seconds * cpu_factor * slowdown)
    }

    /// Displayed CPU use at a rate, as a share of all threads.
    pub(crate) fn displayed(&self, machine: &Machine, rate: f64, cpu_factor: f64) -> f64 {
        self.curve.busy(self.cost.demand(rate, cpu_factor)) / machine.threads()
    }

    /// Share of the CPU capacity that a rate uses.
    pub(crate) fn share(&self, rate: f64, cpu_factor: f64) -> f64 {
        self.cost.demand(rate, cpu_factor) / self.curve.capacity()
    }

    /// Rate at which the CPUs are saturated.
    pub(crate) fn ceiling(&self, cpu_factor: f64) -> f64 {
        self.cost.rate(CEILING * self.curve.capacity(), cpu_factor)
    }

    /// Rate from which requests take at least twice their CPU time.
    pub(crate) fn knee(&self, cpu_factor: f64) -> f64 {
        let top = self.ceiling(cpu_factor);
        highest(top, |rate| self.curve.slowdown(self.cost.demand(rate, cpu_factor)) <= KNEE)
    }

    /// Returns the known limits, lowest first.
    pub(crate) fn limits(
        &self,
        machine: &Machine,
        limit: Option<f64>,
        goal: Option<f64>,
        cpu_factor: f64,
    ) -> Vec<Limit> {
        let busy = machine.busy_limit(limit, self.usable);
        let share =
            100.0 * busy / machine.quota.map_or(machine.threads(), |q| q.min(machine.threads()));
        let mut all = vec![Limit {
            resource: Resource::Cpu,
            rate: self.cost.rate(self.curve.demand(busy), cpu_factor),
            at: format!("{share:.0} %"),
        }];
        let top = self.ceiling(cpu_factor);
        if let Some((count, resource)) = workers(machine)
            && self.waiting.is_some()
        {
            let fits = |rate: f64| {
                let response = self.response(rate, cpu_factor).unwrap_or(0.0);
                rate * response <= SHARE_MAX * count
            };
            let rate = highest(top, fits);
            // At the ceiling, CPU ends first.
            if rate < top {
                let at = format!("{:.0} of {count:.0} workers busy", SHARE_MAX * count);
                all.push(Limit { resource, rate, at });
            }
        }
        if let (Some((base, each)), Some(bytes)) = (self.memory, machine.memory_bytes)
            && each > 0.0
        {
            let rate = ((SHARE_MAX * bytes - base) / each).max(0.0);
            let at = format!("{:.0} % of the memory used", 100.0 * SHARE_MAX);
            all.push(Limit { resource: Resource::Memory, rate, at });
        }
        if let Some(goal) = goal
            && self.waiting.is_some()
        {
            let fits = |rate: f64| self.response(rate, cpu_factor).is_some_and(|time| time <= goal);
            let at = format!("{:.0} ms", 1e3 * goal);
            all.push(Limit { resource: Resource::Latency, rate: highest(top, fits), at });
        }
        all.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        all
    }
}

/// Number of workers that can run, and the reason for the number.
fn workers(machine: &Machine) -> Option<(f64, Resource)> {
    match (machine.workers_max, machine.workers_affordable) {
        (Some(most), Some(affordable)) if affordable < most => Some((affordable, Resource::Memory)),
        (Some(most), _) => Some((most, Resource::Workers)),
        (None, Some(affordable)) => Some((affordable, Resource::Memory)),
        (None, None) => None,
    }
}

/// Returns the highest rate up to `top` that fits; rates above one that does not fit do not fit.
fn highest(top: f64, fits: impl Fn(f64) -> bool) -> f64 {
    if fits(top) {
        return top;
    }
    let (mut low, mut high) = (0.0, top);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

fn waiting(samples: &[Sample], curve: &Curve, cost: &Cost) -> Option<f64> {
    let mut found: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.rate > 0.0)
        .filter_map(|sample| {
            let demand = cost.demand(sample.rate, 1.0);
            Some(sample.workers? / sample.rate - cost.seconds * curve.slowdown(demand))
        })
        .collect();
    (!found.is_empty()).then(|| median(&mut found).max(0.0))
}

/// Memory without requests, and for each request per second, if they are correlated.
fn memory(samples: &[Sample]) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> =
        samples.iter().filter_map(|sample| Some((sample.rate, sample.memory?))).collect();
    if points.len() < SAMPLES_MIN {
        return None;
    }
    let count = points.len() as f64;
    let (x, y) =
        points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / count, sum.1 + p.1 / count));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (px, py) in &points {
        xx += (px - x).powi(2);
        yy += (py - y).powi(2);
        xy += (px - x) * (py - y);
    }
    let correlation = xy / (xx * yy).sqrt().max(1e-12);
    let line = robust_line(&points, false);
    (correlation > CORRELATED).then_some((line.intercept, line.slope))
}
