//! Capacity of the server: the use of the cores, and the further requests that they carry. A thread
//! takes a sample every few seconds; a status only compares samples.
//!
//! The estimate uses the measured CPU time per request. It is linear: at high load, requests cost
//! more, because they share caches. Therefore it never plans with the whole machine.

mod cores;

use crate::pools::Pools;
use anyhow::Result;
use cores::CoreTimes;
use samovar_insight::{Insight, Model};
use samovar_supervisor::{Handle, free_memory, own_memory};
use samovar_wire::CapacityStatus;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time between two samples. With 256 workers, a sample takes some 10 ms of CPU time.
const STEP: Duration = Duration::from_secs(5);
/// Period of the use of cores.
const MINUTE: Duration = Duration::from_mins(1);
/// Period of the cost of requests.
const COST_PERIOD: Duration = Duration::from_mins(5);
/// Maximum number of samples: those of the longest period, and the one before it.
const SAMPLES_MAX: usize = 62;
/// Minimum number of requests for an estimate.
const REQUESTS_MIN: u64 = 100;
/// Share of the cores, of the workers and of the free memory that the estimate uses. At a higher
/// share, requests wait long.
const SHARE_MAX: f64 = 0.9;

/// Requests since the start, those without PHP included. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    requests: u64,
    /// CPU time of workers.
    cpu_ns: u64,
    /// Time in workers.
    run_ns: u64,
    /// CPU time of the server's own process.
    front_ns: u64,
}

impl Traffic {
    fn of(insight: &Insight) -> Traffic {
        let figures = insight.figures();
        let mut sum = Traffic { front_ns: process_cpu_ns(), ..Traffic::default() };
        for model in [Model::None, Model::Script, Model::Checkpoint, Model::Resident] {
            let costs = figures.of_model(model);
            sum.requests += costs.requests;
            sum.cpu_ns = sum.cpu_ns.saturating_add(costs.cpu.sum_ns());
            sum.run_ns = sum.run_ns.saturating_add(costs.run_ns);
        }
        sum
    }

    fn since(self, then: Traffic) -> Traffic {
        Traffic {
            requests: self.requests.saturating_sub(then.requests),
            cpu_ns: self.cpu_ns.saturating_sub(then.cpu_ns),
            run_ns: self.run_ns.saturating_sub(then.run_ns),
            front_ns: self.front_ns.saturating_sub(then.front_ns),
        }
    }
}

/// Returns the CPU time of this process, without that of its children.
pub(crate) fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let of = |number: i64| u64::try_from(number).unwrap_or(0);
    of(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(of(time.tv_nsec))
}

/// Workers and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    /// Number of workers.
    workers: u64,
    /// Maximum number of workers; 0: several pools, each with its own maximum.
    workers_max: u64,
    /// Private memory of a worker.
    worker_bytes: u64,
    free_bytes: u64,
}

#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    times: CoreTimes,
    /// `None`: requests are not measured.
    traffic: Option<Traffic>,
    room: Room,
}

/// Sources of the samples.
struct Sources {
    supervisor: Handle,
    pools: Pools,
    insight: Option<Arc<Insight>>,
}

impl Sources {
    fn sample(&self) -> Sample {
        let report = self.supervisor.report();
        let workers: Vec<_> = report.workers.iter().filter(|worker| !worker.is_tracer).collect();
        let count = workers.len() as u64;
        // The oldest worker has the most memory of its own.
        let oldest = workers.iter().max_by_key(|worker| worker.age);
        let most = report.scale.first().map_or(count, |line| line.max as u64);
        Sample {
            at: Instant::now(),
            times: CoreTimes::read(),
            traffic: self.insight.as_deref().map(Traffic::of),
            room: Room {
                workers: count,
                workers_max: if self.pools.is_empty() { most } else { 0 },
                worker_bytes: oldest.and_then(|worker| own_memory(worker.pid)).unwrap_or(0),
                free_bytes: free_memory().unwrap_or(0),
            },
        }
    }
}

type Samples = Mutex<VecDeque<Sample>>;

/// The samples of the last minutes.
#[derive(Clone)]
pub(crate) struct Capacity(Arc<Samples>);

impl Capacity {
    /// Starts the thread. It ends when the last clone is dropped.
    pub(crate) fn start(
        supervisor: Handle,
        pools: Pools,
        insight: Option<Arc<Insight>>,
    ) -> Result<Capacity> {
        let sources = Sources { supervisor, pools, insight };
        let samples = Arc::new(Mutex::new(VecDeque::new()));
        let weak = Arc::downgrade(&samples);
        std::thread::Builder::new().name("capacity".into()).spawn(move || run(&weak, &sources))?;
        Ok(Capacity(samples))
    }

    /// Returns the use of the last minute, and the estimate.
    pub(crate) fn status(&self) -> CapacityStatus {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(now) = samples.back() else { return too_early() };
        let oldest = |period: Duration| {
            let is_within = |one: &&Sample| now.at - one.at <= period;
            samples.iter().find(is_within).unwrap_or(now)
        };
        judge(oldest(MINUTE), oldest(COST_PERIOD), now)
    }
}

fn run(samples: &Weak<Samples>, sources: &Sources) {
    loop {
        let sample = sources.sample();
        let Some(samples) = samples.upgrade() else { return };
        let mut all = samples.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == SAMPLES_MAX {
            all.pop_front();
        }
        all.push_back(sample);
        drop(all);
        drop(samples);
        std::thread::sleep(STEP);
    }
}

fn too_early() -> CapacityStatus {
    CapacityStatus { unknown: "the server has just started".to_owned(), ..Default::default() }
}

/// Compares the latest sample with one of a minute ago, and one of five minutes ago.
#[allow(clippy::cast_precision_loss)] // Sums of minutes stay far below 2^52.
fn judge(minute: &Sample, earlier: &Sample, now: &Sample) -> CapacityStatus {
    let seconds = (now.at - minute.at).as_secs_f64();
    if seconds <= 0.0 {
        return too_early();
    }
    let (times, room) = (&now.times, now.room);
    let cores = |now: u64, then: u64| now.saturating_sub(then) as f64 / 1e9 / seconds;
    let own = cores(times.own_ns, minute.times.own_ns);
    let stolen = cores(times.stolen_ns, minute.times.stolen_ns);
    let others = (cores(times.busy_ns, minute.times.busy_ns) - own).max(0.0);
    // The rest of the quota, if the CPUs have that much left.
    let left = |share: f64| {
        (times.cores * share - own).min(times.cpus * share - own - others - stolen).max(0.0)
    };
    let periods = times.periods.saturating_sub(minute.times.periods);
    let throttled = times.throttled.saturating_sub(minute.times.throttled);
    let status = CapacityStatus {
        seconds,
        cores: times.cores,
        cores_used: own,
        cores_others: others,
        cores_stolen: stolen,
        cores_free: left(1.0),
        throttled: throttled as f64 / periods.max(1) as f64,
        shares_cores: times.shares_cores,
        worker_bytes: room.worker_bytes,
        memory_free_bytes: room.free_bytes,
        ..CapacityStatus::default()
    };
    let (Some(traffic), Some(then)) = (now.traffic, earlier.traffic) else {
        let unknown = "requests are not measured (insight.enabled)".to_owned();
        return CapacityStatus { unknown, ..status };
    };
    let of_minute = traffic.since(minute.traffic.unwrap_or(traffic));
    let (sum, rate) = (traffic.since(then), of_minute.requests as f64 / seconds);
    let status = CapacityStatus { requests_per_second: rate, ..status };
    if sum.requests < REQUESTS_MIN || sum.cpu_ns == 0 {
        let unknown = format!("fewer than {REQUESTS_MIN} requests of PHP in the last five minutes");
        return CapacityStatus { unknown, ..status };
    }
    let of_request = |ns: u64| ns as f64 / 1e9 / sum.requests as f64;
    let cpu = of_request(sum.cpu_ns.saturating_add(sum.front_ns));
    let by_cpu = left(SHARE_MAX) / cpu;
    let (by_workers, name) = by_workers(room, of_request(sum.run_ns), rate);
    let (more, limit) = if by_workers < by_cpu { (by_workers, name) } else { (by_cpu, "cpu") };
    CapacityStatus {
        cpu_us_per_request: Some(cpu * 1e6),
        requests_more_per_second: Some(more),
        limit: limit.to_owned(),
        ..status
    }
}

/// Returns the further requests per second that the workers can run, and the limit of their number.
/// `run` is a request's time in a worker, in seconds.
#[allow(clippy::cast_precision_loss)] // Small numbers.
fn by_workers(room: Room, run: f64, rate: f64) -> (f64, &'static str) {
    if room.workers_max == 0 || run <= 0.0 {
        return (f64::INFINITY, "workers");
    }
    let affordable = match room.worker_bytes {
        0 => f64::INFINITY,
        bytes => (room.free_bytes as f64 * SHARE_MAX / bytes as f64).floor(),
    };
    let (most, affordable) = (room.workers_max as f64, room.workers as f64 + affordable);
    let (workers, name) =
        if affordable < most { (affordable, "memory") } else { (most, "workers") };
    ((workers * SHARE_MAX / run - rate).max(0.0), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The beginning, and a minute later: 600 requests, each with 10 ms of CPU time and 20 ms in a
    /// worker; others use half a core; 4 CPUs.
    fn samples() -> [Sample; 2] {
        let at = Instant::now();
        let room = Room { workers: 4, workers_max: 64, worker_bytes: 10, free_bytes: 100_000 };
        let times = CoreTimes { cpus: 4.0, cores: 4.0, ..CoreTimes::default() };
        let first = Sample { at, times, traffic: Some(Traffic::default()), room };
        let mut now = first.clone();
        now.at += MINUTE;
        now.times.own_ns = 6 * SECOND;
        now.times.busy_ns = 36 * SECOND;
        now.traffic = Some(Traffic {
            requests: 600,
            cpu_ns: 5 * SECOND,
            run_ns: 12 * SECOND,
            front_ns: SECOND,
        });
        [first, now]
    }

    fn of([first, now]: &[Sample; 2]) -> CapacityStatus {
        judge(first, first, now)
    }

    fn is_about(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-6 * expected.max(1.0)
    }

    #[test]
    fn free_cores_are_divided_by_the_cost_of_a_request() {
        let found = of(&samples());
        assert!(is_about(found.cores_used, 0.1) && is_about(found.cores_others, 0.5), "{found:?}");
        assert!(is_about(found.cores_free, 3.4), "{found:?}");
        assert!(found.cpu_us_per_request.is_some_and(|us| is_about(us, 10_000.0)), "{found:?}");
        // 90 % of 4 cores without 0.6.
        assert!(found.requests_more_per_second.is_some_and(|n| is_about(n, 300.0)), "{found:?}");
        assert_eq!(found.limit, "cpu");
    }

    #[test]
    fn quota_steal_and_throttling_reduce_capacity() {
        let mut all = samples();
        all[1].times.cores = 0.5;
        all[1].times.periods = 600;
        all[1].times.throttled = 60;
        let found = of(&all);
        assert!(is_about(found.throttled, 0.1) && is_about(found.cores_free, 0.4), "{found:?}");
        assert!(found.requests_more_per_second.is_some_and(|n| is_about(n, 35.0)), "{found:?}");
        let mut all = samples();
        all[1].times.stolen_ns = 180 * SECOND;
        let found = of(&all);
        assert!(is_about(found.cores_stolen, 3.0), "{found:?}");
        assert!(found.requests_more_per_second.is_some_and(|n| n < 1e-6), "{found:?}");
    }

    #[test]
    fn workers_or_memory_can_be_the_limit() {
        let mut all = samples();
        all[1].room.workers_max = 4;
        let found = of(&all);
        // 4 · 90 % / 20 ms, minus 10 per second.
        assert!(found.requests_more_per_second.is_some_and(|n| is_about(n, 170.0)), "{found:?}");
        assert_eq!(found.limit, "workers");
        let mut all = samples();
        all[1].room.worker_bytes = 60_000;
        let found = of(&all);
        // 4 and one more.
        assert!(found.requests_more_per_second.is_some_and(|n| is_about(n, 215.0)), "{found:?}");
        assert_eq!(found.limit, "memory");
    }

    #[test]
    fn capacity_without_enough_traffic_is_unknown() {
        let mut all = samples();
        all[1].traffic = Some(Traffic { requests: 99, cpu_ns: 1, ..Traffic::default() });
        assert!(of(&all).unknown.starts_with("fewer than 100 requests"), "{:?}", of(&all));
        all[1].traffic = None;
        assert!(of(&all).unknown.contains("insight.enabled"), "{:?}", of(&all));
        let [first, _] = samples();
        assert!(judge(&first, &first, &first).unknown.contains("just started"));
    }
}
