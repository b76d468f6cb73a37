//! History of one machine in bins of five minutes, with bounded memory.

use crate::calendar::DAY;
use crate::numbers::quantile;
use std::collections::BTreeMap;

/// Length of a bin in seconds.
pub const STEP: i64 = 300;
/// Maximum number of bins: 400 days. The oldest are dropped.
const BINS_MAX: usize = 400 * 288;
/// Maximum number of routes with a name; further ones are added to the last one.
const ROUTES_MAX: usize = 20;
/// Name of the last route.
const OTHER: &str = "(other)";
/// Maximum length of one interval of the input. A longer one is a gap.
const INTERVAL_MAX: i64 = 6 * 3600;
/// Quantile of the rates that is a usual peak, in long histories.
const USUAL_PEAK: f64 = 0.999;
/// Rates above this number of usual peaks are errors of the source, such as a broken counter.
const UNUSUAL: f64 = 50.0;
/// Share of a bin that must be known.
const COVERED_MIN: f64 = 0.5;

/// A part of the input: sums over `seconds` from `at` on. `None`: not part of this input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Start, in seconds since 1970.
    pub at: i64,
    /// Length.
    pub seconds: i64,
    /// Number of requests.
    pub requests: Option<f64>,
    /// CPU time in seconds.
    pub cpu: Option<f64>,
    /// Time that the hypervisor took, in seconds of CPU.
    pub stolen: Option<f64>,
    /// Time of requests in workers, in seconds.
    pub in_workers: Option<f64>,
    /// Used memory in bytes.
    pub memory: Option<f64>,
}

/// Means of a bin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Start, in seconds since 1970.
    pub at: i64,
    /// Requests per second.
    pub rate: f64,
    /// Busy CPUs.
    pub busy: Option<f64>,
    /// CPUs that the hypervisor took.
    pub stolen: f64,
    /// Busy workers.
    pub workers: Option<f64>,
    /// Used memory in bytes.
    pub memory: Option<f64>,
    /// Requests per second of each route; empty: unknown.
    pub routes: Vec<f32>,
}

/// Totals of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteTotal {
    /// Name.
    pub name: String,
    /// Requests.
    pub requests: f64,
    /// CPU time in seconds, if the input has it per route.
    pub cpu: Option<f64>,
}

/// History of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Bins with known requests, in order of time.
    pub samples: Vec<Sample>,
    /// Routes, by their place in [`Sample::routes`]. Totals of the last four weeks.
    pub routes: Vec<RouteTotal>,
    /// Properties of the input that the user must know.
    pub notes: Vec<String>,
}

impl History {
    /// Returns the time after the last sample; 0: there is none.
    pub fn end(&self) -> i64 {
        self.samples.last().map_or(0, |last| last.at + STEP)
    }

    /// Returns the samples from this time on.
    pub fn since(&self, at: i64) -> &[Sample] {
        &self.samples[self.samples.partition_point(|sample| sample.at < at)..]
    }

    /// Returns the mean requests per second from this time on.
    pub fn mean_rate(&self, since: i64) -> f64 {
        let samples = self.since(since);
        let sum: f64 = samples.iter().map(|sample| sample.rate).sum();
        sum / (samples.len() as f64).max(1.0)
    }
}

#[derive(Clone, Debug, Default)]
struct Bin {
    requests: Known,
    cpu: Known,
    stolen: Known,
    in_workers: Known,
    memory: Known,
    routes: Vec<f32>,
}

/// A sum, and the seconds that it covers.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sum: f64,
    seconds: f32,
}

impl Known {
    fn add(&mut self, value: Option<f64>, share: f64, seconds: f64) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.sum += value * share;
            self.seconds += seconds as f32;
        }
    }

    fn mean(self) -> Option<f64> {
        let seconds = f64::from(self.seconds);
        (seconds >= COVERED_MIN * STEP as f64).then(|| self.sum / seconds)
    }
}

/// Adds records up. Several inputs can fill one collector, such as sar's CPU and a file of
/// requests.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    bins: BTreeMap<i64, Bin>,
    routes: Vec<RouteTotal>,
    /// Requests and CPU of each route by day; only the last days count.
    by_day: BTreeMap<i64, Vec<(f64, f64)>>,
    has_cpu_of_routes: bool,
    dropped: bool,
    gaps: u64,
}

/// Days of the totals of routes.
const ROUTE_DAYS: usize = 28;

impl Collector {
    /// Adds a record, spread evenly over the bins that it covers.
    pub fn add(&mut self, record: &Record) {
        if record.seconds <= 0 || record.at < 0 {
            return;
        }
        if record.seconds > INTERVAL_MAX {
            self.gaps += 1;
            return;
        }
        let end = record.at.saturating_add(record.seconds);
        let mut from = record.at;
        while from < end {
            let place = from.div_euclid(STEP);
            let to = end.min((place + 1) * STEP);
            let seconds = (to - from) as f64;
            let share = seconds / record.seconds as f64;
            let bin = self.bins.entry(place).or_default();
            bin.requests.add(record.requests, share, seconds);
            bin.cpu.add(record.cpu, share, seconds);
            bin.stolen.add(record.stolen, share, seconds);
            bin.in_workers.add(record.in_workers, share, seconds);
            bin.memory.add(record.memory.map(|bytes| bytes * seconds), 1.0, seconds);
            from = to;
        }
        while self.bins.len() > BINS_MAX {
            self.bins.pop_first();
            self.dropped = true;
        }
    }

    /// Adds requests of a route, and their CPU time if it is known.
    pub fn add_route(
        &mut self,
        at: i64,
        seconds: i64,
        name: &str,
        requests: f64,
        cpu: Option<f64>,
    ) {
        if !requests.is_finite() || requests < 0.0 || seconds <= 0 || at < 0 {
            return;
        }
        let place = self.place(name);
        let bin = self.bins.entry((at + seconds / 2).div_euclid(STEP)).or_default();
        if bin.routes.len() <= place {
            bin.routes.resize(place + 1, 0.0);
        }
        bin.routes[place] += requests as f32;
        let day = self.by_day.entry(at.div_euclid(DAY)).or_default();
        if day.len() <= place {
            day.resize(place + 1, (0.0, 0.0));
        }
        day[place].0 += requests;
        if let Some(cpu) = cpu.filter(|cpu| cpu.is_finite()) {
            day[place].1 += cpu;
            self.has_cpu_of_routes = true;
        }
        while self.by_day.len() > ROUTE_DAYS {
            self.by_day.pop_first();
        }
    }

    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.routes.iter().position(|route| route.name == name) {
            return place;
        }
        if self.routes.len() > ROUTES_MAX {
            return ROUTES_MAX;
        }
        let name = if self.routes.len() == ROUTES_MAX { OTHER } else { name };
        self.routes.push(RouteTotal { name: name.to_owned(), ..RouteTotal::default() });
        self.routes.len() - 1
    }

    /// Counts an interval that was left out.
    pub fn skip(&mut self) {
        self.gaps += 1;
    }

    /// Returns the means.
    pub fn finish(self) -> History {
        let count = self.routes.len();
        let samples = self.bins.into_iter().filter_map(|(place, bin)| {
            let rate = bin.requests.mean()?;
            let mut routes = bin.routes;
            if count > 0 {
                routes.resize(count, 0.0);
                for sum in &mut routes {
                    *sum /= bin.requests.seconds;
                }
            }
            Some(Sample {
                at: place * STEP,
                rate,
                busy: bin.cpu.mean(),
                stolen: bin.stolen.mean().unwrap_or(0.0),
                workers: bin.in_workers.mean(),
                memory: bin.memory.mean(),
                routes,
            })
        });
        let mut samples: Vec<_> = samples.collect();
        let mut rates: Vec<f64> = samples.iter().map(|sample| sample.rate).collect();
        let rate_max = UNUSUAL * quantile(&mut rates, USUAL_PEAK);
        let bins = samples.len();
        samples.retain(|sample| sample.rate <= rate_max || rate_max <= 0.0);
        let wrong = bins - samples.len();
        let mut routes = self.routes;
        for (place, route) in routes.iter_mut().enumerate() {
            let of_days = || self.by_day.values().filter_map(|day| day.get(place));
            route.requests = of_days().map(|of| of.0).sum();
            route.cpu = self.has_cpu_of_routes.then(|| of_days().map(|of| of.1).sum());
        }
        let mut notes = Vec::new();
        if self.dropped {
            notes.push("the history is longer than 400 days: the oldest part is left out".into());
        }
        if wrong > 0 {
            notes.push(format!(
                "{:.0} minutes are left out: their rate is {UNUSUAL} times that of usual peaks",
                (wrong as f64) * (STEP as f64) / 60.0
            ));
        }
        if self.gaps > 0 {
            notes.push(format!(
                "{} intervals are left out: counters were reset, or more than 6 hours are missing",
                self.gaps
            ));
        }
        History { samples, routes, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: i64, seconds: i64, requests: f64) -> Record {
        Record { at, seconds, requests: Some(requests), ..Record::default() }
    }

    #[test]
    fn records_are_spread_over_bins() {
        let mut all = Collector::default();
        all.add(&record(0, 900, 900.0));
        all.add(&Record { cpu: Some(600.0), ..Record { requests: None, ..record(150, 600, 0.0) } });
        let found = all.finish();
        assert_eq!(found.samples.len(), 3);
        assert!(found.samples.iter().all(|sample| (sample.rate - 1.0).abs() < 1e-6));
        assert_eq!(found.samples[1].busy, Some(1.0));
        assert_eq!(found.end(), 900);
    }

    #[test]
    fn broken_counter_is_left_out() {
        let mut all = Collector::default();
        for n in 0..2_000 {
            let rate = if n == 700 { 1e12 } else { 1.0 };
            all.add(&record(n * STEP, STEP, rate * STEP as f64));
        }
        let found = all.finish();
        assert_eq!(found.samples.len(), 1_999);
        assert!(found.notes[0].starts_with("5 minutes are left out"), "{:?}", found.notes);
    }

    #[test]
    fn memory_of_long_history_is_bounded() {
        let mut all = Collector::default();
        for n in 0..2_000 {
            all.add(&record(n * INTERVAL_MAX, INTERVAL_MAX, 1.0));
        }
        for n in 0..100 {
            all.add_route(1_000, 60, &format!("route {n}"), 1.0, Some(0.5));
        }
        all.add(&record(0, INTERVAL_MAX + 1, 1.0));
        all.add(&record(-5, 60, 1.0));
        all.add(&record(5, 0, 1.0));
        let found = all.finish();
        assert!(found.samples.len() <= BINS_MAX);
        assert_eq!(found.notes.len(), 2);
        assert_eq!(found.routes.len(), ROUTES_MAX + 1);
        assert_eq!(found.routes[ROUTES_MAX].name, OTHER);
        assert!((found.routes[ROUTES_MAX].requests - 80.0).abs() < 1e-9);
    }
}
