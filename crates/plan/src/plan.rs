//! The plan for one machine or a fleet.

use crate::calendar::{DAY, date};
use crate::capacity::{Input, Limit, Model, Resource};
use crate::cost::{Cost, RouteCost};
use crate::machine::Machine;
use crate::numbers::median;
use crate::problem::Problem;
use crate::samples::{STEP, Sample};
use crate::trend::{Crossing, DAYS_MIN, Forecast, Peak};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Days of "today's peak": a whole week.
const PEAK_DAYS: i64 = 7;
/// A day counts if it has this share of the usual number of bins.
const WHOLE_DAY: f64 = 0.75;
/// Seconds of a mean month.
const MONTH: f64 = 2_629_746.0;
/// Days of the mean rate.
const MEAN_DAYS: i64 = 28;
/// Maximum number of machines to buy that is computed.
const MACHINES_MAX: u32 = 10_000;
/// Data older than this is reported.
const STALE: i64 = 3 * DAY;
/// Data that ends later than this in the future is an error; less is a difference of clocks.
const FUTURE: i64 = DAY;
/// Relative difference up to which weekdays are equally busy.
const EQUAL: f64 = 0.005;
/// Points of the drawn forecast.
const DRAWN_MAX: i64 = 110;

/// Options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Displayed CPU use, as a share; `None`: 55 % with hyper-threading, its equivalent without.
    pub limit: Option<f64>,
    /// Maximum mean time of a request in a worker, in seconds.
    pub goal: Option<f64>,
    /// Days to look ahead.
    pub horizon: i64,
    /// Offset of the days from UTC, in seconds.
    pub offset: i64,
    /// Current time, in seconds since 1970.
    pub now: i64,
    /// Days that are no usual days.
    pub holidays: BTreeSet<i64>,
    /// Question.
    pub scenario: Scenario,
}

/// A change that did not happen yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// Factor of all requests.
    pub traffic: f64,
    /// Factor of the CPU time per request.
    pub cpu: f64,
    /// Factors of the requests of routes.
    pub routes: Vec<(String, f64)>,
    /// Lost group of machines.
    pub lose: Option<String>,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario { traffic: 1.0, cpu: 1.0, routes: Vec::new(), lose: None }
    }
}

impl Scenario {
    /// Returns whether nothing changes.
    pub fn is_none(&self) -> bool {
        *self == Scenario::default()
    }
}

/// Result for one machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachinePlan {
    /// Machine.
    pub machine: Machine,
    /// Highest rate of the last week.
    pub peak: f64,
    /// Displayed CPU use at that rate, as a share of all threads.
    pub peak_displayed: f64,
    /// Share of the CPU capacity at that rate.
    pub peak_share: f64,
    /// Share of the fleet's requests.
    pub weight: f64,
    /// Limits, lowest first.
    pub limits: Vec<Limit>,
    /// Rate at the lowest limit.
    pub capacity: f64,
    /// Rate at which the CPUs are saturated.
    pub ceiling: f64,
    /// Rate from which requests take at least twice their CPU time.
    pub knee: f64,
    /// Usable CPUs: without those that a quota or the hypervisor denies.
    pub usable: f64,
    /// CPU time per request.
    pub cost: Cost,
    /// Time of a request in a worker without its CPU time, in seconds.
    pub waiting: Option<f64>,
    /// CPU time of routes.
    pub routes: Vec<RouteCost>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Load and capacity of the fleet, now or in a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Outlook {
    /// Today's peak, in requests per second.
    pub peak: f64,
    /// Rate at which the first machine reaches its limit, with the current weights.
    pub capacity: f64,
    /// Rate at which all machines reach their limits, with weights by capacity.
    pub capacity_balanced: f64,
    /// Capacity divided by the peak.
    pub carries: f64,
    /// Machine that ends first.
    pub first: String,
    /// Its limit.
    pub limit: Limit,
    /// Date on which the capacity is reached; `None`: no forecast.
    pub reached: Option<Crossing>,
    /// Peak to plan for: the top of the band at the horizon, or today's peak without a forecast.
    pub peak_planned: f64,
    /// Machines to add for that peak, of the median capacity.
    pub buy: u32,
    /// Machines that are not needed for that peak.
    pub give_back: u32,
}

/// Drawn point of the forecast.
#[derive(Clone, Debug, Serialize)]
pub struct Drawn {
    /// Days since 1970; as JSON a date.
    #[serde(serialize_with = "crate::calendar::json")]
    pub day: i64,
    /// Highest expected peak of the week.
    pub rate: f64,
    /// Band.
    pub low: f64,
    /// Band.
    pub high: f64,
}

/// Trend.
#[derive(Clone, Debug, Serialize)]
pub struct Trend {
    /// Days of data.
    pub days: usize,
    /// Requests per second that are added per week.
    pub per_week: f64,
    /// The same, relative to the level.
    pub per_week_share: f64,
    /// Weekday with the highest peaks, and its factor.
    pub busiest_day: (String, f64),
    /// Steps: date, and change in requests per second.
    pub steps: Vec<(String, f64)>,
    /// Relative deviation of single days.
    pub scatter: f64,
    /// Future peaks.
    pub future: Vec<Drawn>,
}

/// Costs.
#[derive(Clone, Debug, Serialize)]
pub struct Price {
    /// Price of all machines per month.
    pub per_month: f64,
    /// Price of a million requests.
    pub per_million: f64,
    /// Price of a million requests at full use of the capacity, with the current shape of days.
    pub per_million_full: f64,
    /// Price of a million requests of each route.
    pub routes: Vec<(String, f64)>,
}

/// The plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Time of today's peak.
    pub peak_at: i64,
    /// Offset of the days from UTC, in seconds.
    pub offset: i64,
    /// Days to look ahead.
    pub horizon: i64,
    /// Width of the bands.
    pub band: f64,
    /// Now.
    pub today: Outlook,
    /// The scenario, if there is one.
    pub scenario: Option<Scenario>,
    /// Load and capacity in the scenario.
    pub what_if: Option<Outlook>,
    /// Trend, if there is enough data.
    pub trend: Option<Trend>,
    /// Reason why there is no trend.
    pub no_trend: String,
    /// Peaks of past days.
    pub peaks: Vec<Peak>,
    /// Machines.
    pub machines: Vec<MachinePlan>,
    /// Costs, if prices are known.
    pub price: Option<Price>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Computes the plan.
pub fn plan(inputs: &[Input], options: &Options) -> Result<Plan, Problem> {
    let mut models = Vec::new();
    for input in inputs {
        let name = &input.machine.name;
        let end = input.history.end();
        if end > options.now + FUTURE {
            let day = date((end + options.offset).div_euclid(DAY));
            let hint = "correct the times of the history, or the clock of this machine";
            let message = format!("the history of `{name}` ends in the future, on {day}");
            return Err(Problem::new(message, hint));
        }
        let model = Model::fit(input).map_err(|why| no_model(name, &why))?;
        models.push(model);
    }
    if inputs.is_empty() {
        let hint = "add a [[machine]] to the file";
        return Err(Problem::new("the fleet has no machines", hint));
    }
    let total = total(inputs);
    let end = total.last().map_or(0, |sample| sample.at + STEP);
    let (peak_at, peak) = peak(&total, end - PEAK_DAYS * DAY, options);
    let peaks = daily_peaks(&total, options.offset);
    let forecast = Forecast::fit(&peaks, &options.holidays);
    let mut notes = notes(inputs, end, options);
    let weights = weights(inputs, end);
    let machines = machines(inputs, &models, &weights, end, options);
    let today = (options.now + options.offset).div_euclid(DAY);
    let context = Context { inputs, models: &models, forecast: forecast.as_ref().ok(), options };
    let current = context.outlook(&weights, peak, &Scenario::default(), today)?;
    let (what_if, scenario) = if options.scenario.is_none() {
        (None, None)
    } else {
        let found = context.outlook(&weights, peak, &options.scenario, today)?;
        (Some(found), Some(options.scenario.clone()))
    };
    if current.carries < 1.0 {
        notes.insert(0, "the limit is already exceeded at today's peak".to_owned());
    }
    Ok(Plan {
        peak_at,
        offset: options.offset,
        horizon: options.horizon,
        band: crate::trend::BAND,
        price: price(&machines, &total, end, &current),
        trend: forecast.as_ref().ok().map(|found| trend(found, today, options)),
        no_trend: forecast.err().unwrap_or_default(),
        today: current,
        scenario,
        what_if,
        peaks,
        machines,
        notes,
    })
}

fn no_model(name: &str, why: &str) -> Problem {
    let hint = if why.contains("left out") {
        "give intervals of at most 6 hours; 5 minutes are best"
    } else if why.contains("all of them") {
        "check the number of cores (--cores, `cores` in a fleet file), and the unit of CPU time"
    } else if why.contains("needed") || why.contains("empty") {
        "wait until the server has been used for some hours, and try again"
    } else if why.contains("no CPU") {
        "add the CPU use of the same times"
    } else {
        "use a time in which the machine serves requests, or give the CPU time of PHP only"
    };
    Problem::new(format!("cannot compute the capacity of `{name}`: {why}"), hint)
}

/// Sum of all machines, of the times at which all that exist have data.
fn total(inputs: &[Input]) -> Vec<Sample> {
    if let [input] = inputs {
        return input.history.samples.clone();
    }
    let spans: Vec<(i64, i64)> = inputs
        .iter()
        .map(|input| (input.history.samples.first().map_or(0, |s| s.at), input.history.end()))
        .collect();
    let mut sums: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for sample in inputs.iter().flat_map(|input| &input.history.samples) {
        let sum = sums.entry(sample.at).or_default();
        sum.0 += sample.rate;
        sum.1 += 1;
    }
    let whole = sums.into_iter().filter(|(at, sum)| {
        sum.1 >= spans.iter().filter(|(from, to)| from <= at && at < to).count()
    });
    whole.map(|(at, sum)| Sample { at, rate: sum.0, ..Sample::default() }).collect()
}

/// Time and rate of the busiest bin, on usual days if there are any.
fn peak(total: &[Sample], since: i64, options: &Options) -> (i64, f64) {
    let day = |sample: &Sample| (sample.at + options.offset).div_euclid(DAY);
    let usual = |sample: &&Sample| !options.holidays.contains(&day(sample));
    let recent = || total.iter().filter(|sample| sample.at >= since);
    let highest = |a: &&Sample, b: &&Sample| a.rate.total_cmp(&b.rate);
    let found = recent().filter(usual).max_by(highest).or_else(|| recent().max_by(highest));
    found.map_or((0, 0.0), |sample| (sample.at, sample.rate))
}

/// Peaks of the whole days.
fn daily_peaks(total: &[Sample], offset: i64) -> Vec<Peak> {
    let mut days: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for sample in total {
        let day = days.entry((sample.at + offset).div_euclid(DAY)).or_default();
        day.0 = day.0.max(sample.rate);
        day.1 += 1.0;
    }
    let usual = median(&mut days.values().map(|day| day.1).collect::<Vec<_>>());
    let whole = days.into_iter().filter(|(_, day)| day.1 >= WHOLE_DAY * usual);
    whole.map(|(day, (rate, _))| Peak { day, rate }).collect()
}

fn notes(inputs: &[Input], end: i64, options: &Options) -> Vec<String> {
    let mut notes = Vec::new();
    if options.now - end > STALE {
        let day = date((end + options.offset).div_euclid(DAY));
        notes.push(format!("the data ends on {day}: a newer history gives a better answer"));
    }
    let ends: Vec<i64> = inputs.iter().map(|input| input.history.end()).collect();
    for (input, machine_end) in inputs.iter().zip(&ends) {
        if ends.iter().max().copied().unwrap_or(0) - machine_end > DAY {
            let day = date((machine_end + options.offset).div_euclid(DAY));
            notes.push(format!("the data of `{}` ends on {day}", input.machine.name));
        }
    }
    notes
}

/// Share of each machine in the requests of the last week.
fn weights(inputs: &[Input], end: i64) -> Vec<f64> {
    let rates: Vec<f64> =
        inputs.iter().map(|input| input.history.mean_rate(end - PEAK_DAYS * DAY)).collect();
    let sum: f64 = rates.iter().sum();
    let count = inputs.len() as f64;
    rates.iter().map(|rate| if sum > 0.0 { rate / sum } else { 1.0 / count }).collect()
}

fn machines(
    inputs: &[Input],
    models: &[Model],
    weights: &[f64],
    end: i64,
    options: &Options,
) -> Vec<MachinePlan> {
    let each = inputs.iter().zip(models).zip(weights);
    each.map(|((input, model), weight)| {
        let machine = &input.machine;
        let (_, peak) = peak(&input.history.samples, end - PEAK_DAYS * DAY, options);
        let limits = model.limits(machine, options.limit, options.goal, 1.0);
        let mut notes = [input.history.notes.clone(), model.cost.notes.clone()].concat();
        if options.goal.is_some() && model.waiting.is_none() {
            notes.push("the response time is unknown: the goal has no effect".to_owned());
        }
        MachinePlan {
            machine: machine.clone(),
            peak,
            peak_displayed: model.displayed(machine, peak, 1.0),
            peak_share: model.share(peak, 1.0),
            weight: *weight,
            capacity: limits.first().map_or(0.0, |limit| limit.rate),
            limits,
            ceiling: model.ceiling(1.0),
            knee: model.knee(1.0),
            usable: model.usable,
            cost: model.cost.clone(),
            waiting: model.waiting,
            routes: model.routes.clone(),
            notes,
        }
    })
    .collect()
}

struct Context<'a> {
    inputs: &'a [Input],
    models: &'a [Model],
    forecast: Option<&'a Forecast>,
    options: &'a Options,
}

impl Context<'_> {
    fn outlook(
        &self,
        weights: &[f64],
        peak: f64,
        scenario: &Scenario,
        today: i64,
    ) -> Result<Outlook, Problem> {
        let (traffic, cpu) = self.factors(weights, scenario)?;
        let kept = self.kept(scenario)?;
        let weight: f64 = kept.iter().map(|at| weights[*at]).sum();
        let mut capacities = Vec::new();
        let mut first: Option<(f64, usize, Limit)> = None;
        for at in &kept {
            let (machine, model) = (&self.inputs[*at].machine, &self.models[*at]);
            let limits =
                model.limits(machine, self.options.limit, self.options.goal, cpu * scenario.cpu);
            let Some(limit) = limits.into_iter().next() else { continue };
            capacities.push(limit.rate);
            // The whole rate at which this machine reaches its limit.
            let whole = limit.rate * weight / weights[*at].max(1e-12);
            if first.as_ref().is_none_or(|first| whole < first.0) {
                first = Some((whole, *at, limit));
            }
        }
        let (capacity, at, limit) = first.ok_or_else(|| {
            Problem::new("no machine is left", "lose a group that is not the whole fleet")
        })?;
        let growth = traffic * scenario.traffic;
        let peak = peak * growth;
        let end = today + self.options.horizon;
        let error = self.models[at].cost.error;
        let reached = self.forecast.map(|forecast| {
            forecast.crossing(capacity, error, growth, today.max(forecast.last + 1), end)
        });
        let planned = self.forecast.map_or(0.0, |forecast| {
            (end - 6..=end).map(|day| forecast.band(day).1).fold(0.0, f64::max) * growth
        });
        let planned = planned.max(peak);
        let (buy, give_back) = change(&capacities, planned);
        Ok(Outlook {
            peak,
            capacity,
            capacity_balanced: capacities.iter().sum(),
            carries: capacity / peak.max(1e-12),
            first: self.inputs[at].machine.name.clone(),
            limit,
            reached,
            peak_planned: planned,
            buy,
            give_back,
        })
    }

    /// Machines that are left.
    fn kept(&self, scenario: &Scenario) -> Result<Vec<usize>, Problem> {
        let Some(lost) = &scenario.lose else { return Ok((0..self.inputs.len()).collect()) };
        let group = |at: &usize| &self.inputs[*at].machine.group;
        let kept: Vec<usize> = (0..self.inputs.len()).filter(|at| group(at) != lost).collect();
        if kept.len() == self.inputs.len() {
            let groups: BTreeSet<_> = self.inputs.iter().map(|i| &*i.machine.group).collect();
            let known: Vec<_> = groups.into_iter().filter(|name| !name.is_empty()).collect();
            let hint = match &known[..] {
                [] => "give machines a `group` in the fleet file".to_owned(),
                known => format!("the groups are: {}", known.join(", ")),
            };
            return Err(Problem::new(format!("no machine is in the group `{lost}`"), hint));
        }
        Ok(kept)
    }

    /// Factors of the requests, and of the CPU time per request, of changed routes.
    fn factors(&self, weights: &[f64], scenario: &Scenario) -> Result<(f64, f64), Problem> {
        let (mut requests, mut cpu) = (1.0, 1.0);
        for (name, factor) in &scenario.routes {
            let mut is_known = false;
            for (model, weight) in self.models.iter().zip(weights) {
                let Some(route) = model.routes.iter().find(|route| route.name == *name) else {
                    continue;
                };
                is_known = true;
                requests += weight * route.requests_share * (factor - 1.0);
                cpu += weight * route.cpu_share * (factor - 1.0);
            }
            if !is_known {
                let known: BTreeSet<_> = self
                    .models
                    .iter()
                    .flat_map(|model| model.routes.iter().take(8).map(|route| &*route.name))
                    .collect();
                let hint = if known.is_empty() {
                    "the history has no routes".to_owned()
                } else {
                    let known: Vec<_> = known.into_iter().collect();
                    format!("the busiest routes are: {}", known.join(", "))
                };
                return Err(Problem::new(format!("no route `{name}` in the history"), hint));
            }
        }
        if requests <= 0.0 || cpu <= 0.0 {
            let hint = "leave requests in some route";
            return Err(Problem::new("the scenario has no requests", hint));
        }
        Ok((requests, cpu / requests))
    }
}

/// Machines to add, of the median capacity, and machines that are not needed.
fn change(capacities: &[f64], peak: f64) -> (u32, u32) {
    let sum: f64 = capacities.iter().sum();
    let mut sorted = capacities.to_vec();
    let middle = median(&mut sorted);
    sorted.sort_unstable_by(f64::total_cmp);
    let missing = ((peak - sum) / middle.max(1e-12)).ceil().clamp(0.0, f64::from(MACHINES_MAX));
    let (mut left, mut back) = (sum, 0);
    for capacity in sorted.iter().take(capacities.len().saturating_sub(1)) {
        left -= capacity;
        if left < peak {
            break;
        }
        back += 1;
    }
    (missing as u32, back)
}

fn trend(forecast: &Forecast, today: i64, options: &Options) -> Trend {
    let highest = forecast.factors.iter().copied().fold(0.0, f64::max);
    // The first one of equal days.
    let busiest = forecast.factors.iter().position(|one| *one >= (1.0 - EQUAL) * highest);
    let busiest = busiest.unwrap_or(0);
    let step = (options.horizon / DRAWN_MAX / 7 * 7).max(7);
    let ends = (forecast.last.max(today)..=today + options.horizon).step_by(step as usize);
    let future = ends.map(|end| {
        let week = (end - 6..=end).map(|day| (day, forecast.at(day)));
        let (day, rate) = week.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((end, 0.0));
        let (low, high) = forecast.band(day);
        Drawn { day, rate, low, high }
    });
    Trend {
        days: forecast.days,
        per_week: 7.0 * forecast.slope,
        per_week_share: 7.0 * forecast.slope / forecast.level.max(1e-12),
        busiest_day: (crate::calendar::weekday_name(busiest).to_owned(), forecast.factors[busiest]),
        steps: forecast.steps.iter().map(|(day, size)| (date(*day), *size)).collect(),
        scatter: forecast.scatter(),
        future: future.collect(),
    }
}

fn price(machines: &[MachinePlan], total: &[Sample], end: i64, now: &Outlook) -> Option<Price> {
    let prices: Vec<f64> = machines.iter().filter_map(|one| one.machine.price_per_month).collect();
    if prices.len() < machines.len() {
        return None;
    }
    let recent = total.iter().filter(|sample| sample.at >= end - MEAN_DAYS * DAY);
    let (sum, count) = recent.fold((0.0, 0.0), |all, sample| (all.0 + sample.rate, all.1 + 1.0));
    let mean = sum / f64::max(count, 1.0);
    if mean <= 0.0 {
        return None;
    }
    let per_month: f64 = prices.iter().sum();
    let per_million = per_month / (mean * MONTH) * 1e6;
    let mut shares: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for machine in machines {
        for route in &machine.routes {
            let share = shares.entry(&route.name).or_default();
            share.0 += machine.weight * route.requests_share;
            share.1 += machine.weight * route.cpu_share;
        }
    }
    let mut routes: Vec<(String, f64)> = shares
        .iter()
        .filter(|(_, share)| share.0 > 0.0)
        .map(|(name, share)| ((*name).to_owned(), per_million * share.1 / share.0))
        .collect();
    routes.sort_by(|a, b| b.1.total_cmp(&a.1));
    Some(Price {
        per_month,
        per_million,
        per_million_full: per_million / now.carries.max(1e-12),
        routes,
    })
}

/// Parses a file of holidays: a date such as `2026-12-24` in each line; text may follow.
pub fn holidays(name: &str, text: &str) -> Result<BTreeSet<i64>, Problem> {
    let mut found = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(word) = line.split([' ', '\t', ',', ';']).next().filter(|word| !word.is_empty())
        else {
            continue;
        };
        let day = crate::calendar::day_of(word).ok_or_else(|| {
            let hint = "write one date such as 2026-12-24 in each line";
            Problem::new(format!("`{word}` is not a date"), hint).at(name, at + 1)
        })?;
        found.insert(day);
    }
    Ok(found)
}

/// Days that a trend needs.
pub const TREND_DAYS: usize = DAYS_MIN;

/// Returns whether a resource is CPU, whose limit is a displayed use.
pub(crate) fn is_cpu(limit: &Limit) -> bool {
    limit.resource == Resource::Cpu
}
