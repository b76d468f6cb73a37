//! CPU time per request, by regression of the CPU demand on the rate of requests.
//!
//! The displayed CPU use of each bin is converted to a demand by the machine's curve (`queue.rs`),
//! so the slope does not depend on hyper-threading. The intercept is the demand of other work. A
//! change of the cost, such as a deploy, cuts the data: only the part after it counts.

use crate::calendar::DAY;
use crate::numbers::{Line, MAD, median, nonnegative, quantile, robust_line};
use crate::queue::Curve;
use crate::samples::{History, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// Days of data that count.
const DAYS: i64 = 28;
/// Minimum number of bins with CPU and requests.
const BINS_MIN: usize = 12;
/// Share of the usable CPUs above which a machine is saturated, and the display says little.
const SATURATED: f64 = 0.97;
/// Share of the usable CPUs that cannot be exceeded, but for errors of measurement.
const ABOVE: f64 = 1.05;
/// Relative range of the rates below which other work cannot be separated.
const RANGE_MIN: f64 = 0.3;
/// Relative change of the cost per request that cuts the data.
const STEP_MIN: f64 = 0.1;
/// Days that confirm a change.
const STEP_DAYS: usize = 3;
/// Range of the used share that shows contention.
const CONTENTION_FROM: f64 = 0.4;
/// Relative growth of the cost that counts as contention.
const CONTENTION_MIN: f64 = 0.07;
/// Groups of bins for the test of contention.
const GROUPS: usize = 20;
/// Minimum number of bins of a group.
const GROUP_MIN: usize = 12;
/// t statistic from which a growth is significant.
const SIGNIFICANT: f64 = 5.0;

/// Coefficients of the Universal Scalability Law, with the demand as the concurrency: the cost of a
/// request is `seconds · (1 + σ·w + κ·w²)` at a demand of w busy cores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contention {
    /// Contention.
    pub sigma: f64,
    /// Coherency.
    pub kappa: f64,
}

/// CPU time per request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds of a thread that has a core of its own.
    pub seconds: f64,
    /// Demand of other work, in cores.
    pub background: f64,
    /// Relative standard error of `seconds`.
    pub error: f64,
    /// Contention, if the data shows it.
    pub contention: Option<Contention>,
    /// Start of the data that counted.
    pub since: i64,
    /// Number of bins that counted.
    pub bins: usize,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl Cost {
    /// Returns the demand at a rate of requests.
    pub fn demand(&self, rate: f64, factor: f64) -> f64 {
        let linear = rate * self.seconds * factor;
        let Some(Contention { sigma, kappa }) = self.contention else {
            return self.background + linear;
        };
        // own = linear · (1 + σ·own + κ·own²): the smallest solution, by iteration.
        let mut own = linear;
        for _ in 0..64 {
            own = linear * (1.0 + sigma * own + kappa * own * own);
            if own > 1e6 {
                break;
            }
        }
        self.background + own
    }

    /// Returns the rate of requests that causes a demand.
    pub fn rate(&self, demand: f64, factor: f64) -> f64 {
        let own = (demand - self.background).max(0.0);
        let of = |own: f64| {
            let growth = self.contention.map_or(1.0, |c| 1.0 + c.sigma * own + c.kappa * own * own);
            own / (self.seconds * factor * growth)
        };
        match self.contention {
            // Above this demand, more work means fewer requests.
            Some(c) if c.kappa > 0.0 => of(own.min(1.0 / c.kappa.sqrt())),
            _ => of(own),
        }
    }
}

struct Point {
    at: i64,
    rate: f64,
    demand: f64,
}

/// Fits the cost. `Err` is the reason why it is unknown.
pub(crate) fn fit(
    history: &History,
    curve: &Curve,
    usable: f64,
    others: f64,
) -> Result<Cost, String> {
    let since = history.end() - DAYS * DAY;
    let has_cpu = history.since(since).iter().any(|sample| sample.busy.is_some());
    if history.samples.is_empty() {
        let why = history.notes.first().map(|note| format!(": {note}")).unwrap_or_default();
        return Err(format!("the history is empty{why}"));
    }
    if !has_cpu {
        return Err("the history has no CPU use".to_owned());
    }
    let usable_bins = |sample: &&Sample| {
        sample.rate > 0.0 && sample.busy.is_some_and(|busy| busy < SATURATED * usable)
    };
    let points: Vec<Point> = history
        .since(since)
        .iter()
        .filter(usable_bins)
        .map(|sample| Point {
            at: sample.at,
            rate: sample.rate,
            demand: curve.demand(sample.busy.unwrap_or(0.0) + others),
        })
        .collect();
    let with_cpu = history.since(since).iter().filter_map(|sample| sample.busy);
    let (above, all) =
        with_cpu.fold((0, 0), |sum, busy| (sum.0 + usize::from(busy > ABOVE * usable), sum.1 + 1));
    if points.len() < BINS_MIN && above > BINS_MIN {
        return Err(format!("its CPU use is above {usable:.1} CPUs, which is all of them"));
    }
    if points.len() < BINS_MIN {
        return Err(format!(
            "{} of history with requests: at least {} are needed",
            minutes(points.len()),
            minutes(BINS_MIN)
        ));
    }
    let mut notes = Vec::new();
    if above * 100 > all {
        notes.push(format!(
            "CPU use is above all {usable:.1} CPUs of the machine in {}: check the number of cores",
            minutes(above)
        ));
    }
    let first = line(&points);
    let cut = last_change(&points, first.intercept);
    let points = match cut {
        Some((at, change)) => {
            let day = crate::calendar::short_date(at.div_euclid(DAY));
            notes.push(format!(
                "CPU per request changed by {:+.0} % about {day}: only data after it counts",
                100.0 * change
            ));
            points.into_iter().filter(|point| point.at >= at).collect()
        }
        None => points,
    };
    let is_flat = range(&points) < RANGE_MIN;
    let Line { intercept, slope } = line(&points);
    if slope <= 0.0 || !slope.is_finite() {
        return Err("CPU use does not grow with requests: other work uses these CPUs".to_owned());
    }
    if is_flat {
        notes.push(
            "the load is nearly constant: other work on the machine cannot be separated from \
             requests"
                .to_owned(),
        );
    }
    let (contention, seconds) = contention(&points, intercept, slope, curve, &mut notes);
    Ok(Cost {
        seconds,
        background: intercept,
        error: error(&points, intercept),
        contention,
        since: points.first().map_or(0, |point| point.at),
        bins: points.len(),
        notes,
    })
}

fn minutes(bins: usize) -> String {
    format!("{} minutes", bins * 5)
}

fn range(points: &[Point]) -> f64 {
    let mut rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    let (low, high) = (quantile(&mut rates, 0.05), quantile(&mut rates, 0.95));
    (high - low) / median(&mut rates).max(1e-12)
}

fn line(points: &[Point]) -> Line {
    let pairs: Vec<_> = points.iter().map(|point| (point.rate, point.demand)).collect();
    robust_line(&pairs, range(points) < RANGE_MIN)
}

/// Returns the cost per request of each day, in order.
fn by_day(points: &[Point], background: f64) -> Vec<(i64, f64)> {
    let mut days: BTreeMap<i64, (f64, f64, usize)> = BTreeMap::new();
    for point in points {
        let day = days.entry(point.at.div_euclid(DAY)).or_default();
        day.0 += (point.demand - background).max(0.0);
        day.1 += point.rate;
        day.2 += 1;
    }
    let usable = days.into_iter().filter(|(_, day)| day.2 >= BINS_MIN && day.1 > 0.0);
    usable.map(|(day, (demand, rate, _))| (day, demand / rate)).collect()
}

/// Finds the last lasting change of the daily cost; returns its time and relative size.
fn last_change(points: &[Point], background: f64) -> Option<(i64, f64)> {
    let days = by_day(points, background);
    if days.len() < 2 * STEP_DAYS {
        return None;
    }
    let costs: Vec<f64> = days.iter().map(|day| day.1).collect();
    let steps: Vec<f64> =
        costs.windows(2).map(|pair| (pair[1] / pair[0].max(1e-12) - 1.0).abs()).collect();
    let noise = MAD * median(&mut steps.clone());
    let is_change = |change: f64| change.abs() > STEP_MIN.max(4.0 * noise);
    // From the last day on back: the days before differ from those after.
    for cut in (STEP_DAYS..=costs.len() - STEP_DAYS).rev() {
        let mut before = costs[cut - STEP_DAYS..cut].to_vec();
        let mut after = costs[cut..].to_vec();
        let change = median(&mut after) / median(&mut before).max(1e-12) - 1.0;
        let boundary = costs[cut] / costs[cut - 1].max(1e-12) - 1.0;
        if is_change(change) && boundary.abs() > 0.5 * change.abs() {
            return Some((days[cut].0 * DAY, change));
        }
    }
    None
}

/// Relative standard error of the cost, from the differences between days; within a day, bins are
/// not independent.
fn error(points: &[Point], background: f64) -> f64 {
    const ERROR_MIN: f64 = 0.005;
    /// With few days, the error is unknown.
    const ERROR_UNKNOWN: f64 = 0.05;
    let days = by_day(points, background);
    if days.len() < 4 {
        return ERROR_UNKNOWN;
    }
    let count = days.len() as f64;
    let mean = days.iter().map(|day| day.1).sum::<f64>() / count;
    let square = days.iter().map(|day| (day.1 / mean - 1.0).powi(2)).sum::<f64>() / (count - 1.0);
    (square / count).sqrt().clamp(ERROR_MIN, 0.5)
}

/// Tests whether requests cost more at a higher demand; returns the coefficients, and the cost
/// without contention.
fn contention(
    points: &[Point],
    background: f64,
    slope: f64,
    curve: &Curve,
    notes: &mut Vec<String>,
) -> (Option<Contention>, f64) {
    let mut pairs: Vec<(f64, f64)> = points
        .iter()
        .map(|point| ((point.demand - background).max(0.0), point.rate))
        .filter(|(own, _)| *own > 0.0)
        .collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let last = pairs.len().saturating_sub(pairs.len() / 50 + 1);
    let reached = pairs.get(last).map_or(0.0, |pair| pair.0) / curve.capacity();
    let size = (pairs.len() / GROUPS).max(GROUP_MIN);
    // Sums of a group, not means of quotients: the noise of single bins cancels.
    let groups: Vec<(f64, f64)> = pairs
        .chunks_exact(size)
        .map(|group| {
            let (own, rate) = group.iter().fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
            (own / size as f64, own / rate)
        })
        .collect();
    let low = groups.first().map_or(0.0, |group| group.0) / curve.capacity();
    if reached < CONTENTION_FROM || groups.len() < 6 || low > reached / 2.0 {
        notes.push(format!(
            "contention is unknown: it shows from {:.0} % of the capacity on, and the data reaches \
             {:.0} %",
            100.0 * CONTENTION_FROM,
            100.0 * reached
        ));
        return (None, slope);
    }
    let rows: Vec<(Vec<f64>, f64)> =
        groups.iter().map(|(own, cost)| (vec![1.0, *own, own * own], *cost)).collect();
    let found = nonnegative(&rows, 3);
    let top = reached * curve.capacity();
    let growth = (found[1] * top + found[2] * top * top) / found[0].max(1e-12);
    if found[0] <= 0.0 || growth < CONTENTION_MIN || slope_t(&groups) < SIGNIFICANT {
        return (None, slope);
    }
    let fitted = Contention { sigma: found[1] / found[0], kappa: found[2] / found[0] };
    notes.push(format!(
        "contention: a request costs {:.0} % more CPU at the highest load than at a low one",
        100.0 * growth
    ));
    (Some(fitted), found[0])
}

/// Returns the t statistic of the slope.
fn slope_t(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x, y) =
        points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / count, sum.1 + p.1 / count));
    let xx: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / xx.max(1e-12);
    let rest: f64 = points.iter().map(|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sum();
    slope / (rest / (count - 2.0).max(1.0) / xx.max(1e-12)).sqrt().max(1e-12)
}

/// CPU time of a route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteCost {
    /// Name.
    pub name: String,
    /// Share of the requests.
    pub requests_share: f64,
    /// Share of the CPU time of requests.
    pub cpu_share: f64,
    /// CPU seconds per request.
    pub seconds: f64,
}

/// Returns the cost of each route, highest share of CPU first: measured, or by regression of the
/// demand on the rates of routes. Empty: unknown.
pub(crate) fn routes(history: &History, curve: &Curve, cost: &Cost, others: f64) -> Vec<RouteCost> {
    let total: f64 = history.routes.iter().map(|route| route.requests).sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let is_measured = history.routes.iter().all(|route| route.cpu.is_some());
    let of_route: Vec<f64> = if is_measured {
        let each = history.routes.iter();
        each.map(|route| route.cpu.unwrap_or(0.0) / route.requests.max(1e-12)).collect()
    } else {
        let rows: Vec<(Vec<f64>, f64)> = history
            .since(cost.since)
            .iter()
            .filter_map(|sample| {
                let own = curve.demand(sample.busy? + others) - cost.background;
                let rates = sample.routes.iter().map(|rate| f64::from(*rate));
                (!sample.routes.is_empty()).then(|| (rates.collect(), own))
            })
            .collect();
        nonnegative(&rows, history.routes.len())
    };
    let cpu: f64 = of_route.iter().zip(&history.routes).map(|(c, route)| c * route.requests).sum();
    if cpu <= 0.0 {
        return Vec::new();
    }
    // The measured time has no part of the server itself: its share is that of the whole.
    let scale = cost.seconds * total / cpu;
    let mut found: Vec<RouteCost> = history
        .routes
        .iter()
        .zip(&of_route)
        .map(|(route, seconds)| RouteCost {
            name: route.name.clone(),
            requests_share: route.requests / total,
            cpu_share: seconds * route.requests / cpu,
            seconds: seconds * scale,
        })
        .collect();
    found.sort_by(|a, b| b.cpu_share.total_cmp(&a.cpu_share).then_with(|| a.name.cmp(&b.name)));
    found
}
